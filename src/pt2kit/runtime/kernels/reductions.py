"""Kernels: sums, products, extremes, norms, cumulative operators, softmax; sorting, quantiles, counting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.operators.facts import axis as axis_of
from pt2kit.runtime.arrays import (
    ARRAYS,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    DType,
    axes_of,
    cast,
    compute_type,
    computed,
    float_type,
    in_floats,
    is_complex,
    joined_type,
    kind,
    reserve,
    rounding,
    wide,
)
from pt2kit.runtime.table import kernel

Convert = Callable[[Array, Any], Array]
"""Returns an array in the type that an operator computes in, from the type of the result that was asked for."""


def _for_sums(self: Array, dtype: DType | None) -> Array:
    return _for_means(self, dtype or (INT64 if kind(self.dtype) < 2 else None))


def _for_means(self: Array, dtype: DType | None) -> Array:
    x = self if dtype is None else cast(self, dtype)  # first, as torch does: narrower types round the operand
    return cast(x, compute_type(x.dtype))


def _to_truth(self: Array, dtype: DType | None) -> Array:
    return cast(self, BOOL)


def _reduction(
    function: Callable[..., Any],
    convert: Convert,
    self: Array,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    of_none: bool = False,
) -> Any:
    """Return a function of some dimensions, or all; an empty list is all of them, unless it is none."""
    axes = () if of_none and dim == [] else axes_of(dim, self.ndim)
    return function(convert(self, dtype), axes, keepdims=keepdim)


def _mean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    return x.sum(axes, keepdims=keepdims) / x.dtype.type(math.prod(x.shape[axis] for axis in axes))


def _nanmean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    return np.nansum(x, axes, keepdims=keepdims) / np.sum(~np.isnan(x), axes, keepdims=keepdims).astype(x.dtype)


mean = partial(_reduction, _mean, _for_means)
amax, amin = partial(_reduction, np.max, _for_means), partial(_reduction, np.min, _for_means)


# Extremes.


def _extreme(function: Callable[..., Any], self: Array, dim: int) -> Any:
    """Return an extreme along a dimension, and its place."""
    where = function(wide(self), dim, keepdims=True)
    return np.take_along_axis(self, where, dim), where


# Spread.


@kernel("aten.var.default .dim .correction", adapt=computed)
def var(self: Array, dim: Any = None, unbiased: bool | None = None, correction: Any = None) -> Any:
    axes = axes_of(dim, self.ndim)
    if is_complex(self):
        return var(self.real, dim, unbiased, correction) + var(self.imag, dim, unbiased, correction)
    centered = self - self.mean(axes, keepdims=True)
    squares = centered * centered
    fewer = float(unbiased) if unbiased is not None else 1.0 if correction is None else float(correction)
    count = max(0.0, math.prod(self.shape[axis] for axis in axes) - fewer)
    return squares.sum(axes) / np.asarray(count).astype(squares.dtype)


@kernel("aten.std.default .dim .correction")
def std(self: Array, dim: Any = None, unbiased: bool | None = None, correction: Any = None) -> Any:
    return np.sqrt(var(self, dim, unbiased, correction))


def _with_mean(
    function: Callable[..., Any], self: Array, dim: Any = None, unbiased: bool | None = None, correction: Any = None
) -> Any:
    return function(self, dim, unbiased, correction), mean(self, dim)


# Norms.


@kernel("aten.linalg_vector_norm.default aten.norm.Scalar .ScalarOpt_dim .ScalarOpt_dtype .ScalarOpt_dim_dtype")
@kernel("aten.frobenius_norm.dim")
def vector_norm(self: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    order = 2.0 if ord is None else float(ord)
    x = _for_means(self, dtype or float_type(self.dtype))
    axes = axes_of(dim, x.ndim)
    size = np.abs(x)
    if order == math.inf:
        return np.max(size, axes, keepdims=keepdim, initial=0)
    if order == -math.inf:
        return np.min(size, axes, keepdims=keepdim)
    if order == 0:
        return np.sum(size != 0, axes, keepdims=keepdim).astype(size.dtype)
    power = size.dtype.type(order)
    return (size**power).sum(axes, keepdims=keepdim) ** (1 / power)


@kernel("aten.renorm.default", adapt=computed)
def renorm(self: Array, p: Any, dim: int, maxnorm: Any) -> Any:
    norms = norm_except_dim(self, p, axis_of(dim, self.ndim))
    # Torch adds the small number so that zeros are not divided by zero.
    return self * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1).astype(norms.dtype)


@kernel("aten.norm_except_dim.default")
def norm_except_dim(v: Array, pow: Any = 2, dim: int = 0) -> Any:
    """Return the norms over all dimensions but one; the norm of all elements for dimension -1."""
    if dim == -1:
        return vector_norm(v, pow)
    return vector_norm(v, pow, [axis for axis in range(v.ndim) if axis != axis_of(dim, v.ndim)], True)


# Sums of exponentials.


@kernel("aten.logsumexp.default", adapt=in_floats)
def logsumexp(self: Array, dim: Any, keepdim: bool = False) -> Any:
    axes = axes_of(dim, self.ndim)
    most = np.max(self.real, axes, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0).astype(self.real.dtype)
    total = np.log(np.exp(self - most).sum(axes, keepdims=True)) + most
    return total if keepdim else np.squeeze(total, axes)


@kernel("aten.softmax.int aten._softmax.default aten.special_softmax.default")
def softmax(self: Array, dim: int, dtype: Any = None) -> Any:
    x = _for_means(self, dtype)
    result = x - x.max(dim, keepdims=True, initial=-np.inf)
    np.exp(result, out=result)
    result /= result.sum(dim, keepdims=True)
    return result


def safe_softmax(self: Array, dim: int, dtype: Any = None) -> Any:
    """Return softmax, with zeros where all inputs are minus infinity."""
    result = softmax(self, dim, dtype=dtype)
    masked = np.all(wide(self) == -np.inf, dim, keepdims=True)
    return np.where(masked, 0, result)


kernel("aten._safe_softmax.default")(safe_softmax)


@kernel("aten.log_softmax.int aten._log_softmax.default aten.special_log_softmax.default")
def log_softmax(self: Array, dim: int, dtype: Any = None) -> Any:
    x = _for_means(self, dtype)
    shifted = x - x.max(dim, keepdims=True, initial=-np.inf)
    total = np.exp(shifted).sum(dim, keepdims=True)
    if dim not in (-1, x.ndim - 1):
        return shifted - np.log(total)
    keep = rounding(dtype or self.dtype)  # torch stores sums and their logarithms, along the last dimension
    return shifted - keep(np.log(keep(total)))


@kernel("aten._softmax_backward_data.default", adapt=computed)
def softmax_backward_data(grad_output: Array, output: Array, dim: int) -> Any:
    product = grad_output * output
    return product - output * product.sum(dim, keepdims=True)


# Cumulative operators.


_ACCUMULATED: Final = {FLOAT32: FLOAT64, COMPLEX64: COMPLEX128}
"""Type -> the type in which torch adds or multiplies numbers of it, one after another, on the CPU."""


def _accumulated(function: Callable[..., Any], self: Array, dim: int, dtype: Any = None) -> Any:
    x = _for_sums(self, dtype)
    return function(x, dim, dtype=_ACCUMULATED.get(x.dtype))


@kernel("aten.logcumsumexp.default", adapt=computed)
def logcumsumexp(self: Array, dim: int) -> Any:
    if self.size == 1:
        return self.copy()
    if is_complex(self):
        raise OperatorError(f"expected real numbers, as complex logarithms have several values, got {self.dtype}")
    return np.logaddexp.accumulate(self, dim)


def _running(function: Any, self: Array, dim: int) -> tuple[Any, Any]:
    """Return an extreme of all elements up to each one, and its place."""
    x, axis = wide(self), axis_of(dim, self.ndim)
    found = function.accumulate(x, axis)
    place = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    # The last place that equals the extreme so far, as in torch.
    is_new = (x == found) | ((x != x) & (found != found))
    return found, np.maximum.accumulate(np.where(is_new, place, 0), axis)


@kernel("aten.diff.default")
def diff(self: Array, n: int, dim: int, prepend: Array | None, append: Array | None) -> Any:
    if n == 0:
        return self.copy()
    parts = [part for part in (prepend, self, append) if part is not None]
    x = np.concatenate([cast(part, joined_type(parts)) for part in parts], dim)
    return np.diff(x, min(n, x.shape[dim]), dim)


def _areas(y: Array, x: Array | None, dx: Any, dim: int) -> Any:
    """Return the areas below neighbors in a dimension, which comes last."""
    values = np.moveaxis(wide(y), dim, -1)  # integers wrap, as in torch, before they are divided
    sums = values[..., 1:] + values[..., :-1]
    if x is None:
        return sums * float(dx) / 2
    steps = np.diff(wide(x) if x.ndim == 1 else np.moveaxis(wide(x), dim, -1))
    dtype = joined_type((sums, steps))
    return cast(sums, dtype) * cast(steps, dtype) / 2


@kernel("aten.gradient.scalarint .scalararray .array .scalarrayint .scalarrayarray .tensorarrayint .tensorarray")
def gradient(self: Array, edge_order: int, spacing: Any = None, dim: Any = None) -> Any:
    axes, x = axes_of(dim, self.ndim), _for_means(self, float_type(self.dtype))
    given = spacing if isinstance(spacing, Sequence) else [1 if spacing is None else spacing] * len(axes)
    steps = [cast(one, x.dtype) if isinstance(one, ARRAYS) else one for one in given]
    found = np.gradient(x, *steps, axis=axes, edge_order=edge_order)
    return [found] if len(axes) == 1 else [*found]


@kernel("aten.sum_to_size.default")
def sum_to_size(self: Array, size: Sequence[int]) -> Any:
    missing = self.ndim - len(size)
    axes = (*range(missing), *(i + missing for i, one in enumerate(size) if one == 1 and self.shape[i + missing] != 1))
    return wide(self).sum(axes).reshape(tuple(size))


# Order.


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
    order = _order(self, dim, descending)
    return np.take_along_axis(self, order, dim), order


@kernel("aten.topk.default")
def topk(self: Array, k: int, dim: int, largest: bool) -> Any:
    order = np.take(_order(self, dim, largest), np.arange(k), dim)
    return np.take_along_axis(self, order, dim), order


def _at_rank(rank: Callable[[int, Array], Any], self: Array, dim: int = -1) -> Any:
    """Return the elements of a rank in the order of a dimension, and their places.

    Args:
        rank: computes the ranks from the size of the dimension, and how many of its elements are nan in each row.
        self: the array.
        dim: the dimension.
    """
    order, size = _order(self, dim, False), self.shape[dim]
    is_nan = np.isnan(wide(self)) if kind(self.dtype) == 2 else np.zeros(self.shape, BOOL)
    ranks = rank(size, is_nan.sum(dim, dtype=INT64, keepdims=True))
    where = np.take_along_axis(order, ranks, dim)
    return np.take_along_axis(self, where, dim), where


def _of_all(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: function(self.reshape(-1))[0] if self.size else np.full((), np.nan)


median = partial(_at_rank, lambda size, nans: np.where(nans > 0, size - nans, (size - 1) // 2))
nanmedian = partial(_at_rank, lambda size, nans: np.maximum(0, size - nans - 1) // 2)


@kernel("aten.mode.default")
def mode(self: Array, dim: int = -1) -> Any:
    moved = np.moveaxis(self, dim, -1)
    where = np.zeros(moved.shape[:-1], INT64)
    for place in np.ndindex(*where.shape):
        row = wide(moved[place])
        values, counts = np.unique(row, return_counts=True, equal_nan=False)
        found = np.flatnonzero(row == values[counts.argmax()])
        where[place] = found[-1] if found.size else 0  # of NaN alone
    places = np.expand_dims(where, dim)
    return np.take_along_axis(self, places, dim), places


def _quantile(function: Callable[..., Any], self: Array, q: Any, dim: int | None, interpolation: str) -> Any:
    low, high, between = (
        function(self.astype(FLOAT64), cast(q, FLOAT64), dim, method=method)
        for method in ("lower", "higher", interpolation)
    )
    # At a whole rank the next element, which may be infinite, has no part in the result.
    return np.where(np.isfinite(low) & (low == high), low, between)


# Unique elements and counting.


def _shown(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    """Return unique elements, and what was asked for: empty arrays for the rest."""
    (values, inverse, counts), nothing = found, np.zeros(0, INT64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def _unique(self: Array, axis: int | None) -> Any:
    values, inverse, counts = np.unique(wide(self), return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    return cast(values, self.dtype), inverse.reshape(self.shape if axis is None else -1), counts


@kernel("aten.unique_consecutive.default")
def unique_consecutive(self: Array, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    is_flat = dim is None or (dim == 0 and self.ndim == 1)
    rows = self.reshape(-1) if is_flat else np.moveaxis(self, axis_of(dim, self.ndim), 0)
    changed = rows[1:] != rows[:-1]
    starts = np.concatenate([[True][: len(rows)], changed.any(tuple(range(1, rows.ndim)))]).astype(bool)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(np.nonzero(starts)[0], len(rows)))
    if not is_flat:  # torch returns all three here
        return np.moveaxis(rows[starts], 0, axis_of(dim, self.ndim)), inverse, counts
    return _shown((rows[starts], inverse.reshape(self.shape), counts), return_inverse, return_counts)


@kernel("aten.bincount.default")
def bincount(self: Array, weights: Array | None, minlength: int) -> Any:
    reserve((max(minlength, int(self.max()) + 1 if self.size else 0),), FLOAT64)
    return np.bincount(self, None if weights is None else wide(weights), minlength)


@kernel("aten.histc.default")
def histc(self: Array, bins: int, min: Any, max: Any) -> Any:
    x = cast(self, float_type(self.dtype)).reshape(-1)
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise OperatorError(f"expected a range of finite numbers, got {low} to {high}")
    first, last = np.asarray([low, high]).astype(x.dtype)
    inside = (x >= first) & (x <= last)
    # Rounded as torch does, which decides about numbers at the edges of bins.
    place = np.where(inside, (x - first) * bins / (last - first), 0).astype(INT64)
    result = np.zeros_like(x, INT64, shape=(bins,))
    np.add.at(result, np.minimum(place, bins - 1), inside.astype(INT64))
    return result


KERNELS: Final = {
    "aten.count_nonzero.default .dim_IntList": partial(_reduction, np.sum, _to_truth),
    "aten.aminmax.default": lambda self, dim: (amin(self, dim), amax(self, dim)),
    "aten.sum.default .dim_IntList": partial(_reduction, np.sum, _for_sums),
    "aten.nansum.default": partial(_reduction, np.nansum, _for_sums),
    "aten.prod.default .dim_int": partial(_reduction, np.prod, _for_sums),
    "aten.mean.default .dim": mean,
    "aten.nanmean.default": partial(_reduction, _nanmean, _for_means),
    "aten.any.default .dim .dims aten._is_any_true.default": partial(_reduction, np.any, _to_truth, of_none=True),
    "aten.all.default .dim .dims aten._is_all_true.default": partial(_reduction, np.all, _to_truth, of_none=True),
    "aten.amax.default aten.max.default": amax,
    "aten.amin.default aten.min.default": amin,
    "aten.argmax.default": computed(lambda self, dim: np.argmax(self, dim)),
    "aten.argmin.default": computed(lambda self, dim: np.argmin(self, dim)),
    "aten.max.dim": partial(_extreme, np.argmax),
    "aten.min.dim": partial(_extreme, np.argmin),
    "aten.var_mean.default .dim .correction": partial(_with_mean, var),
    "aten.std_mean.default .dim .correction": partial(_with_mean, std),
    "aten.trapezoid.x .dx aten.trapz.x .dx": lambda y, x=None, dx=1, dim=-1: _areas(y, x, dx, dim).sum(-1),
    "aten.cumulative_trapezoid.x .dx": lambda y, x=None, dx=1, dim=-1: np.moveaxis(
        np.cumsum(_areas(y, x, dx, dim), -1), -1, dim
    ),
    "aten.cumsum.default": partial(_accumulated, np.cumsum),
    "aten.cumprod.default": partial(_accumulated, np.cumprod),
    "aten.cummax.default": partial(_running, np.maximum),
    "aten.cummin.default": partial(_running, np.minimum),
    "aten.kthvalue.default": lambda self, k, dim: _at_rank(lambda size, nans: np.full_like(nans, k - 1), self, dim),
    "aten.median.dim": median,
    "aten.nanmedian.dim": nanmedian,
    "aten.median.default": _of_all(median),
    "aten.nanmedian.default": _of_all(nanmedian),
    "aten.quantile.default .scalar": partial(_quantile, np.quantile),
    "aten.nanquantile.default .scalar": partial(_quantile, np.nanquantile),
    "aten.argsort.default .stable": lambda self, dim, descending: sort(self, dim, descending)[1],
    "aten.msort.default": lambda self: sort(np.atleast_1d(self), 0)[0],
    "aten._unique2.default": lambda self, return_inverse, return_counts: _shown(
        _unique(self, None), return_inverse, return_counts
    ),
    # torch returns all three, whatever is asked for
    "aten.unique_dim.default": lambda self, dim, **options: _unique(self, axis_of(dim, self.ndim)),
    "aten.dist.default": computed(lambda self, other, p: vector_norm(self - other, p)),
    "aten._log_softmax_backward_data.default": computed(
        lambda grad_output, output, dim: grad_output - np.exp(output) * grad_output.sum(dim, keepdims=True)
    ),
}
