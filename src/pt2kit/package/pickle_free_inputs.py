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

A kind is one row of `_ENTRIES` or `_INLINE`: its parts, and the form that each has in JSON. Writing, reading and
finding the values inside a value follow the rows.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, UnsetType, structs

from pt2kit import codec, schema
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.messages import count_text, printable
from pt2kit.package import record_names as names
from pt2kit.package.programs import read_json
from pt2kit.pickles import builtin_reducers as builtin
from pt2kit.pickles import tensor_reducers
from pt2kit.pickles import values as data
from pt2kit.pickles.allowed_globals import MARKS, name_global
from pt2kit.pickles.budget import (
    DEFAULT_PICKLE_LIMITS,
    MAX_NAME,
    Budget,
    Handler,
    PickleLimits,
    call_handler,
    check_bool,
    check_count,
    check_tree,
    describe,
)
from pt2kit.pickles.values import ITEM_SIZES, MEMORY_FORMATS

if TYPE_CHECKING:
    from pt2kit.package.layouts.base import Layout

FORMAT: Final = "pt2kit sample inputs 1"
"""Format name in an index; the number is that of the definition in `docs/sanitize.md`."""
FAKE_TENSOR: Final = "torch._export.serde.serialize._reconstruct_fake_tensor"
"""The function that torch pickles fake tensors by; its arguments are a `TensorMeta` as JSON, and whether it is a
parameter."""

