"""Sample inputs, as the reader of pickles describes them <-> a flat table of JSON values; nothing in it is code.

The table may be anybody's. Every call that a pickle would make goes through the same checks as it does there: tensors
lie inside their storages, parts fit together, keys can be hashed, the whole is neither deep nor large as a tree.
`table` has the table, `structs` the kinds with named parts; `docs/sanitize.md` lists the keys.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.package.pickle_free_inputs.structs import STRUCTS, numpy_dtype
from pt2kit.package.pickle_free_inputs.table import Kind, Place, Reader, Writer
from pt2kit.pickles import builtin_reducers as builtin
from pt2kit.pickles import values as data
from pt2kit.pickles.allowed_globals import INERT, name_global
from pt2kit.pickles.argument_checks import check_bool, check_count
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS, Budget, PickleLimits, describe
from pt2kit.pickles.torch_names import ITEM_SIZES, MEMORY_FORMATS, QSCHEMES
from pt2kit.pickles.value_limits import check_tree

FAKE_TENSOR: Final = "torch._export.serde.serialize._reconstruct_fake_tensor"
"""The function that torch pickles fake tensors by; its arguments are a `TensorMeta` as JSON, and whether it is a
parameter."""

_FLOATS: Final = MappingProxyType({"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf})


@dataclass(frozen=True, slots=True)
class InputValues:
    """Values as JSON, and the storages that their tensors lie in.

    Args:
        values: the table.
        roots: the values that were encoded, in order.
        storages: what "storage" numbers mean.
    """

    values: list[Any]
    roots: list[Any]
    storages: tuple[data.PickledStorage, ...]


def encode_values(values: Sequence[Any], where: str) -> InputValues:
    """Write values as JSON.

    Args:
        values: as `pickles.reader.read_payload` gives them: they have bounded depth and contain no cycles.
        where: the record they come from, for messages.

    Returns:
        trees that share nothing with the values; the same values give the same trees. No storage is read.

    Raises:
        UnsupportedError: an object of a class, named.

    Cost: linear in the parts; what is shared is written once.
    """
    writer = Writer(where, KINDS, _key_of)
    roots = [writer.write(value) for value in values]
    return InputValues(writer.values, roots, tuple(writer.storages))


def decode_values(
    values: Any,
    roots: Sequence[Any],
    storages: Sequence[data.PickledStorage],
    where: str,
    *,
    limits: PickleLimits = DEFAULT_PICKLE_LIMITS,
) -> list[Any]:
    """Read values of JSON.

    Args:
        values: the table, a plain tree of any form.
        roots: what refers to it.
        storages: what "storage" numbers mean; the tensors share them.
        where: the record, for messages.
        limits: what the values may cost.

    Returns:
        the values of `roots`, as `pickles.reader.read_payload` gives such values. No storage is read.

    Raises:
        PayloadError: a table of another form, or values that contradict themselves or their storages.
        UnsupportedError, LimitError: as `read_payload`.
    """
    reader = Reader(Budget(where, limits), storages, KINDS)
    if not isinstance(values, list):
        raise reader.budget.error("values", "a list", describe(values))
    for entry in values:
        reader.entry(entry)
    read = [reader.value(root, f"value {number}") for number, root in enumerate(roots)]
    # All at once, so that what they share is looked at once; the list they are in is one more level.
    check_tree(Budget(where, replace(limits, depth=limits.depth + 1)), read, lambda path: False)
    return read


def _sorted(items: Iterable[Any]) -> list[Any]:
    """The members of a set in an order that does not depend on their hashes."""
    return sorted(items, key=_order)


def _order(item: Any) -> str:
    """A text that tells members of a set apart. Members have few parts, so they are not deep."""
    match item:
        case tuple():
            return f"({','.join(map(_order, item))})"
        case frozenset():
            return f"{{{','.join(sorted(map(_order, item)))}}}"
        case data.NamedTuple():
            return f"{item.class_name}({','.join(map(_order, item.values))})"
    return f"{type(item).__name__} {item!r}"


def _keys_and_values(value: Mapping[Any, Any]) -> list[Any]:
    return [*value, *value.values()]


def _set(make: Callable[..., Any]) -> Kind:
    def read(body: Any, at: Place) -> Any:
        items = at.values(body)
        made = make(at.budget, at.path, (items,))
        if len(made) != len(items):
            raise at.error("each member once", body)
        return made

    return Kind(lambda value, to: to.inlines(_sorted(value)), read, _sorted, True)


def _write_ordered_dict(value: data.PickledDict | OrderedDict[Any, Any], to: Writer) -> Any:
    return {"items": to.items(value), "attributes": to.items(getattr(value, "attributes", None) or {})}


def _read_ordered_dict(body: Any, at: Place) -> data.PickledDict:
    made: data.PickledDict = at.items(at.field(body, "items"), data.PickledDict())
    attributes = at.at("attributes").items(at.field(body, "attributes"), {})
    if not all(isinstance(name, str) for name in attributes):
        raise at.error("attribute names", attributes)
    if attributes:
        made.attributes = attributes
    return made


def _ordered_dict_parts(value: data.PickledDict | OrderedDict[Any, Any]) -> list[Any]:
    return [*_keys_and_values(value), *_keys_and_values(getattr(value, "attributes", {}))]


def _write_defaultdict(value: defaultdict[Any, Any], to: Writer) -> Any:
    name = next((name for name, made in builtin.FACTORIES.items() if made is value.default_factory), None)
    if name is None and value.default_factory is not None:
        raise UnsupportedError(f"{to.where}: expected a defaultdict of {', '.join(builtin.FACTORIES)}, got another")
    return {"factory": name, "items": to.items(value)}


def _read_defaultdict(body: Any, at: Place) -> Any:
    name = at.field(body, "factory")
    factory = () if name is None else (name_global(*at.text(name).rpartition(".")[::2]),)
    return at.items(at.field(body, "items"), builtin.default_dict(at.budget, at.path, factory))


def _read_deque(body: Any, at: Place) -> deque[Any]:
    items, maxlen = at.values(at.field(body, "items")), at.field(body, "maxlen")
    if maxlen is not None and check_count(at.budget, f"{at.path}.maxlen", maxlen) < len(items):
        raise at.error(f"at most {maxlen} items", body)
    return builtin.make_deque(at.budget, at.path, (items, maxlen))


def _write_mark(value: data.Opaque, to: Writer) -> Any:
    """A mark of a dynamic dimension; any other object is refused."""
    if value.cls.path not in INERT or value.kwargs or value.items or value.pairs:
        raise to.refuse(value)
    args, state = to.inlines(value.args), to.inline(value.state)
    return {"class": value.cls.path, "args": args, "state": state, "built": value.built}


def _read_mark(body: Any, at: Place) -> data.Opaque:
    path = at.text(at.field(body, "class"))
    if path not in INERT:
        raise at.error(f"a class of {', '.join(sorted(INERT))}", path)
    return data.Opaque(
        name_global(*path.rpartition(".")[::2]),
        at.values(at.field(body, "args")),
        state=at.value(at.field(body, "state")),
        built=check_bool(at.budget, at.path, at.field(body, "built")),
    )


def _is_fake_tensor(value: data.Opaque) -> bool:
    if value.kwargs or value.items or value.pairs or value.built or value.cls.path != FAKE_TENSOR:
        return False
    return [type(arg) for arg in value.args] == [bytes, bool]


def _write_fake_tensor(value: data.Opaque, to: Writer) -> Any:
    from pt2kit import codec, schema

    meta, is_param = value.args
    decoded = codec.decode(meta, schema.TensorMeta, f"{to.where}: fake tensor")
    if decoded.unknown:
        got = str(decoded.unknown[0])[:80]
        raise UnsupportedError(f"{to.where}: fake tensor: expected keys of the schema, got {got}")
    return {"tensor_meta": codec.to_tree(decoded.value), "is_param": is_param}


def _read_fake_tensor(body: Any, at: Place) -> data.Opaque:
    from pt2kit import codec, schema

    tree = at.field(body, "tensor_meta")
    where = f"{at.budget.where}: {at.path}.tensor_meta"
    decoded = codec.decode(codec.encode(tree), schema.TensorMeta, where)
    if decoded.unknown:
        raise at.error("keys of the schema", str(decoded.unknown[0]))
    is_param = check_bool(at.budget, at.path, at.field(body, "is_param"))
    return data.Opaque(name_global(*FAKE_TENSOR.rpartition(".")[::2]), (codec.encode(decoded.value), is_param))


def _spell_float(value: float) -> float | str:
    """A float as JSON has it: the three values that are no numbers there as the format's texts."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_float(body: Any, at: Place) -> float:
    if isinstance(body, float):
        return body
    if not isinstance(body, str) or body not in _FLOATS:
        raise at.error("a number with a fraction, NaN, Infinity or -Infinity", body)
    return _FLOATS[body]


