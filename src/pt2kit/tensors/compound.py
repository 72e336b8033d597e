"""Tensors of several buffers, or of none: sparse, quantized, nested and meta tensors of torch.save payloads.

Each is a frozen description whose parts are `TensorView`s. Numbers in index tensors are checked when they are read,
before anything is addressed by them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pt2kit.errors import LimitError, PayloadError, UnsupportedError
from pt2kit.messages import count_text
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import INT64_MAX, check_copy, check_shape, contiguous_strides, show_integer
from pt2kit.tensors.dtypes import DTYPES, dtype_of, numpy_dtype, short_name
from pt2kit.tensors.view import OneShape, Strided, TensorView
from pt2kit.zip.reader import Storage

META: Final = Device("meta")

if TYPE_CHECKING:
    from pt2kit.tensors.arrays import Array

MAX_NESTED: Final = 100_000
"""Tensors inside one nested tensor; each becomes a `TensorView`."""

MAX_NESTED_NUMBERS: Final = 1_000_000
"""Sizes of all of them together; a few bytes of a file can repeat into any number of them."""


def computed(
    name: str,
    record: str,
    dtype: ScalarType,
    sizes: tuple[int, ...],
    held: int,
    make: Callable[[], Array],
    **flags: Any,
) -> TensorView:
    """Return a view of an array that is computed when its bytes are first needed.

    Args:
        name, dtype, sizes: of the tensor.
        record: what messages call its storage.
        held: bytes that it is computed from, which limit its size.
        make: returns the array, of that dtype and those sizes.
        flags: other fields of the view.

    Raises:
        LimitError: far more bytes than `held` (P16).
    """
    row = dtype_of(dtype, record)
    check_shape(record, sizes, sizes, 0, row.itemsize)
    nbytes = math.prod(sizes) * row.itemsize
    check_copy(f"{record}: {name!r}", nbytes, held)
    storage = Storage(record, nbytes, lambda: arrays.raw_bytes(make()))
    return TensorView(name, dtype, sizes, contiguous_strides(sizes), 0, storage, **flags)


@dataclass(frozen=True, slots=True, repr=False)
class _View(ABC):
    """Common part of the descriptions.

    Args:
        name: the name it has in its state dict.
        requires_grad, is_param: as in `TensorView`.
    """

    name: str
    requires_grad: bool = field(default=False, kw_only=True)
    is_param: bool = field(default=False, kw_only=True)

    def _stored(self) -> Sequence[TensorView]:
        """Return the tensors that hold the elements; the first one's storage stands for all in messages."""
        return ()

    @property
    def record(self) -> str:
        """Return the name of the storage, for messages."""
        return self._stored()[0].record

    @property
    def nbytes(self) -> int:
        """Return the bytes of the tensors that hold the elements."""
        return sum(part.nbytes for part in self._stored())

    @abstractmethod
    def describe(self) -> str:
        """Return type, shape and kind in words."""

    def __repr__(self) -> str:
        record = f", {self.record!r}" if self.record else ""
        return f"{type(self).__name__}({self.name!r}, {self.describe()}{record})"

    def dense(self) -> TensorView:
        """Return the tensor as one array of numbers.

        Raises:
            UnsupportedError: there is none (P18).
        """
        what = self.describe()
        raise UnsupportedError(f"{self.name!r}: expected a tensor that is one array, got {what}", rule="P18")

    def numpy(self, *, upcast: bool = False) -> Array:
        """Return the array of `dense`, with its errors."""
        return self.dense().numpy(upcast=upcast)

    def _computed(
        self, how: str, dtype: ScalarType, sizes: tuple[int, ...], held: int, make: Callable[[], Array]
    ) -> TensorView:
        """Return a view of the array that the parts represent; as `computed`."""
        flags = {"requires_grad": self.requires_grad, "is_param": self.is_param}
        return computed(self.name, f"{self.record} ({how})", dtype, sizes, held, make, **flags)


