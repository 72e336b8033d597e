"""Sample inputs without a pickle: an index and raw records, read into the same values as a pickle by `pickles.reader`.

    data/sample_inputs/<model>.pt                  empty: for torch, the program has no sample inputs
    data/sample_inputs/tensor_<i>                  storage number i as raw little-endian bytes
    extra/pt2kit/sample_inputs/<model>.json        the storages, and the structure of the inputs

The index is text, as torch reads every extra file as text; the bytes are not under `extra/`, for the same reason.
`sanitizing` writes these records. A pickle that is there counts, and the index next to it does not.

The index has a flat table of JSON values; nothing in it is code::

    {"values": [{"tensor": {"storage": 0, …}}, {"tuple": [{"ref": 0}, 2, {"float": 0.5}]}, {"dict": []},
                {"tuple": [{"ref": 1}, {"ref": 2}]}], "value": {"ref": 3}}

A value is null, a truth value, an integer, a text, or an object whose one key is its kind. Containers and
tensors are entries of the table, which others refer to by their numbers; an entry refers to earlier ones only, so that
nothing can contain itself, and what was shared is shared again. The table may be anybody's: each kind is built by the
function that reads it from a pickle, with all of its checks. `docs/sanitize.md` lists the kinds.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, structs

from pt2kit import codec, schema
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.messages import printable
from pt2kit.package import record_names as names
from pt2kit.package.programs import read_json
from pt2kit.pickles import builtin_reducers as builtin
from pt2kit.pickles import tensor_reducers
from pt2kit.pickles import values as data
from pt2kit.pickles.allowed_globals import MARKS, name_global
from pt2kit.pickles.argument_checks import check_bool, check_count
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS, MAX_NAME, Budget, PickleLimits, check_tree, describe
from pt2kit.pickles.torch_names import ITEM_SIZES, MEMORY_FORMATS

if TYPE_CHECKING:
    from pt2kit.package.layouts.base import Layout

FORMAT: Final = "pt2kit sample inputs 1"
"""Format name in an index; the number is that of the definition in `docs/sanitize.md`."""
FAKE_TENSOR: Final = "torch._export.serde.serialize._reconstruct_fake_tensor"
"""The function that torch pickles fake tensors by; its arguments are a `TensorMeta` as JSON, and whether it is a
parameter."""

_FLOATS: Final = MappingProxyType({"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf})


@dataclass(frozen=True, slots=True)
class PickleFreeInputs:
    """Sample inputs as an index has them.

    Args:
        where: the index's record, for messages.
        leaves: their values; tensors are descriptions as `pickles.reader` returns them.
        is_flat: whether `leaves` are the leaves of the program's tree spec, in its order. If not, there is one leaf:
            the pair of arguments and keyword arguments.
        records: names of the records that hold them, the index first.
    """

    where: str
    leaves: tuple[Any, ...]
    is_flat: bool
    records: tuple[str, ...]


@dataclass(slots=True)
class InputValues:
    """Values as JSON, and the storages of their tensors.

    Args:
        where: the record that the values come from, for messages.
        values: the table.
        roots: the values that were encoded, in order.
        by_storage: storage -> its number.
    """

    where: str
    values: list[Any] = field(default_factory=list)
    roots: list[Any] = field(default_factory=list)
    by_storage: dict[data.PickledStorage, int] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict, compare=False)

    @property
    def storages(self) -> tuple[data.PickledStorage, ...]:
        """Return the storages, in the order of their numbers."""
        return tuple(self.by_storage)

    def add(self, root: Any) -> None:
        """Add the entries of a value, inner ones first, and the value itself as a root."""
        stack = [(root, False)]
        while stack:
            value, is_expanded = stack.pop()
            key = _key_of(value)
            if key not in _KINDS or not _KINDS[key].is_entry or id(value) in self._numbers:
                continue
            if is_expanded:
                self.values.append({key: _KINDS[key].write(value, self)})
                self._numbers[id(value)] = len(self.values) - 1
            else:
                stack.append((value, True))
                stack += [(part, False) for part in reversed(_parts(value))]
        self.roots.append(self.inline(root))

    def inline(self, value: Any) -> Any:
        """Return a value as it is written inside an entry: itself, an object with one key, or its entry's number."""
        if value is None or type(value) in (bool, int, str):
            return value
        key = _key_of(value)
        if key not in _KINDS:
            what = f"an object of {value.cls.path}" if isinstance(value, data.Opaque) else f"a {type(value).__name__}"
            if isinstance(value, data.Global):
                what = f"the global {value.path}"
            raise UnsupportedError(f"{self.where}: expected plain data, got {what[:200]!a}")
        return {"ref": self._numbers[id(value)]} if _KINDS[key].is_entry else {key: _KINDS[key].write(value, self)}

    def field(self, value: Any) -> Any:
        """Return a part of a tensor: a storage's number, a list, pairs, or a value."""
        if isinstance(value, data.PickledStorage):
            return self.by_storage.setdefault(value, len(self.by_storage))
        if isinstance(value, Mapping):
            return self.pairs(value)
        return [self.inline(item) for item in value] if isinstance(value, tuple) else self.inline(value)

    def pairs(self, value: Mapping[Any, Any]) -> list[Any]:
        """Return the pairs of a dict."""
        return [[self.inline(key), self.inline(item)] for key, item in value.items()]


