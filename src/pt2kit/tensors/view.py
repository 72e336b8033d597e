"""A tensor of a file: its description, and its numbers when they are asked for.

    TensorView('fc1.weight', f32[16, 8], 'mlp/data/weights/weight_0')

A view says which bytes of which storage are the tensor. It is checked when it is made, so that no view points
outside its storage; nothing is read before the first call of `numpy`, `buffer`, `contiguous_bytes`, `tobytes` or
`iter_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.schema import Device, Layout, ScalarType, SymInt, TensorMeta
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import check_copy, check_device, check_geometry, is_contiguous, numel
from pt2kit.tensors.dtypes import DTYPES, dtype_of, short_name
from pt2kit.tensors.storage import Storage
from pt2kit.zip.record_name import show_name

if TYPE_CHECKING:
    from pt2kit.tensors.arrays import Array

CPU = Device("cpu")


@dataclass(frozen=True, slots=True, repr=False)
class TensorView:
    """One dense tensor over a storage. Making one checks it and reads nothing.

    Args:
        name: the name it has in its state dict or constants.
        dtype: element type.
        sizes, strides: elements per dimension, outermost first, and elements to step along each; steps of 0 repeat.
        storage_offset: elements before the first one.
        storage: the bytes; the same object in every view of the same record.
        requires_grad: whether autograd follows it.
        device: where it lay when it was saved; its bytes are in the file all the same.
        layout: Strided; the others have descriptions of their own.
        is_param: whether it is a parameter, not a buffer or a constant.
        conj, neg: the tensor is the complex conjugate, the negative, of what is stored (torch.save keeps such
            marks). `numpy` and everything below it give the tensor; `buffer` gives what is stored.

    Raises:
        PayloadError: numbers out of range (P7, P8), an extent beyond the storage (P9), a gradient that cannot be
            (P12), a tensor on the meta device (P6).
        SchemaError: an unknown element type (P4).
        UnsupportedError: another layout (P5), a device that torch does not know (P6).
        LimitError: more than 64 dimensions (P7).
    """

    name: str
    dtype: ScalarType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage_offset: int
    storage: Storage
    requires_grad: bool = False
    device: Device = CPU
    layout: Layout = Layout.Strided
    is_param: bool = False
    conj: bool = False
    neg: bool = False

    def __post_init__(self) -> None:
        where = self.where
        row = dtype_of(self.dtype, where)
        if self.layout != Layout.Strided:
            raise UnsupportedError(
                f"{where}: layout: expected Strided for a tensor stored as raw bytes, got {self.layout.name}",
                rule="P5",
            )
        check_device(where, self.device)
        if self.device.type == "meta":
            raise PayloadError(f"{where}: device: expected one that holds data, got meta", rule="P6")
        check_geometry(
            where, self.sizes, self.strides, self.storage_offset, row.name, row.itemsize, self.storage.nbytes
        )
        if self.requires_grad and not row.has_gradient:
            raise PayloadError(
                f"{where}: requires_grad: expected false for {row.name}, got true; "
                "only floating-point and complex tensors have gradients",
                rule="P12",
            )
        if self.conj and row.kind != "complex":
            raise PayloadError(f"{where}: conj: expected a complex element type, got {row.name}", rule="P12")
        if self.neg and row.kind == "bool":
            raise PayloadError(f"{where}: neg: expected a number, got {row.name}", rule="P12")

    @property
    def shape(self) -> tuple[int, ...]:
        """The same as `sizes`."""
        return self.sizes

    @property
    def record(self) -> str:
        """The archive record, or the storage of a payload, that holds the bytes."""
        return self.storage.record

    @property
    def where(self) -> str:
        """What messages call this tensor: its record and its name."""
        return f"{show_name(self.storage.record)}: {self.name!r}"

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return DTYPES[self.dtype].itemsize

    @property
    def numel(self) -> int:
        """Number of elements; repeated ones count each time."""
        return numel(self.sizes)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements: what `tobytes` returns, however few the file holds."""
        return self.numel * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after another in row-major order."""
        return is_contiguous(self.sizes, self.strides)

    def shares_storage(self, other: TensorView) -> bool:
        """Whether both tensors lie in the same storage, as tied weights and views of one another do."""
        return self.storage is other.storage

    def describe(self) -> str:
        """Type and shape, as graphs print them: `f32[16, 8]`."""
        return f"{short_name(self.dtype)}{list(self.sizes)}"

    def __repr__(self) -> str:
        flags = "".join(f", {flag}" for flag in ("requires_grad", "conj", "neg") if getattr(self, flag))
        return f"TensorView({self.name!r}, {self.describe()}, {self.record!r}{flags})"

    def meta(self) -> TensorMeta:
        """The description as the schema writes it, for a payload config."""
        return strided_meta(self, self.layout)

    def dense(self) -> TensorView:
        """This tensor: it is one array of numbers already. Every payload has this method."""
        return self

    def numpy(self, *, upcast: bool = False) -> Array:
        """Give the numbers as a read-only array, without a copy.

        bfloat16 and the 8-bit floats have the types of `ml_dtypes`. Complex half has the fields `real` and `imag`, both
        float16. `conj` and `neg` make a copy.

        Args:
            upcast: give types that numpy lacks as float32, and complex half as complex64: exactly the same values,
                in a copy.

        Raises:
            PayloadError: a bool that is neither 0 nor 1 (P13).
            LimitError: a copy that would be far larger than its storage (P16).
            Pt2Error: the record cannot be read.
        """
        return self.over(self.storage.read(), upcast=upcast)

    def over(self, data: memoryview, *, upcast: bool = False) -> Array:
        """As `numpy`, over bytes that the caller holds: what `storage.read(keep=False)` gave.

        Args:
            data: all bytes of the storage.
            upcast: as in `numpy`.
        """
        array = arrays.strided(data, self.dtype, self.sizes, self.strides, self.storage_offset, self.where)
        wide = upcast and not DTYPES[self.dtype].is_native
        if self.conj or self.neg or wide:
            check_copy(self.where, self.nbytes, self.storage.nbytes)
            array = arrays.values(array, self.dtype, conj=self.conj, neg=self.neg, wide=wide)
            array.setflags(write=False)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """What `np.asarray(view)` calls."""
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"{self.where}: expected no copy, but {array.dtype} becomes {dtype} only by one")
            return array.astype(dtype)
        return array.copy() if copy else array

    def buffer(self) -> memoryview:
        """The whole storage as the file holds it, read-only; the tensor is part of it."""
        return self.storage.read()

    def contiguous_bytes(self) -> memoryview:
        """The elements in row-major order, little-endian, read-only: a view where they are stored so, a copy otherwise.

        Raises:
            LimitError: a copy that would be far larger than its storage (P16).
            Pt2Error: as `numpy`.
        """
        if self.is_contiguous and not (self.conj or self.neg):
            start = self.storage_offset * self.itemsize if self.numel else 0
            return self.storage.read()[start : start + self.nbytes]
        check_copy(self.where, self.nbytes, self.storage.nbytes)
        return arrays.raw_bytes(self.numpy())

    def tobytes(self) -> bytes:
        """The elements in row-major order, little-endian, as a copy."""
        return bytes(self.contiguous_bytes())

    def iter_bytes(self, data: memoryview | None = None) -> Iterator[memoryview]:
        """The elements in row-major order, little-endian, in pieces of at most 16 MiB.

        Args:
            data: all bytes of the storage, where the caller holds them already.

        Raises:
            Pt2Error: as `contiguous_bytes`.
        """
        check_copy(self.where, self.nbytes, self.storage.nbytes)
        array = arrays.strided(
            self.storage.read() if data is None else data,
            self.dtype,
            self.sizes,
            self.strides,
            self.storage_offset,
            self.where,
        )
        for block in arrays.blocks(array):
            yield arrays.raw_bytes(arrays.values(block, self.dtype, conj=self.conj, neg=self.neg))


class _Strided(Protocol):
    """What has elements in a memory, or would have."""

    @property
    def dtype(self) -> ScalarType: ...
    @property
    def sizes(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def storage_offset(self) -> int: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def device(self) -> Device: ...


def strided_meta(view: _Strided, layout: Layout) -> TensorMeta:
    """The description of a tensor with known numbers for sizes, as the schema writes it."""
    return TensorMeta(
        dtype=view.dtype,
        sizes=[SymInt(as_int=size) for size in view.sizes],
        requires_grad=view.requires_grad,
        device=view.device,
        strides=[SymInt(as_int=stride) for stride in view.strides],
        storage_offset=SymInt(as_int=view.storage_offset),
        layout=layout,
    )