def _read_complex(body: Any, at: Place) -> complex:
    parts = at.list(body)
    if len(parts) != 2:
        raise at.error("two floats", body)
    return complex(_read_float(parts[0], at), _read_float(parts[1], at))


def _read_ellipsis(body: Any, at: Place) -> Any:
    if body is not True:
        raise at.error("true", body)
    return Ellipsis


def _limits_of(make: Callable[..., Any]) -> Kind:
    """A kind of start, stop and step."""
    return Kind(
        lambda value, to: [value.start, value.stop, value.step],
        lambda body, at: make(at.budget, at.path, tuple(at.list(body))),
    )


def _named(make: Callable[[str], Any], known: Sequence[str] | Mapping[str, Any]) -> Kind:
    """A kind of things that have one of the given names."""

    def read(body: Any, at: Place) -> Any:
        if at.text(body) not in known:
            raise at.error("a name that torch has", body)
        return make(body)

    return Kind(lambda value, to: value.name, read)


_PLAIN: Final[Mapping[str, tuple[type, Kind]]] = {
    "tuple": (tuple, Kind(lambda value, to: to.inlines(value), lambda body, at: at.values(body), list, True)),
    "list": (list, Kind(lambda value, to: to.inlines(value), lambda body, at: list(at.values(body)), list, True)),
    "set": (set, _set(builtin.make_set)),
    "frozenset": (frozenset, _set(builtin.make_frozenset)),
    "dict": (
        dict,
        Kind(lambda value, to: to.items(value), lambda body, at: at.items(body, {}), _keys_and_values, True),
    ),
    "ordered_dict": (data.PickledDict, Kind(_write_ordered_dict, _read_ordered_dict, _ordered_dict_parts, True)),
    "counter": (
        Counter,
        Kind(
            lambda value, to: to.items(value),
            lambda body, at: builtin.counter(at.budget, at.path, (at.items(body, {}),)),
            _keys_and_values,
            True,
        ),
    ),
    "defaultdict": (defaultdict, Kind(_write_defaultdict, _read_defaultdict, _keys_and_values, True)),
    "deque": (
        deque,
        Kind(lambda value, to: {"items": to.inlines(value), "maxlen": value.maxlen}, _read_deque, list, True),
    ),
    "mark": (data.Opaque, Kind(_write_mark, _read_mark, lambda value: [*value.args, value.state], True)),
    "float": (float, Kind(lambda value, to: _spell_float(value), _read_float)),
    "complex": (complex, Kind(lambda value, to: [_spell_float(value.real), _spell_float(value.imag)], _read_complex)),
    "bytes": (bytes, Kind(lambda value, to: value.hex(), lambda body, at: at.bytes(body))),
    "bytearray": (bytearray, Kind(lambda value, to: value.hex(), lambda body, at: bytearray(at.bytes(body)))),
    "ellipsis": (type(Ellipsis), Kind(lambda value, to: True, _read_ellipsis)),
    "slice": (slice, _limits_of(builtin.make_slice)),
    "range": (range, _limits_of(builtin.make_range)),
    "size": (
        data.Size,
        Kind(
            lambda value, to: list(value.sizes),
            lambda body, at: builtin.make_size(at.budget, at.path, (tuple(at.list(body)),)),
        ),
    ),
    "dtype": (data.DType, _named(data.DType, ITEM_SIZES)),
    "layout": (
        data.Layout,
        Kind(
            lambda value, to: value.name,
            lambda body, at: builtin.get_layout(at.budget, at.path, (at.text(body),)),
        ),
    ),
    "memory_format": (data.MemoryFormat, _named(data.MemoryFormat, MEMORY_FORMATS)),
    "qscheme": (data.QScheme, _named(data.QScheme, QSCHEMES)),
    "device": (
        data.Device,
        Kind(
            lambda value, to: value.type if value.index is None else f"{value.type}:{value.index}",
            lambda body, at: builtin.make_device(at.budget, at.path, (at.text(body),)),
        ),
    ),
    "numpy_dtype": (data.NumpyDType, Kind(lambda value, to: value.name, numpy_dtype)),
}

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {key: kind for key, (_, kind) in {**_PLAIN, **STRUCTS}.items()}
    | {"fake_tensor": Kind(_write_fake_tensor, _read_fake_tensor, is_entry=True)}
)
"""Key -> kind."""

_KEYS: Final[Mapping[type, str]] = MappingProxyType(
    {cls: key for key, (cls, _) in {**_PLAIN, **STRUCTS}.items()} | {OrderedDict: "ordered_dict"}
)


def _key_of(value: Any) -> str | None:
    key = _KEYS.get(type(value))
    return "fake_tensor" if key == "mark" and _is_fake_tensor(value) else key