@dataclass(slots=True)
class _Reader:
    """The values of the entries so far.

    Args:
        budget: the limits of reading, and the record for messages.
        storages: the storages, by number.
    """

    budget: Budget
    storages: Sequence[data.PickledStorage]
    made: list[Any] = field(default_factory=list)
    path: str = ""
    """The entry or root that is being read."""

    def error(self, expected: str, got: Any) -> PayloadError:
        """Return the error for the value in the current place."""
        return self.budget.error(self.path, expected, describe(got))

    def entry(self, written: Any) -> None:
        """Read the next entry."""
        self.path = f"values[{len(self.made)}]"
        key, body = self._kind(written, "a container or a tensor", is_entry=True)
        self.path += f".{key}"
        self.made.append(_KINDS[key].read(body, self))

    def value(self, written: Any) -> Any:
        """Return a value as it is written inside an entry."""
        if written is None or isinstance(written, bool | int | str):
            return written
        if isinstance(written, dict) and list(written) == ["ref"]:
            if check_count(self.budget, f"{self.path}: ref", written["ref"]) >= len(self.made):
                expected = f"an entry before this one, below {len(self.made)}"
                raise self.budget.error(self.path, expected, str(written["ref"]))
            return self.made[written["ref"]]
        key, body = self._kind(written, "a kind of value", is_entry=False)
        return _KINDS[key].read(body, self)

    def _kind(self, written: Any, expected: str, *, is_entry: bool) -> tuple[str, Any]:
        if not isinstance(written, dict) or len(written) != 1:
            raise self.error("an object with one key", written)
        [(key, body)] = written.items()
        if key not in _KINDS or _KINDS[key].is_entry is not is_entry:
            raise self.budget.error(self.path, expected, repr(printable(key, 40)))
        return key, body

    def get(self, body: Any, key: str) -> Any:
        """Return the value of an object's key, as it is written."""
        if not isinstance(body, dict) or key not in body:
            raise self.error(f"an object with the key {key}", body)
        return body[key]

    def text(self, body: Any, known: Iterable[str] | None = None, expected: str = "a text") -> str:
        """Return a text, one of those `known` if any are given."""
        if not isinstance(body, str) or (known is not None and body not in known):
            raise self.error(expected, body)
        return body

    def items(self, body: Any) -> tuple[Any, ...]:
        """Return the values of a list."""
        if not isinstance(body, list):
            raise self.error("a list", body)
        self.budget.spend(64 * len(body))
        return tuple(map(self.value, body))

    def pairs(self, body: Any, into: Any) -> Any:
        """Fill a dict with pairs; equal keys are refused, as one of the values would be lost."""
        for pair in body if isinstance(body, list) else self.items(body):
            if not isinstance(pair, list) or len(pair) != 2:
                raise self.error("pairs of key and value", pair)
            key, value = map(self.value, pair)
            self.budget.check_key(key)
            if key in into:
                raise self.error("each key once", key)
            into[key] = value
        return into

    def field(self, key: str, written: Any) -> Any:
        """Return a part of a tensor, of the type that its key has."""
        if key == "storage":
            if check_count(self.budget, f"{self.path}: storage", written) >= len(self.storages):
                raise self.error(f"one of {len(self.storages)} storages", written)
            return self.storages[written]
        if key == "dtype":
            return self.text(written, ITEM_SIZES, "an element type")
        if key == "kind":
            return self.text(written, _TENSOR_KINDS, f"one of {', '.join(_TENSOR_KINDS)}")
        if key in ("conj", "neg", "requires_grad"):
            return check_bool(self.budget, f"{self.path}: {key}", written)
        if key == "attributes":
            return self.pairs(written, {})
        return self.items(written) if key in ("sizes", "strides", "indices") else self.value(written)