@dataclass(frozen=True, slots=True, repr=False)
class SparseView(OneShape, _View):
    """A sparse tensor by its parts.

    Args:
        name: the name it has in its state dict.
        layout: SparseCoo, SparseCsr, SparseCsc, SparseBsr or SparseBsc.
        indices: for COO one view [sparse dimensions, nonzeros]; for the others (compressed, plain) indices.
        values: the nonzero values; see `arrays.py` for their sizes.
        sizes: elements per dimension of the whole tensor.
        is_coalesced: for COO, whether indices are sorted and unique; None if the file does not state it.
        requires_grad, is_param: as in `TensorView`.
    """

    layout: Layout
    indices: tuple[TensorView, ...]
    values: TensorView
    sizes: tuple[int, ...]
    is_coalesced: bool | None = None

    @property
    def dtype(self) -> ScalarType:
        """Return the element type of the values."""
        return self.values.dtype

    def _stored(self) -> Sequence[TensorView]:
        """Return the values and the indices."""
        return (self.values, *self.indices)

    def describe(self) -> str:
        """Return type, shape and layout: `f32[3, 4] SparseCoo, 5 nonzeros`."""
        last = self.indices[-1].sizes[-1:] if self.indices else ()
        count = last[0] if last else 0
        return f"{short_name(self.dtype)}{list(self.sizes)} {self.layout.name}, {count_text(count, 'nonzero')}"

    def dense(self) -> TensorView:
        """Return the same tensor with its zeros, computed when it is read.

        Raises:
            LimitError: it would be far larger than its parts (P16).
            PayloadError: while reading, indices that point outside the tensor (P17).
        """
        held = sum(part.storage.nbytes for part in self._stored())
        return self._computed("dense", self.dtype, self.sizes, held, self._fill)

    def check_indices(self) -> None:
        """Check that the parts fit together; reads them.

        Raises:
            PayloadError: they do not, or indices are outside the tensor (P17).
        """
        arrays.check_parts(self.layout, *self._arrays(), self.sizes, self.values.where)

    def _fill(self) -> Array:
        where = self.values.where
        return arrays.fill(self.layout, *self._arrays(), self.sizes, numpy_dtype(self.dtype, where), where)

    def _arrays(self) -> tuple[list[Array], Array]:
        """Return the indices and the values."""
        for part in (*self.indices, self.values):
            check_copy(part.where, part.nbytes, part.storage.nbytes)
        return [part.numpy() for part in self.indices], self.values.numpy()


@dataclass(frozen=True, slots=True, repr=False)
class QuantizedView(OneShape, _View):
    """A quantized tensor: integers, and their meaning.

    Args:
        name: the name it has in its state dict.
        dtype_name: torch's type: "quint8", "qint8", "qint32", "quint4x2" or "quint2x4".
        values: the integers, of `sizes`; of the packed types the bytes that hold them, one dimension.
        sizes: elements per dimension.
        qscheme: per_tensor_affine, per_channel_affine or per_channel_affine_float_qparams.
        scale, zero_point: per tensor a number; per channel a view or a tuple with one number per element of
            dimension `axis`.
        axis: the channel dimension; None per tensor.
        bits: bits per element where several share a byte, lowest bits first; None otherwise.
        requires_grad, is_param: as in `TensorView`.
    """

    dtype_name: str
    values: TensorView
    sizes: tuple[int, ...]
    qscheme: str
    scale: float | TensorView | tuple[float, ...]
    zero_point: int | TensorView | tuple[float, ...]
    axis: int | None = None
    bits: int | None = None

    def _stored(self) -> Sequence[TensorView]:
        """Return the integers."""
        return (self.values,)

    def describe(self) -> str:
        """Return type, shape and scheme: `quint8[3, 4] per_tensor_affine`."""
        return f"{self.dtype_name}{list(self.sizes)} {self.qscheme}"

    def integers(self) -> Array:
        """Return the stored integers, read-only; packed ones unpacked into bytes."""
        array = self.values.numpy()
        if self.bits is None:
            return array
        return arrays.unpack(array, self.bits, self.sizes)

    def dense(self) -> TensorView:
        """Return the float32 tensor that it represents, computed when it is read.

        Raises:
            LimitError: it would be far larger than its storage (P16).
            PayloadError: while reading, a scale or zero point that does not fit (P17).
        """
        held = 16 * self.values.storage.nbytes
        return self._computed("dequantized", ScalarType.FLOAT, self.sizes, held, self._dequantize)

    def _dequantize(self) -> Array:
        scale = self._parameter("scale", self.scale)
        zero = self._parameter("zero_point", self.zero_point)
        return arrays.dequantize(self.integers(), scale, zero, self.axis, len(self.sizes))

    def _parameter(self, field: str, given: float | TensorView | tuple[float, ...]) -> Any:
        """Return a scale or zero point as numbers, one per channel if there are channels."""
        where = f"{self.values.where}: {field}"
        if isinstance(given, TensorView):
            if DTYPES[given.dtype].kind not in ("float", "int", "uint"):
                raise PayloadError(f"{where}: expected real numbers, got {given.describe()}", rule="P17")
            return given.numpy()
        if isinstance(given, int) and not -INT64_MAX <= given <= INT64_MAX:
            raise PayloadError(f"{where}: expected an integer of 64 bits, got {show_integer(given)}", rule="P17")
        return given


