"""Views of tensors in a file: their description, their numbers on access, and the storages that they share.

    TensorView('fc1.weight', f32[16, 8], 'mlp/data/weights/weight_0')

A view defines which bytes of which storage are the tensor. It is checked when it is made, so that no view points
outside its storage; nothing is read before the first call of `numpy`, `buffer`, `contiguous_bytes`, `tobytes` or
`iter_bytes`.

Its `Storage` is one record of an archive, or one storage of a torch.save payload: bytes on demand, shared by the
tensors over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pt2kit.errors import LimitError, PayloadError, UnsupportedError
from pt2kit.messages import count_text
from pt2kit.schema import Device, Layout, ScalarType, SymInt, TensorMeta
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import (
    check_copy,
    check_device,
    check_shape,
    contiguous_strides,
    extent,
    is_contiguous,
)
from pt2kit.tensors.dtypes import DTYPES, DType, dtype_of, numpy_dtype, scalar_type_of, short_name
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.reader import Storage

if TYPE_CHECKING:
    from pt2kit.tensors.arrays import Array

CPU = Device("cpu")


class OneShape:
    """A description of one tensor, not of several."""

    __slots__ = ()
    sizes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return `sizes`."""
        return self.sizes


class Strided(OneShape):
    """A description of elements in a memory, or of the geometry of some."""

    __slots__ = ()
    dtype: ScalarType
    strides: tuple[int, ...]
    storage_offset: int
    requires_grad: bool
    device: Device
    layout: Layout = Layout.Strided

    @property
    def itemsize(self) -> int:
        """Return the bytes per element."""
        return DTYPES[self.dtype].itemsize

    @property
    def numel(self) -> int:
        """Return the number of elements; repeated ones count each time."""
        return math.prod(self.sizes)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements: the length of `tobytes`, however few the file holds."""
        return self.numel * self.itemsize

    def meta(self) -> TensorMeta:
        """Return the description as the schema writes it, for a payload config."""
        return TensorMeta(
            dtype=self.dtype,
            sizes=[SymInt(as_int=size) for size in self.sizes],
            requires_grad=self.requires_grad,
            device=self.device,
            strides=[SymInt(as_int=stride) for stride in self.strides],
            storage_offset=SymInt(as_int=self.storage_offset),
            layout=self.layout,
        )


@dataclass(frozen=True, slots=True, repr=False)
class TensorView(Strided):
    """One dense tensor over a storage. Making one checks it and reads nothing.

    Args:
        name: the name it has in its state dict or constants.
        dtype: element type.
        sizes, strides: elements per dimension, outermost first, and elements to step along each; steps of 0 repeat.
        storage_offset: elements before the first one.
        storage: the bytes; the same object in every view of the same record.
        requires_grad: whether autograd follows it.
        device: its device when it was saved; its bytes are in the file nevertheless.
        layout: Strided; the others have descriptions of their own.
        is_param: whether it is a parameter, not a buffer or a constant.
        conj, neg: the tensor is the complex conjugate, the negative, of the stored values (torch.save keeps such
            marks). `numpy` and everything below it return the tensor; `buffer` returns the stored values.

    Raises:
        PayloadError: numbers out of range (P7, P8), an extent beyond the storage (P9), a gradient that cannot be
            (P12), a tensor on the meta device (P6).
        SchemaError: an unknown element type (P4).
        UnsupportedError: another layout (P5), a device unknown to torch (P6).
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
        check_raw(where, self.layout, self.device)
        if self.device.type == "meta":
            raise PayloadError(f"{where}: device: expected one that holds data, got meta", rule="P6")
        self._check_geometry(where, row)
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

    def _check_geometry(self, where: str, row: DType) -> None:
        """Check that the tensor is well formed and inside its storage."""
        check_shape(where, self.sizes, self.strides, self.storage_offset, row.itemsize)
        needed = extent(self.sizes, self.strides, self.storage_offset, row.itemsize)
        if needed > (nbytes := self.storage.nbytes):
            hint = "; it was saved without its data (a fake tensor)" if nbytes == 0 else ""
            raise PayloadError(
                f"{where}: expected at least {count_text(needed, 'byte')} (sizes {list(self.sizes)}, strides "
                f"{list(self.strides)}, storage_offset {self.storage_offset}, {row.name}), got {nbytes}{hint}",
                rule="P9",
            )

    @property
    def record(self) -> str:
        """Return the archive record, or the storage of a payload, that holds the bytes."""
        return self.storage.record

    @property
    def where(self) -> str:
        """Return the name of this tensor for messages: its record and its name."""
        return f"{show_name(self.storage.record)}: {self.name!r}"

    @property
    def is_contiguous(self) -> bool:
        """Return whether the elements are stored in row-major order without gaps."""
        return is_contiguous(self.sizes, self.strides)

    def shares_storage(self, other: TensorView) -> bool:
        """Return whether both tensors share a storage, as tied weights and views of one another do."""
        return self.storage is other.storage

    def describe(self) -> str:
        """Return type and shape, as graphs print them: `f32[16, 8]`."""
        return f"{short_name(self.dtype)}{list(self.sizes)}"

    def __repr__(self) -> str:
        flags = "".join(f", {flag}" for flag in ("requires_grad", "conj", "neg") if getattr(self, flag))
        return f"TensorView({self.name!r}, {self.describe()}, {self.record!r}{flags})"

    def dense(self) -> TensorView:
        """Return this tensor: it is one array of numbers already. Every payload has this method."""
        return self

    def numpy(self, *, upcast: bool = False) -> Array:
        """Return the numbers as a read-only array, without a copy.

        bfloat16 and the 8-bit floats have the types of `ml_dtypes`. Complex half has the fields `real` and `imag`, both
        float16. `conj` and `neg` make a copy.

        Args:
            upcast: return types that numpy lacks as float32, and complex half as complex64: exactly the same values,
                in a copy.

        Raises:
            PayloadError: a bool that is neither 0 nor 1 (P13).
            LimitError: a copy that would be far larger than its storage (P16).
            Pt2Error: the record cannot be read.
        """
        return self.over(self.storage.read(), upcast=upcast)

    def over(self, data: memoryview, *, upcast: bool = False) -> Array:
        """Return the array as `numpy`, over bytes that the caller holds: the result of `storage.read(keep=False)`.

        Args:
            data: all bytes of the storage.
            upcast: as in `numpy`.
        """
        array = stored_array(self, data)
        wide = upcast and not DTYPES[self.dtype].is_native
        if self.conj or self.neg or wide:
            check_copy(self.where, self.nbytes, self.storage.nbytes)
            array = arrays.values(array, self.dtype, conj=self.conj, neg=self.neg, wide=wide)
            array.setflags(write=False)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the array for `np.asarray(view)`."""
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"{self.where}: expected no copy, but {array.dtype} becomes {dtype} only by one")
            return array.astype(dtype)
        return array.copy() if copy else array

    def buffer(self) -> memoryview:
        """Return the whole storage as the file holds it, read-only; the tensor is part of it."""
        return self.storage.read()

    def contiguous_bytes(self) -> memoryview:
        """Return the elements in row-major order, little-endian, read-only: a view if stored so, a copy otherwise.

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
        """Return the elements in row-major order, little-endian, as a copy."""
        return bytes(self.contiguous_bytes())

    def iter_bytes(self, data: memoryview | None = None) -> Iterator[memoryview]:
        """Yield the elements in row-major order, little-endian, in pieces of at most 16 MiB.

        Args:
            data: all bytes of the storage, if the caller holds them already.

        Raises:
            Pt2Error: as `contiguous_bytes`.
        """
        yield from pieces_of(self, self.storage.read() if data is None else data)


