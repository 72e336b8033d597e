"""Elements of NumPy arrays in pieces of bounded size, and the values that stored elements represent.

Independent of file formats.

numpy is imported when a function is called: listing tensors does not need it.

Dense arrays of sparse and quantized tensors are computed from the arrays of their parts. Sizes of the parts (batch and
dense dimensions may be none)::

    SparseCoo   indices [sparse dims, nonzeros]                           values [nonzeros, *dense]
    SparseCsr   rows [*batch, rows + 1]       columns [*batch, nonzeros]  values [*batch, nonzeros, *dense]
    SparseCsc   columns [*batch, columns + 1] rows [*batch, nonzeros]     values [*batch, nonzeros, *dense]
    SparseBsr, SparseBsc   the same over blocks      values [*batch, nonzeros, height, width, *dense]

Values at the same place add up. Index values come from a file: they are compared with the sizes before they address
anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pt2kit.errors import PayloadError
from pt2kit.schema import Layout
from pt2kit.tensors.dtypes import DTYPES

if TYPE_CHECKING:
    import numpy as np

    from pt2kit.schema import ScalarType

    Array: TypeAlias = np.ndarray[Any, Any]

BLOCK_ELEMENTS: Final = 1 << 20
"""Elements that one step of a pass over a tensor handles: 8 MiB of doubles."""

_BLOCKS: Final = (Layout.SparseBsr, Layout.SparseBsc)


def check_bools(array: Array, where: str) -> None:
    """Check that bytes are bools.

    Args:
        array: uint8, any strides.
        where: what messages call the tensor.

    Raises:
        PayloadError: a byte that is neither 0 nor 1 (P13).
    """
    if array.size == 0:
        return
    small = without_repeats(array)
    span = sum((size - 1) * step for size, step in zip(small.shape, small.strides, strict=True)) + 1
    if small.size > span:
        # Overlapping windows: visiting each element could take forever, each byte below them can't.
        import numpy as np

        small = np.lib.stride_tricks.as_strided(small, (span,), (1,), writeable=False)
    for block in blocks(small):
        if (largest := int(block.max())) > 1:
            raise PayloadError(f"{where}: expected bools stored as 0 or 1, got a byte of {largest}", rule="P13")


def without_repeats(array: Array) -> Array:
    """Return a view that holds one of the equal slices along each dimension that only repeats (stride 0)."""
    if array.size == 0:
        return array
    return array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]


def blocks(array: Array, elements: int = BLOCK_ELEMENTS) -> Iterator[Array]:
    """Cut an array into views of at most `elements` elements that, one after another, are its row-major order."""
    if array.size == 0:
        return
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        for start in range(0, flat.size, elements):
            yield flat[start : start + elements]
    else:
        yield from rows(array, elements)


def rows(array: Array, elements: int) -> Iterator[Array]:
    """Cut an array as `blocks`, along its dimensions: where it is cut depends on its shape alone."""
    import numpy as np

    if 0 < array.size <= elements:
        yield array
    if array.size <= elements:
        return
    axis, below = array.ndim - 1, 1
    while axis > 0 and below * array.shape[axis] <= elements:
        below *= array.shape[axis]
        axis -= 1
    step = max(1, elements // below)
    for index in np.ndindex(*array.shape[:axis]):
        part = array[index]
        for start in range(0, part.shape[0], step):
            yield part[start : start + step]


def values(
    array: Array, scalar_type: ScalarType, *, conj: bool = False, neg: bool = False, wide: bool = False
) -> Array:
    """Compute the values that a tensor represents; a copy if anything has to be done.

    Args:
        array: as `view.stored_array` returns it.
        scalar_type: its element type.
        conj: take the complex conjugates.
        neg: take the negatives.
        wide: turn types that numpy lacks into the narrowest of its own that holds every value: bfloat16 and 8-bit
            floats into float32, complex half into complex64.
    """
    import numpy as np

    row = DTYPES[scalar_type]
    if array.dtype.names and (conj or neg):
        array = array.copy()
        if neg:
            np.negative(array["real"], out=array["real"])
        if neg != conj:
            np.negative(array["imag"], out=array["imag"])
    elif conj or neg:
        array = np.conjugate(array) if conj else array
        array = np.negative(array) if neg else array
    if wide and not row.is_native:
        if array.dtype.names:
            widened = np.empty(array.shape, row.wide)
            widened.real, widened.imag = array["real"], array["imag"]
            array = widened
        else:
            # A signalling nan widens to a nan; numpy warns of it.
            with np.errstate(invalid="ignore"):
                array = array.astype(row.wide)
    return array


def raw_bytes(array: Array) -> memoryview:
    """Return the elements' bytes in row-major order; a view if they are stored so, a copy otherwise."""
    import numpy as np

    if array.size == 0:
        return memoryview(b"")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data.toreadonly()


def fill(
    layout: Layout, indices: Sequence[Array], values: Array, sizes: tuple[int, ...], dtype: np.dtype[Any], where: str
) -> Array:
    """Write the values of a sparse tensor into zeros.

    Args:
        layout: one of the five sparse ones.
        indices: integers; one array for COO, two for the others.
        values: the nonzero values.
        sizes: of the whole tensor, which must fit in memory.
        dtype: of the result.
        where: what messages call the tensor.

    Raises:
        PayloadError: indices outside the tensor (P17).
    """
    import numpy as np

    out = np.zeros((1, *sizes), dtype)
    for index, part in _places(layout, indices, values, sizes, where):
        _add(out, index, part)
    return out.reshape(sizes)


