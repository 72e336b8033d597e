"""Kernels: writing by indices: scattering, adding at indices, replacing slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.messages import count_text
from pt2kit.runtime.arrays import (
    ARRAYS,
    BOOL,
    Array,
    asarray,
    axis_of,
    cast,
    check_indices,
    is_known,
    kind,
    require,
    wide,
)
from pt2kit.runtime.kernels.indexing import index_arrays
from pt2kit.runtime.kernels.views import as_strided, diagonal, select, slice_
from pt2kit.runtime.table import kernel, write


def _added(target: Array, where: Any, values: Any) -> Array:
    """Return a copy of an array with values added at indices, which may repeat."""
    result = wide(target).copy()
    np.add.at(result, where, cast(values, result.dtype))
    return result


@kernel("aten.index_put.default")
def index_put(self: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> Any:
    mask: Any = indices[0]
    if len(indices) == values.size == 1 and not accumulate and not is_known(mask) and mask.dtype == BOOL:
        if mask.shape != self.shape[: mask.ndim]:
            raise OperatorError(f"expected a mask of sizes {list(self.shape)}, got {list(mask.shape)}")
        mask = mask.reshape(*mask.shape, *(1,) * (self.ndim - mask.ndim))
        return np.where(mask, cast(values, self.dtype).reshape(()), self)
    where = index_arrays(self, indices)
    if accumulate:
        if self.dtype == BOOL:
            result = self.copy()
            np.logical_or.at(result, where, cast(values, BOOL))
            return result
        return _added(self, where, values)
    result = self.copy()
    result[where] = cast(values, self.dtype)
    return result


@kernel("aten._index_put_impl_.default")
def index_put_impl_(self: Array, indices: Sequence[Array | None], values: Array, accumulate: bool) -> Any:
    return write(self, index_put(self, indices, values, accumulate))


@kernel("aten._unsafe_masked_index_put_accumulate.default")
def masked_index_put(self: Array, mask: Array, indices: Sequence[Array | None], values: Array) -> Any:
    inside = [
        None if one is None else np.clip(one, -size, max(0, size - 1))
        for one, size in zip(indices, self.shape, strict=False)
    ]
    return index_put(self, inside, np.where(cast(mask, BOOL), values, 0), True)


def _along(self: Array, dim: int, index: Array) -> tuple[Array, int, Any]:
    """Return a copy to be written, the dimension, and an index of all places that are written."""
    array, places = np.atleast_1d(self), np.atleast_1d(index)
    axis = axis_of(dim, array.ndim)
    require(array.ndim == places.ndim, f"expected an index of {array.ndim} dimensions, got {places.ndim}")
    if any(n > size for i, (n, size) in enumerate(zip(places.shape, array.shape, strict=True)) if i != axis):
        raise OperatorError(f"expected an index within sizes {list(array.shape)}, got {list(places.shape)}")
    where = list(np.ogrid[tuple(slice(0, size) for size in places.shape)])
    where[axis] = check_indices(places, array.shape[axis])
    return array, axis, tuple(where)


def _source(src: Any, index: Array) -> Any:
    """Return the values that a scatter reads: as many as the index has."""
    if not isinstance(src, ARRAYS) or not src.ndim:
        return asarray(src)
    return src[tuple(slice(0, size) for size in np.atleast_1d(index).shape)]


@kernel("aten.scatter.src .value")
def scatter(self: Array, dim: int, index: Array, src: Any) -> Any:
    array, _, where = _along(self, dim, index)
    result = array.copy()
    result[where] = cast(_source(src, index), self.dtype)
    return result.reshape(self.shape)


@kernel("aten.scatter.reduce .value_reduce")
def scatter_with(self: Array, dim: int, index: Array, src: Any, reduce: str) -> Any:
    if reduce == "add":
        return scatter_add(self, dim, index, src)
    require(reduce == "multiply", f"expected the reduction add or multiply, got {reduce[:40]!a}")
    return scatter_reduce(self, dim, index, src, "prod")


@kernel("aten.scatter_add.default")
def scatter_add(self: Array, dim: int, index: Array, src: Any) -> Any:
    array, _, where = _along(self, dim, index)
    return _added(array, where, _source(src, index)).reshape(self.shape)


_REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "mean": np.add,
}  # fmt: skip
_NEUTRAL: dict[str, Any] = {"sum": 0, "prod": 1, "mean": 0}


def _reduced(array: Array, where: Any, values: Array, reduce: str, include_self: bool = True) -> Any:
    require(reduce in _REDUCE, f"expected the reduction sum, prod, mean, amax or amin, got {reduce[:40]!a}")
    result = wide(array).copy()
    counts = np.zeros_like(result, np.int64)
    np.add.at(counts, where, 1)
    if not include_self:
        if reduce in _NEUTRAL:
            start: Any = _NEUTRAL[reduce]
        elif result.dtype == BOOL:
            start = reduce == "amin"
        elif kind(result.dtype) == 2:
            start = -np.inf if reduce == "amax" else np.inf
        else:
            limits = np.iinfo(result.dtype)
            start = limits.min if reduce == "amax" else limits.max
        result = np.where(counts > 0, cast(start, result.dtype), result)
    ufunc: Any = _REDUCE[reduce]
    ufunc.at(result, where, cast(values, result.dtype))
    if reduce == "mean":
        divisor = np.maximum(counts + include_self, 1)
        return result / divisor.astype(result.dtype) if kind(result.dtype) > 1 else result // divisor
    return result


@kernel("aten.scatter_reduce.two")
def scatter_reduce(self: Array, dim: int, index: Array, src: Any, reduce: str, include_self: bool = True) -> Any:
    array, _, where = _along(self, dim, index)
    return _reduced(array, where, _source(src, index), reduce, include_self).reshape(self.shape)


def _slices(change: Callable[..., Array], *, negative: bool = False) -> Callable[..., Any]:
    """Return the kernel of a function that changes slices of one dimension.

    Args:
        change: returns the array with its dimension in front, from it, the chosen slices, and the values.
        negative: indices may count from the end.
    """

    def run(self: Array, dim: int, index: Array, source: Any, **options: Any) -> Any:
        array, axis = np.atleast_1d(self), axis_of(dim, self.ndim)
        rows = np.moveaxis(array, axis, 0)
        chosen = check_indices(index.reshape(-1), len(rows), negative=negative)
        is_tensor = isinstance(source, ARRAYS) and source.ndim == self.ndim
        values = np.moveaxis(np.atleast_1d(source), axis, 0) if is_tensor else asarray(source)
        return np.moveaxis(change(rows, chosen, values, **options), 0, axis).reshape(self.shape)

    return run


def _added_slices(rows: Array, chosen: Array, values: Array, alpha: Any = 1) -> Array:
    numbers = wide(values)
    return _added(rows, chosen, numbers if alpha == 1 else numbers * cast(alpha, numbers.dtype))


def _replaced(rows: Array, chosen: Array, values: Array) -> Array:
    result = rows.copy()
    result[chosen] = cast(values, rows.dtype)
    return result


@kernel("aten.put.default")
def put(self: Array, index: Array, source: Array, accumulate: bool) -> Any:
    flat, chosen = self.reshape(-1), check_indices(index.reshape(-1), self.size, negative=True)
    return (_added if accumulate else _replaced)(flat, chosen, source.reshape(-1)).reshape(self.shape)


@kernel("aten.masked_scatter.default")
def masked_scatter(self: Array, mask: Array, source: Array) -> Any:
    shape = np.broadcast_shapes(self.shape, mask.shape)
    chosen = np.broadcast_to(cast(mask, BOOL), shape)
    result = np.broadcast_to(self, shape).copy()
    count = int(np.count_nonzero(chosen))
    require(source.size >= count, f"expected at least {count_text(count, 'value')}, got {source.size}")
    result[chosen] = cast(source.reshape(-1)[:count], self.dtype)
    return result


def _scattered(view: Callable[..., Array]) -> Callable[..., Any]:
    """Return the kernel of a function that writes values into a view of a copy."""

    def run(self: Array, src: Array, *place: Any, **named: Any) -> Any:
        result = self.copy()
        view(result, *place, **named)[...] = cast(src, self.dtype)
        return result

    return run


_filled = _slices(_replaced, negative=True)
KERNELS: Final = {
    "aten.index_add.default": _slices(_added_slices),
    "aten.index_copy.default": _slices(_replaced),
    "aten.index_fill.int_Scalar .int_Tensor": lambda self, dim, index, value: _filled(self, dim, index, value),
    "aten.index_reduce.default": _slices(_reduced),
    "aten.slice_scatter.default": _scattered(slice_),
    "aten.select_scatter.default": _scattered(select),
    "aten.diagonal_scatter.default": _scattered(diagonal),
    "aten.as_strided_scatter.default": _scattered(as_strided),
}