def check_raw(where: str, layout: Layout, device: Device) -> None:
    """Check that a record of raw bytes can be a tensor of a layout, from a device.

    Raises:
        UnsupportedError: another layout than Strided (P5), a device unknown to torch (P6).
    """
    if layout != Layout.Strided:
        raise UnsupportedError(
            f"{where}: layout: expected Strided for a tensor stored as raw bytes, got {layout.name}", rule="P5"
        )
    check_device(where, device)


def view_of_array(name: str, numbers: Any, where: str) -> TensorView:
    """Return an array as a tensor, whose bytes are shared if they are row-major and little-endian, else copied.

    Args:
        name: of the tensor.
        numbers: an array of numpy or ml_dtypes, or anything `numpy.asarray` takes.
        where: what messages call it.

    Raises:
        UnsupportedError: no numbers that the format has a type for (P4).
    """
    import numpy as np

    array = np.asarray(numbers)
    dtype = scalar_type_of(array.dtype, where)
    data = arrays.raw_bytes(np.ascontiguousarray(array, dtype=numpy_dtype(dtype)))
    sizes = tuple(map(int, array.shape))
    storage = Storage(f"<{name}>", data.nbytes, lambda: data, in_place=True)
    return TensorView(name, dtype, sizes, contiguous_strides(sizes), 0, storage)


