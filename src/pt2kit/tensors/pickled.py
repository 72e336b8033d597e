"""Build tensor views from a torch.save payload, as `pickles.reader` describes its tensors; and back, for writing one.

The payloads are the weights, constants and sample inputs of torch 2.1 to 2.8, and the sample inputs of later releases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit import codec
from pt2kit.errors import PayloadError, UnsupportedError, placed
from pt2kit.pickles.values import (
    SPARSE_LAYOUTS,
    DeviceTensor,
    DType,
    MetaTensor,
    NestedTensor,
    NumpyArray,
    Opaque,
    PickledTensor,
    QuantizedTensor,
    Size,
    SparseTensor,
    SubclassTensor,
    TensorLike,
)
from pt2kit.schema import Device, Layout, ScalarType, TensorMeta
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import check_device, check_shape, contiguous_strides, device_text, parse_device
from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView, SubclassView, View, computed
from pt2kit.tensors.dtypes import DTYPES, numpy_dtype, scalar_type_named
from pt2kit.tensors.view import TensorView
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.reader import Storage

FAKE_TENSOR: Final = "torch._export.serde.serialize._reconstruct_fake_tensor"
"""The function that torch pickles fake tensors by; its arguments are a `TensorMeta` as JSON, and whether it is a
parameter. It evaluates the expressions in there, so that it is not on the allow-list."""

LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {name: Layout[name.title().replace("_", "")] for name in SPARSE_LAYOUTS}
)
"""torch's name of a sparse layout ("sparse_coo") -> the schema's."""
_NAMES: Final = MappingProxyType({layout: name for name, layout in LAYOUTS.items()})
_INTEGERS: Final[Mapping[str, tuple[ScalarType, int | None]]] = MappingProxyType(
    {
        "quint8": (ScalarType.BYTE, None),
        "qint8": (ScalarType.CHAR, None),
        "qint32": (ScalarType.INT, None),
        "quint4x2": (ScalarType.BYTE, 4),
        "quint2x4": (ScalarType.BYTE, 2),
    }
)
"""Quantized type -> the type that holds its integers, and the bits of each where several share one."""


def fake_tensor(value: Any, where: str) -> tuple[TensorMeta, bool] | None:
    """Return the description of a fake tensor, and whether it is a parameter; None for other values.

    Raises:
        UnsupportedError: a description with keys that the schema does not have.
        Pt2Error: other arguments than a description and a truth value.
    """
    if not isinstance(value, Opaque) or value.cls.path != FAKE_TENSOR:
        return None
    match value.args:
        case (bytes() as text, bool() as is_param) if not (value.built or value.kwargs):
            decoded = codec.decode(text, TensorMeta, f"{where}: fake tensor")
            if decoded.unknown:
                got = str(decoded.unknown[0])[:80]
                raise UnsupportedError(f"{where}: fake tensor: expected keys of the schema, got {got}")
            return decoded.value, is_param
    raise PayloadError(f"{where}: fake tensor: expected bytes and a truth value, got other arguments")


def from_pickled(tensor: TensorLike | Opaque, *, name: str, where: str) -> View:
    """Turn one pickled tensor into a view; nothing is read.

    Args:
        tensor: the description that the reader of pickles returns.
        name: its name.
        where: the record of the payload, for messages.

    Raises:
        PayloadError: metadata that contradicts itself (P7 to P12).
        UnsupportedError: a value that is no tensor (P15), or a type, device or layout that is not read (P4 to P6).
    """
    at = _Place(where)
    match tensor:
        case PickledTensor():
            return at.dense(tensor, name)
        case SparseTensor():
            return at.sparse(tensor, name)
        case QuantizedTensor():
            return at.quantized(tensor, name)
        case NestedTensor():
            return at.nested(tensor, name)
        case MetaTensor():
            with placed(where):
                scalar_type = scalar_type_named(tensor.dtype_name, repr(name))
                return MetaView(name, scalar_type, tensor.sizes, tensor.strides, **_marks(tensor))
        case DeviceTensor():
            return at.moved(tensor, name)
        case SubclassTensor():
            return at.subclass(tensor, name)
    if (fake := fake_tensor(tensor, where)) is not None:
        return at.fake(*fake, name)
    raise UnsupportedError(f"{where}: {name!r}: expected a tensor, got a {type(tensor).__name__}", rule="P15")


def to_pickled(view: TensorView | SparseView | MetaView) -> PickledTensor | SparseTensor | MetaTensor:
    """Describe a tensor for writing it into a torch.save file; nothing is read."""
    match view:
        case TensorView():
            return _dense(view)
        case MetaView():
            return MetaTensor(DTYPES[view.dtype].name, view.sizes, view.strides, **_flags(view))
    parts = tuple(map(_dense, view.indices)), _dense(view.values)
    return SparseTensor(_NAMES[view.layout], *parts, view.sizes, view.is_coalesced, **_flags(view))


def _dense(view: TensorView) -> PickledTensor:
    place = view.sizes, view.strides, view.storage_offset, device_text(view.device)
    return PickledTensor(view.storage, DTYPES[view.dtype].name, *place, view.conj, view.neg, **_flags(view))


def _flags(view: TensorView | SparseView | MetaView) -> dict[str, Any]:
    return {"requires_grad": view.requires_grad, "kind": "parameter" if view.is_param else "tensor"}


def _device(text: str) -> Device:
    """Read a device as torch prints it: "cpu", "cuda:1"; a text of another form is an unknown type."""
    return parse_device(text) or Device(text)


def plain_option(value: Any) -> Any:
    """Return an option of a tensor subclass as numbers, texts, lists and dicts."""
    match value:
        case DType(name):
            return f"torch.{name}"
        case Size(sizes):
            return list(sizes)
        case list() | tuple():
            return [plain_option(item) for item in value]
        case Opaque():
            fields = {name: plain_option(item) for name, item in (value.state if value.built else {}).items()}
            return {"class": value.cls.name, "values": [plain_option(item) for item in value.args], "fields": fields}
    return value


def _marks(tensor: TensorLike) -> dict[str, Any]:
    """Return the fields that every view has in common."""
    return {"requires_grad": tensor.requires_grad, "is_param": tensor.kind == "parameter"}


class _Place:
    """Origin of the tensors of one payload: its record, for messages."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fake(self, meta: TensorMeta, is_param: bool, name: str) -> MetaView:
        sizes, strides = (
            tuple(one.value for one in counts if one.type == "as_int") for counts in (meta.sizes, meta.strides)
        )
        if len(sizes) != len(meta.sizes) or len(strides) != len(meta.strides):
            raise UnsupportedError(f"{self.where}: {name!r}: expected sizes that are numbers, got symbols", rule="P15")
        return MetaView(
            name,
            meta.dtype,
            sizes,
            strides,
            requires_grad=meta.requires_grad,
            is_param=is_param,
            device=meta.device,
        )

    def dense(
        self, tensor: PickledTensor, name: str, held_as: ScalarType | None = None, bits: int | None = None
    ) -> TensorView:
        """Return a dense tensor.

        Args:
            tensor: the description.
            name: its name.
            held_as: the type that holds its elements, if that is not their own.
            bits: of an element, if several share one of that type.
        """
        where = f"{self.where}: {name!r}"
        sizes, strides, offset = tensor.sizes, tensor.strides, tensor.storage_offset
        if bits:
            sizes, strides, offset = (-(-math.prod(sizes) * bits // 8),), (1,), 0
        return TensorView(
            name,
            scalar_type_named(tensor.dtype_name, where) if held_as is None else held_as,
            sizes,
            strides,
            offset,
            tensor.storage,
            device=_device(tensor.device),
            **_marks(tensor),
            conj=tensor.conj,
            neg=tensor.neg,
        )

    def parts(self, tensor: TensorLike, name: str, *fields: str) -> dict[str, Any]:
        """Return fields of a description, with views of those that are dense tensors."""
        held = {field: getattr(tensor, field) for field in fields}
        return {
            field: self.dense(part, f"{name}.{field}") if isinstance(part, PickledTensor) else part
            for field, part in held.items()
        }

    def sparse(self, tensor: SparseTensor, name: str) -> SparseView:
        indices = tuple(self.dense(part, f"{name}.indices[{i}]") for i, part in enumerate(tensor.indices))
        parts = self.parts(tensor, name, "values", "sizes", "is_coalesced")
        return SparseView(name, LAYOUTS[tensor.layout], indices, **parts, **_marks(tensor))

    def quantized(self, tensor: QuantizedTensor, name: str) -> QuantizedView:
        """Return a quantized tensor, its integers under the type that they are stored in."""
        dtype_name, sizes = tensor.values.dtype_name, tensor.values.sizes
        scalar_type, bits = _INTEGERS[dtype_name]
        values = self.dense(tensor.values, f"{name}.integers", scalar_type, bits)
        parts = self.parts(tensor, name, "qscheme", "scale", "zero_point", "axis")
        return QuantizedView(name, dtype_name, values, sizes, **parts, bits=bits, **_marks(tensor))

    def nested(self, tensor: NestedTensor, name: str) -> NestedView:
        parts = self.parts(tensor, name, "buffer", "sizes", "strides", "storage_offsets")
        return NestedView(name, **parts, **_marks(tensor))

    def subclass(self, tensor: SubclassTensor, name: str) -> SubclassView:
        """Return a tensor of a class of torchao by its parts."""
        where = f"{self.where}: {name!r}"
        scalar_type = scalar_type_named(tensor.dtype_name, where)
        check_shape(where, tensor.sizes, tensor.strides, tensor.storage_offset, DTYPES[scalar_type].itemsize)
        check_device(where, _device(tensor.device))
        return SubclassView(
            name,
            tensor.class_name,
            scalar_type,
            tensor.sizes,
            {part: self.dense(inner, f"{name}.{part}") for part, inner in tensor.parts.items()},
            {option: plain_option(value) for option, value in tensor.options.items()},
            **_marks(tensor),
        )

    def moved(self, tensor: DeviceTensor, name: str) -> TensorView:
        """Return a tensor of a device without storages: converted to its type there when it is read."""
        where = f"{self.where}: {name!r}"
        scalar_type = scalar_type_named(tensor.dtype_name, where)
        source = self.array(tensor.data, name) if isinstance(tensor.data, NumpyArray) else self.dense(tensor.data, name)

        def convert() -> arrays.Array:
            if source.dtype == scalar_type:
                return source.numpy()
            import numpy as np

            with np.errstate(all="ignore"):  # Values out of range become nearly what they become on the device.
                return source.numpy(upcast=True).astype(numpy_dtype(scalar_type, where))

        kinds = DTYPES[source.dtype].kind, DTYPES[scalar_type].kind
        loses = kinds[0] == "complex" and kinds[1] != "complex"
        if source.dtype != scalar_type and (loses or scalar_type == ScalarType.COMPLEXHALF):
            raise UnsupportedError(
                f"{where}: expected elements of {tensor.dtype_name}, got {DTYPES[source.dtype].name}", rule="P4"
            )
        return computed(
            name,
            f"{self.where}: array of {show_name(name)}",
            scalar_type,
            source.sizes,
            16 * source.storage.nbytes,
            convert,
            device=_device(tensor.device),
            **_marks(tensor),
        )

    def array(self, data: NumpyArray, name: str) -> TensorView:
        """Return a pickled numpy array as a view over its bytes."""
        order, code = data.dtype[:1], data.dtype[1:]
        scalar_type = next(
            (row.scalar_type for row in DTYPES.values() if row.is_native and row.array[1:] == code), None
        )
        if scalar_type is None or order not in ("<", ">", "|"):
            raise UnsupportedError(
                f"{self.where}: {name!r}: dtype: expected a type of numbers, got {data.dtype[:40]!r}", rule="P4"
            )

        def load() -> memoryview:
            import numpy as np

            elements = np.frombuffer(data.data, order + code)
            return arrays.raw_bytes(elements.astype("<" + code) if order == ">" else elements)

        storage = Storage(f"{self.where}: array of {show_name(name)}", len(data.data), load)
        strides = contiguous_strides(data.shape[::-1])[::-1] if data.fortran_order else contiguous_strides(data.shape)
        return TensorView(name, scalar_type, data.shape, strides, 0, storage)