@dataclass(frozen=True, slots=True, repr=False)
class NestedView(_View):
    """A nested tensor: tensors of different sizes in one buffer.

    Args:
        name: the name it has in its state dict.
        buffer: all elements, one dimension.
        sizes, strides: int64 views [tensors, dimensions].
        storage_offsets: int64 view [tensors], or the numbers themselves.
        requires_grad, is_param: as in `TensorView`.
    """

    buffer: TensorView
    sizes: TensorView
    strides: TensorView
    storage_offsets: TensorView | tuple[int, ...]

    @property
    def dtype(self) -> ScalarType:
        """Return the element type of the buffer."""
        return self.buffer.dtype

    def _stored(self) -> Sequence[TensorView]:
        """Return the buffer."""
        return (self.buffer,)

    def describe(self) -> str:
        """Return type and number of tensors: `f32 nested, 3 tensors of 2 dimensions`."""
        count, ndim = self.sizes.sizes if len(self.sizes.sizes) == 2 else (0, 0)
        return f"{short_name(self.dtype)} nested, {count_text(count, 'tensor')} of {ndim} dimensions"

    def tensors(self) -> tuple[TensorView, ...]:
        """Return the tensors inside, over the storage of the buffer. Reads sizes, strides and offsets, not the buffer.

        Raises:
            PayloadError: one of them is outside the buffer (P9), or their numbers do not fit together (P17).
            LimitError: more than 100,000 of them (P17).
        """
        sizes, strides = self._rows(self.sizes), self._rows(self.strides)
        offsets = self._offsets()
        if not len(sizes) == len(strides) == len(offsets):
            raise PayloadError(
                f"{self.buffer.where}: expected as many sizes as strides and offsets, "
                f"got {len(sizes)}, {len(strides)} and {len(offsets)}",
                rule="P17",
            )
        base = self.buffer.storage_offset
        return tuple(
            TensorView(
                f"{self.name}[{index}]",
                self.dtype,
                size,
                stride,
                base + offset,
                self.buffer.storage,
                requires_grad=self.requires_grad,
                device=self.buffer.device,
            )
            for index, (size, stride, offset) in enumerate(zip(sizes, strides, offsets, strict=True))
        )

    def _rows(self, part: TensorView) -> list[tuple[int, ...]]:
        """Return the rows of a [tensors, dimensions] view of integers."""
        if not part.numel:
            return [()] * (part.sizes[0] if self._fits(part, 2) else 0)
        if not self._fits(part, 2):
            raise PayloadError(f"{part.where}: expected i64[tensors, dimensions], got {part.describe()}", rule="P17")
        return [tuple(map(int, row)) for row in part.numpy()]

    def _offsets(self) -> tuple[int, ...]:
        offsets = self.storage_offsets
        if isinstance(offsets, tuple):
            return offsets
        if not self._fits(offsets, 1):
            raise PayloadError(f"{offsets.where}: expected i64[tensors], got {offsets.describe()}", rule="P17")
        return tuple(map(int, offsets.numpy()))

    def _fits(self, part: TensorView, ndim: int) -> bool:
        """Return whether a view of integers has rank `ndim`, and few enough numbers to be read one by one."""
        if part.numel > MAX_NESTED_NUMBERS or (part.sizes and part.sizes[0] > MAX_NESTED):
            raise LimitError(
                f"{part.where}: expected at most {MAX_NESTED} tensors and {MAX_NESTED_NUMBERS} numbers, "
                f"got {part.describe()}",
                rule="P17",
            )
        return part.dtype == ScalarType.LONG and len(part.sizes) == ndim


