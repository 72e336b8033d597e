"""Kernels: views, which share memory with their operand as far as NumPy's strides can, and conversions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.messages import count_text
from pt2kit.operators.facts import axis as axis_of
from pt2kit.runtime.arrays import (
    ARRAYS,
    Array,
    ArraySpec,
    ForeignArray,
    cast,
    complex_type,
    is_complex,
    last,
    order_of,
    real_type,
    require,
    reserve,
    strided,
)
from pt2kit.runtime.kernels.convolutions import Window, windows
from pt2kit.runtime.table import kernel


@kernel("aten.view.default aten.reshape.default aten.view_as.default aten.reshape_as.default aten.ravel.default")
@kernel("aten.flatten.using_ints aten.unflatten.int aten.unsqueeze.default aten.unsqueeze_.default")
@kernel("aten.squeeze.default .dim .dims aten.squeeze_.default .dim .dims")
@kernel("aten.atleast_1d.default aten.atleast_2d.default aten.atleast_3d.default")
def reshape(self: Array, result: ArraySpec, **options: Any) -> Any:
    return self.reshape(result.sizes)


@kernel("aten.mH.default aten.adjoint.default aten.matrix_H.default")
def mh(self: Array) -> Any:
    result = self if self.ndim < 2 else self.swapaxes(-1, -2)
    return np.conjugate(result) if is_complex(self) else result


@kernel("aten.transpose.int aten.transpose_.default aten.swapaxes.default aten.swapaxes_.default")
@kernel("aten.swapdims.default aten.swapdims_.default")
def transpose(self: Array, dim0: int, dim1: int) -> Any:
    return self.swapaxes(dim0, dim1) if self.ndim else self


@kernel("aten.expand.default aten.broadcast_to.default aten.expand_as.default")
def expand(self: Array, result: ArraySpec, **options: Any) -> Any:
    if result.sizes == self.shape:
        return self
    view = np.broadcast_to(self, result.sizes)
    view.flags.writeable = self.flags.writeable  # NumPy's own cannot be written to
    return view


@kernel("aten.slice.Tensor")
def slice_(self: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    axis = axis_of(dim, self.ndim)
    return self[(slice(None),) * axis + (slice(start, end, step),)]


@kernel("aten.select.int")
def select(self: Array, dim: int, index: int) -> Any:
    return self[last((int(index), ...), axis_of(dim, self.ndim))]


@kernel("aten.narrow.default .Tensor")
def narrow(self: Array, dim: int, start: Any, length: int) -> Any:
    size, first = self.shape[axis_of(dim, self.ndim)], int(start)
    first += size if first < 0 else 0
    require(first + length <= size, f"expected a part of {count_text(size, 'element')}, got {length} from {first}")
    return slice_(self, dim, first, first + length)


@kernel("aten.split.Tensor")
def split(self: Array, split_size: int, dim: int = 0) -> Any:
    total = self.shape[axis_of(dim, self.ndim)]
    step = max(1, split_size)
    reserve((total // step,))
    return np.split(self, [*range(step, total, step)], axis_of(dim, self.ndim))


@kernel("aten.split_with_sizes.default aten.split.sizes .default")
def split_with_sizes(self: Array, sizes: Sequence[int], dim: int) -> Any:
    return np.split(self, [*itertools.accumulate(sizes[:-1])], axis_of(dim, self.ndim))


@kernel("aten.chunk.default")
def chunk(self: Array, chunks: int, dim: int) -> Any:
    total = self.shape[axis_of(dim, self.ndim)]
    size = -(-total // chunks)
    return split(self, size, dim) if size else tensor_split(self, chunks, dim)


@kernel("aten.tensor_split.sections .indices .tensor_indices_or_sections")
def tensor_split(self: Array, sections: Any, dim: int = 0) -> Any:
    sections = sections.tolist() if isinstance(sections, ARRAYS) else sections
    if isinstance(sections, int):
        reserve((sections,))
    return np.array_split(self, sections, axis_of(dim, self.ndim))


@kernel("aten.unfold.default")
def unfold(self: Array, dimension: int, size: int, step: int) -> Any:
    axis = axis_of(dimension, self.ndim)
    total = self.shape[axis]
    # A view of other strides must not reach beyond its memory, also when another kernel asks for it.
    require(0 <= size <= total and step >= 1, f"expected windows within {count_text(total, 'element')}, got {size}")
    view = windows(np.moveaxis(self, axis, -1), Window([size], [step], [0], [1]))
    return np.moveaxis(view, -2, axis)


@kernel("aten.diagonal.default")
def diagonal(self: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    view = np.diagonal(self, offset, dim1, dim2)
    view.flags.writeable = self.flags.writeable
    return view


def storage_of(array: Array) -> tuple[Array, int]:
    """Return the memory that an array is a view of, as one row of its elements, and where the array starts in it."""
    if isinstance(array, ForeignArray):
        return array.storage(), array.storage_offset
    base = array
    while isinstance(owner := _owner(base), np.ndarray):
        base = owner
    start, item = array.__array_interface__["data"][0] - base.__array_interface__["data"][0], array.itemsize
    # If the dimensions are a permutation of those in memory, this is one row of them.
    turned = base.transpose(order_of(base.strides))
    if start % item or not turned.flags.c_contiguous:
        raise OperatorError("expected a tensor whose memory is one piece, got one that is a view of other memory")
    row = turned.reshape(-1).view(np.uint8)[: base.nbytes // item * item].view(array.dtype)
    row.flags.writeable = array.flags.writeable
    return row, start // item


def _owner(view: Array) -> Any:
    """Return what an array is a view of; NumPy's own views with other strides have an object in between."""
    return view.base if isinstance(view.base, np.ndarray) else getattr(view.base, "base", None)


