"""Reduction, scan and sort rows of the operator table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pt2kit.operators.facts import (
    Tensor,
    Unknown,
    agree,
    at_least,
    axes,
    axis,
    broadcast,
    expect,
    like,
    require,
    require_rank,
)
from pt2kit.operators.pointwise import like_if_contiguous
from pt2kit.operators.promotion import COMPLEX, FLOAT, category, float_type, known_dtype, real_of, result_type
from pt2kit.operators.vocabulary import replaced, typed
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, same, unknown


def is_empty(dim: Any) -> bool:
    """Return whether a list of dimensions is empty, for which kernels and fake tensors differ."""
    return isinstance(dim, (tuple, list)) and not dim


def count(dim: Any) -> int:
    """Return the number of dimensions of an argument that is one or a list."""
    return len(dim) if isinstance(dim, (tuple, list)) else 1


def reduced_dims(self: Tensor, dim: Any) -> tuple[int, ...]:
    """Return the dimensions that a call reduces: all of them if it names none."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return tuple(range(self.rank))
    return axes(dim, self.rank)


def reduced_sizes(self: Tensor, dims: Any, keepdim: bool = False) -> tuple[Size, ...]:
    """Return sizes with 1 for the reduced dimensions, or without them."""
    if keepdim:
        return tuple([1 if at in dims else size for at, size in enumerate(self.sizes)])
    return tuple([size for at, size in enumerate(self.sizes) if at not in dims])


def reduced(self: Tensor, dim: Any, keepdim: bool, dtype: ScalarType | None) -> Tensor:
    """Return the result of a reduction over some dimensions."""
    return like(self, reduced_sizes(self, reduced_dims(self, dim), keepdim), dtype)


def reduced_floats(self: Tensor, dim: Any, keepdim: bool, dtype: ScalarType | None) -> Tensor:
    """Return the result of a reduction of float or complex numbers."""
    dtype = dtype or known_dtype(self)
    require(category(dtype) >= FLOAT, "dtype", "dtype: expected a float or complex dtype", dtype)
    return reduced(self, dim, keepdim, dtype)


def norm(self: Tensor, dim: Any, keepdim: bool, dtype: ScalarType | None) -> Tensor:
    """Return norms: real numbers."""
    result = reduced_floats(self, dim, keepdim, dtype)
    return typed(result, real_of(known_dtype(result)))


def extreme(self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """Return extremes of real numbers, of which there is at least one."""
    require_real(self)
    for place in reduced_dims(self, dim):
        is_empty = bool(self.sizes) and same(self.sizes[place], 0)
        require(not is_empty, "sizes", f"self: expected elements along dimension {place}", self)
    return reduced(self, dim, keepdim, None)


def require_real(self: Tensor) -> None:
    """Refuse a complex tensor.

    Raises:
        Mismatch: it is complex, and has dimensions and elements.
    """
    if self.dtype is not None and self.sizes and 0 not in self.sizes:
        require(category(self.dtype) != COMPLEX, "dtype", "self: expected a real dtype", self.dtype)


def reduced_listed(inp: Tensor, dims: Sequence[int] | None, dtype: ScalarType | None) -> Tensor:
    """Return the result of a reduction of the dimensions that are listed; of none if the list is empty."""
    places = tuple(range(inp.rank)) if dims is None else axes(dims, inp.rank, "dims")
    return like(inp, reduced_sizes(inp, places), dtype)


def integrated(y: Tensor, x: Tensor | None, dim: int, is_cumulative: bool) -> Tensor:
    """Return the integral of samples along a dimension."""
    place = axis(dim, y.rank)
    size = y.sizes[place] if y.sizes else 0
    is_summed = at_least(size, 1) is True
    expect(not is_summed or known_dtype(y) is not ScalarType.BOOL, "y: expected numbers, got bool", "dtype")
    expect(y.rank > 0, "y: expected 1 dimension or more, got a scalar tensor", "sizes")
    if x is not None and x.rank != 1 and x.sizes != y.sizes:
        places = [(one.sizes, axis(dim, one.rank)) for one in (x, y) if one.rank]
        broadcast(*[replaced(sizes, at, sizes[at] - 1) for sizes, at in places])
        raise Unknown("tensors that broadcast")
    if x is not None and x.rank == 1:
        agree(x.sizes[0], size, "x: expected the size of y along dim")
    less = size - 1 if is_summed else 0 if size == 0 else unknown()
    result = like_if_contiguous(y, replaced(y.sizes, place, *((less,) if is_cumulative else ())))
    return typed(result, float_type(result_type(y, x)) if is_summed else None)


def diff(
    self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return differences of neighbors along a dimension, taken n times."""
    expect(n >= 0, f"n: expected 0 or more, got {n}")
    if n == 0:
        return like_if_contiguous(self)
    expect(self.rank >= 1, "self: expected 1 dimension or more, got a scalar tensor", "sizes")
    place = axis(dim, self.rank)
    size = self.sizes[place]
    for one in (prepend, append):
        if one is not None:
            require_rank(one, (self.rank,), "prepend, append")
            size = size + one.sizes[place]
    size = size - n if at_least(size - n, 0) else 0 if at_least(size - n, 1) is False else unknown()
    sizes, dtype = replaced(self.sizes, place, size), result_type(self, prepend, append)
    # Joined tensors are new ones: row-major, if not all of them are channels_last, which 4 or 5 dimensions may be.
    is_joined = (prepend is not None or append is not None) and self.rank < 4
    return like(self, sizes, dtype) if is_joined else like_if_contiguous(self, sizes, dtype)
