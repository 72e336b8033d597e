"""A flat table of JSON values -> sample inputs, as the reader of pickles describes them; the opposite of `encode`.

The table may be anybody's. Every call that a pickle would make goes through the same checks as it does there: tensors
lie inside their storages, parts fit together, keys can be hashed, the whole is neither deep nor large as a tree.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from msgspec import structs

from pt2kit.errors import PayloadError
from pt2kit.messages import printable
from pt2kit.package.pickle_free_inputs.encode import FAKE_TENSOR
from pt2kit.pickles import builtin_reducers as pickle_plain
from pt2kit.pickles import numpy_reducers as pickle_numpy
from pt2kit.pickles import tensor_kind_reducers as pickle_tensor_kinds
from pt2kit.pickles import tensor_reducers as pickle_tensors
from pt2kit.pickles import values as data
from pt2kit.pickles.allowed_globals import INERT, name_global
from pt2kit.pickles.argument_checks import check_bool, check_count
from pt2kit.pickles.budget import (
    DEFAULT_PICKLE_LIMITS,
    MAX_NAME,
    Account,
    PickleLimits,
    describe,
)
from pt2kit.pickles.torch_names import ITEM_SIZES, MEMORY_FORMATS, QSCHEMES
from pt2kit.pickles.value_limits import check_tree

_FLOATS: Final = MappingProxyType({"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")})
_KINDS: Final = ("tensor", "parameter", "buffer")


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
    reader = _Reader(Account(where, limits), storages, [])
    if not isinstance(values, list):
        raise reader.account.error("values", "a list", describe(values))
    for number, entry in enumerate(values):
        tag, body = reader.tagged(entry, f"values[{number}]")
        if tag not in _TABLE:
            raise reader.account.error(f"values[{number}]", "a container or a tensor", repr(printable(tag, 40)))
        reader.made.append(_TABLE[tag](body, _At(reader, f"values[{number}].{tag}")))
    found = [reader.value(root, f"value {number}") for number, root in enumerate(roots)]
    # All at once, so that what they share is looked at once; the list they are in is one more level.
    check_tree(Account(where, replace(limits, depth=limits.depth + 1)), found, lambda path: False)
    return found


@dataclass(slots=True)
class _Reader:
    account: Account
    storages: Sequence[data.PickledStorage]
    made: list[Any]

    def tagged(self, written: Any, path: str) -> tuple[str, Any]:
        if not isinstance(written, dict) or len(written) != 1:
            raise self.account.error(path, "an object with one key", describe(written))
        [(tag, body)] = written.items()
        return tag, body

    def value(self, written: Any, path: str) -> Any:
        """A value as it stands inside an entry."""
        if written is None or isinstance(written, bool | int | str):
            return written
        tag, body = self.tagged(written, path)
        if tag == "ref":
            if check_count(self.account, f"{path}.ref", body) >= len(self.made):
                raise self.account.error(f"{path}.ref", f"an entry before this one, below {len(self.made)}", str(body))
            return self.made[body]
        if tag not in _INLINE:
            raise self.account.error(path, "a kind of value", repr(printable(tag, 40)))
        return _INLINE[tag](body, _At(self, f"{path}.{tag}"))


@dataclass(frozen=True, slots=True)
class _At:
    """One place in the table: what checks the values there, and what messages call it."""

    reader: _Reader
    path: str

    @property
    def account(self) -> Account:
        return self.reader.account

    def error(self, expected: str, got: Any) -> PayloadError:
        return self.account.error(self.path, expected, describe(got))

    def field(self, body: Any, name: str) -> Any:
        """What an object has under a name, as it is written."""
        if not isinstance(body, dict) or name not in body:
            raise self.error(f"an object with the key {name}", body)
        return body[name]

    def at(self, name: str) -> _At:
        return replace(self, path=f"{self.path}.{name}")

    def text(self, body: Any) -> str:
        if not isinstance(body, str):
            raise self.error("a text", body)
        return body

    def list(self, body: Any) -> list[Any]:
        if not isinstance(body, list):
            raise self.error("a list", body)
        return body

    def numbers(self, body: Any) -> tuple[Any, ...]:
        """A list of what ought to be numbers, for a function that checks them."""
        return tuple(self.list(body))

    def bytes(self, body: Any) -> bytes:
        text = self.text(body)
        self.account.charge(len(text))
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise self.error("bytes as hexadecimal digits", body) from None

    def value(self, body: Any) -> Any:
        return self.reader.value(body, self.path)

    def values(self, body: Any) -> tuple[Any, ...]:
        self.account.charge(64 * len(self.list(body)))
        return tuple(self.value(item) for item in body)

    def items(self, body: Any, into: dict[Any, Any]) -> Any:
        """Fill a dict with pairs; equal keys are refused, as one of the values would be lost."""
        for pair in self.list(body):
            if not isinstance(pair, list) or len(pair) != 2:
                raise self.error("pairs of key and value", pair)
            key = self.value(pair[0])
            self.account.check_key(key)
            if key in into:
                raise self.error("each key once", key)
            into[key] = self.value(pair[1])
        return into


def _float(body: Any, at: _At) -> float:
    if isinstance(body, float):
        return body
    if not isinstance(body, str) or body not in _FLOATS:
        raise at.error("a number with a fraction, NaN, Infinity or -Infinity", body)
    return _FLOATS[body]


def _complex(body: Any, at: _At) -> complex:
    parts = at.list(body)
    if len(parts) != 2:
        raise at.error("two floats", body)
    return complex(_float(parts[0], at), _float(parts[1], at))


def _ellipsis(body: Any, at: _At) -> Any:
    if body is not True:
        raise at.error("true", body)
    return Ellipsis


def _one_of(make: Callable[[str], Any], known: Sequence[str] | Mapping[str, Any]) -> Callable[[Any, _At], Any]:
    def read(body: Any, at: _At) -> Any:
        if at.text(body) not in known:
            raise at.error("a name that torch has", body)
        return make(body)

    return read


def _numpy_dtype(body: Any, at: _At) -> data.NumpyDType:
    text = at.text(body)
    made = pickle_numpy.make_dtype(at.account, at.path, (text[1:],))
    if text[:1] not in ("|" if made.name[0] == "|" else "<>") or not text:
        raise at.error("a byte order and a type code such as '<f4'", body)
    return data.NumpyDType(text)


def _numpy_scalar(body: Any, at: _At) -> data.NumpyScalar:
    dtype = _numpy_dtype(at.field(body, "dtype"), at)
    return pickle_numpy.make_scalar(at.account, at.path, (dtype, at.bytes(at.field(body, "bytes"))))


def _numpy_array(body: Any, at: _At) -> data.NumpyArray:
    dtype = _numpy_dtype(at.field(body, "dtype"), at)
    order = "F" if check_bool(at.account, at.path, at.field(body, "fortran_order")) else "C"
    content, shape = at.bytes(at.field(body, "bytes")), at.numbers(at.field(body, "shape"))
    return pickle_numpy.from_buffer(at.account, at.path, (content, dtype, shape, order))


def _ordered_dict(body: Any, at: _At) -> data.PickledDict:
    made: data.PickledDict = at.items(at.field(body, "items"), data.PickledDict())
    attributes = at.at("attributes").items(at.field(body, "attributes"), {})
    if not all(isinstance(name, str) for name in attributes):
        raise at.error("attribute names", attributes)
    if attributes:
        made.attributes = attributes
    return made


def _defaultdict(body: Any, at: _At) -> Any:
    name = at.field(body, "factory")
    factory = () if name is None else (name_global(*at.text(name).rpartition(".")[::2]),)
    return at.items(at.field(body, "items"), pickle_plain.default_dict(at.account, at.path, factory))


def _deque(body: Any, at: _At) -> deque[Any]:
    items, maxlen = at.values(at.field(body, "items")), at.field(body, "maxlen")
    if maxlen is not None and check_count(at.account, f"{at.path}.maxlen", maxlen) < len(items):
        raise at.error(f"at most {maxlen} items", body)
    return pickle_plain.make_deque(at.account, at.path, (items, maxlen))


def _counter(body: Any, at: _At) -> Counter[Any]:
    return pickle_plain.counter(at.account, at.path, (at.items(body, {}),))


def _set(make: Callable[..., Any]) -> Callable[[Any, _At], Any]:
    def read(body: Any, at: _At) -> Any:
        items = at.values(body)
        made = make(at.account, at.path, (items,))
        if len(made) != len(items):
            raise at.error("each member once", body)
        return made

    return read


def _named_tuple(body: Any, at: _At) -> data.NamedTuple:
    name = at.text(at.field(body, "class_name"))
    if not 0 < len(name) <= MAX_NAME:
        raise at.at("class_name").error(f"a name of at most {MAX_NAME} characters", name)
    return data.NamedTuple(name, at.values(at.field(body, "values")))


def _mark(body: Any, at: _At) -> data.Opaque:
    path = at.text(at.field(body, "class"))
    if path not in INERT:
        raise at.error(f"a class of {', '.join(sorted(INERT))}", path)
    return data.Opaque(
        name_global(*path.rpartition(".")[::2]),
        at.values(at.field(body, "args")),
        state=at.value(at.field(body, "state")),
        built=check_bool(at.account, at.path, at.field(body, "built")),
    )


def _fake_tensor(body: Any, at: _At) -> data.Opaque:
    from pt2kit import codec, schema

    tree = at.field(body, "tensor_meta")
    where = f"{at.account.where}: {at.path}.tensor_meta"
    decoded = codec.decode(codec.encode(tree), schema.TensorMeta, where)
    if decoded.unknown:
        raise at.error("keys of the schema", str(decoded.unknown[0]))
    is_param = check_bool(at.account, at.path, at.field(body, "is_param"))
    return data.Opaque(name_global(*FAKE_TENSOR.rpartition(".")[::2]), (codec.encode(decoded.value), is_param))


def _with_flags(body: Any, tensor: Any, at: _At) -> Any:
    """A tensor with what every kind of tensor has."""
    kind = at.field(body, "kind")
    if kind not in _KINDS:
        raise at.at("kind").error(f"one of {', '.join(_KINDS)}", kind)
    attributes = at.at("attributes").items(at.field(body, "attributes"), {})
    marked = pickle_tensors.with_state(at.account, at.path, tensor, attributes)
    needs = check_bool(at.account, f"{at.path}.requires_grad", at.field(body, "requires_grad"))
    return structs.replace(marked, kind=kind, requires_grad=needs)


def _dense(body: Any, at: _At) -> data.PickledTensor:
    number = check_count(at.account, f"{at.path}.storage", at.field(body, "storage"))
    if number >= len(at.reader.storages):
        raise at.at("storage").error(f"one of {len(at.reader.storages)} storages", number)
    dtype = at.text(at.field(body, "dtype"))
    if dtype not in ITEM_SIZES:
        raise at.at("dtype").error("an element type", dtype)
    sizes, strides = at.numbers(at.field(body, "sizes")), at.numbers(at.field(body, "strides"))
    offset = at.field(body, "storage_offset")
    tensor = pickle_tensors.dense(at.account, at.path, at.reader.storages[number], offset, sizes, strides, dtype)
    conj, neg = (check_bool(at.account, f"{at.path}.{name}", at.field(body, name)) for name in ("conj", "neg"))
    return structs.replace(tensor, conj=conj, neg=neg)


def _sparse(body: Any, at: _At) -> data.SparseTensor:
    coalesced = at.field(body, "is_coalesced")
    parts = (*at.values(at.field(body, "indices")), at.value(at.field(body, "values")))
    parts += (at.numbers(at.field(body, "sizes")), *(() if coalesced is None else (coalesced,)))
    layout = data.Layout(at.text(at.field(body, "layout")))
    return pickle_tensor_kinds.rebuild_sparse_tensor(at.account, at.path, (layout, parts))


def _quantized(body: Any, at: _At) -> data.QuantizedTensor:
    values = at.value(at.field(body, "values"))
    if not isinstance(values, data.PickledTensor):
        raise at.at("values").error("a tensor", values)
    scheme = data.QScheme(at.text(at.field(body, "qscheme")))
    numbers = [at.value(at.field(body, name)) for name in ("scale", "zero_point")]
    numbers = [list(item) if isinstance(item, tuple) else item for item in numbers]
    axis = at.field(body, "axis")
    params = (scheme, *numbers, *(() if axis is None else (axis,)))
    args = (values.storage, values.storage_offset, values.sizes, values.strides, params, False, None)
    made = pickle_tensor_kinds.rebuild_qtensor(at.account, at.path, args)
    if made.values.dtype_name != values.dtype_name:
        raise at.at("values").error(f"a tensor of {made.values.dtype_name}", values.dtype_name)
    return structs.replace(made, values=values)


def _nested(body: Any, at: _At) -> data.NestedTensor:
    names = ("buffer", "sizes", "strides", "storage_offsets")
    parts = tuple(at.value(at.field(body, name)) for name in names)
    return pickle_tensor_kinds.rebuild_nested_tensor(at.account, at.path, parts)


def _meta(body: Any, at: _At) -> data.MetaTensor:
    dtype = data.DType(at.text(at.field(body, "dtype")))
    if dtype.name not in ITEM_SIZES:
        raise at.at("dtype").error("an element type", dtype.name)
    sizes, strides = at.numbers(at.field(body, "sizes")), at.numbers(at.field(body, "strides"))
    return pickle_tensor_kinds.rebuild_meta_tensor(at.account, at.path, (dtype, sizes, strides, False))


def _device_tensor(body: Any, at: _At) -> data.DeviceTensor:
    args = (at.value(at.field(body, "data")), data.DType(at.text(at.field(body, "dtype"))), at.field(body, "device"))
    return pickle_tensor_kinds.rebuild_device_tensor(at.account, at.path, (*args, False))


def _tensor(read: Callable[[Any, _At], Any]) -> Callable[[Any, _At], Any]:
    return lambda body, at: _with_flags(body, read(body, at), at)


_TABLE: Final[Mapping[str, Callable[[Any, _At], Any]]] = MappingProxyType(
    {
        "tuple": lambda body, at: at.values(body),
        "list": lambda body, at: list(at.values(body)),
        "set": _set(pickle_plain.make_set),
        "frozenset": _set(pickle_plain.make_frozenset),
        "dict": lambda body, at: at.items(body, {}),
        "ordered_dict": _ordered_dict,
        "counter": _counter,
        "defaultdict": _defaultdict,
        "deque": _deque,
        "named_tuple": _named_tuple,
        "tensor": _tensor(_dense),
        "sparse_tensor": _tensor(_sparse),
        "quantized_tensor": _tensor(_quantized),
        "nested_tensor": _tensor(_nested),
        "meta_tensor": _tensor(_meta),
        "device_tensor": _tensor(_device_tensor),
        "fake_tensor": _fake_tensor,
        "numpy_array": _numpy_array,
        "mark": _mark,
    }
)
"""Key of an entry -> what reads it."""

_INLINE: Final[Mapping[str, Callable[[Any, _At], Any]]] = MappingProxyType(
    {
        "float": _float,
        "complex": _complex,
        "bytes": lambda body, at: at.bytes(body),
        "bytearray": lambda body, at: bytearray(at.bytes(body)),
        "ellipsis": _ellipsis,
        "slice": lambda body, at: pickle_plain.make_slice(at.account, at.path, at.numbers(body)),
        "range": lambda body, at: pickle_plain.make_range(at.account, at.path, at.numbers(body)),
        "size": lambda body, at: pickle_plain.make_size(at.account, at.path, (at.numbers(body),)),
        "dtype": _one_of(data.DType, ITEM_SIZES),
        "layout": lambda body, at: pickle_plain.get_layout(at.account, at.path, (at.text(body),)),
        "memory_format": _one_of(data.MemoryFormat, MEMORY_FORMATS),
        "qscheme": _one_of(data.QScheme, QSCHEMES),
        "device": lambda body, at: pickle_plain.make_device(at.account, at.path, (at.text(body),)),
        "numpy_dtype": _numpy_dtype,
        "numpy_scalar": _numpy_scalar,
    }
)
"""Key of a value that stands where it is used -> what reads it."""
