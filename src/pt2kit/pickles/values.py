"""Values of a torch.save payload: frozen descriptions, data only.

Scalars and containers of a payload come back as Python's own (None, bool, int, float, complex, str, bytes, bytearray,
list, tuple, dict, set, frozenset, deque, defaultdict, Counter, slice, range, Ellipsis). Everything that torch or numpy
would rebuild by calling a function comes back as one of the types here. None of them holds an array, imports torch or
numpy, or runs code; turning a `PickledTensor` into numbers is the work of `pt2kit.tensors`.

They are msgspec's structs: making as many dataclasses takes a fifth of the time budget of `pt2 show`.

Names of torch that a payload may mention as data come first: dtypes, storage classes, layouts, memory formats, schemes.
Source: torch/storage.py, torch/_utils.py and the dtype list of torch 2.13; storage class names of torch 1.6 to 2.13.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from pt2kit.zip.reader import Storage

ITEM_SIZES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("bool", "uint8", "int8", "qint8", "quint8", "quint4x2", "quint2x4"), 1),
        **dict.fromkeys((f"{sign}{bits}" for sign in ("int", "uint") for bits in range(1, 8)), 1),
        **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
        **dict.fromkeys(("float4_e2m1fn_x2", "bits1x8", "bits2x4", "bits4x2", "bits8"), 1),
        **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "bits16"), 2),
        **dict.fromkeys(("int32", "uint32", "float32", "complex32", "bcomplex32", "qint32"), 4),
        **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
        "complex128": 16,
    }
)
"""Bytes per element of every torch dtype; for types narrower than a byte, of the byte torch keeps each element in."""

ELEMENTS_PER_BYTE: Mapping[str, int] = MappingProxyType({"quint4x2": 2, "quint2x4": 4})
"""The dtypes of which torch packs several elements of the last dimension into one byte."""

QUANTIZED: frozenset[str] = frozenset({"qint8", "quint8", "qint32", "quint4x2", "quint2x4"})
"""The dtypes that mean nothing without a scale and a zero point."""

TYPED_STORAGES: Final = {
    "BFloat16": "bfloat16",
    "Bool": "bool",
    "Byte": "uint8",
    "Char": "int8",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "Int": "int32",
    "Long": "int64",
    "QInt32": "qint32",
    "QInt8": "qint8",
    "QUInt2x4": "quint2x4",
    "QUInt4x2": "quint4x2",
    "QUInt8": "quint8",
    "Short": "int16",
}
"""Name of a storage class that has one element type -> the type; read only."""

STORAGES: Mapping[str, str] = MappingProxyType(
    {
        **{f"torch.{name}Storage": dtype for name, dtype in TYPED_STORAGES.items()},
        **{f"torch.cuda.{name}Storage": dtype for name, dtype in TYPED_STORAGES.items()},
        "torch.UntypedStorage": "uint8",
        "torch.storage.UntypedStorage": "uint8",
        "torch._UntypedStorage": "uint8",
        "torch.storage._UntypedStorage": "uint8",
    }
)
"""Storage class -> element type; the untyped ones count bytes."""

SPARSE_LAYOUTS: tuple[str, ...] = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
LAYOUTS: frozenset[str] = frozenset({"strided", "jagged", "_mkldnn", *SPARSE_LAYOUTS})
MEMORY_FORMATS: tuple[str, ...] = (
    "contiguous_format",
    "preserve_format",
    "channels_last",
    "channels_last_3d",
)
QSCHEMES: tuple[str, ...] = (
    "per_tensor_affine",
    "per_tensor_symmetric",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_channel_affine_float_qparams",
)


TensorKind: TypeAlias = Literal["tensor", "parameter", "buffer"]

NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})
"""The attributes of a tensor that carries none; one object shared by all of them."""


class Global(Struct, frozen=True):
    """A class or function that a pickle refers to by name; never imported.

    Args:
        module: the module's dotted name, Python 2 spellings (`__builtin__`, `copy_reg`) upgraded to current ones.
        name: the name inside the module; dotted for a nested class.
    """

    module: str
    name: str

    @property
    def path(self) -> str:
        """Return `module.name`, the spelling of the allow-list and of `trust`."""
        return f"{self.module}.{self.name}"


class DType(Struct, frozen=True):
    """A torch dtype, by its name without the `torch.` ("float32", "float8_e4m3fn")."""

    name: str


class Layout(Struct, frozen=True):
    """A torch layout, by its name without the `torch.` ("strided", "sparse_coo")."""

    name: str


class MemoryFormat(Struct, frozen=True):
    """A torch memory format, by its name without the `torch.` ("channels_last")."""

    name: str


class QScheme(Struct, frozen=True):
    """A torch quantization scheme, by its name without the `torch.` ("per_channel_affine")."""

    name: str


class Device(Struct, frozen=True):
    """A torch device: `cuda:1` is type "cuda", index 1; index None if the payload has none."""

    type: str
    index: int | None = None

    @property
    def text(self) -> str:
        """Return the device as torch spells it: "cpu", "cuda:1"."""
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Size(Struct, frozen=True):
    """A `torch.Size`: elements per dimension, outermost first."""

    sizes: tuple[int, ...]


def size_items(kind: str, value: object) -> tuple[int, ...] | None:
    """Return the items of a described `torch.Size` if a tree spec has a tuple; None for anything else.

    Export treats a `torch.Size` among the inputs as a tuple, and the pickle of sample inputs keeps it.
    """
    return value.sizes if isinstance(value, Size) and kind in ("builtins.tuple", "torch.Size") else None


class NamedTuple(Struct, frozen=True):
    """A named tuple of a class that was not imported; its field names are not in the payload.

    Args:
        class_name: `module.Name` of the class.
        values: the fields' values in order. A class with the same pickled shape (a `str` subclass, say) looks the same.
    """

    class_name: str
    values: tuple[Any, ...]


class Opaque(Struct, frozen=True, eq=False):
    """Recorded call of a trusted class or function; nothing was called. Compares by identity.

    Args:
        cls: the class or function.
        args: positional arguments.
        kwargs: keyword arguments.
        items: the values that would have been appended to the object or added to it, in order.
        pairs: (key, value) pairs that would have been set as items of the object, in order.
        state: the value that the object's state would have been set to; `built` states whether there was any.
        built: True if the payload sets a state.
    """

    cls: Global
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = NO_ATTRIBUTES
    items: list[Any] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    state: Any = None
    built: bool = False


def kind_text(value: object) -> str:
    """Return what a value is, for messages about values that are no plain data."""
    if isinstance(value, Opaque):
        return f"an object of {value.cls.path}"
    return f"the global {value.path}" if isinstance(value, Global) else f"a {type(value).__name__}"


class PickledDict(OrderedDict[Any, Any]):
    """An `OrderedDict` of a payload; equal to any OrderedDict with the same items.

    `attributes` holds the attributes that were pickled in addition to the items. State dicts carry `_metadata` there:
    module versions by path.
    They remain data: none becomes an attribute of this object, so no name from a file can hide a method.
    """

    attributes: Mapping[str, Any] = NO_ATTRIBUTES


class PickledStorage(Struct, frozen=True, eq=False):
    """One storage as a pickle refers to it: a record of the payload's zip.

    Args:
        key: the storage's name in the payload; its bytes are the record `data/<key>`.
        dtype_name: the element type it was saved with; "uint8" for an untyped storage.
        device: its device when it was saved, as torch spells it ("cpu", "cuda:0").
        storage: its bytes; tensors over it share this object.
    """

    key: str
    dtype_name: str
    device: str
    storage: Storage


class TensorLike(Struct, frozen=True, kw_only=True):
    """Common part of the descriptions of tensors.

    Args:
        requires_grad: whether autograd follows it.
        kind: "parameter" or "buffer" if it was saved as one.
        attributes: Python attributes pickled with the tensor (dynamic-shape marks, say); data only.
    """

    requires_grad: bool = False
    kind: TensorKind = "tensor"
    attributes: Mapping[str, Any] = NO_ATTRIBUTES


class PickledTensor(TensorLike, frozen=True):
    """A dense tensor over a storage, its extent checked to be inside the storage.

    Args:
        storage: the bytes; shared with every other tensor over the same storage.
        dtype_name: element type ("float32"); may differ from the storage's if the payload states it separately.
        sizes: elements per dimension, outermost first.
        strides: elements to step per dimension, each 0 or more.
        storage_offset: elements of `dtype_name` before the first one.
        device: its device when it was saved, as torch spells it ("cpu", "cuda:0").
        requires_grad: whether autograd follows it.
        kind: "parameter" or "buffer" if it was saved as one.
        conj: the values are the complex conjugates of the stored ones.
        neg: the values are the negatives of the stored ones.
        attributes: Python attributes pickled with the tensor (dynamic-shape marks, say); data only.
    """

    storage: Storage
    dtype_name: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage_offset: int
    device: str = "cpu"
    conj: bool = False
    neg: bool = False


def whole_bytes(storage: Storage, dtype_name: str) -> int:
    """Return how many bytes at the start of a storage are whole elements of a type."""
    return storage.nbytes - storage.nbytes % ITEM_SIZES[dtype_name]


class SparseTensor(TensorLike, frozen=True):
    """A sparse tensor, by its parts. Shapes of the parts are checked; the index values are not.

    Args:
        layout: "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr" or "sparse_bsc".
        indices: for COO one int64 tensor [sparse dimensions, nonzeros]; for the others (compressed, plain) indices.
        values: the nonzero values (blocks for BSR and BSC), outermost dimension nonzeros for COO.
        sizes: elements per dimension of the whole tensor.
        is_coalesced: for COO whether indices are sorted and unique, None if the payload does not state it.
        requires_grad, kind, attributes: as in `PickledTensor`.
    """

    layout: str
    indices: tuple[PickledTensor, ...]
    values: PickledTensor
    sizes: tuple[int, ...]
    is_coalesced: bool | None = None


class QuantizedTensor(TensorLike, frozen=True):
    """A quantized tensor: the integers and their meaning.

    Args:
        values: the integers; `dtype_name` is "quint8", "qint8", "qint32", "quint4x2" or "quint2x4".
        qscheme: "per_tensor_affine", "per_channel_affine" or "per_channel_affine_float_qparams".
        scale: a float per tensor; per channel a tensor or tuple of one number per element of dimension `axis`.
        zero_point: an int per tensor; per channel as `scale`.
        axis: the channel dimension; None per tensor.
        requires_grad, kind, attributes: as in `PickledTensor`.
    """

    values: PickledTensor
    qscheme: str
    scale: float | PickledTensor | tuple[float, ...]
    zero_point: int | PickledTensor | tuple[float, ...]
    axis: int | None = None


class NestedTensor(TensorLike, frozen=True):
    """A nested (strided) tensor: `n` tensors of different sizes in one buffer.

    Args:
        buffer: all elements, one dimension.
        sizes: int64 tensor [n, dimensions].
        strides: int64 tensor [n, dimensions].
        storage_offsets: int64 tensor [n], or the same as a tuple of ints. The values in these three are not checked.
        requires_grad, kind, attributes: as in `PickledTensor`.
    """

    buffer: PickledTensor
    sizes: PickledTensor
    strides: PickledTensor
    storage_offsets: PickledTensor | tuple[int, ...]


class MetaTensor(TensorLike, frozen=True):
    """A tensor of the meta device: shape and dtype, no bytes. Fields as in `PickledTensor`."""

    dtype_name: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class NumpyDType(Struct, frozen=True):
    """A numpy dtype by its array-interface string: byte order, kind, size ("<f4", "|u1", "<U3")."""

    name: str


class NumpyArray(Struct, frozen=True):
    """A numpy array of plain elements.

    Args:
        dtype: array-interface string of the element type.
        shape: elements per dimension.
        fortran_order: True if the first dimension is the fastest.
        data: the elements' bytes, in the byte order of `dtype`; as many as shape and dtype require.
    """

    dtype: str
    shape: tuple[int, ...]
    fortran_order: bool
    data: bytes


class NumpyScalar(Struct, frozen=True):
    """One numpy number: array-interface string of its type, and its bytes."""

    dtype: str
    data: bytes


class DeviceTensor(TensorLike, frozen=True):
    """A tensor of a device without storages, saved as an array or a CPU tensor to be copied there.

    Args:
        data: the elements.
        dtype_name: the element type on the device, to which `data` is converted.
        device: the device ("xla:0").
        requires_grad, kind, attributes: as in `PickledTensor`.
    """

    data: NumpyArray | PickledTensor
    dtype_name: str
    device: str


class SubclassTensor(TensorLike, frozen=True):
    """A tensor of a class of torchao, by its inner tensors; see `tensor_subclasses`.

    Args:
        class_name: a key of `tensor_subclasses.SUBCLASSES`.
        dtype_name: element type that the whole represents.
        sizes, strides, storage_offset: of the whole.
        device: where it was ("cpu", "cuda:0").
        parts: name of an attribute -> inner tensor.
        options: name of an attribute -> plain data or a description of an object of `tensor_subclasses.OPTIONS`.
        requires_grad, kind, attributes: as in `PickledTensor`.
    """

    class_name: str
    dtype_name: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage_offset: int
    device: str
    parts: Mapping[str, PickledTensor]
    options: Mapping[str, Any]
