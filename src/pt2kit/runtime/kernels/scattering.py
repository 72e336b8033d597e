"""Kernels: writing by indices: scattering, adding at indices, replacing slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import ARRAYS, BOOL, Array, asarray, axis_of, cast, check_indices, is_known, kind, wide
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
def index_put_impl_(
    self: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False, unsafe: bool = False
) -> Any:
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
    if array.ndim != places.ndim:
        raise OperatorError(f"expected an index of {array.ndim} dimensions, got {places.ndim}")
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
def scatter(self: Array, dim: int, index: Array, src: Any = None, value: Any = None) -> Any:
    array, _, where = _along(self, dim, index)
    result = array.copy()
    result[where] = cast(_source(value if src is None else src, index), self.dtype)
    return result.reshape(self.shape)


@kernel("aten.scatter.reduce .value_reduce")
def scatter_with(self: Array, dim: int, index: Array, src: Any = None, *, value: Any = None, reduce: str) -> Any:
    values = value if src is None else src
    if reduce == "add":
        return scatter_add(self, dim, index, values)
    if reduce != "multiply":
        raise OperatorError(f"expected the reduction add or multiply, got {reduce[:40]!a}")
    return scatter_reduce(self, dim, index, values, "prod")


@kernel("aten.scatter_add.default")
def scatter_add(self: Array, dim: int, index: Array, src: Any) -> Any:
    array, _, where = _along(self, dim, index)
    return _added(array, where, _source(src, index)).reshape(self.shape)


_REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "mean": np.add,
}  # fmt: skip
_NEUTRAL: dict[str, Any] = {"sum": 0, "prod": 1, "mean": 0}


def _reduced(array: Array, where: Any, values: Array, reduce: str, include_self: bool) -> Any:
    if reduce not in _REDUCE:
        raise OperatorError(f"expected the reduction sum, prod, mean, amax or amin, got {reduce[:40]!a}")
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


def _rows(self: Array, dim: int, index: Array) -> tuple[Array, Any]:
    """Return an array with its dimension in front, and the index of whole slices."""
    array = np.atleast_1d(self)
    axis = axis_of(dim, array.ndim)
    return np.moveaxis(array, axis, 0), check_indices(index.reshape(-1), array.shape[axis])


def _front(source: Array, dim: int, ndim: int) -> Array:
    array = np.atleast_1d(source)
    return np.moveaxis(array, axis_of(dim, max(ndim, 1)), 0)


@kernel("aten.index_add.default")
def index_add(self: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> Any:
    rows, chosen = _rows(self, dim, index)
    values = wide(_front(source, dim, self.ndim))
    added = _added(rows, chosen, values if alpha == 1 else values * cast(alpha, values.dtype))
    return np.moveaxis(added, 0, axis_of(dim, self.ndim)).reshape(self.shape)


@kernel("aten.index_copy.default")
def index_copy(self: Array, dim: int, index: Array, source: Array) -> Any:
    rows, chosen = _rows(self, dim, index)
    result = rows.copy()
    result[chosen] = cast(_front(source, dim, self.ndim), self.dtype)
    return np.moveaxis(result, 0, axis_of(dim, self.ndim)).reshape(self.shape)


@kernel("aten.index_fill.int_Scalar .int_Tensor")
def index_fill(self: Array, dim: int, index: Array, value: Any) -> Any:
    array = np.atleast_1d(self)
    axis = axis_of(dim, array.ndim)
    result = np.moveaxis(array.copy(), axis, 0)
    result[check_indices(index.reshape(-1), array.shape[axis], negative=True)] = cast(value, self.dtype)
    return np.moveaxis(result, 0, axis).reshape(self.shape)


@kernel("aten.index_reduce.default")
def index_reduce(self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True) -> Any:
    rows, chosen = _rows(self, dim, index)
    result = _reduced(rows, chosen, _front(source, dim, self.ndim), reduce, include_self)
    return np.moveaxis(result, 0, axis_of(dim, self.ndim)).reshape(self.shape)


@kernel("aten.put.default")
def put(self: Array, index: Array, source: Array, accumulate: bool = False) -> Any:
    flat, chosen = self.reshape(-1), check_indices(index.reshape(-1), self.size, negative=True)
    if accumulate:
        return _added(flat, chosen, source.reshape(-1)).reshape(self.shape)
    result = flat.copy()
    result[chosen] = cast(source.reshape(-1), self.dtype)
    return result.reshape(self.shape)


@kernel("aten.masked_scatter.default")
def masked_scatter(self: Array, mask: Array, source: Array) -> Any:
    shape = np.broadcast_shapes(self.shape, mask.shape)
    chosen = np.broadcast_to(cast(mask, BOOL), shape)
    result = np.broadcast_to(self, shape).copy()
    count = int(np.count_nonzero(chosen))
    if source.size < count:
        raise OperatorError(f"expected at least {count} values, got {source.size}")
    result[chosen] = cast(source.reshape(-1)[:count], self.dtype)
    return result


@kernel("aten.slice_scatter.default")
def slice_scatter(
    self: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    result = self.copy()
    slice_(result, dim, start, end, step)[...] = cast(src, self.dtype)
    return result


@kernel("aten.select_scatter.default")
def select_scatter(self: Array, src: Array, dim: int, index: int) -> Any:
    result = self.copy()
    select(result, dim, index)[...] = cast(src, self.dtype)
    return result


@kernel("aten.diagonal_scatter.default")
def diagonal_scatter(self: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    result = self.copy()
    diagonal(result, offset, dim1, dim2)[...] = cast(src, self.dtype)
    return result


@kernel("aten.as_strided_scatter.default")
def as_strided_scatter(
    self: Array, src: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    result = self.copy()
    as_strided(result, size, stride, storage_offset)[...] = cast(src, self.dtype)
    return result