class _Kind(NamedTuple):
    """One kind of value, in both directions.

    Args:
        cls: the type of such values.
        write: (value, the table so far) -> the value to write under the kind's key.
        read: (the written value, the reader) -> the value, every part of it checked.
        is_entry: whether such values are entries of the table.
    """

    cls: type
    write: Callable[[Any, InputValues], Any]
    read: Callable[[Any, _Reader], Any]
    is_entry: bool = False


def encode_values(values: Sequence[Any], where: str) -> InputValues:
    """Write values as JSON; the same values have the same trees. No storage is read.

    Args:
        values: as `pickles.reader.read_payload` returns them: they have bounded depth and contain no cycles.
        where: the record they come from, for messages.

    Raises:
        UnsupportedError: an object of a class that is no data, or of a rare kind.
    """
    encoded = InputValues(where)
    for value in values:
        encoded.add(value)
    return encoded


def decode_values(
    values: Any,
    roots: Sequence[Any],
    storages: Sequence[data.PickledStorage],
    where: str,
    *,
    limits: PickleLimits = DEFAULT_PICKLE_LIMITS,
) -> list[Any]:
    """Read values from JSON.

    Args:
        values: the table, a plain tree of any form.
        roots: references to it.
        storages: the storages, by number; the tensors share them.
        where: the record, for messages.
        limits: the limits of the values' cost.

    Raises:
        PayloadError: a table of another form, or values that contradict themselves or their storages.
        UnsupportedError, LimitError: as `read_payload`.
    """
    reader = _Reader(Budget(where, limits), storages, path="values")
    if not isinstance(values, list):
        raise reader.error("a list", values)
    for entry in values:
        reader.entry(entry)
    reader.path = "value"
    read = [reader.value(root) for root in roots]
    # Together, so that shared values are visited once; the list they are in is one more level.
    check_tree(Budget(where, replace(limits, depth=limits.depth + 1)), read, lambda path: False)
    return read


def write_index(moved: InputValues, *, is_flat: bool, first: int) -> bytes:
    """Return the content of an index.

    Args:
        moved: the values, one of them if not `is_flat`.
        is_flat: as in `PickleFreeInputs`.
        first: the number of the first storage's record; the others follow.
    """
    rows = [
        {
            "path_name": names.samples_storage(first + number).rpartition("/")[2],
            "dtype": storage.dtype_name,
            "nbytes": storage.nbytes,
            "device": storage.device,
        }
        for number, storage in enumerate(moved.storages)
    ]
    root: dict[str, Any] = {"leaves": moved.roots} if is_flat else {"value": moved.roots[0]}
    return codec.encode({"format": FORMAT, "storages": rows, "values": moved.values, **root})


def read_pickle_free_inputs(layout: Layout, model: str) -> PickleFreeInputs | None:
    """Read the sample inputs of a program that has an index of them; None if it has none. Reads no storage.

    Raises:
        JsonError: an index that is no JSON.
        PayloadError: one of another form, a storage without its record, values that contradict their storages.
        ArchiveError, UnsupportedError, LimitError: it cannot be read.
    """
    where = names.samples_index(model)
    full = layout.record(where)
    if full not in layout.archive.records:
        return None
    tree = codec.parse(read_json(layout.archive, full, where), where)
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        got = tree.get("format") if isinstance(tree, dict) else tree
        raise PayloadError(f"{where}: format: expected {FORMAT!r}, got {describe(got)}")
    is_flat = "leaves" in tree
    if tree.keys() != {"format", "storages", "values", "leaves" if is_flat else "value"}:
        raise PayloadError(
            f"{where}: expected the keys format, storages, values and one of value and leaves, got "
            f"{', '.join(sorted(map(ascii, tree)))[:200]}"
        )
    rows, roots = tree["storages"], tree["leaves"] if is_flat else [tree["value"]]
    for name, entries in (("storages", rows), ("leaves", roots)):
        if not isinstance(entries, list):
            raise PayloadError(f"{where}: {name}: expected a list, got {describe(entries)}")
    storages = [_storage(row, layout, f"{where}: storages[{number}]") for number, row in enumerate(rows)]
    records = dict.fromkeys((where, *(names.SAMPLE_INPUTS + storage.key for storage in storages)))
    leaves = tuple(decode_values(tree["values"], roots, storages, where))
    return PickleFreeInputs(where, leaves, is_flat, tuple(records))