def own_copy(view: TensorView) -> TensorView:
    """Return the same values in a storage of their own, row-major; read when they are needed."""
    storage = Storage(f"<{view.name}>", view.nbytes, view.contiguous_bytes)
    return replace(
        view, storage=storage, strides=contiguous_strides(view.sizes), storage_offset=0, conj=False, neg=False
    )


def stored_array(view: TensorView, data: memoryview) -> Array:
    """Return the stored values of a tensor as an array over all bytes of its storage, without a copy.

    Args:
        view: the tensor.
        data: the storage; the array keeps it alive and is read-only if it is.

    Raises:
        PayloadError: a bool that is neither 0 nor 1 (P13). Costs one pass over a bool tensor, nothing for others.
        LimitError: more dimensions than this numpy has (P7).
    """
    import numpy as np

    is_bool = DTYPES[view.dtype].kind == "bool"
    dtype = np.dtype(np.uint8) if is_bool else numpy_dtype(view.dtype, view.where)
    try:
        if 0 in view.sizes:
            array: Array = np.empty(view.sizes, dtype)
            array.setflags(write=False)
        else:
            # numpy needs strides times item size in 64 bits; that of a dimension of size 1 may be anything.
            steps = tuple(
                dtype.itemsize * (stride if size > 1 else 1)
                for size, stride in zip(view.sizes, view.strides, strict=True)
            )
            whole = np.ndarray(data.nbytes, np.uint8, data)  # `as_strided` may look at the rest
            array = np.ndarray(view.sizes, dtype, whole, view.storage_offset * dtype.itemsize, steps)
    except ValueError as exc:
        raise LimitError(
            f"{view.where}: expected sizes that this numpy can hold, got {list(view.sizes)}: {exc}", rule="P7"
        ) from exc
    if is_bool:
        arrays.check_bools(array, view.where)
        return array.view(np.bool_)
    return array


def pieces_of(view: TensorView, data: memoryview, *, wide: bool = False) -> Iterator[memoryview]:
    """Yield the elements of a tensor in row-major order, little-endian, in pieces of at most 16 MiB.

    Args:
        view: the tensor.
        data: all bytes of its storage.
        wide: as in `arrays.values`.

    Raises:
        Pt2Error: as `TensorView.contiguous_bytes`.
    """
    check_copy(view.where, view.nbytes, view.storage.nbytes)
    for block in arrays.blocks(stored_array(view, data)):
        yield arrays.raw_bytes(arrays.values(block, view.dtype, conj=view.conj, neg=view.neg, wide=wide))