_NO_NUMBERS: Final = MappingProxyType({"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf})


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


class _StorageRow(Struct):
    """One storage in an index, as a config of weights lists a payload."""

    path_name: str
    dtype: str
    nbytes: int
    device: str


class _Index(Struct, omit_defaults=True):
    """The content of an index: either the one value, or the leaves of the program's tree spec."""

    format: str
    storages: list[_StorageRow]
    values: list[Any]
    leaves: list[Any] | UnsetType = UNSET
    value: Any = UNSET


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
            kind = _kind_of(value)
            if kind is None or kind.key not in _ENTRIES or id(value) in self._numbers:
                continue
            if is_expanded:
                self.values.append({kind.key: self._body(kind, value)})
                self._numbers[id(value)] = len(self.values) - 1
            else:
                inner = (form.inner(part) for form, part in kind.parts(value))
                stack += [(value, True), *((part, False) for part in reversed(list(chain.from_iterable(inner))))]
        self.roots.append(self.inline(root))

    def _body(self, kind: _Kind, value: Any) -> Any:
        """Return the JSON of a value's parts."""
        written = [form.write(self, part) for form, part in kind.parts(value)]
        return written[0] if "" in kind.fields else dict(zip(kind.fields, written, strict=True))

    def inline(self, value: Any) -> Any:
        """Return a value as it is written inside an entry: itself, an object with one key, or its entry's number."""
        if value is None or type(value) in (bool, int, str):
            return value
        if (kind := _kind_of(value)) is None:
            what = f"an object of {value.cls.path}" if isinstance(value, data.Opaque) else f"a {type(value).__name__}"
            if isinstance(value, data.Global):
                what = f"the global {value.path}"
            raise UnsupportedError(f"{self.where}: expected plain data, got {what[:200]!a}")
        return {"ref": self._numbers[id(value)]} if kind.key in _ENTRIES else {kind.key: self._body(kind, value)}

    def items(self, values: Iterable[Any]) -> list[Any]:
        """Return the items of a list."""
        return [self.inline(item) for item in values]

    def pairs(self, value: Mapping[Any, Any]) -> list[Any]:
        """Return the pairs of a dict."""
        return [self.items(pair) for pair in value.items()]


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
    """The entry, root or part that is being read."""

    def error(self, expected: str, got: Any) -> PayloadError:
        """Return the error for the value in the current place."""
        return self.budget.error(self.path, expected, describe(got))

    def entry(self, written: Any) -> None:
        """Read the next entry."""
        self.path = f"values[{len(self.made)}]"
        self.made.append(self._read(written, _ENTRIES, "a container or a tensor"))

    def value(self, written: Any) -> Any:
        """Return a value as it is written inside an entry."""
        if written is None or isinstance(written, bool | int | str):
            return written
        if isinstance(written, dict) and list(written) == ["ref"]:
            return self._numbered(self.made, written["ref"], f"an entry before this one, below {len(self.made)}")
        return self._read(written, _INLINE, "a kind of value")

    def storage(self, written: Any) -> data.PickledStorage:
        """Return a storage by its number."""
        found: data.PickledStorage = self._numbered(
            self.storages, written, f"one of {count_text(len(self.storages), 'storage')}"
        )
        return found

    def _numbered(self, known: Sequence[Any], number: Any, expected: str) -> Any:
        if check_count(self.budget, self.path, number) >= len(known):
            raise self.budget.error(self.path, expected, str(number))
        return known[number]

    def _read(self, written: Any, kinds: Mapping[str, _Kind], expected: str) -> Any:
        """Return the value of an object with one key, the name of a kind."""
        if not isinstance(written, dict) or len(written) != 1:
            raise self.error("an object with one key", written)
        [(key, body)] = written.items()
        if key not in kinds:
            raise self.budget.error(self.path, expected, repr(printable(key, 40)))
        outer, parts = self.path, []
        self.path = here = f"{outer}.{key}"
        for name, form in kinds[key].fields.items():
            if name and (not isinstance(body, dict) or name not in body):
                raise self.error(f"an object with the key {name}", body)
            self.path = f"{here}.{name}" if name else here
            parts.append(form.read(self, body[name] if name else body))
            self.path = here
        made = kinds[key].make(self.budget, here, *parts)
        self.path = outer
        return made

    def text(self, body: Any, known: Container[str] | None = None, expected: str = "a text") -> str:
        """Return a text, one of those `known` if any are given."""
        if not isinstance(body, str) or (known is not None and body not in known):
            raise self.error(expected, body)
        return body

    def list(self, body: Any) -> list[Any]:
        """Return a list as it is written."""
        if not isinstance(body, list):
            raise self.error("a list", body)
        self.budget.spend(64 * len(body))
        return body

    def items(self, body: Any) -> tuple[Any, ...]:
        """Return the values of a list."""
        return tuple(map(self.value, self.list(body)))

    def pairs(self, body: Any) -> dict[Any, Any]:
        """Return a dict of pairs; equal keys are refused, as one of the values would be lost."""
        into: dict[Any, Any] = {}
        for pair in self.list(body):
            if not isinstance(pair, list) or len(pair) != 2:
                raise self.error("pairs of key and value", pair)
            key, value = map(self.value, pair)
            self.budget.check_key(key)
            if key in into:
                raise self.error("each key once", key)
            into[key] = value
        return into


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of one part of a value in JSON.

    Args:
        write: (the table so far, the part) -> its JSON.
        read: (the reader, JSON) -> the part; checked as far as the value's `make` does not check it.
        inner: the values in the part that may be entries of the table.
    """

    write: Callable[[InputValues, Any], Any] = lambda to, part: part
    read: Callable[[_Reader, Any], Any] = lambda at, written: written
    inner: Callable[[Any], Iterable[Any]] = lambda part: ()


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of value, in both directions.

    Args:
        key: its name in JSON.
        cls: the type of such values.
        fields: key of each part -> the part's form; "" for a value of one part, which has no object around it.
        take: value -> its parts.
        make: (budget, path, *parts) -> the value, every part of it checked.
    """

    key: str
    cls: type
    fields: Mapping[str, _Form]
    take: Callable[[Any], Iterable[Any]]
    make: Callable[..., Any]

    def parts(self, value: Any) -> Iterable[tuple[_Form, Any]]:
        """Return the parts of a value, each with its form."""
        return zip(self.fields.values(), self.take(value), strict=True)


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
    for entry in reader.list(values):
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
        _StorageRow(names.samples_storage(number).rpartition("/")[2], row.dtype_name, row.nbytes, row.device)
        for number, row in enumerate(moved.storages, first)
    ]
    roots = {"leaves": moved.roots} if is_flat else {"value": moved.roots[0]}
    return codec.encode(_Index(FORMAT, rows, moved.values, **roots))


def read_pickle_free_inputs(layout: Layout, model: str) -> PickleFreeInputs | None:
    """Read the sample inputs of a program that has an index of them; None if it has none. Reads no storage.

    Raises:
        JsonError: an index that is no JSON.
        SchemaError: one without the keys of the format.
        PayloadError: one of another format, a storage without its record, values that contradict their storages.
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
    decoded = codec.convert(tree, _Index, where)
    index, is_flat = decoded.value, decoded.value.leaves is not UNSET
    if decoded.unknown or is_flat is (index.value is not UNSET):
        got = ", ".join(map(str, decoded.unknown))[:200] or "both or neither"
        raise PayloadError(f"{where}: expected format, storages, values and one of value and leaves, got {got}")
    storages = [_storage(row, layout, f"{where}: storages[{number}]") for number, row in enumerate(index.storages)]
    records = dict.fromkeys((where, *(names.SAMPLE_INPUTS + storage.key for storage in storages)))
    roots = [index.value] if index.leaves is UNSET else index.leaves
    leaves = tuple(decode_values(index.values, roots, storages, where))
    return PickleFreeInputs(where, leaves, is_flat, tuple(records))


def _storage(row: _StorageRow, layout: Layout, where: str) -> data.PickledStorage:
    record = names.SAMPLE_INPUTS + row.path_name
    if row.dtype not in ITEM_SIZES:
        raise PayloadError(f"{where}: dtype: expected an element type, got {row.dtype[:80]!a}")
    if not names.is_samples_storage(record):
        raise PayloadError(f"{where}: path_name: expected a name such as 'tensor_0', got {row.path_name[:80]!a}")
    full = layout.record(record)
    entry = layout.archive.records.get(full)
    if entry is None or entry.size != row.nbytes:
        got = "none of that name" if entry is None else f"{entry.size} bytes"
        raise PayloadError(f"{where}: expected a record {full} of {row.nbytes} bytes, got {got}")
    return data.PickledStorage(row.path_name, row.dtype, row.nbytes, row.device, partial(layout.archive.read, full))


def _kind_of(value: Any) -> _Kind | None:
    """Return the kind of a value; None for an object that is no data."""
    if not isinstance(value, data.Opaque):
        return _BY_TYPE.get(type(value))
    if value.kwargs or value.items or value.pairs:
        return None
    if value.cls.path == FAKE_TENSOR:
        is_fake_tensor = not value.built and [type(arg) for arg in value.args] == [bytes, bool]
        return _ENTRIES["fake_tensor"] if is_fake_tensor else None
    return _ENTRIES["mark"] if value.cls.path in MARKS else None


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


def _one_of(known: Container[str], expected: str) -> _Form:
    """Return the form of a text that is one of those known."""
    return _Form(read=lambda at, written: at.text(written, known, expected))


def _write_float(value: float) -> float | str:
    """Return a float as JSON has it: the three values that are no numbers there as the format's texts."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_float(at: _Reader, written: Any) -> float:
    if isinstance(written, float):
        return written
    return _NO_NUMBERS[at.text(written, _NO_NUMBERS, "a number with a fraction, NaN, Infinity or -Infinity")]


def _read_bytes(at: _Reader, written: Any) -> bytes:
    at.budget.spend(len(at.text(written)))
    try:
        return bytes.fromhex(written)
    except ValueError:
        raise at.error("bytes as hexadecimal digits", written) from None


def _write_factory(to: InputValues, factory: Any) -> str | None:
    name = next((name for name, made in builtin.FACTORIES.items() if made is factory), None)
    if name is None and factory is not None:
        raise UnsupportedError(f"{to.where}: expected a defaultdict of {', '.join(builtin.FACTORIES)}, got another")
    return name


def _tensor_meta(content: bytes, where: str) -> schema.TensorMeta:
    decoded = codec.decode(content, schema.TensorMeta, f"{where}: fake tensor")
    if decoded.unknown:
        raise UnsupportedError(f"{where}: fake tensor: expected keys of the schema, got {str(decoded.unknown[0])[:80]}")
    return decoded.value


def _read_tensor_meta(at: _Reader, written: Any) -> bytes:
    return codec.encode(_tensor_meta(codec.encode(written), f"{at.budget.where}: {at.path}"))


def _items_of(handler: Handler) -> Callable[..., Any]:
    """Return the function that calls a handler with the items of a list as its arguments."""
    return lambda budget, path, items: call_handler(handler, budget, path, items)


def _whole(handler: Handler, expected: str) -> Callable[..., Any]:
    """Return the function that builds a collection by a handler and refuses one that has lost items."""

    def make(budget: Budget, path: str, items: tuple[Any, ...], *rest: Any) -> Any:
        made = handler(budget, path, items, *rest)
        if len(made) != len(items):
            raise budget.error(path, expected, count_text(len(items), "item"))
        return made

    return make


def _global(path: str) -> data.Global:
    return name_global(*path.rpartition(".")[::2])


def _dict_parts(value: Any) -> tuple[Any, ...]:
    return value, getattr(value, "attributes", {})


def _ordered_dict(budget: Budget, path: str, items: dict[Any, Any], attributes: dict[Any, Any]) -> data.PickledDict:
    if not all(isinstance(name, str) for name in attributes):
        raise budget.error(path, "attribute names", describe(attributes))
    made = data.PickledDict(items)
    if attributes:
        made.attributes = attributes
    return made


def _default_parts(value: defaultdict[Any, Any]) -> tuple[Any, ...]:
    return value.default_factory, value


def _default_dict(budget: Budget, path: str, factory: str | None, items: dict[Any, Any]) -> defaultdict[Any, Any]:
    made = builtin.default_dict(budget, path, None if factory is None else _global(factory))
    made.update(items)
    return made


def _deque_parts(value: deque[Any]) -> tuple[Any, ...]:
    return value, value.maxlen


def _named_tuple(budget: Budget, path: str, class_name: str, values: tuple[Any, ...]) -> data.NamedTuple:
    if not 0 < len(class_name) <= MAX_NAME:
        raise budget.error(path, f"a name of at most {MAX_NAME} characters", describe(class_name))
    return data.NamedTuple(class_name, values)


_mark_parts = attrgetter("cls.path", "args", "state", "built")


def _mark(budget: Budget, path: str, cls: str, args: tuple[Any, ...], state: Any, built: bool) -> data.Opaque:
    return data.Opaque(_global(cls), args, state=state, built=built)


def _fake_tensor(budget: Budget, path: str, *args: Any) -> data.Opaque:
    return data.Opaque(_global(FAKE_TENSOR), args)


def _dense(budget: Budget, path: str, storage: Any, dtype: str, *place: Any) -> data.PickledTensor:
    sizes, strides, offset, conj, neg = place
    tensor = tensor_reducers.dense(budget, path, storage, offset, sizes, strides, dtype)
    return structs.replace(tensor, conj=conj, neg=neg)


def _sparse(budget: Budget, path: str, layout: Any, indices: Any, values: Any, sizes: Any, is_coalesced: Any) -> Any:
    parts = (*indices, values, sizes, *(() if is_coalesced is None else (is_coalesced,)))
    return tensor_reducers.rebuild_sparse_tensor(budget, path, data.Layout(layout), parts)


def _meta(budget: Budget, path: str, dtype: str, sizes: Any, strides: Any) -> data.MetaTensor:
    return tensor_reducers.rebuild_meta_tensor(budget, path, data.DType(dtype), sizes, strides, False)


def _kind(
    key: str,
    cls: type,
    form: _Form | None = None,
    take: Callable[[Any], Iterable[Any]] = lambda value: (value,),
    make: Callable[..., Any] = lambda budget, path, part: part,
    **fields: _Form,
) -> _Kind:
    """Return a kind of one part in a `form`, or of the parts `fields`."""
    return _Kind(key, cls, fields if form is None else {"": form}, take, make)


def _table(*kinds: _Kind) -> Mapping[str, _Kind]:
    return MappingProxyType({kind.key: kind for kind in kinds})


def _tensor(key: str, cls: type, own: str, make: Callable[..., Any]) -> _Kind:
    """Return a kind of tensor: its own parts, which `make` checks together, and those that every tensor has."""
    keys = (*own.split(), "requires_grad", "kind", "attributes")

    def with_state(budget: Budget, path: str, *parts: Any) -> Any:
        *place, requires_grad, kind, attributes = parts
        tensor = tensor_reducers.with_state(budget, path, make(budget, path, *place), attributes)
        return structs.replace(tensor, kind=kind, requires_grad=requires_grad)

    fields = {key: _TENSOR_FORMS.get(key, _VALUE) for key in keys}
    take = attrgetter(*("dtype_name" if key == "dtype" else key for key in keys))
    return _Kind(key, cls, fields, take, with_state)


def _limits(value: slice | range) -> tuple[Any, ...]:
    return ((value.start, value.stop, value.step),)


_PLAIN: Final = _Form()
_BOOL: Final = _Form(read=lambda at, written: check_bool(at.budget, at.path, written))
_VALUE: Final = _Form(InputValues.inline, _Reader.value, lambda part: (part,))
_ITEMS: Final = _Form(InputValues.items, _Reader.items, lambda part: part)
_MEMBERS: Final = _Form(lambda to, part: to.items(_sorted(part)), _Reader.items, _sorted)
_PAIRS: Final = _Form(InputValues.pairs, _Reader.pairs, lambda part: (*part, *part.values()))
_FLOAT: Final = _Form(lambda to, part: _write_float(part), _read_float)
_FLOATS: Final = _Form(
    lambda to, part: [*map(_write_float, part)], lambda at, written: [_read_float(at, one) for one in at.list(written)]
)
_BYTES: Final = _Form(lambda to, part: part.hex(), _read_bytes)
_FACTORY: Final = _Form(_write_factory, lambda at, written: None if written is None else at.text(written))
_TEXT: Final = _Form(read=_Reader.text)
_DTYPE: Final = _one_of(ITEM_SIZES, "a name that torch has")
_MEMORY_FORMAT: Final = _one_of(MEMORY_FORMATS, "a name that torch has")
_MARK: Final = _one_of(MARKS, f"a class of {', '.join(sorted(MARKS))}")
_META: Final = _Form(lambda to, part: codec.to_tree(_tensor_meta(part, to.where)), _read_tensor_meta)
_TENSOR_FORMS: Final[Mapping[str, _Form]] = {
    "storage": _Form(lambda to, part: to.by_storage.setdefault(part, len(to.by_storage)), _Reader.storage),
    "dtype": _one_of(ITEM_SIZES, "an element type"),
    **dict.fromkeys(("sizes", "strides", "indices"), _ITEMS),
    **dict.fromkeys(("conj", "neg", "requires_grad"), _BOOL),
    "kind": _one_of(("tensor", "parameter", "buffer"), "one of tensor, parameter, buffer"),
    "attributes": _PAIRS,
}

_ENTRIES: Final = _table(
    _kind("tuple", tuple, _ITEMS),
    _kind("list", list, _ITEMS, make=lambda budget, path, items: list(items)),
    _kind("set", set, _MEMBERS, make=_whole(builtin.make_set, "each member once")),
    _kind("frozenset", frozenset, _MEMBERS, make=_whole(builtin.make_frozenset, "each member once")),
    _kind("dict", dict, _PAIRS),
    _kind("ordered_dict", data.PickledDict, None, _dict_parts, _ordered_dict, items=_PAIRS, attributes=_PAIRS),
    _kind("defaultdict", defaultdict, None, _default_parts, _default_dict, factory=_FACTORY, items=_PAIRS),
    _kind(
        "deque", deque, None, _deque_parts, _whole(builtin.make_deque, "at most maxlen"), items=_ITEMS, maxlen=_PLAIN
    ),
    _kind("named_tuple", data.NamedTuple, None, structs.astuple, _named_tuple, class_name=_TEXT, values=_ITEMS),
    _kind("mark", data.Opaque, None, _mark_parts, _mark, **{"class": _MARK}, args=_ITEMS, state=_VALUE, built=_BOOL),
    _kind("fake_tensor", data.Opaque, None, attrgetter("args"), _fake_tensor, tensor_meta=_META, is_param=_BOOL),
    _tensor("tensor", data.PickledTensor, "storage dtype sizes strides storage_offset conj neg", _dense),
    _tensor("sparse_tensor", data.SparseTensor, "layout indices values sizes is_coalesced", _sparse),
    _tensor("meta_tensor", data.MetaTensor, "dtype sizes strides", _meta),
)
"""Kinds whose values are entries of the table."""
_INLINE: Final = _table(
    _kind("float", float, _FLOAT),
    _kind("complex", complex, _FLOATS, lambda value: ((value.real, value.imag),), _items_of(builtin.make_complex)),
    _kind("bytes", bytes, _BYTES),
    _kind("slice", slice, _ITEMS, _limits, _items_of(builtin.make_slice)),
    _kind("range", range, _ITEMS, _limits, _items_of(builtin.make_range)),
    _kind("size", data.Size, _ITEMS, structs.astuple, builtin.make_size),
    _kind("dtype", data.DType, _DTYPE, structs.astuple, lambda budget, path, name: data.DType(name)),
    _kind(
        "memory_format",
        data.MemoryFormat,
        _MEMORY_FORMAT,
        structs.astuple,
        lambda budget, path, name: data.MemoryFormat(name),
    ),
    _kind("layout", data.Layout, _PLAIN, structs.astuple, builtin.get_layout),
    _kind("device", data.Device, _PLAIN, lambda value: (value.text,), builtin.make_device),
)
"""Kinds whose values are written where they are used."""
_BY_TYPE: Final[Mapping[type, _Kind]] = {
    **{kind.cls: kind for kind in (*_ENTRIES.values(), *_INLINE.values())},
    OrderedDict: _ENTRIES["ordered_dict"],
}
"""Kind of each type of value; `_kind_of` distinguishes objects."""
