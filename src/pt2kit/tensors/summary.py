"""Statistics of a tensor's values, in one pass and bounded memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import check_copy
from pt2kit.tensors.compound import QuantizedView, SparseView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.view import TensorView, stored_array

if TYPE_CHECKING:
    from pt2kit.tensors.arrays import Array


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a tensor's values.

    Args:
        numel: number of elements.
        min, max: over the finite values; integers for integer and bool tensors, floats otherwise; of complex tensors
            over the magnitudes. None if there is no finite value.
        mean, std: likewise, as floats; `std` is that of a whole population (divided by the number of values).
        zeros: elements that are zero, of either sign.
        non_finite: elements that are an infinity or not a number.
    """

    numel: int
    min: int | float | None
    max: int | float | None
    mean: float | None
    std: float | None
    zeros: int
    non_finite: int


@dataclass(slots=True)
class _Running:
    """Sums over the blocks seen so far. Means and squares are merged, not summed, so that nothing cancels.

    Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    min: int | float | None = None
    max: int | float | None = None
    zeros: int = 0
    non_finite: int = 0

    def add(self, block: Array) -> None:
        """Add a block of real numbers of one of numpy's own types."""
        import numpy as np

        self.zeros += block.size - int(np.count_nonzero(block))
        if block.dtype.kind == "f":
            finite = np.isfinite(block)
            if not finite.all():
                block = block[finite]
                self.non_finite += finite.size - block.size
        if not block.size:
            return
        low, high = block.min().item(), block.max().item()
        self.min = low if self.min is None else min(self.min, low)
        self.max = high if self.max is None else max(self.max, high)
        numbers = block.reshape(-1).astype(np.float64)
        mean = float(numbers.mean())
        numbers -= mean
        squares = float(np.dot(numbers, numbers))
        total = self.count + block.size
        shift = mean - self.mean
        self.mean += shift * (block.size / total)
        self.squares += squares + shift * shift * (self.count * (block.size / total))
        self.count = total


def statistics(view: TensorView | SparseView | QuantizedView) -> Statistics:
    """Compute the statistics of a tensor; sparse ones with their zeros, quantized ones as the floats they represent.

    Elements that a stride of 0 repeats count each time and are visited once. In addition to the storage's own bytes it
    takes less than 64 MiB, however large the tensor. Means and deviations beyond the range of a double are infinite.

    Args:
        view: the tensor; its record is read and not kept.

    Raises:
        LimitError: overlapping windows with far more elements than the storage (P16).
        Pt2Error: the record cannot be read.
    """
    import numpy as np

    tensor = view if isinstance(view, TensorView) else view.dense()
    array = arrays.without_repeats(stored_array(tensor, tensor.storage.read(keep=False)))
    check_copy(tensor.where, array.nbytes, tensor.storage.nbytes)
    running, kind = _Running(), DTYPES[tensor.dtype].kind
    with np.errstate(over="ignore", invalid="ignore"):
        for block in arrays.blocks(array):
            numbers = arrays.values(block, tensor.dtype, neg=tensor.neg, wide=True)
            if kind == "complex":
                numbers = np.abs(numbers.astype(np.complex128))
            running.add(numbers.view(np.uint8) if kind == "bool" else numbers)
    repeats = tensor.numel // array.size if array.size else 1
    return Statistics(
        tensor.numel,
        running.min,
        running.max,
        running.mean if running.count else None,
        math.sqrt(running.squares / running.count) if running.count else None,
        running.zeros * repeats,
        running.non_finite * repeats,
    )
