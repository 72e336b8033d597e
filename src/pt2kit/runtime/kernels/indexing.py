"""Kernels: reading by indices: indexing, gathering, embeddings, selecting by masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import (
    ARRAYS,
    BOOL,
    INT64,
    Array,
    asarray,
    axis_of,
    cast,
    check_indices,
    require,
    reserve,
    wide,
)
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
            if index.shape != self.shape[axis : axis + index.ndim]:
                raise OperatorError(f"expected a mask of sizes {list(self.shape[axis:])}, got {list(index.shape)}")
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
def unsafe_masked_index(self: Array, mask: Array, indices: Sequence[Array | None], fill: Any) -> Any:
    inside = [
        None if one is None else np.clip(one, 0, max(0, size - 1))
        for one, size in zip(indices, self.shape, strict=False)
    ]
    if not self.size:
        shape = np.broadcast_shapes(*(one.shape for one in indices if one is not None))
        return np.full(reserve(shape, self.dtype), fill, self.dtype)
    found = index_(self, inside)
    return np.where(cast(mask, BOOL), found, cast(fill, self.dtype))


@kernel("aten.index_select.default")
def index_select(self: Array, dim: int, index: Array) -> Any:
    axis = axis_of(dim, self.ndim)
    require(index.ndim <= 1, f"expected indices of one dimension, got {index.ndim}")
    array = np.atleast_1d(self)
    chosen = check_indices(index.reshape(-1), array.shape[axis])
    reserve((*array.shape[:axis], chosen.size, *array.shape[axis + 1 :]), array.dtype)
    result = np.take(array, chosen, axis)
    return result if self.ndim else result.reshape(index.shape if index.ndim == 0 else ())


@kernel("aten.gather.default")
def gather(self: Array, dim: int, index: Array) -> Any:
    array, places = np.atleast_1d(self), np.atleast_1d(index)
    axis = axis_of(dim, array.ndim)
    if not places.size:
        return np.empty(index.shape, self.dtype)  # torch accepts an empty index of any rank.
    chosen = check_indices(places, array.shape[axis])
    cut = tuple(slice(None) if i == axis else slice(0, size) for i, size in enumerate(places.shape))
    return np.take_along_axis(array[cut], chosen, axis).reshape(index.shape)


@kernel("aten.take_along_dim.default")
def take_along_dim(self: Array, indices: Array, dim: int | None) -> Any:
    if dim is None:
        return gather(self.reshape(-1), 0, indices.reshape(-1))
    axis = axis_of(dim, self.ndim)
    sizes = np.broadcast_shapes(
        *(tuple(1 if i == axis else size for i, size in enumerate(one.shape)) for one in (self, indices))
    )
    around = lambda one: (*sizes[:axis], one.shape[axis], *sizes[axis + 1 :])  # noqa: E731
    reserve(around(indices), self.dtype)
    chosen = check_indices(indices, self.shape[axis], negative=True)
    return np.take_along_axis(np.broadcast_to(self, around(self)), np.broadcast_to(chosen, around(indices)), axis)


@kernel("aten.masked_select.default")
def masked_select(self: Array, mask: Array) -> Any:
    shape = reserve(np.broadcast_shapes(self.shape, mask.shape), self.dtype)
    return np.broadcast_to(self, shape)[np.broadcast_to(cast(mask, BOOL), shape)]


@kernel("aten.nonzero.default aten.argwhere.default")
def nonzero(self: Array) -> Any:
    if not self.ndim:
        return np.zeros((int(bool(self)), 0), INT64)
    reserve((int(np.count_nonzero(self)), self.ndim), INT64)
    return np.stack(np.nonzero(self), 1)


@kernel("aten.where.default aten.nonzero_numpy.default")
def nonzero_numpy(self: Array) -> Any:
    return [*nonzero(np.atleast_1d(self)).T]


@kernel("aten.nonzero_static.default")
def nonzero_static(self: Array, size: int, fill_value: int) -> Any:
    found = nonzero(self)
    result = np.full(reserve((size, self.ndim), INT64), fill_value, INT64)
    result[: len(found)] = found[:size]
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


@kernel("aten.embedding.default")
def embedding(weight: Array, indices: Array, padding_idx: int) -> Any:
    chosen = check_indices(indices, weight.shape[0])
    reserve((*indices.shape, *weight.shape[1:]), weight.dtype)
    return np.take(weight, chosen, 0)


@kernel("aten._embedding_bag.default aten._embedding_bag_forward_only.default aten.embedding_bag.default .padding_idx")
def embedding_bag(
    weight: Array, indices: Array, offsets: Array, mode: int = 0, per_sample_weights: Array | None = None,
    include_last_offset: bool = False, padding_idx: int | None = -1,
) -> Any:  # fmt: skip
    require(mode in (0, 1, 2) and weight.ndim, f"expected the mode 0, 1 or 2, got {mode}")
    chosen = check_indices(indices, weight.shape[0])
    starts = check_indices(offsets, indices.size + 1).tolist()
    if starts and starts[0]:
        raise OperatorError(f"expected the first offset to be 0, got {starts[0]}")
    ends = [*starts[1:], indices.size]
    if include_last_offset:
        starts, ends = starts[:-1], ends[:-1]
    rows = wide(weight)
    result = np.zeros_like(rows, shape=reserve((len(starts), weight.shape[1]), rows.dtype))
    bag_of = np.zeros(indices.shape, INT64)
    sizes = np.zeros(len(starts), INT64)
    most = np.zeros_like(rows, INT64, shape=(len(starts), weight.shape[1]) if mode == 2 else len(starts))
    skipped = None if padding_idx is None or padding_idx == -1 else padding_idx % weight.shape[0]
    for bag, (start, end) in enumerate(zip(starts, ends, strict=True)):
        bag_of[start:end] = bag
        places = np.arange(start, max(start, end))
        if skipped is not None:
            places = places[chosen[places] != skipped]
        sizes[bag] = len(places)
        if not len(places):
            continue
        found = rows[chosen[places]]
        if per_sample_weights is not None:
            found = found * wide(per_sample_weights)[places, None]
        if mode == 2:
            result[bag] = found.max(0)
            most[bag] = chosen[places][found.argmax(0)]
        else:
            result[bag] = found.sum(0) if mode == 0 else found.sum(0) / len(places)
    return result, bag_of, sizes, most


# Searching.


@kernel("aten.searchsorted.Tensor .Scalar")
def searchsorted(
    sorted_sequence: Array,
    self: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Any:
    wanted = asarray(self)
    where = "right" if right or side == "right" else "left"
    rows = wide(sorted_sequence)
    if sorter is not None:
        rows = np.take_along_axis(rows, check_indices(sorter, rows.shape[-1]), -1)
    dtype = np.dtype("int32" if out_int32 else "int64")
    if rows.ndim == 1:
        return np.searchsorted(rows, wide(wanted), where).astype(dtype)
    result = np.empty_like(rows, dtype, shape=wanted.shape)
    for place in np.ndindex(*rows.shape[:-1]):
        result[place] = np.searchsorted(rows[place], wide(wanted)[place], where)
    return result


@kernel("aten.bucketize.Tensor .Scalar")
def bucketize(self: Any, boundaries: Array, out_int32: bool, right: bool) -> Any:
    return searchsorted(boundaries, self, out_int32, right)


def _triangle(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(row: int, col: int, offset: int = 0, dtype: Any = None, **options: Any) -> Any:
        reserve((2, row, col), INT64)
        return np.stack(function(row, offset, col))

    return run


KERNELS: Final = {
    "aten.tril_indices.default": _triangle(np.tril_indices),
    "aten.triu_indices.default": _triangle(np.triu_indices),
    "aten.take.default": lambda self, index: self.reshape(-1)[check_indices(index, self.size, negative=True)],
}
