"""Samples of a tensor for the page: statistics, a histogram, a heat map of one slice.

Its record is read for this and for nothing else; of a large tensor the histogram takes in evenly spread blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.tensors import arrays
from pt2kit.tensors.compound import QuantizedView, SparseView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.summary import Statistics, statistics
from pt2kit.tensors.view import TensorView

if TYPE_CHECKING:
    from pt2kit.tensors.arrays import Array
    from pt2kit.tensors.export import AnyView

BINS: Final = 40
CELLS: Final = 64
"""Rows and columns of a heat map at most."""

MAX_HISTOGRAM: Final = 1 << 22
"""Elements that a histogram takes in."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A slice of two dimensions, thinned out.

    Args:
        index: the leading indices that were fixed.
        rows, columns: sizes of the slice.
        cells: rows of numbers, None where one is not finite; at most `CELLS` by `CELLS`.
    """

    index: tuple[int, ...]
    rows: int
    columns: int
    cells: list[list[float | None]]


@dataclass(frozen=True, slots=True)
class TensorSample:
    """Statistics and a heat map of a tensor's values.

    Args:
        statistics: over all elements.
        sizes: of the tensor.
        strides: of the tensor, in elements.
        record: where its bytes are.
        counts: of `BINS` equal bins between the least and the largest finite value.
        counted: elements that were counted; fewer than there are in a large tensor.
        heat: of the slice asked for; None for a tensor without elements.
    """

    statistics: Statistics
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    record: str
    counts: list[int]
    counted: int
    heat: HeatMap | None


def sample(view: AnyView, index: Sequence[int] = ()) -> TensorSample:
    """Compute the statistics and the heat map of a tensor.

    Args:
        view: the tensor.
        index: the leading indices of the slice to show; what is missing is 0, what is too large is the last.

    Raises:
        UnsupportedError: no tensor but a pickle, or a nested tensor.
        Pt2Error: the record cannot be read.
    """
    if not isinstance(view, TensorView | SparseView | QuantizedView):
        raise UnsupportedError(f"expected a tensor, got {view.describe()}, whose numbers cannot be looked at")
    numbers = statistics(view)
    tensor = view if isinstance(view, TensorView) else view.dense()
    array = arrays.strided(
        tensor.storage.read(keep=False), tensor.dtype, tensor.sizes, tensor.strides, tensor.storage_offset, tensor.where
    )
    counts, counted = _histogram(array, tensor, numbers)
    heat = _heat(array, tensor, index) if tensor.numel else None
    return TensorSample(
        numbers, tuple(tensor.sizes), tuple(tensor.strides), str(getattr(view, "record", "")), counts, counted, heat
    )


def _numbers(array: Array, tensor: TensorView) -> Array:
    """Return values as doubles; complex ones as their magnitudes."""
    import numpy as np

    wide = arrays.values(array, tensor.dtype, neg=tensor.neg, wide=True)
    if DTYPES[tensor.dtype].kind == "complex":
        wide = np.abs(wide.astype(np.complex128))
    return wide.astype(np.float64)


def _histogram(array: Array, tensor: TensorView, found: Statistics) -> tuple[list[int], int]:
    import numpy as np

    if found.min is None or found.max is None:
        return [], 0
    low, high = float(found.min), float(found.max)
    if not (math.isfinite(low) and math.isfinite(high - low)):
        return [], 0
    once = arrays.without_repeats(array)
    step = max(1, once.size // MAX_HISTOGRAM)
    counts, counted = np.zeros(BINS, np.int64), 0
    for position, block in enumerate(arrays.blocks(once)):
        if position % step:
            continue
        numbers = _numbers(block, tensor).reshape(-1)
        numbers = numbers[np.isfinite(numbers)]
        counts += np.histogram(numbers, BINS, (low, high if high > low else low + 1))[0]
        counted += numbers.size
    return [int(count) for count in counts], counted


def _heat(array: Array, tensor: TensorView, index: Sequence[int]) -> HeatMap:
    """Return one slice, of which every n-th row and column is shown."""
    leading = tuple(
        min(max(index[place] if place < len(index) else 0, 0), size - 1) for place, size in enumerate(array.shape[:-2])
    )
    plane: Any = array[leading]
    plane = plane.reshape((1,) * (2 - plane.ndim) + plane.shape)
    rows, columns = plane.shape
    thin = plane[:: math.ceil(rows / CELLS), :: math.ceil(columns / CELLS)]
    cells = [[value if math.isfinite(value) else None for value in row] for row in _numbers(thin, tensor).tolist()]
    return HeatMap(leading, rows, columns, cells)
