"""Sample inputs, as the reader of pickles describes them <-> a flat table of JSON values; nothing in it is code.

    {"values": [{"tensor": {"storage": 0, …}}, {"tuple": [{"ref": 0}, 2, {"float": 0.5}]}, {"dict": []},
                {"tuple": [{"ref": 1}, {"ref": 2}]}], "value": {"ref": 3}}

A value is null, a truth value, an integer, a text, or an object with one key that says what it is. Containers and
tensors are entries of the table, which others refer to by their numbers; an entry refers to earlier ones only, so that
nothing can contain itself, and what was shared is shared again. `docs/sanitize.md` lists the keys.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.pickles import values as data
from pt2kit.pickles.allowed_globals import INERT
from pt2kit.pickles.builtin_reducers import FACTORIES

FAKE_TENSOR: Final = "torch._export.serde.serialize._reconstruct_fake_tensor"
"""The function that torch pickles fake tensors by; its arguments are a `TensorMeta` as JSON, and whether it is a
parameter."""


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
    writer = _Writer(where)
    roots = [writer.write(value) for value in values]
    return InputValues(writer.values, roots, tuple(writer.storages))


@dataclass(slots=True)
class _Writer:
    where: str
    values: list[Any] = field(default_factory=list)
    storages: dict[data.PickledStorage, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

    def write(self, root: Any) -> Any:
        """Add the entries of a value, inner ones first; returns what refers to it."""
        stack = [(root, False)]
        while stack:
            value, parts_done = stack.pop()
            if type(value) not in _TABLE or id(value) in self.numbers:
                continue
            if parts_done:
                self.values.append(_TABLE[type(value)](value, self))
                self.numbers[id(value)] = len(self.values) - 1
            else:
                stack.append((value, True))
                stack += [(part, False) for part in reversed(_parts(value))]
        return self.inline(root)

    def inline(self, value: Any) -> Any:
        """A value as it stands inside an entry: itself, an object with one key, or the number of its entry."""
        if value is None or type(value) in (bool, int, str):
            return value
        if id(value) in self.numbers and type(value) in _TABLE:
            return {"ref": self.numbers[id(value)]}
        if (write := _INLINE.get(type(value))) is not None:
            return write(value)
        raise self.refuse(value)

    def refuse(self, value: Any) -> UnsupportedError:
        what = f"an object of {value.cls.path}" if isinstance(value, data.Opaque) else f"a {type(value).__name__}"
        if isinstance(value, data.Global):
            what = f"the global {value.path}"
        return UnsupportedError(f"{self.where}: expected plain data, got {what[:200]!a}")

    def inlines(self, values: Iterable[Any]) -> list[Any]:
        return [self.inline(value) for value in values]

    def items(self, value: Mapping[Any, Any]) -> list[Any]:
        return [[self.inline(key), self.inline(item)] for key, item in value.items()]

    def storage(self, storage: data.PickledStorage) -> int:
        return self.storages.setdefault(storage, len(self.storages))


def spell_float(value: float) -> float | str:
    """A float as JSON has it: the three values that are no numbers there as the format's texts."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _parts(value: Any) -> list[Any]:
    """What an entry may refer to."""
    match value:
        case set() | frozenset():
            return _sorted(value)
        case data.PickledDict():
            return [*value, *value.values(), *value.attributes, *value.attributes.values()]
        case dict():
            return [*value, *value.values()]
        case list() | tuple() | deque():
            return list(value)
        case data.NamedTuple():
            return list(value.values)
        case data.Opaque():
            return [*value.args, value.state]
        case data.SparseTensor():
            return [*value.indices, value.values, *value.attributes.values()]
        case data.QuantizedTensor():
            return [value.values, value.scale, value.zero_point, *value.attributes.values()]
        case data.NestedTensor():
            own = [value.buffer, value.sizes, value.strides, value.storage_offsets]
            return [*own, *value.attributes.values()]
        case data.DeviceTensor():
            return [value.data, *value.attributes.values()]
        case data.PickledTensor() | data.MetaTensor():
            return list(value.attributes.values())
    return []


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


def _write_dict(value: data.PickledDict | OrderedDict[Any, Any], to: _Writer) -> Any:
    attributes = getattr(value, "attributes", None)
    return {"ordered_dict": {"items": to.items(value), "attributes": to.items(attributes or {})}}


def _write_defaultdict(value: defaultdict[Any, Any], to: _Writer) -> Any:
    name = next((name for name, made in FACTORIES.items() if made is value.default_factory), None)
    if name is None and value.default_factory is not None:
        raise UnsupportedError(f"{to.where}: expected a defaultdict of {', '.join(FACTORIES)}, got another")
    return {"defaultdict": {"factory": name, "items": to.items(value)}}


def _write_opaque(value: data.Opaque, to: _Writer) -> Any:
    """A mark of a dynamic dimension, or a fake tensor; any other object is refused."""
    path, plain = value.cls.path, not (value.kwargs or value.items or value.pairs)
    if path in INERT and plain:
        body = {"class": path, "args": to.inlines(value.args), "state": to.inline(value.state), "built": value.built}
        return {"mark": body}
    match value.args:
        case (bytes() as meta, bool() as is_param) if path == FAKE_TENSOR and plain and not value.built:
            return {"fake_tensor": {"tensor_meta": _meta_tree(meta, to.where), "is_param": is_param}}
    raise to.refuse(value)


