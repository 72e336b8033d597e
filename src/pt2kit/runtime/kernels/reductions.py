"""Kernels: sums, products, extremes, norms, cumulative operators and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import (
    BOOL,
    FLOAT64,
    INT64,
    Array,
    DType,
    asarray,
    axes_of,
    axis_of,
    cast,
    compute_type,
    float_type,
    is_complex,
    kind,
    reserve,
    wide,
)
from pt2kit.runtime.table import kernel, kernels


def _summed_type(self: Array, dtype: DType | None) -> DType:
    """Return the type that sums and products are computed in: integers in int64."""
    if dtype is None:
        dtype = INT64 if kind(self.dtype) < 2 else self.dtype
    return compute_type(dtype)


def _summed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a reduction that computes integers in int64."""

    def run(self: Array, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        return function(cast(self, _summed_type(self, dtype)), axes_of(dim, self.ndim), keepdims=keepdim)

    return run


kernels(
    {
        "aten.sum.default .dim_IntList": np.sum,
        "aten.nansum.default": np.nansum,
        "aten.prod.default .dim_int": np.prod,
    },
    _summed,
)


@kernel("aten.mean.default .dim")
def mean(self: Array, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    x = cast(self, compute_type(dtype or self.dtype))
    axes = axes_of(dim, x.ndim)
    return x.sum(axes, keepdims=keepdim) / x.dtype.type(math.prod(x.shape[axis] for axis in axes))


@kernel("aten.nanmean.default")
def nanmean(self: Array, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    x = cast(self, compute_type(dtype or self.dtype))
    axes = axes_of(dim, x.ndim)
    return np.nansum(x, axes, keepdims=keepdim) / np.sum(~np.isnan(x), axes, keepdims=keepdim).astype(x.dtype)


def _truth(function: Callable[..., Any], self: Array, dim: Any, keepdim: bool) -> Any:
    axes = () if isinstance(dim, list | tuple) and not len(dim) else axes_of(dim, self.ndim)
    found = function(cast(self, BOOL), axes, keepdims=keepdim)
    return asarray(found).astype(np.uint8) if self.dtype == np.uint8 else found


@kernel("aten.count_nonzero.default .dim_IntList")
def count_nonzero(self: Array, dim: Any = None) -> Any:
    return np.sum(cast(self, BOOL), axes_of(dim, self.ndim), dtype=INT64)


# Extremes.


def _most(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Array, dim: Any = (), keepdim: bool = False) -> Any:
        return function(wide(self), axes_of(dim, self.ndim), keepdims=keepdim)

    return run


amax, amin = _most(np.max), _most(np.min)
kernels({"aten.amax.default aten.max.default": amax, "aten.amin.default aten.min.default": amin})


@kernel("aten.aminmax.default")
def aminmax(self: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    axes = None if dim is None else [dim]
    return amin(self, axes, keepdim), amax(self, axes, keepdim)


def _argument(function: Callable[..., Any], self: Array, dim: int | None, keepdim: bool) -> Any:
    x = wide(self)
    if dim is None:
        found = function(x)
        return asarray(found).reshape((1,) * x.ndim) if keepdim else found
    if not x.ndim:
        axis_of(dim, 0)
        return np.zeros((), INT64)
    return function(x, axis_of(dim, x.ndim), keepdims=keepdim)


def _extreme(function: Callable[..., Any], self: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if not self.ndim:
        return self, np.zeros((), INT64)
    axis = axis_of(dim, self.ndim)
    where = function(wide(self), axis, keepdims=True)
    found = np.take_along_axis(self, where, axis)
    return (found, where) if keepdim else (np.squeeze(found, axis), np.squeeze(where, axis))


# Spread.


def _correction(unbiased: bool | None, correction: Any) -> float:
    if unbiased is not None:
        return float(unbiased)
    return 1.0 if correction is None else float(correction)


@kernel("aten.var.default .dim .correction")
def var(
    self: Array, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, correction: Any = None
) -> Any:
    x = wide(self)
    axes = axes_of(dim, x.ndim)
    count = math.prod(x.shape[axis] for axis in axes)
    centered = x - x.mean(axes, keepdims=True)
    squares = (centered * np.conjugate(centered)).real if is_complex(x) else centered * centered
    return squares.sum(axes, keepdims=keepdim) / np.asarray(max(0.0, count - _correction(unbiased, correction))).astype(
        squares.dtype
    )


kernels(
    {
        "aten.std.default .dim .correction": lambda self, **options: np.sqrt(var(self, **options)),
        "aten.var_mean.default .dim .correction": lambda self, dim=None, keepdim=False, **options: (
            var(self, dim, keepdim=keepdim, **options),
            mean(self, dim, keepdim),
        ),
        "aten.std_mean.default .dim .correction": lambda self, dim=None, keepdim=False, **options: (
            np.sqrt(var(self, dim, keepdim=keepdim, **options)),
            mean(self, dim, keepdim),
        ),
    }
)


# Norms.


@kernel("aten.linalg_vector_norm.default aten.norm.Scalar .ScalarOpt_dim .ScalarOpt_dtype .ScalarOpt_dim_dtype")
def vector_norm(
    self: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None, p: Any = None
) -> Any:
    order = p if ord is None else ord
    order = 2.0 if order is None else float(order)
    x = cast(self, compute_type(float_type(dtype or self.dtype)))
    axes = axes_of(dim, x.ndim)
    size = np.abs(x)
    if order == math.inf:
        return np.max(size, axes, keepdims=keepdim, initial=0)
    if order == -math.inf:
        return np.min(size, axes, keepdims=keepdim)
    if order == 0:
        return np.sum(size != 0, axes, keepdims=keepdim).astype(size.dtype)
    if order == 1:
        return size.sum(axes, keepdims=keepdim)
    if order == 2:
        return np.sqrt((size * size).sum(axes, keepdims=keepdim))
    power = size.dtype.type(order)
    return (size**power).sum(axes, keepdims=keepdim) ** (1 / power)


@kernel("aten.dist.default")
def dist(self: Array, other: Array, p: Any = 2) -> Any:
    reserve(np.broadcast_shapes(self.shape, other.shape), FLOAT64)
    return vector_norm(wide(self) - wide(other), p)


@kernel("aten.renorm.default")
def renorm(self: Array, p: Any, dim: int, maxnorm: Any) -> Any:
    x = wide(self)
    others = [axis for axis in range(x.ndim) if axis != axis_of(dim, x.ndim)]
    norms = vector_norm(x, p, others, True)
    return x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1).astype(norms.dtype)


def norm_except_dim(v: Array, pow: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return vector_norm(v, pow)
    return vector_norm(v, pow, [axis for axis in range(v.ndim) if axis != axis_of(dim, v.ndim)], True)


# Sums of exponentials.


@kernel("aten.logsumexp.default")
def logsumexp(self: Array, dim: Any, keepdim: bool = False) -> Any:
    x = cast(self, compute_type(float_type(self.dtype)))
    axes = axes_of(dim, x.ndim)
    parts = x.real
    most = (
        np.max(parts, axes, keepdims=True)
        if x.size
        else np.zeros([1 if i in axes else n for i, n in enumerate(x.shape)], parts.dtype)
    )
    most = np.where(np.isfinite(most), most, 0).astype(parts.dtype)
    total = np.log(np.exp(x - most).sum(axes, keepdims=True)) + most
    return total if keepdim else np.squeeze(total, axes)


@kernel("aten.softmax.int aten._softmax.default aten.special_softmax.default")
def softmax(self: Array, dim: int, half_to_float: bool = False, dtype: Any = None) -> Any:
    x = cast(self, compute_type(dtype or self.dtype))
    axis = axis_of(dim, x.ndim)
    if not x.ndim or not x.size:
        return np.ones_like(x)
    most = x.max(axis, keepdims=True)
    result = x - most
    np.exp(result, out=result)
    result /= result.sum(axis, keepdims=True)
    return result


def safe_softmax(self: Array, dim: int, dtype: Any = None) -> Any:
    """Return softmax, with zeros where all inputs are minus infinity."""
    result = softmax(self, dim, dtype=dtype)
    masked = np.all(wide(self) == -np.inf, axis_of(dim, self.ndim), keepdims=True)
    return np.where(masked, 0, result)


kernel("aten._safe_softmax.default")(safe_softmax)


@kernel("aten.log_softmax.int aten._log_softmax.default aten.special_log_softmax.default")
def log_softmax(self: Array, dim: int, half_to_float: bool = False, dtype: Any = None) -> Any:
    x = cast(self, compute_type(dtype or self.dtype))
    if not x.ndim or not x.size:
        return np.zeros_like(x)
    axis = axis_of(dim, x.ndim)
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


# Cumulative operators.


def _accumulated(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Array, dim: int, dtype: Any = None) -> Any:
        x = cast(self, _summed_type(self, dtype))
        return function(x, axis_of(dim, x.ndim)) if x.ndim else x

    return run


kernels({"aten.cumsum.default": np.cumsum, "aten.cumprod.default": np.cumprod}, _accumulated)


@kernel("aten.logcumsumexp.default")
def logcumsumexp(self: Array, dim: int) -> Any:
    x = wide(self)
    if not x.ndim:
        return x
    if is_complex(x):
        raise OperatorError(f"expected real numbers, as complex logarithms have several values, got {x.dtype}")
    return np.logaddexp.accumulate(x, axis_of(dim, x.ndim))


def _running(function: Any, self: Array, dim: int) -> tuple[Any, Any]:
    x = wide(self)
    if not x.ndim:
        return self, np.zeros((), INT64)
    axis = axis_of(dim, x.ndim)
    found = function.accumulate(x, axis)
    place = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    # The last place that equals the extreme so far, as in torch.
    is_new = (x == found) | ((x != x) & (found != found))
    return found, np.maximum.accumulate(np.where(is_new, place, 0), axis)


@kernel("aten.diff.default")
def diff(self: Array, n: int = 1, dim: int = -1, prepend: Array | None = None, append: Array | None = None) -> Any:
    axis = axis_of(dim, self.ndim)
    if n == 0:
        return self.copy()
    parts = [part for part in (prepend, self, append) if part is not None]
    x = np.concatenate([cast(part, self.dtype) for part in parts], axis)
    return np.diff(wide(x) if x.dtype != BOOL else x, min(n, x.shape[axis]), axis)


def _spaced(y: Array, x: Array | None, dx: Any, dim: int) -> Any:
    axis = axis_of(dim, y.ndim)
    values = np.moveaxis(wide(y), axis, -1)  # integers wrap, as in torch, before they are divided
    steps = asarray(dx) if x is None else np.diff(wide(x), axis=-1 if x.ndim == 1 else axis_of(dim, x.ndim))
    if x is not None and x.ndim > 1:
        steps = np.moveaxis(steps, axis_of(dim, x.ndim), -1)
    return (values[..., 1:] + values[..., :-1]) * cast(steps, values.dtype) / 2, axis


@kernel("aten.trapezoid.x .dx aten.trapz.x .dx")
def trapezoid(y: Array, x: Array | None = None, dx: Any = 1, dim: int = -1) -> Any:
    areas, _ = _spaced(y, x, dx, dim)
    return areas.sum(-1)


@kernel("aten.cumulative_trapezoid.x .dx")
def cumulative_trapezoid(y: Array, x: Array | None = None, dx: Any = 1, dim: int = -1) -> Any:
    areas, axis = _spaced(y, x, dx, dim)
    return np.moveaxis(np.cumsum(areas, -1), -1, axis)


@kernel("aten.sum_to_size.default")
def sum_to_size(self: Array, size: Sequence[int]) -> Any:
    missing = self.ndim - len(size)
    if missing < 0:
        raise OperatorError(f"expected at most {self.ndim} sizes, got {list(size)}")
    axes = (*range(missing), *(i + missing for i, one in enumerate(size) if one == 1 and self.shape[i + missing] != 1))
    return wide(self).sum(axes, keepdims=True).reshape(tuple(size))


kernels(
    {
        "aten.any.default .dim .dims": lambda self, dim=None, keepdim=False: _truth(np.any, self, dim, keepdim),
        "aten.all.default .dim .dims": lambda self, dim=None, keepdim=False: _truth(np.all, self, dim, keepdim),
        "aten.argmax.default": lambda self, dim=None, keepdim=False: _argument(np.argmax, self, dim, keepdim),
        "aten.argmin.default": lambda self, dim=None, keepdim=False: _argument(np.argmin, self, dim, keepdim),
        "aten.max.dim": lambda self, dim, keepdim=False: _extreme(np.argmax, self, dim, keepdim),
        "aten.min.dim": lambda self, dim, keepdim=False: _extreme(np.argmin, self, dim, keepdim),
        "aten.cummax.default": lambda self, dim: _running(np.maximum, self, dim),
        "aten.cummin.default": lambda self, dim: _running(np.minimum, self, dim),
    }
)