def check_parts(layout: Layout, indices: Sequence[Array], values: Array, sizes: tuple[int, ...], where: str) -> None:
    """Check the parts of a sparse tensor without making it dense.

    Args:
        layout, indices, values, sizes, where: as in `fill`.

    Raises:
        PayloadError: indices outside the tensor (P17).
    """
    for _ in _places(layout, indices, values, sizes, where):
        pass


def _places(
    layout: Layout, indices: Sequence[Array], values: Array, sizes: tuple[int, ...], where: str
) -> Iterator[tuple[Any, Array]]:
    """Yield indices into an array of [1, *sizes], all inside of it, and the values at these places.

    The first dimension is there for COO tensors without sparse dimensions, whose values are all at the same place. The
    sizes of the parts fit: `pickles.tensor_reducers` has checked them (P22).
    """
    import numpy as np

    if layout == Layout.SparseCoo:
        [index] = indices
        for row, size in zip(index, sizes, strict=False):
            _check_range(row, size, where)
        yield (np.zeros(index.shape[1], np.int64), *index), values
        return
    compressed, plain = indices
    batch = compressed.ndim - 1
    for at in np.ndindex(*sizes[:batch]):
        yield (0, *at, *_matrix(layout, compressed[at], plain[at], values[at], sizes[batch:], where)), values[at]


def _matrix(
    layout: Layout, compressed: Array, plain: Array, values: Array, sizes: tuple[int, ...], where: str
) -> tuple[Array, Array]:
    """Return the row and the column of each value of one matrix, whose sizes are [rows, columns, *dense]."""
    import numpy as np

    (rows, columns), (height, width) = sizes[:2], values.shape[1:3] if layout in _BLOCKS else (1, 1)
    by_rows = layout in (Layout.SparseCsr, Layout.SparseBsr)
    inner = columns // width if by_rows else rows // height
    # Compared, not subtracted: a difference could wrap.
    if compressed[0] != 0 or compressed[-1] != plain.shape[0] or (compressed[1:] < compressed[:-1]).any():
        raise PayloadError(
            f"{where}: expected compressed indices that rise from 0 to {plain.shape[0]}, "
            f"got {int(compressed[0])} to {int(compressed[-1])}",
            rule="P17",
        )
    _check_range(plain, inner, where)
    rising = np.repeat(np.arange(compressed.size - 1), np.diff(compressed))
    row, column = (rising, plain) if by_rows else (plain, rising)
    if layout not in _BLOCKS:
        return row, column
    row, column = (part.astype(np.int64)[:, None, None] for part in (row, column))
    return row * height + np.arange(height)[:, None], column * width + np.arange(width)


def _check_range(index: Array, size: int, where: str) -> None:
    low, high = (int(index.min()), int(index.max())) if index.size else (0, -1)
    if low < 0 or high >= size:
        raise PayloadError(f"{where}: expected indices from 0 to {size - 1}, got {low} to {high}", rule="P17")


def _add(out: Array, index: tuple[Array, ...], values: Array) -> None:
    """Add values into places that may repeat."""
    import numpy as np

    if out.dtype.names:
        for field in out.dtype.names:
            _add(out[field], index, values[field])
    elif out.dtype == np.bool_:
        np.logical_or.at(out, index, values)
    else:
        with np.errstate(all="ignore"):  # Sums may overflow, as they do in torch.
            np.add.at(out, index, values)


def unpack(packed: Array, bits: int, sizes: tuple[int, ...]) -> Array:
    """Unpack unsigned integers of 2 or 4 bits, lowest bits first; a copy.

    Args:
        packed: uint8, one dimension.
        bits: bits per element.
        sizes: of the result; the last byte may hold fewer elements than it could.

    Source: ATen/native/quantized/cpu/kernels (2.13): elements are packed across all dimensions, not row by row.
    """
    import numpy as np

    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    flat: Array = (packed[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    return flat.reshape(-1)[: math.prod(sizes)].reshape(sizes)


def dequantize(integers: Array, scale: Any, zero_point: Any, axis: int | None, ndim: int) -> Array:
    """Compute `(integer - zero_point) * scale` in float32; a copy.

    Args:
        integers: the stored integers.
        scale, zero_point: a number, or one per element of dimension `axis`.
        axis: the channel dimension; None for one number.
        ndim: dimensions of the tensor.
    """
    import numpy as np

    scales, zeros = np.asarray(scale), np.asarray(zero_point)
    if axis is not None:
        shape = [1] * ndim
        shape[axis] = -1
        scales, zeros = scales.reshape(shape), zeros.reshape(shape)
    with np.errstate(all="ignore"):
        if zeros.dtype.kind in "iu":
            shifted = (integers.astype(np.int64) - zeros.astype(np.int64)).astype(np.float32)
        else:
            shifted = integers.astype(np.float32) - zeros.astype(np.float32)
        return np.asarray(shifted * scales.astype(np.float32))