@kernel("aten.as_strided.default aten.as_strided_.default")
def as_strided(self: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    if len(size) != len(stride) or any(one < 0 for one in (*size, *stride)):
        raise OperatorError(f"expected as many strides as sizes, none negative, got {list(size)} and {list(stride)}")
    row, start = storage_of(self)
    first = start if storage_offset is None else int(storage_offset)
    last = first + sum((one - 1) * step for one, step in zip(size, stride, strict=True))
    if 0 in size:
        return np.empty(tuple(size), self.dtype)
    if first < 0 or last >= row.size:
        raise OperatorError(
            f"expected sizes and strides within a storage of {count_text(row.size, 'element')}, got element {last}"
        )
    steps = tuple(step * self.dtype.itemsize for step in stride)
    return strided(row[first:], tuple(size), steps)


# Views of complex numbers.


@kernel("aten.view_as_real.default")
def view_as_real(self: Array) -> Any:
    return self[..., None].view(real_type(self.dtype))


@kernel("aten.view_as_complex.default")
def view_as_complex(self: Array) -> Any:
    wide = cast(self, real_type(complex_type(self.dtype)))
    if wide.strides[-1] != wide.itemsize:
        wide = wide.copy("C")
    return wide.view(complex_type(wide.dtype))[..., 0]


KERNELS: Final = {
    "aten.t.default aten.t_.default aten.numpy_T.default": lambda self: self.T,
    "aten.view.dtype": lambda self, dtype: (
        self if self.flags.c_contiguous or self.itemsize == dtype.itemsize else self.copy("C")
    ).view(dtype),
    "aten.movedim.int .intlist": lambda self, source, destination: (
        np.moveaxis(self, source, destination) if self.ndim else self
    ),
    "aten.permute.default": lambda self, dims: self.transpose(dims),
    "aten.atleast_1d.Sequence aten.atleast_2d.Sequence aten.atleast_3d.Sequence": lambda tensors, results: [
        *map(reshape, tensors, results)
    ],
    "aten.broadcast_tensors.default": lambda tensors, results: [*map(expand, tensors, results)],
    "aten.real.default": lambda self: self.real if is_complex(self) else self,
    "aten.imag.default": lambda self: self.imag,
    "aten.mT.default": lambda self: transpose(self, -1, -2),
    "aten.vsplit.int .array": tensor_split,
    "aten.hsplit.int .array": lambda self, sections: tensor_split(self, sections, 0 if self.ndim == 1 else 1),
    "aten.dsplit.int .array": lambda self, sections: tensor_split(self, sections, 2),
    "aten.linalg_diagonal.default": lambda A, offset, dim1, dim2: diagonal(A, offset, dim1, dim2),
    "aten.unbind.int": lambda self, dim: [select(self, dim, i) for i in range(self.shape[dim])],
}
