"""Indexing rows of the operator table: sizes of indexed tensors, checks of indices, embedding bags."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from pt2kit.messages import count_text
from pt2kit.operators.facts import (
    Mismatch,
    Sizes,
    Tensor,
    Unknown,
    agree,
    at_least,
    axis,
    broadcast,
    expect,
    like,
    require_rank,
    row_major,
    shape_text,
)
from pt2kit.operators.pointwise import compare, like_if_contiguous
from pt2kit.operators.promotion import known_dtype, require_dtype, require_kind
from pt2kit.operators.views import expand as expand
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, Undecided, text, unknown

_INTEGERS: Final = (ScalarType.LONG, ScalarType.INT)
_MASKS: Final = (ScalarType.BOOL, ScalarType.BYTE)


def is_minus_one(number: Any) -> bool:
    """Return whether a number is -1, which stands for one that elements decide."""
    return bool(number == -1)


def require_dtype_of(self: Tensor, other: Tensor, name: str) -> None:
    """Refuse a tensor of another dtype."""
    if self.dtype is not None:
        require_dtype(other, (self.dtype,), name)


def some_of(self: Tensor) -> Size:
    """Return an unknown number of elements of a tensor."""
    count = self.numel
    return unknown(0, count) if isinstance(count, int) else unknown()


def indexed_sizes(self: Tensor, indices: Sequence[Tensor | None]) -> tuple[tuple[Size, ...], tuple[int, ...]]:
    """Return the sizes of a tensor indexed by tensors, and the dimensions of it that are kept, in their order.

    A mask counts as one index for each of its dimensions. The sizes that the indices broadcast to are where the first
    index is if they are next to each other, else in front.

    Raises:
        Mismatch: too many indices, other dtypes, or a mask that does not fit.
    """
    places: list[int] = []
    shapes: list[Sizes] = []
    place = 0
    for index in indices:
        if index is None:
            place += 1
            continue
        require_dtype(index, (*_INTEGERS, *_MASKS), "indices")
        count = 1
        if index.dtype in _MASKS:
            count = index.rank
            if not count:
                raise Unknown("a mask without dimensions")
            for one, other in zip(index.sizes, self.sizes[place:], strict=False):
                agree(one, other, "indices: expected a mask of the sizes of self")
        elif index.dtype is None:
            raise Unknown("the dtype of an index is not known")
        shapes.append((some_of(index),) if index.dtype in _MASKS else index.sizes)
        places += range(place, place + count)
        place += count
    if place > self.rank:
        raise Mismatch(f"indices: expected at most {self.rank}, got {place}", "sizes")
    if not places:
        raise Unknown("there is no index")
    if not shapes[-1] and any(shapes):
        raise Unknown("fake tensors and kernels differ if the last index alone is a scalar tensor")
    shape = broadcast(*shapes)
    kept = tuple([dim for dim in range(self.rank) if dim not in places])
    is_together = places == list(range(places[0], places[-1] + 1))
    front = [self.sizes[dim] for dim in kept if is_together and dim < places[0]]
    back = [self.sizes[dim] for dim in kept if not is_together or dim > places[0]]
    return (*front, *shape, *back), kept


def indexed(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Return the elements that tensors index."""
    sizes, kept = indexed_sizes(self, indices)
    is_sure = _is_in_order(self, kept) and len(sizes) > len(kept)  # Fake tensors err if all indices are scalars.
    return Tensor(sizes, self.dtype, row_major(sizes) if is_sure else None, self.device)


def _is_in_order(self: Tensor, dims: Sequence[int]) -> bool:
    """Return whether some dimensions are known to be in memory in their order."""
    if self.strides is None:
        return False
    strides = [self.strides[dim] for dim in dims]
    try:
        return all(one != 0 and compare(one, other) > 0 for one, other in pairwise(strides))
    except Undecided:
        return False


def index_written(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with one slice written for each index."""
    require_rank(index, (0, 1), "index")
    place = axis(dim, self.rank)
    require_dtype_of(self, source, "source")
    if source.sizes and self.sizes:
        require_rank(source, (self.rank,), "source")
        for at, (one, other) in enumerate(zip(self.sizes, source.sizes, strict=True)):
            wanted = one if at != place else index.sizes[0] if index.sizes else 1
            agree(wanted, other, f"source: expected one slice for each index, in dimension {at}")
    return like_if_contiguous(self)


def require_index(self: Tensor, dim: int, index: Tensor, other: Tensor | None = None) -> None:
    """Refuse an index of elements along a dimension that reaches beyond the tensors."""
    place = axis(dim, self.rank)
    if 0 in index.sizes:
        return
    require_dtype(index, _INTEGERS, "index")
    for one in (self,) if other is None else (self, other):
        if max(one.rank, 1) != max(index.rank, 1):
            raise Mismatch(
                f"index: expected {count_text(one.rank, 'dimension')}, got {shape_text(index.sizes)}", "sizes"
            )
        for at, (size, length) in enumerate(zip(one.sizes, index.sizes, strict=False)):
            if (one is not self or at != place) and at_least(size - length, 0) is False:
                raise Mismatch(f"index: expected at most {text(size)} of dimension {at}, got {text(length)}", "sizes")


def taken_along(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements that indices choose along a dimension."""
    require_dtype(indices, _INTEGERS, "indices")
    if dim is None:
        return like(self, (indices.numel,))
    if self.rank != indices.rank:
        raise Mismatch(
            f"indices: expected {count_text(self.rank, 'dimension')}, got {shape_text(indices.sizes)}", "sizes"
        )
    place = axis(dim, self.rank)
    sizes = list(broadcast(*[(*one.sizes[:place], 1, *one.sizes[place + 1 :]) for one in (self, indices)]))
    sizes[place : place + 1] = indices.sizes[place : place + 1]
    return like(self, sizes)


def places(self: Tensor) -> list[Tensor]:
    """Return one tensor for each dimension; their strides are those of columns or not, depending on the release."""
    one = Tensor((some_of(self),), ScalarType.LONG, None, self.device, None)
    return [one] * max(self.rank, 1)


def bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: int = 0,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
) -> tuple[Tensor, ...]:
    """Return one row for each bag, and three tensors for the backward, whose sizes depend on device and release."""
    require_rank(weight, (2,), "weight")
    require_kind(known_dtype(weight), "f", "weight")
    for name, one in (("indices", indices), ("offsets", offsets)):
        require_rank(one, (1,), name)
        require_dtype(one, _INTEGERS, name)
    expect(mode in (0, 1, 2), f"mode: expected 0 (sum), 1 (mean) or 2 (max), got {mode}")
    if per_sample_weights is not None:
        expect(mode == 0, f"mode: expected 0 (sum) with per_sample_weights, got {mode}")
        agree(per_sample_weights.numel, indices.numel, "per_sample_weights: expected as many as indices")
    bags = offsets.sizes[0] - (1 if include_last_offset else 0)
    expect(at_least(bags, 0), "offsets: expected one or more with include_last_offset, got none", "sizes")
    sizes = (bags, weight.sizes[1])
    largest = like(offsets, sizes if mode == 2 else (unknown(),))
    return like(weight, sizes), like(offsets, (unknown(),)), like(offsets, (unknown(),)), largest