def _storage(row: Any, layout: Layout, where: str) -> data.PickledStorage:
    match row:
        case {"path_name": str(path_name), "dtype": str(dtype), "nbytes": int(nbytes), "device": str(device)} if (
            len(row) == 4 and dtype in ITEM_SIZES
        ):
            pass
        case _:
            raise PayloadError(f"{where}: expected path_name, dtype, nbytes and device, got {describe(row)}")
    record = names.SAMPLE_INPUTS + path_name
    if not names.is_samples_storage(record):
        raise PayloadError(f"{where}: path_name: expected a name such as 'tensor_0', got {path_name[:80]!a}")
    entry = layout.archive.records.get(layout.record(record))
    if entry is None or entry.size != nbytes:
        got = "none of that name" if entry is None else f"{entry.size} bytes"
        raise PayloadError(f"{where}: expected a record {layout.record(record)} of {nbytes} bytes, got {got}")
    return data.PickledStorage(path_name, dtype, nbytes, device, partial(layout.archive.read, layout.record(record)))


def _key_of(value: Any) -> str:
    """Return the key of a value's kind; "" if it has none."""
    if isinstance(value, data.Opaque) and value.cls.path == FAKE_TENSOR:
        is_plain = not (value.kwargs or value.items or value.pairs or value.built)
        return "fake_tensor" if is_plain and [type(arg) for arg in value.args] == [bytes, bool] else ""
    is_mark = isinstance(value, data.Opaque) and value.cls.path in MARKS
    if isinstance(value, data.Opaque) and (not is_mark or value.kwargs or value.items or value.pairs):
        return ""
    return _KEYS.get(type(value), "")


def _parts(value: Any) -> list[Any]:
    """Return the values in a value that may be entries of the table."""
    match value:
        case Mapping():
            return [*value, *value.values(), *_parts(getattr(value, "attributes", ()))]
        case set() | frozenset():
            return _sorted(value)
        case list() | tuple() | deque():
            return list(value)
        case data.Opaque():
            return [*value.args, value.state]
        case Struct():
            fields = [getattr(value, name) for name in value.__struct_fields__]
            return [part for one in fields for part in (_parts(one) if isinstance(one, tuple | Mapping) else [one])]
    return []


def _sorted(items: Iterable[Any]) -> list[Any]:
    """Return the members of a set in an order that does not depend on their hashes."""
    return sorted(items, key=_order)


def _order(item: Any) -> str:
    """Return a text that distinguishes members of a set. Members have few parts, so they are not deep."""
    match item:
        case tuple():
            return f"({','.join(map(_order, item))})"
        case frozenset():
            return f"{{{','.join(sorted(map(_order, item)))}}}"
        case data.NamedTuple():
            return f"{item.class_name}({','.join(map(_order, item.values))})"
    return f"{type(item).__name__} {item!r}"


def _read_set(body: Any, at: _Reader, make: Callable[..., Any]) -> Any:
    items = at.items(body)
    made = make(at.budget, at.path, (items,))
    if len(made) != len(items):
        raise at.error("each member once", body)
    return made


def _read_ordered_dict(body: Any, at: _Reader) -> data.PickledDict:
    made: data.PickledDict = at.pairs(at.get(body, "items"), data.PickledDict())
    attributes = at.pairs(at.get(body, "attributes"), {})
    if not all(isinstance(name, str) for name in attributes):
        raise at.error("attribute names", attributes)
    if attributes:
        made.attributes = attributes
    return made


def _write_defaultdict(value: defaultdict[Any, Any], to: InputValues) -> Any:
    name = next((name for name, made in builtin.FACTORIES.items() if made is value.default_factory), None)
    if name is None and value.default_factory is not None:
        raise UnsupportedError(f"{to.where}: expected a defaultdict of {', '.join(builtin.FACTORIES)}, got another")
    return {"factory": name, "items": to.pairs(value)}


def _read_defaultdict(body: Any, at: _Reader) -> Any:
    name = at.get(body, "factory")
    factory = () if name is None else (name_global(*at.text(name).rpartition(".")[::2]),)
    return at.pairs(at.get(body, "items"), builtin.default_dict(at.budget, at.path, factory))


def _read_deque(body: Any, at: _Reader) -> Any:
    items, maxlen = at.items(at.get(body, "items")), at.get(body, "maxlen")
    if maxlen is not None and check_count(at.budget, f"{at.path}: maxlen", maxlen) < len(items):
        raise at.error(f"at most {maxlen} items", body)
    return builtin.make_deque(at.budget, at.path, (items, maxlen))


