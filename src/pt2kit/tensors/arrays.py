"""NumPy arrays over bytes of a proven geometry, and their elements in pieces of bounded size.

Independent of file formats.

numpy is imported when a function is called: listing tensors does not need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pt2kit.errors import LimitError, PayloadError
from pt2kit.tensors.dtypes import DTYPES, numpy_dtype

if TYPE_CHECKING:
    import numpy as np

    from pt2kit.schema import ScalarType

    Array: TypeAlias = np.ndarray[Any, Any]

BLOCK_ELEMENTS: Final = 1 << 20
"""Elements that one step of a pass over a tensor handles: 8 MiB of doubles."""


def strided(
    data: memoryview,
    scalar_type: ScalarType,
    sizes: Sequence[int],
    strides: Sequence[int],
    storage_offset: int,
    where: str,
) -> Array:
    """Return bytes as an array, without a copy.

    Args:
        data: the storage; the array keeps it alive and is read-only if it is.
        scalar_type: element type.
        sizes, strides, storage_offset: in elements, checked by `check_geometry` against the length of `data`.
        where: what messages call the tensor.

    Raises:
        PayloadError: a bool that is neither 0 nor 1 (P13). Costs one pass over a bool tensor, nothing for others.
        LimitError: more dimensions than this numpy has (P7).
    """
    import numpy as np

    is_bool = DTYPES[scalar_type].kind == "bool"
    dtype = np.dtype(np.uint8) if is_bool else numpy_dtype(scalar_type, where)
    try:
        if 0 in sizes:
            array: Array = np.empty(tuple(sizes), dtype)
            array.setflags(write=False)
        else:
            # numpy needs strides times item size in 64 bits; that of a dimension of size 1 may be anything.
            steps = tuple(
                dtype.itemsize * (stride if size > 1 else 1) for size, stride in zip(sizes, strides, strict=True)
            )
            array = np.ndarray(tuple(sizes), dtype, data, storage_offset * dtype.itemsize, steps)
    except ValueError as exc:
        raise LimitError(
            f"{where}: expected sizes that this numpy can hold, got {list(sizes)}: {exc}", rule="P7"
        ) from exc
    if is_bool:
        check_bools(array, where)
        return array.view(np.bool_)
    return array


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
    import numpy as np

    if array.size == 0:
        return
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        for start in range(0, flat.size, elements):
            yield flat[start : start + elements]
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
        array: as `strided` returns it.
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
