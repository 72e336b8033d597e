"""Rearranging rows of the operator table: padded, flipped, joined and repeated tensors, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb as comb

from msgspec.structs import replace

from pt2kit.operators.facts import (
    Sizes,
    Tensor,
    agree,
    at_least,
    decided,
    expect,
    require,
    require_least,
    require_rank,
    require_sizes,
    row_major,
    shape_text,
)
from pt2kit.operators.pointwise import (
    channels_last,
    is_channels_last,
    like_if_contiguous,
)
from pt2kit.operators.views import at_least_1d, expand, unsqueezed
from pt2kit.schema import MemoryFormat
from pt2kit.symbols.polynomials import Size, same, text


def padded_sizes(self: Tensor, pad: Sizes, name: str = "pad") -> tuple[Size, ...]:
    """Return sizes with two numbers added to each of the last dimensions, which `pad` lists from the last one.

    Raises:
        Mismatch: an odd number of numbers, more than the dimensions have, or a negative size.
    """
    expect(len(pad) % 2 == 0, f"{name}: expected an even number of sizes, got {shape_text(pad)}", "sizes")
    require(len(pad) <= 2 * self.rank, "sizes", f"{name}: expected at most {2 * self.rank} sizes", pad)
    sizes = list(self.sizes)
    for at in range(len(pad) // 2):
        size = sizes[-1 - at] + pad[2 * at] + pad[2 * at + 1]
        got = f"{text(size)} of dimension {self.rank - 1 - at}"
        expect(at_least(size, 0), f"{name}: expected sizes of 0 or more, got {got}", "sizes")
        sizes[-1 - at] = size
    return tuple(sizes)


def padded(self: Tensor, padding: Sizes, mode: str, dims: int | None = None) -> Tensor:
    """Return the tensor with borders of its own elements: 1 to 3 dimensions, with or without a batch."""
    lengths = (2, 4, 6) if dims is None else (2 * dims,)
    expected = " or ".join(map(str, lengths))
    expect(len(padding) in lengths, f"padding: expected {expected} sizes, got {shape_text(padding)}", "sizes")
    count = len(padding) // 2
    require_rank(self, (count + 1, count + 2), "self")
    sizes = padded_sizes(self, padding, "padding")
    for at in range(count):
        size = self.sizes[-1 - at]
        for one in padding[2 * at : 2 * at + 2]:
            most = {"reflect": size - 1, "circular": size}.get(mode)
            fits = most is None or at_least(most - one, 0)
            expect(fits, f"padding: expected at most {text(most or 0)} for {mode}, got {text(one)}", "sizes")
    return like_if_contiguous(self, sizes)


def unpadded(grad_output: Tensor, self: Tensor, padding: Sizes, mode: str, dims: int) -> Tensor:
    """Return the gradient of a tensor with borders of its own elements."""
    require_sizes(grad_output, padded(self, padding, mode, dims).sizes, "grad_output")
    return like_if_contiguous(self)


def grown(self: Tensor, size: Sizes, memory_format: MemoryFormat | None = None) -> Tensor:
    """Return the tensor with other sizes: unchanged if they are the same, else row-major."""
    require_least(size, 0, "size: expected sizes of 0 or more")
    if memory_format not in (None, MemoryFormat.ContiguousFormat):
        return replace(self, sizes=tuple(size), strides=None)
    is_same = len(size) == self.rank and [same(*pair) for pair in zip(size, self.sizes, strict=True)]
    strides = None if is_same and None in is_same else self.strides if is_same and all(is_same) else row_major(size)
    return replace(self, sizes=tuple(size), strides=strides if memory_format is None else row_major(size), offset=None)


def format_strides(tensors: Sequence[Tensor], sizes: Sizes) -> tuple[Size, ...] | None:
    """Return the strides of a new tensor in the memory format of others: channels_last if all have it.

    None if the format of one of them is not known.
    """
    if len(sizes) not in (4, 5):
        return row_major(sizes)
    if any(one.strides is None for one in tensors):
        return None
    is_last = decided(all, map(is_channels_last, tensors))
    return None if is_last is None else channels_last(sizes) if is_last else row_major(sizes)


def agreed(tensors: Sequence[Tensor], name: str, but: int | None = None) -> list[Size]:
    """Return the sizes of tensors that have the same ones, but for one dimension.

    Raises:
        Mismatch: they have others.
    """
    sizes = list(tensors[0].sizes)
    for one in tensors[1:]:
        require_rank(one, (len(sizes),), name)
        for at, size in enumerate(one.sizes):
            if at != but:
                sizes[at] = agree(sizes[at], size, f"{name}: expected one size of dimension {at}")
    return sizes


def grids(tensors: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """Return one grid of coordinates for each tensor."""
    expect(bool(tensors), "tensors: expected at least one, got none")
    expect(indexing in ("ij", "xy"), f'indexing: expected "ij" or "xy", got "{indexing}"')
    dtypes = {one.dtype for one in tensors if one.dtype is not None}
    expect(len(dtypes) <= 1, "tensors: expected one dtype, got several", "dtype")
    for one in tensors:
        require_rank(one, (0, 1), "tensors")
    is_swapped = indexing == "xy" and len(tensors) >= 2
    ordered = [tensors[1], tensors[0], *tensors[2:]] if is_swapped else list(tensors)
    sizes = [one.sizes[0] if one.sizes else 1 for one in ordered]
    grids = []
    for place, one in enumerate(ordered):
        grid = at_least_1d(one)
        for at in range(len(sizes)):
            grid = grid if at == place else unsqueezed(grid, at)
        grids.append(expand(grid, sizes))
    return [grids[1], grids[0], *grids[2:]] if is_swapped else grids
