"""Kernels: reading and writing by indices: indexing, gathering, embeddings, masks, scattering, replacing slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.messages import count_text
from pt2kit.operators.facts import axis as axis_of
from pt2kit.runtime.arrays import (
    ARRAYS,
    BOOL,
    INT64,
    Array,
    ArraySpec,
    asarray,
    cast,
    check_indices,
    computed,
    is_known,
    kind,
    last,
    require,
    reserve,
    rounding,
    wide,
)
from pt2kit.runtime.kernels.elementwise import scaled
from pt2kit.runtime.kernels.reductions import renorm
from pt2kit.runtime.kernels.views import as_strided, diagonal, select, slice_
from pt2kit.runtime.table import kernel


def index_arrays(self: Array, indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """Return what NumPy takes for an index of torch, with every index inside its dimension.

    Raises:
        OperatorError: too many indices, or one outside.
    """
    result: list[Any] = []
    axis = 0
    for index in indices:
        if index is None:
            result.append(slice(None))
            axis += 1
        elif index.dtype in (BOOL, np.uint8):
            result += cast(index, BOOL).nonzero() if index.ndim else [cast(index, BOOL)]
            axis += index.ndim
        else:
            result.append(check_indices(index, self.shape[axis], negative=True))
            axis += 1
    arrays = [one for one in result if isinstance(one, ARRAYS)]
    if arrays:
        count = np.broadcast_shapes(*(one.shape for one in arrays))
        kept = [
            size
            for size, one in zip(self.shape, result + [slice(None)] * self.ndim, strict=False)
            if isinstance(one, slice)
        ]
        reserve((*count, *kept), self.dtype)
    return tuple(result)


@kernel("aten.index.Tensor")
def index_(self: Array, indices: Sequence[Array | None]) -> Any:
    return self[index_arrays(self, indices)]


@kernel("aten._unsafe_masked_index.default")
def unsafe_masked_index(self: Array, mask: Array, indices: Sequence[Array | None], fill: Any, result: ArraySpec) -> Any:
    if not self.size:
        return np.full(result.sizes, fill, self.dtype)
    return np.where(cast(mask, BOOL), index_(self, _clipped(self, indices, 0)), cast(fill, self.dtype))


def _clipped(self: Array, indices: Sequence[Array | None], least: int) -> list[Array | None]:
    """Return indices within their dimensions; -1 as the least one stands for the size, counted from the end."""
    pairs = zip(indices, self.shape, strict=False)
    return [None if one is None else np.clip(one, least * size, max(0, size - 1)) for one, size in pairs]


@kernel("aten.gather.default")
def gather(self: Array, dim: int, index: Array) -> Any:
    if not index.size:
        return np.empty(index.shape, self.dtype)  # torch accepts an empty index of any rank.
    return self[_along(self, dim, index)]


@kernel("aten.take_along_dim.default")
def take_along_dim(self: Array, indices: Array, dim: int | None) -> Any:
    if dim is None:
        return gather(self.reshape(-1), 0, indices.reshape(-1))
    return np.take_along_axis(self, check_indices(indices, self.shape[dim], negative=True), dim)


@kernel("aten.masked_select.default")
def masked_select(self: Array, mask: Array) -> Any:
    shape = reserve(np.broadcast_shapes(self.shape, mask.shape), self.dtype)
    return np.broadcast_to(self, shape)[np.broadcast_to(cast(mask, BOOL), shape)]


@kernel("aten.nonzero.default aten.argwhere.default")
def nonzero(self: Array) -> Any:
    reserve((int(np.count_nonzero(self)), self.ndim), INT64)
    return np.argwhere(self)


@kernel("aten.nonzero_static.default")
def nonzero_static(self: Array, size: int, fill_value: int) -> Any:
    is_set = cast(self, BOOL).reshape(-1)
    result = np.full_like(is_set, fill_value, INT64, shape=(size, self.ndim))
    order = np.argsort(~is_set, kind="stable")[:size]
    if self.ndim:
        found = np.stack(np.unravel_index(order, self.shape), 1)
        result[: len(order)] = np.where(np.arange(len(order))[:, None] < is_set.sum(), found, fill_value)
    return result


@kernel("aten.one_hot.default")
def one_hot(self: Array, num_classes: int) -> Any:
    if num_classes == -1:
        num_classes = int(self.max()) + 1
    chosen = check_indices(self, num_classes)
    result = np.zeros_like(chosen, INT64, shape=reserve((*self.shape, num_classes), INT64))
    np.put_along_axis(result, chosen[..., None].astype(INT64), 1, -1)
    return result


# Embeddings.


@kernel("aten.embedding_renorm.default", adapt=computed)
def embedding_renorm(self: Array, indices: Array, max_norm: float, norm_type: float) -> Any:
    chosen = np.unique(check_indices(indices.reshape(-1), self.shape[0]))
    return _replaced(self, chosen, renorm(self[chosen], norm_type, 0, max_norm))


@kernel(
    "aten._embedding_bag.default aten._embedding_bag_forward_only.default aten.embedding_bag.default", adapt=computed
)
def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    mode: int = 0,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = -1,
    **options: Any,
) -> Any:
    chosen, starts = check_indices(indices, weight.shape[0]), check_indices(offsets, indices.size + 1)
    if len(starts) and starts[0]:
        raise OperatorError(f"expected the first offset to be 0, got {starts[0]}")
    count = len(starts) - 1 if include_last_offset else len(starts)
    bag = np.searchsorted(starts, np.arange(indices.size), "right") - 1
    skipped = None if padding_idx is None or padding_idx == -1 else padding_idx % weight.shape[0]
    is_used = (bag < count) if skipped is None else (bag < count) & (chosen != skipped)
    used, rows = bag[is_used], weight[chosen[is_used]]
    sizes = np.bincount(used, minlength=count)
    if mode != 2:
        rows = rows if per_sample_weights is None else rows * per_sample_weights[is_used, None]
        result = np.zeros((count, weight.shape[1]), rows.dtype)
        np.add.at(result, used, rows)
        return result if mode == 0 else result / np.maximum(sizes, 1)[:, None].astype(rows.dtype), bag, sizes, sizes * 0
    result = np.full((count, weight.shape[1]), -np.inf, rows.dtype)
    np.maximum.at(result, used, rows)
    first = np.full(result.shape, len(rows))
    np.minimum.at(first, used, np.where(rows == result[used], np.arange(len(rows))[:, None], len(rows)))
    most = np.append(chosen[is_used], 0)[first]
    return np.where(sizes[:, None] > 0, result, 0), bag, sizes, most


@kernel("aten.embedding_dense_backward.default", adapt=computed)
def embedding_dense_backward(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    chosen = check_indices(indices.reshape(-1), num_weights)
    rows = grad_output.reshape(chosen.size, grad_output.shape[-1])
    if scale_grad_by_freq:
        counts = np.zeros_like(chosen, INT64, shape=num_weights)
        np.add.at(counts, chosen, 1)
        rows = rows / counts[chosen][:, None].astype(rows.dtype)
    result = np.zeros_like(rows, shape=reserve((num_weights, rows.shape[1]), rows.dtype))
    np.add.at(result, chosen, np.where((chosen != padding_idx)[:, None], rows, 0))
    return result


@kernel("aten._embedding_bag_backward.default", adapt=computed)
def embedding_bag_backward(
    grad: Array,
    indices: Array,
    offsets: Array,
    offset2bag: Array,
    bag_size: Array,
    maximum_indices: Array,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Array | None,
    padding_idx: int,
) -> Any:
    require(not sparse, "expected a dense gradient, got a sparse one")
    if mode == 2:
        is_used = (bag_size > 0)[:, None]
        chosen = check_indices(np.where(is_used, maximum_indices, 0), num_weights)
        result = np.zeros_like(grad, shape=reserve((num_weights, grad.shape[1]), grad.dtype))
        np.add.at(result, (chosen, np.arange(grad.shape[1])), np.where(is_used, grad, 0))
        return result
    if offset2bag.size != indices.size:  # Forward leaves it empty where it has no need of it.
        offset2bag = np.searchsorted(offsets, np.arange(indices.size), "right") - 1
    bag = check_indices(offset2bag, len(grad))
    rows = grad[bag] if mode == 0 else grad[bag] / np.maximum(bag_size, 1)[bag][:, None].astype(grad.dtype)
    rows = rows if per_sample_weights is None else rows * per_sample_weights[:, None]
    return embedding_dense_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq)


# Searching.


@kernel("aten.searchsorted.Tensor .Scalar")
def searchsorted(
    sorted_sequence: Array, self: Any, right: bool = False, side: str | None = None, sorter: Array | None = None
) -> Any:
    wanted = asarray(self)
    where = "right" if right or side == "right" else "left"
    rows = wide(sorted_sequence)
    if sorter is not None:
        rows = np.take_along_axis(rows, check_indices(sorter, rows.shape[-1]), -1)
    result = np.empty_like(rows, INT64, shape=wanted.shape)
    for place in np.ndindex(*rows.shape[:-1]):
        result[place] = np.searchsorted(rows[place], wide(wanted)[place], where)
    return result


def _triangle(function: Callable[..., Any], row: int, col: int, offset: int) -> Any:
    reserve((2, row, col), INT64)
    return np.stack(function(row, offset, col))


# Writing.


def _replaced(target: Array, where: Any, values: Any) -> Array:
    """Return a copy of an array with values at indices."""
    result = target.copy()
    result[where] = cast(values, target.dtype)
    return result


@kernel("aten.index_put.default aten._index_put_impl.default")
def index_put(self: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> Any:
    mask: Any = indices[0]
    if len(indices) == values.size == 1 and not accumulate and not is_known(mask) and mask.dtype == BOOL:
        mask = mask.reshape(*mask.shape, *(1,) * (self.ndim - mask.ndim))
        return np.where(mask, cast(values, self.dtype).reshape(()), self)
    where = index_arrays(self, indices)
    return _reduced(self, where, values) if accumulate else _replaced(self, where, values)


@kernel("aten._unsafe_masked_index_put_accumulate.default")
def masked_index_put(self: Array, mask: Array, indices: Sequence[Array | None], values: Array) -> Any:
    return index_put(self, _clipped(self, indices, -1), np.where(cast(mask, BOOL), values, 0), True)


def _along(self: Array, dim: int, index: Array) -> tuple[Any, ...]:
    """Return an index of all places of an array that are read or written."""
    places = np.atleast_1d(index)
    where = list(np.ogrid[tuple(slice(0, size) for size in places.shape)])
    where[dim] = check_indices(places, self.shape[dim])
    return tuple(where)


def _scattered(change: Callable[..., Array], self: Array, dim: int, index: Array, src: Any, **options: Any) -> Any:
    """Return an array with elements at places of one dimension changed.

    Args:
        change: returns the array, from it, an index of the places, and as many values.
        self, dim, index, src, options: the arguments of the operator.
    """
    if not index.size:  # Its rank may be another one then.
        return self.copy()
    is_tensor = isinstance(src, ARRAYS) and src.ndim
    values = src[tuple(slice(0, size) for size in np.atleast_1d(index).shape)] if is_tensor else asarray(src)
    return change(self, _along(self, dim, index), values, **options)


_REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
    "mean": np.add,
}
_NEUTRAL: dict[str, Any] = {"sum": 0, "prod": 1, "mean": 0}
"""Reduction -> the number that it begins with; an extreme begins with any of the values."""


def _reduced(array: Array, where: Any, values: Any, reduce: str = "sum", include_self: bool = True) -> Any:
    """Return a copy of an array with values reduced at indices, which may repeat; each result is stored in its type."""
    result = array.copy()
    numbers = cast(values, result.dtype)
    if not include_self:
        result[where] = _NEUTRAL.get(reduce, numbers)
    ufunc: Any = _REDUCE[reduce]
    ufunc.at(result, where, numbers)
    if reduce == "mean":
        counts = np.full_like(result, include_self, INT64)
        np.add.at(counts, where, 1)
        result, divisor = wide(result), np.maximum(counts, 1)
        return result / divisor.astype(result.dtype) if kind(result.dtype) > 1 else result // divisor
    return result


def _reduced_at_once(array: Array, where: Any, values: Any, **options: Any) -> Any:
    return _reduced(wide(array), where, values, **options)


_scatter, scatter_reduce = partial(_scattered, _replaced), partial(_scattered, _reduced_at_once)


def _with_slices(
    change: Callable[..., Array],
    self: Array,
    dim: int,
    index: Array,
    source: Any,
    negative: bool = False,
    **options: Any,
) -> Any:
    """Return an array with slices of one dimension changed.

    Args:
        change: returns the array, from it, an index of the slices, and the values.
        self, dim, index, source, options: the arguments of the operator.
        negative: indices may count from the end.
    """
    chosen = check_indices(index.reshape(-1), self.shape[dim], negative=negative)
    return change(self, last((chosen,), axis_of(dim, self.ndim)), asarray(source), **options)


def _added_slices(self: Array, where: Any, values: Array, alpha: Any = 1) -> Array:
    if self.ndim > 1 and alpha == 1:  # torch computes this as `scatter_add`
        return _reduced_at_once(self, where, values)
    return _reduced(self, where, scaled(wide(values), rounding(self.dtype)(alpha)))


@kernel("aten.put.default")
def put(self: Array, index: Array, source: Array, accumulate: bool) -> Any:
    flat, chosen = self.reshape(-1), check_indices(index.reshape(-1), self.size, negative=True)
    return (_reduced_at_once if accumulate else _replaced)(flat, chosen, source.reshape(-1))


@kernel("aten.masked_scatter.default")
def masked_scatter(self: Array, mask: Array, source: Array) -> Any:
    shape = reserve(np.broadcast_shapes(self.shape, mask.shape), INT64)
    chosen = np.broadcast_to(cast(mask, BOOL), shape)
    count = chosen.sum()
    got = int(count) if is_known(count) else "more"
    require(count <= source.size, f"expected a mask of at most {count_text(source.size, 'element')}, got {got}")
    if not source.size:
        return np.broadcast_to(self, shape).copy()
    places = np.clip(np.cumsum(chosen.reshape(-1), dtype=INT64) - 1, 0, source.size - 1)
    values = np.take_along_axis(cast(source.reshape(-1), self.dtype), places, 0).reshape(shape)
    return np.where(chosen, values, self)


def summed_at(values: Array, places: Array, shape: Sequence[int], n: int) -> Array:
    """Return values summed at places in an array of zeros.

    Args:
        values: values; all dimensions but the last `n` are those of the result.
        places: where they belong in the last `n` dimensions of the result, as if these were one; as many, or the same
            ones for all others.
        shape: sizes of the result.
        n: how many dimensions.
    """
    lead = shape[:-n]
    zeros = np.zeros_like(wide(values), shape=(*lead, math.prod(shape[-n:])))
    flat = values.reshape(*lead, math.prod(values.shape[-n:]))
    where = np.broadcast_to(places.reshape(*places.shape[:-n], flat.shape[-1]), flat.shape)
    return scatter_reduce(zeros, -1, where, flat).reshape(shape)


@kernel("aten.masked_scatter_backward.default")
def masked_scatter_backward(grad_output: Array, mask: Array, sizes: Sequence[int]) -> Any:
    taken = grad_output[np.broadcast_to(mask, grad_output.shape)]
    result = np.zeros_like(taken, shape=math.prod(sizes))
    result[: len(taken)] = taken
    return result.reshape(sizes)


def _with_view(view: Callable[..., Array], self: Array, src: Array, *place: Any, **named: Any) -> Any:
    """Return a copy of an array with values written into a view of it."""
    result = self.copy(order="K")
    view(result, *place, **named)[...] = cast(src, self.dtype)
    return result


KERNELS: Final = {
    "aten.embedding.default": lambda weight, indices, padding_idx: np.take(
        weight, check_indices(indices, weight.shape[0]), 0
    ),
    "aten.embedding_bag.padding_idx": lambda weight, padding_idx=None, **options: embedding_bag(
        weight, padding_idx=None if padding_idx is None else axis_of(padding_idx, len(weight)), **options
    ),  # here -1 is the last row, and not none
    "aten.where.default aten.nonzero_numpy.default": lambda self: [*nonzero(np.atleast_1d(self)).T],
    "aten.tril_indices.default": partial(_triangle, np.tril_indices),
    "aten.triu_indices.default": partial(_triangle, np.triu_indices),
    "aten.take.default": lambda self, index: self.reshape(-1)[check_indices(index, self.size, negative=True)],
    "aten.scatter.src": _scatter,
    "aten.scatter.value": lambda self, dim, index, value: _scatter(self, dim, index, value),
    "aten.scatter.reduce .value_reduce": lambda self, dim, index, src, reduce: scatter_reduce(
        self, dim, index, src, reduce="sum" if reduce == "add" else "prod"
    ),
    "aten.scatter_add.default aten.scatter_reduce.two": scatter_reduce,
    "aten.index_add.default": partial(_with_slices, _added_slices),
    "aten.index_copy.default": partial(_with_slices, _replaced),
    "aten.index_fill.int_Scalar .int_Tensor": lambda self, dim, index, value: _with_slices(
        _replaced, self, dim, index, value, negative=True
    ),
    "aten.index_reduce.default": partial(_with_slices, _reduced),
    "aten.slice_scatter.default": partial(_with_view, slice_),
    "aten.select_scatter.default": partial(_with_view, select),
    "aten.diagonal_scatter.default": partial(_with_view, diagonal),
    "aten.as_strided_scatter.default": partial(_with_view, as_strided),
    "aten.bucketize.Tensor .Scalar": lambda self, boundaries, right: searchsorted(boundaries, self, right),
    "aten.index_select.default": lambda self, dim, index: np.take(
        self, check_indices(index.reshape(-1), self.shape[dim]), dim
    ),
}
