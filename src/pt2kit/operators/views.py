"""View rows of the operator table: view, permute, expand, squeeze, as_strided. Strides and offsets are exact.

Source of the strides: `computeStride` in aten/src/ATen/TensorUtils.cpp, torch 2.13. What symbols decide is decided by
the values of the example, as torch does when it exports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from pt2kit.operators.creation import is_surely_dense as is_surely_dense
from pt2kit.operators.facts import (
    Mismatch,
    Sizes,
    Tensor,
    Unknown,
    axis,
    decided,
    expect,
    is_equal,
    require,
    row_major,
    shape_text,
)
from pt2kit.operators.pointwise import compare, is_contiguous
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, product, same, text


def resized(self: Tensor, sizes: Sizes, strides: Sizes | None, offset: Size | None = None) -> Tensor:
    """Return a view with other sizes, strides and offset."""
    return replace(self, sizes=tuple(sizes), strides=None if strides is None else tuple(strides), offset=offset)


def wanted_sizes(self: Tensor, asked: Sizes) -> tuple[Size, ...]:
    """Return the sizes that a view asks for, with what -1 stands for.

    Raises:
        Mismatch: a negative size, several of -1, or another number of elements.
    """
    numbers = [size for size in asked if isinstance(size, int)]
    require(min(numbers, default=0) >= -1, "sizes", "size: expected sizes of 0 or more", asked)
    require(numbers.count(-1) <= 1, "sizes", "size: expected at most one size of -1", asked)
    count = self.numel
    rest = product(size for size in asked if size != -1)
    require(-1 not in numbers or rest != 0, "sizes", "size: expected no size of 0 next to one of -1", asked)
    is_whole = same(count % rest, 0) if -1 in numbers else same(count, rest)
    require(is_whole, "sizes", f"size: expected {text(count)} elements in all", asked)
    return tuple([count // rest if size == -1 else size for size in asked])


def view_strides(self: Tensor, sizes: Sizes) -> tuple[Size, ...] | None:
    """Return the strides of a tensor seen with other sizes; None if that needs a copy, or is not certain."""
    if self.strides is None:
        return None
    if tuple(sizes) == self.sizes:
        return self.strides
    if is_contiguous(self) or 0 in sizes or 0 in self.sizes:
        return row_major(sizes)
    return decided(_strides_by_blocks, self.sizes, self.strides, sizes)


def _strides_by_blocks(old: Sizes, strides: Sizes, sizes: Sizes) -> tuple[Size, ...] | None:
    """Return the strides of a view, one block of dimensions that are dense among themselves after the other."""
    result: list[Size] = []
    remaining = list(sizes)
    available: Size = 1
    base = strides[-1] if strides else 1
    for dim in reversed(range(len(old))):
        available = available * old[dim]
        if dim and (old[dim - 1] == 1 or is_equal(strides[dim - 1], available * base)):
            continue
        taken: Size = 1
        while remaining and (remaining[-1] == 1 or compare(taken, available) < 0):
            result.append(taken * base)
            taken = taken * remaining.pop()
        if not is_equal(taken, available):
            return None
        available = 1
        base = strides[dim - 1]
    result += [base] * len(remaining)
    return tuple(reversed(result)) if all(size == 1 for size in remaining) else None


def reshaped(self: Tensor, sizes: Sizes) -> Tensor:
    """Return a view if the strides allow it, else a row-major copy."""
    strides = view_strides(self, sizes)
    if strides is None:
        return Tensor(tuple(sizes), self.dtype, None, self.device, None, self.layout)
    return replace(self, sizes=tuple(sizes), strides=strides)


def flattened(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """Return a tensor with some adjacent dimensions made one."""
    start, end = axis(start_dim, self.rank, "start_dim"), axis(end_dim, self.rank, "end_dim")
    expect(start <= end, f"expected start_dim before end_dim, got {start_dim} and {end_dim}", "dimension")
    if not self.sizes:
        return reshaped(self, (1,))
    return reshaped(self, (*self.sizes[:start], product(self.sizes[start : end + 1]), *self.sizes[end + 1 :]))


def place_of(self: Tensor, dim: Any) -> int:
    """Normalize a dimension of a tensor that has one; scalar tensors are refused.

    Raises:
        Mismatch: there is no such dimension.
        Unknown: the dimension is not known.
    """
    require_rank_of_one(self)
    return axis(dim, self.rank)


def require_rank_of_one(self: Tensor, name: str = "self") -> None:
    """Refuse a scalar tensor.

    Raises:
        Mismatch: it has no dimension.
    """
    expect(bool(self.sizes), f"{name}: expected one dimension or more, got a scalar tensor", "dimension")


def in_order(self: Tensor, order: Sequence[int]) -> Tensor:
    """Return a view with the dimensions in another order."""
    strides = None if self.strides is None else tuple([self.strides[dim] for dim in order])
    return replace(self, sizes=tuple([self.sizes[dim] for dim in order]), strides=strides)


def expand(self: Tensor, size: Sizes) -> Tensor:
    """Return a view with dimensions of size 1 repeated, and new ones in front."""
    missing = len(size) - self.rank
    require(missing >= 0, "sizes", f"size: expected {self.rank} sizes or more", size)
    is_negative = any(isinstance(one, int) and one < (0 if at < missing else -1) for at, one in enumerate(size))
    require(not is_negative, "sizes", "size: expected sizes of 0 or more", size)
    old = (1,) * missing + self.sizes
    sizes = [own if one == -1 else one for own, one in zip(old, size, strict=True)]
    for own, one in zip(old, sizes, strict=True):
        if same(own, 1) is False and same(own, one) is False:
            raise Mismatch(f"size: expected {shape_text(self.sizes)} expanded, got {shape_text(size)}", "sizes")
    if self.strides is None:
        return replace(self, sizes=tuple(sizes))
    strides = [0] * missing + [
        0 if own == 1 and one != 1 else stride
        for own, one, stride in zip(self.sizes, sizes[missing:], self.strides, strict=True)
    ]
    return replace(self, sizes=tuple(sizes), strides=tuple(strides))


def unsqueezed(self: Tensor, dim: int) -> Tensor:
    """Return a view with a new dimension of size 1."""
    place = axis(dim, self.rank + 1)
    sizes = (*self.sizes[:place], 1, *self.sizes[place:])
    if self.strides is None:
        return replace(self, sizes=sizes)
    step = self.sizes[place] * self.strides[place] if place < self.rank else 1
    return replace(self, sizes=sizes, strides=(*self.strides[:place], step, *self.strides[place:]))


def without(self: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a view without some dimensions."""
    return in_order(self, [dim for dim in range(self.rank) if dim not in dims])


def squeezed(self: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a tensor without those of some dimensions that have one element."""
    for dim in dims:
        if same(self.sizes[dim], 1) is None and (decided(compare, self.sizes[dim], 1) or 0) <= 0:
            raise Unknown(f"symbols decide whether dimension {dim} is squeezed")
    return without(self, [dim for dim in dims if self.sizes[dim] == 1])


def scaled(self: Tensor, dtype: ScalarType, scaled: Callable[[Size], Size]) -> Tensor:
    """Return a view with elements of another width: the last dimension, strides and offset count those."""
    strides = None if self.strides is None else (*[scaled(stride) for stride in self.strides[:-1]], 1)
    offset = None if self.offset is None else scaled(self.offset)
    return replace(self, sizes=(*self.sizes[:-1], scaled(self.sizes[-1])), dtype=dtype, strides=strides, offset=offset)


def at_least_1d(self: Tensor) -> Tensor:
    """Return the tensor with one dimension or more."""
    return self if self.sizes else reshaped(self, (1,))