def _read_named_tuple(body: Any, at: _Reader) -> data.NamedTuple:
    name = at.text(at.get(body, "class_name"))
    if not 0 < len(name) <= MAX_NAME:
        raise at.error(f"a name of at most {MAX_NAME} characters", name)
    return data.NamedTuple(name, at.items(at.get(body, "values")))


def _write_mark(value: data.Opaque, to: InputValues) -> Any:
    args, state = to.field(value.args), to.inline(value.state)
    return {"class": value.cls.path, "args": args, "state": state, "built": value.built}


def _read_mark(body: Any, at: _Reader) -> data.Opaque:
    path = at.text(at.get(body, "class"), MARKS, f"a class of {', '.join(sorted(MARKS))}")
    built = check_bool(at.budget, at.path, at.get(body, "built"))
    args, state = at.items(at.get(body, "args")), at.value(at.get(body, "state"))
    return data.Opaque(name_global(*path.rpartition(".")[::2]), args, state=state, built=built)


def _write_fake_tensor(value: data.Opaque, to: InputValues) -> Any:
    meta, is_param = value.args
    decoded = codec.decode(meta, schema.TensorMeta, f"{to.where}: fake tensor")
    if decoded.unknown:
        got = str(decoded.unknown[0])[:80]
        raise UnsupportedError(f"{to.where}: fake tensor: expected keys of the schema, got {got}")
    return {"tensor_meta": codec.to_tree(decoded.value), "is_param": is_param}


def _read_fake_tensor(body: Any, at: _Reader) -> data.Opaque:
    where = f"{at.budget.where}: {at.path}.tensor_meta"
    decoded = codec.decode(codec.encode(at.get(body, "tensor_meta")), schema.TensorMeta, where)
    if decoded.unknown:
        raise at.error("keys of the schema", str(decoded.unknown[0]))
    is_param = check_bool(at.budget, at.path, at.get(body, "is_param"))
    return data.Opaque(name_global(*FAKE_TENSOR.rpartition(".")[::2]), (codec.encode(decoded.value), is_param))