@dataclass(frozen=True, slots=True, repr=False)
class MetaView(Strided, _View):
    """A tensor without data: a type and a shape.

    Args:
        name: the name it has in its state dict.
        dtype: element type.
        sizes, strides: in elements.
        requires_grad, is_param: as in `TensorView`.
        device: where it was; "meta", or that of a tensor that was saved without its data.
        record: its empty record, "" if there is none.
        storage_offset: elements before the first one, in the memory it had.
        tie: a key shared by tensors of the same memory; "" if the file does not state it.
    """

    dtype: ScalarType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    device: Device = META
    record: str = ""
    storage_offset: int = 0
    tie: str = ""

    def __post_init__(self) -> None:
        row = dtype_of(self.dtype, repr(self.name))
        check_shape(repr(self.name), self.sizes, self.strides, self.storage_offset, row.itemsize)

    def describe(self) -> str:
        """Return type and shape: `f32[3, 4] meta`."""
        return f"{short_name(self.dtype)}{list(self.sizes)} meta"


@dataclass(frozen=True, slots=True, repr=False)
class SubclassView(OneShape, _View):
    """A tensor of a class of torchao, by its inner tensors.

    Args:
        name: the name it has in its state dict.
        class_name: the class, with its module.
        dtype: element type that it represents.
        sizes: elements per dimension of the whole.
        parts: name of an attribute -> inner tensor; "qdata" is the first.
        options: name of another attribute -> plain data: numbers, texts, lists, dicts.
        requires_grad, is_param: as in `TensorView`.
    """

    class_name: str
    dtype: ScalarType
    sizes: tuple[int, ...]
    parts: Mapping[str, TensorView]
    options: Mapping[str, Any]

    def _stored(self) -> Sequence[TensorView]:
        """Return the inner tensors; "qdata" is the first."""
        return tuple(self.parts.values())

    def describe(self) -> str:
        """Return type, shape, class and parts: `f32[3, 4] Int8Tensor, qdata i8[3, 4], scale f32[3, 1]`."""
        parts = (f"{name} {part.describe()}" for name, part in self.parts.items())
        own = f"{short_name(self.dtype)}{list(self.sizes)} {self.class_name.rpartition('.')[2]}"
        return ", ".join((own, *parts))

    def dense(self) -> TensorView:
        """Return the float32 tensor that it represents, computed when it is read: `(qdata - zero_point) * scale`.

        Raises:
            UnsupportedError: several elements share a number, packed as a kernel needs them (P18).
            LimitError: it would be far larger than its storage (P16).
            PayloadError: while reading, a scale or zero point that does not fit (P17).
        """
        if self.parts["qdata"].sizes != self.sizes or "scale" not in self.parts:
            return _View.dense(self)
        held = 16 * self.parts["qdata"].storage.nbytes
        return self._computed("dequantized", ScalarType.FLOAT, self.sizes, held, self._dequantize)

    def _dequantize(self) -> Array:
        values = self.parts["qdata"].numpy(upcast=True).astype("float32")
        if "zero_point" in self.parts:
            values = values - self._by_block("zero_point")
        return values * self._by_block("scale")

    def _by_block(self, name: str) -> Array:
        """Return an inner tensor with each number repeated over the block that it is for."""
        part = self.parts[name]
        sizes = part.sizes if len(part.sizes) == len(self.sizes) else (1,) * len(self.sizes)
        if math.prod(sizes) != part.numel or any(
            not size or whole % size for whole, size in zip(self.sizes, sizes, strict=True)
        ):
            raise PayloadError(f"{part.where}: expected one number for each block, got {part.describe()}", rule="P17")
        numbers = part.numpy(upcast=True).astype("float32").reshape(sizes)
        for axis, (whole, size) in enumerate(zip(self.sizes, sizes, strict=True)):
            numbers = numbers.repeat(whole // size, axis) if size > 1 else numbers
        return numbers


View: TypeAlias = TensorView | SparseView | QuantizedView | NestedView | MetaView | SubclassView
"""Every description of a tensor."""
