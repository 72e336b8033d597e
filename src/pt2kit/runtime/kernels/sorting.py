"""Kernels: sorting, largest elements, medians, quantiles, unique elements, counting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import BOOL, FLOAT64, INT64, Array, axis_of, cast, kind, require, reserve, wide
from pt2kit.runtime.kernels.reductions import along
from pt2kit.runtime.table import kernel


def _order(self: Array, axis: int, descending: bool) -> Any:
    """Return the stable order of a dimension; nan is the largest, as in torch."""
    x = wide(self)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    flipped = np.flip(x, axis)
    order = np.flip(np.argsort(flipped, axis, kind="stable"), axis)
    return x.shape[axis] - 1 - order


@kernel("aten.sort.default .stable")
def sort(self: Array, dim: int = -1, descending: bool = False) -> Any:
    array, axis = np.atleast_1d(self), axis_of(dim, self.ndim)
    order = _order(array, axis, descending)
    return np.take_along_axis(array, order, axis).reshape(self.shape), order.reshape(self.shape)


@kernel("aten.topk.default")
def topk(self: Array, k: int, dim: int, largest: bool) -> Any:
    array, axis = np.atleast_1d(self), axis_of(dim, self.ndim)
    require(0 <= k <= array.shape[axis], f"expected k from 0 to {array.shape[axis]}, got {k}")
    order = np.take(_order(array, axis, largest), np.arange(k), axis)
    found = np.take_along_axis(array, order, axis)
    return (found, order) if self.ndim or k == 0 else (found.reshape(()), order.reshape(()))


def _at_rank(rank: Callable[[int, int], int]) -> Callable[..., Any]:
    """Return the kernel of the element of a rank in the order of a dimension, and its place.

    Args:
        rank: computes it from the size of the dimension, and how many of its elements are nan.
    """

    def run(self: Array, axis: int) -> Any:
        order, size = _order(self, axis, False), self.shape[axis]
        is_nan = np.isnan(wide(self)) if kind(self.dtype) == 2 else np.zeros(self.shape, BOOL)
        ranks = np.vectorize(lambda nans: rank(size, int(nans)), otypes=[np.int64])(is_nan.sum(axis, keepdims=True))
        if ranks.size and not 0 <= ranks.min() <= ranks.max() < size:
            raise OperatorError(f"expected a rank from 1 to {size}, got {int(ranks.max()) + 1}")
        where = np.take_along_axis(order, ranks, axis)
        return np.take_along_axis(self, where, axis), where  # of equal nans the first, as in torch

    return along(run)


def _of_all(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: function(self.reshape(-1), 0)[0] if self.size else np.full((), np.nan)


median = _at_rank(lambda size, nans: size - 1 if nans else (size - 1) // 2)
nanmedian = _at_rank(lambda size, nans: max(0, size - nans - 1) // 2)


@kernel("aten.mode.default", adapt=along)
def mode(self: Array, axis: int) -> Any:
    moved = np.moveaxis(self, axis, -1)
    where = np.zeros(moved.shape[:-1], INT64)
    for place in np.ndindex(*where.shape):
        row = wide(moved[place])
        values, counts = np.unique(row, return_counts=True)
        where[place] = np.nonzero(row == values[counts.argmax()])[0][-1]
    places = np.expand_dims(where, axis)
    return np.take_along_axis(self, places, axis), places


def _quantile(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Array, q: Any, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
        if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
            raise OperatorError(f"expected an interpolation of torch, got {interpolation[:40]!a}")
        axis = None if dim is None else axis_of(dim, self.ndim)
        return function(self.astype(FLOAT64), cast(q, FLOAT64), axis, method=interpolation, keepdims=keepdim)

    return run


# Unique elements and counting.


def _shown(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    """Return unique elements, and what was asked for: empty arrays for the rest."""
    nothing = np.zeros(0, INT64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def _unique(self: Array, axis: int | None) -> Any:
    values, inverse, counts = np.unique(wide(self), return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    return cast(values, self.dtype), inverse.reshape(self.shape if axis is None else -1), counts


@kernel("aten._unique2.default")
def unique2(self: Array, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = _unique(self, None)
    return _shown(values, inverse, counts, return_inverse, return_counts)


@kernel("aten.unique_consecutive.default")
def unique_consecutive(self: Array, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    rows = self.reshape(-1) if dim is None else np.moveaxis(self, axis_of(dim, self.ndim), 0)
    changed = rows[1:] != rows[:-1]
    starts = np.concatenate([[True][: len(rows)], changed.reshape(len(changed), -1).any(1)]).astype(bool)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(np.nonzero(starts)[0], len(rows)))
    if dim is not None:  # torch returns all three here
        return np.moveaxis(rows[starts], 0, axis_of(dim, self.ndim)), inverse, counts
    return _shown(rows[starts], inverse.reshape(self.shape), counts, return_inverse, return_counts)


@kernel("aten.bincount.default")
def bincount(self: Array, weights: Array | None, minlength: int) -> Any:
    reserve((max(minlength, int(self.max()) + 1 if self.size else 0),), FLOAT64)
    return np.bincount(self, None if weights is None else wide(weights), minlength)


@kernel("aten.histc.default")
def histc(self: Array, bins: int, min: Any, max: Any) -> Any:
    reserve((bins,), FLOAT64)
    x = wide(self).reshape(-1).astype(FLOAT64)
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)) or high < low:
        raise OperatorError(f"expected a range of finite numbers, got {low} to {high}")
    inside = (x >= low) & (x <= high)
    place = np.where(inside, (x - low) / (high - low) * bins, 0).astype(INT64)
    result = np.zeros_like(x, INT64, shape=(bins,))
    np.add.at(result, np.minimum(place, bins - 1), inside.astype(INT64))
    return result


KERNELS: Final = {
    "aten.kthvalue.default": lambda self, k, dim, keepdim: _at_rank(lambda size, nans: k - 1)(self, dim, keepdim),
    "aten.median.dim": median,
    "aten.nanmedian.dim": nanmedian,
    "aten.median.default": _of_all(median),
    "aten.nanmedian.default": _of_all(nanmedian),
    "aten.quantile.default .scalar": _quantile(np.quantile),
    "aten.nanquantile.default .scalar": _quantile(np.nanquantile),
    "aten.argsort.default .stable": lambda self, dim, descending: sort(self, dim, descending)[1],
    "aten.msort.default": lambda self: sort(self, 0)[0],
    # torch returns all three, whatever is asked for
    "aten.unique_dim.default": lambda self, dim, **options: _unique(self, axis_of(dim, self.ndim)),
}