def _write_float(value: float) -> float | str:
    """Return a float as JSON has it: the three values that are no numbers there as the format's texts."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_float(body: Any, at: _Reader) -> float:
    if isinstance(body, float):
        return body
    return _FLOATS[at.text(body, _FLOATS, "a number with a fraction, NaN, Infinity or -Infinity")]


def _read_complex(body: Any, at: _Reader) -> complex:
    if not isinstance(body, list) or len(body) != 2:
        raise at.error("two floats", body)
    return complex(_read_float(body[0], at), _read_float(body[1], at))


def _read_bytes(body: Any, at: _Reader) -> bytes:
    at.budget.spend(len(at.text(body)))
    try:
        return bytes.fromhex(body)
    except ValueError:
        raise at.error("bytes as hexadecimal digits", body) from None


def _tensor(cls: type, keys: str, make: Callable[..., Any]) -> _Kind:
    """Return a kind of tensor: its own parts, which `make` checks together, and those that every tensor has."""
    own = keys.split()
    attributes = {key: "dtype_name" if key == "dtype" else key for key in (*own, *_FLAGS)}

    def write(value: Any, to: InputValues) -> Any:
        return {key: to.field(getattr(value, attribute)) for key, attribute in attributes.items()}

    def read(body: Any, at: _Reader) -> Any:
        tensor = make(at.budget, at.path, *(at.field(key, at.get(body, key)) for key in own))
        requires_grad, kind, marks = (at.field(key, at.get(body, key)) for key in _FLAGS)
        marked = tensor_reducers.with_state(at.budget, at.path, tensor, marks)
        return structs.replace(marked, kind=kind, requires_grad=requires_grad)

    return _Kind(cls, write, read, True)


def _dense(budget: Budget, path: str, storage: Any, dtype: str, *place: Any) -> data.PickledTensor:
    sizes, strides, offset, conj, neg = place
    tensor = tensor_reducers.dense(budget, path, storage, offset, sizes, strides, dtype)
    return structs.replace(tensor, conj=conj, neg=neg)


def _sparse(budget: Budget, path: str, layout: Any, indices: Any, values: Any, sizes: Any, is_coalesced: Any) -> Any:
    parts = (*indices, values, sizes, *(() if is_coalesced is None else (is_coalesced,)))
    return tensor_reducers.rebuild_sparse_tensor(budget, path, (data.Layout(layout), parts))


def _meta(budget: Budget, path: str, dtype: str, sizes: Any, strides: Any) -> data.MetaTensor:
    return tensor_reducers.rebuild_meta_tensor(budget, path, (data.DType(dtype), sizes, strides, False))


def _limits_of(cls: type, make: Callable[..., Any]) -> _Kind:
    """Return a kind of start, stop and step."""
    read = lambda body, at: make(at.budget, at.path, at.items(body))  # noqa: E731
    return _Kind(cls, lambda value, to: [value.start, value.stop, value.step], read)


_FLAGS: Final = ("requires_grad", "kind", "attributes")
"""Attributes that every kind of tensor has."""
_TENSOR_KINDS: Final = ("tensor", "parameter", "buffer")
_KINDS: Final[Mapping[str, _Kind]] = {
    "tuple": _Kind(tuple, lambda value, to: to.field(value), lambda body, at: at.items(body), True),
    "list": _Kind(list, lambda value, to: to.field(tuple(value)), lambda body, at: list(at.items(body)), True),
    "set": _Kind(
        set,
        lambda value, to: to.field(tuple(_sorted(value))),
        lambda body, at: _read_set(body, at, builtin.make_set),
        True,
    ),
    "frozenset": _Kind(
        frozenset,
        lambda value, to: to.field(tuple(_sorted(value))),
        lambda body, at: _read_set(body, at, builtin.make_frozenset),
        True,
    ),
    "dict": _Kind(dict, lambda value, to: to.pairs(value), lambda body, at: at.pairs(body, {}), True),
    "ordered_dict": _Kind(
        data.PickledDict,
        lambda value, to: {"items": to.pairs(value), "attributes": to.pairs(getattr(value, "attributes", {}))},
        _read_ordered_dict,
        True,
    ),
    "defaultdict": _Kind(defaultdict, _write_defaultdict, _read_defaultdict, True),
    "deque": _Kind(
        deque, lambda value, to: {"items": to.field(tuple(value)), "maxlen": value.maxlen}, _read_deque, True
    ),
    "named_tuple": _Kind(
        data.NamedTuple,
        lambda value, to: {"class_name": value.class_name, "values": to.field(value.values)},
        _read_named_tuple,
        True,
    ),
    "tensor": _tensor(data.PickledTensor, "storage dtype sizes strides storage_offset conj neg", _dense),
    "sparse_tensor": _tensor(data.SparseTensor, "layout indices values sizes is_coalesced", _sparse),
    "meta_tensor": _tensor(data.MetaTensor, "dtype sizes strides", _meta),
    "mark": _Kind(data.Opaque, _write_mark, _read_mark, True),
    "fake_tensor": _Kind(data.Opaque, _write_fake_tensor, _read_fake_tensor, True),
    "float": _Kind(float, lambda value, to: _write_float(value), _read_float),
    "complex": _Kind(complex, lambda value, to: [_write_float(value.real), _write_float(value.imag)], _read_complex),
    "bytes": _Kind(bytes, lambda value, to: value.hex(), _read_bytes),
    "slice": _limits_of(slice, builtin.make_slice),
    "range": _limits_of(range, builtin.make_range),
    "size": _Kind(
        data.Size,
        lambda value, to: list(value.sizes),
        lambda body, at: builtin.make_size(at.budget, at.path, (at.items(body),)),
    ),
    "dtype": _Kind(
        data.DType,
        lambda value, to: value.name,
        lambda body, at: data.DType(at.text(body, ITEM_SIZES, "a name that torch has")),
    ),
    "memory_format": _Kind(
        data.MemoryFormat,
        lambda value, to: value.name,
        lambda body, at: data.MemoryFormat(at.text(body, MEMORY_FORMATS, "a name that torch has")),
    ),
    "layout": _Kind(
        data.Layout, lambda value, to: value.name, lambda body, at: builtin.get_layout(at.budget, at.path, (body,))
    ),
    "device": _Kind(
        data.Device,
        lambda value, to: value.type if value.index is None else f"{value.type}:{value.index}",
        lambda body, at: builtin.make_device(at.budget, at.path, (body,)),
    ),
}
"""Key -> kind."""
_KEYS: Final[Mapping[type, str]] = {
    **{kind.cls: key for key, kind in _KINDS.items()},
    OrderedDict: "ordered_dict",
    data.Opaque: "mark",
}
"""Key of the kind of each type of value; that of fake tensors is in `_key_of`."""