def _meta_tree(meta: bytes, where: str) -> Any:
    from pt2kit import codec, schema

    decoded = codec.decode(meta, schema.TensorMeta, f"{where}: fake tensor")
    if decoded.unknown:
        raise UnsupportedError(f"{where}: fake tensor: expected keys of the schema, got {str(decoded.unknown[0])[:80]}")
    return codec.to_tree(decoded.value)


def _flags(value: Any, to: _Writer) -> dict[str, Any]:
    """What every kind of tensor has."""
    return {
        "requires_grad": value.requires_grad,
        "kind": value.kind,
        "attributes": [[name, to.inline(item)] for name, item in value.attributes.items()],
    }


def _write_dense(value: data.PickledTensor, to: _Writer) -> Any:
    body = {
        "storage": to.storage(value.storage),
        "dtype": value.dtype_name,
        "sizes": list(value.sizes),
        "strides": list(value.strides),
        "storage_offset": value.storage_offset,
        "conj": value.conj,
        "neg": value.neg,
    }
    return {"tensor": body | _flags(value, to)}


def _write_sparse(value: data.SparseTensor, to: _Writer) -> Any:
    body = {
        "layout": value.layout,
        "indices": to.inlines(value.indices),
        "values": to.inline(value.values),
        "sizes": list(value.sizes),
        "is_coalesced": value.is_coalesced,
    }
    return {"sparse_tensor": body | _flags(value, to)}


def _write_quantized(value: data.QuantizedTensor, to: _Writer) -> Any:
    body = {
        "values": to.inline(value.values),
        "qscheme": value.qscheme,
        "scale": to.inline(value.scale),
        "zero_point": to.inline(value.zero_point),
        "axis": value.axis,
    }
    return {"quantized_tensor": body | _flags(value, to)}


def _write_nested(value: data.NestedTensor, to: _Writer) -> Any:
    body = {
        "buffer": to.inline(value.buffer),
        "sizes": to.inline(value.sizes),
        "strides": to.inline(value.strides),
        "storage_offsets": to.inline(value.storage_offsets),
    }
    return {"nested_tensor": body | _flags(value, to)}


def _write_meta(value: data.MetaTensor, to: _Writer) -> Any:
    body = {"dtype": value.dtype_name, "sizes": list(value.sizes), "strides": list(value.strides)}
    return {"meta_tensor": body | _flags(value, to)}


def _write_device_tensor(value: data.DeviceTensor, to: _Writer) -> Any:
    body = {"data": to.inline(value.data), "dtype": value.dtype_name, "device": value.device}
    return {"device_tensor": body | _flags(value, to)}


def _write_array(value: data.NumpyArray, to: _Writer) -> Any:
    body = {"dtype": value.dtype, "shape": list(value.shape), "fortran_order": value.fortran_order}
    return {"numpy_array": {**body, "bytes": value.data.hex()}}


_TABLE: Final[Mapping[type, Callable[[Any, _Writer], Any]]] = MappingProxyType(
    {
        tuple: lambda value, to: {"tuple": to.inlines(value)},
        list: lambda value, to: {"list": to.inlines(value)},
        set: lambda value, to: {"set": to.inlines(_sorted(value))},
        frozenset: lambda value, to: {"frozenset": to.inlines(_sorted(value))},
        dict: lambda value, to: {"dict": to.items(value)},
        data.PickledDict: _write_dict,
        OrderedDict: _write_dict,
        Counter: lambda value, to: {"counter": to.items(value)},
        defaultdict: _write_defaultdict,
        deque: lambda value, to: {"deque": {"items": to.inlines(value), "maxlen": value.maxlen}},
        data.NamedTuple: lambda value, to: {
            "named_tuple": {"class_name": value.class_name, "values": to.inlines(value.values)}
        },
        data.PickledTensor: _write_dense,
        data.SparseTensor: _write_sparse,
        data.QuantizedTensor: _write_quantized,
        data.NestedTensor: _write_nested,
        data.MetaTensor: _write_meta,
        data.DeviceTensor: _write_device_tensor,
        data.NumpyArray: _write_array,
        data.Opaque: _write_opaque,
    }
)
"""Type -> its entry of the table."""

_INLINE: Final[Mapping[type, Callable[[Any], Any]]] = MappingProxyType(
    {
        float: lambda value: {"float": spell_float(value)},
        complex: lambda value: {"complex": [spell_float(value.real), spell_float(value.imag)]},
        bytes: lambda value: {"bytes": value.hex()},
        bytearray: lambda value: {"bytearray": value.hex()},
        type(Ellipsis): lambda value: {"ellipsis": True},
        slice: lambda value: {"slice": [value.start, value.stop, value.step]},
        range: lambda value: {"range": [value.start, value.stop, value.step]},
        data.Size: lambda value: {"size": list(value.sizes)},
        data.DType: lambda value: {"dtype": value.name},
        data.Layout: lambda value: {"layout": value.name},
        data.MemoryFormat: lambda value: {"memory_format": value.name},
        data.QScheme: lambda value: {"qscheme": value.name},
        data.Device: lambda value: {"device": value.type if value.index is None else f"{value.type}:{value.index}"},
        data.NumpyDType: lambda value: {"numpy_dtype": value.name},
        data.NumpyScalar: lambda value: {"numpy_scalar": {"dtype": value.dtype, "bytes": value.data.hex()}},
    }
)
"""Type -> what stands for it where it is used."""
