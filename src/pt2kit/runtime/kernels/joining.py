"""Kernels: joining, repeating, padding and rearranging tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.operators.facts import axis as axis_of
from pt2kit.runtime.arrays import (
    Array,
    asarray,
    axes_of,
    cast,
    joined_type,
    kind,
    reserve,
    wide,
)
from pt2kit.runtime.kernels.indexing import summed_at
from pt2kit.runtime.kernels.views import diagonal
from pt2kit.runtime.table import kernel, write


@kernel("aten.cat.default")
def cat(tensors: Sequence[Array], dim: int = 0) -> Any:
    dtype = joined_type(tensors)
    # As in torch, a tensor of sizes [0] joins with any other.
    parts = [cast(one, dtype) for one in tensors if one.shape != (0,)] or [cast(tensors[0], dtype)]
    axis = axis_of(dim, parts[0].ndim)
    return np.concatenate(parts, axis)


@kernel("aten.stack.default aten._stack.default")
def stack(tensors: Sequence[Array], dim: int = 0) -> Any:
    dtype = joined_type(tensors)
    return np.stack([cast(one, dtype) for one in tensors], axis_of(dim, tensors[0].ndim + 1))


@kernel("aten.block_diag.default")
def block_diag(tensors: Sequence[Array]) -> Any:
    blocks = [np.atleast_2d(one) for one in tensors]
    sizes = sum(one.shape[0] for one in blocks), sum(one.shape[1] for one in blocks)
    result, row, column = np.zeros_like(blocks[0], joined_type(blocks), shape=sizes), 0, 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


@kernel("aten.meshgrid.default .indexing")
def meshgrid(tensors: Sequence[Array], indexing: str = "ij") -> Any:
    return list(np.meshgrid(*(one.reshape(-1) for one in tensors), indexing=indexing, copy=False))


@kernel("aten.combinations.default")
def combinations(self: Array, r: int, with_replacement: bool) -> Any:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    n = self.size + r - 1 if with_replacement else self.size
    count = math.comb(n, r) if n >= r else 0
    reserve((2, count, r), np.int64)  # The places as well as the result.
    places = itertools.chain.from_iterable(choose(range(self.size), r))
    chosen = self[np.fromiter(places, np.int64, count * r).reshape(count, r)]
    return chosen if r else chosen.reshape(0)


# Repeating.


@kernel("aten.repeat_interleave.self_int .self_Tensor")
def repeat_interleave(self: Array, repeats: Any, dim: int | None = None) -> Any:
    array = self.reshape(-1) if dim is None else self
    axis = axis_of(dim or 0, array.ndim)
    counts = np.broadcast_to(asarray(repeats).reshape(-1), array.shape[axis])
    reserve((int(counts.sum()), array.size // max(1, len(counts))), array.dtype)
    return np.repeat(array, counts, axis)


# Order.


@kernel("aten.pixel_shuffle.default")
def pixel_shuffle(self: Array, upscale_factor: int) -> Any:
    *batch, channels, height, width = self.shape
    r, n = upscale_factor, len(batch)
    parts = self.reshape(*batch, channels // (r * r), r, r, height, width)
    return parts.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2).copy()


@kernel("aten.pixel_unshuffle.default")
def pixel_unshuffle(self: Array, downscale_factor: int) -> Any:
    *batch, channels, height, width = self.shape
    r, n = downscale_factor, len(batch)
    parts = self.reshape(*batch, channels, height // r, r, width // r, r)
    return parts.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3).copy()


@kernel("aten.channel_shuffle.default")
def channel_shuffle(self: Array, groups: int) -> Any:
    batch, channels, *rest = self.shape
    return self.reshape(batch, groups, channels // groups, *rest).swapaxes(1, 2).copy()


# Padding.


_MODES: Final = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""Mode of torch -> what NumPy calls it."""


def _pad_by(self: Array, padding: Sequence[int], mode: str, **options: Any) -> Array:
    """Return an array with its last dimensions padded; negative amounts cut elements off."""
    unpadded = self.ndim - len(padding) // 2
    before, after = ([0] * unpadded + [*padding[side::2]][::-1] for side in (0, 1))

    def grown(x: Array) -> Array:
        widths = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
        reserve([size + sum(width) for size, width in zip(x.shape, widths, strict=True)], x.dtype)
        return np.pad(x, widths, _MODES[mode], **options)

    def cut(x: Array) -> Array:
        starts = [max(0, -b) for b in before]
        sizes = reserve([size - s + min(0, a) for size, s, a in zip(x.shape, starts, after, strict=True)], x.dtype)
        return x[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]

    # Elements that are cut off do not come back at the other side, but are reflected.
    return grown(cut(self)) if mode in ("constant", "circular") else cut(grown(self))


@kernel("aten.constant_pad_nd.default")
def constant_pad_nd(self: Array, pad: Sequence[int], value: Any = 0) -> Any:
    return _pad_by(self, pad, "constant", constant_values=cast(value, self.dtype))


def _pad_back(grad_output: Array, self: Array, padding: Sequence[int], count: int, mode: str) -> Any:
    """Return the gradient of `_pad_by`: each element gets those of its copies."""
    sizes = self.shape[-count:]
    places = _pad_by(np.arange(math.prod(sizes)).reshape(sizes), padding, mode)
    return summed_at(grad_output, places, self.shape, count)


for _name, _mode in (("reflection_pad", "reflect"), ("replication_pad", "replicate")):
    for _count in (1, 2, 3):
        kernel(f"aten.{_name}{_count}d.default")(partial(_pad_by, mode=_mode))
        kernel(f"aten.{_name}{_count}d_backward.default")(partial(_pad_back, count=_count, mode=_mode))


@kernel("aten.pad.default")
def pad_(self: Array, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    return constant_pad_nd(self, pad, value or 0) if mode == "constant" else _pad_by(self, pad, mode)


@kernel("aten.pad_sequence.default")
def pad_sequence(
    sequences: Sequence[Array], batch_first: bool, padding_value: float, padding_side: str = "right"
) -> Any:
    longest = max(one.shape[0] for one in sequences)
    sizes = (len(sequences), longest, *sequences[0].shape[1:])
    result = np.full_like(sequences[0], cast(padding_value, sequences[0].dtype), shape=sizes)
    for row, one in zip(result, sequences, strict=True):
        row[slice(None, one.shape[0]) if padding_side == "right" else slice(longest - one.shape[0], None)] = one
    return result if batch_first else result.swapaxes(0, 1)


# Diagonals.


@kernel("aten.diag_embed.default")
def diag_embed(self: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    size = self.shape[-1] + abs(offset)
    result = np.zeros_like(self, shape=(*self.shape[:-1], size, size))
    result = np.moveaxis(result, (-2, -1), (axis_of(dim1, self.ndim + 1), axis_of(dim2, self.ndim + 1)))
    diagonal(result, offset, dim1, dim2)[...] = self
    return result


@kernel("aten.fill_diagonal_.default")
def fill_diagonal_(self: Array, fill_value: Any, wrap: bool) -> Any:
    is_filled = np.zeros(self.shape, bool)
    np.fill_diagonal(is_filled, True, wrap)
    return write(self, np.where(is_filled, cast(fill_value, self.dtype), self))


@kernel("aten.vander.default")
def vander(x: Array, N: int | None, increasing: bool) -> Any:
    x = np.atleast_1d(x.astype(np.int64) if kind(x.dtype) < 2 else x)
    count = x.shape[-1] if N is None else N
    powers = np.arange(count)
    reserve((*x.shape, count), np.float64)
    result = wide(x)[..., None] ** powers.astype(wide(x).dtype)
    return result if increasing else result[..., ::-1]


KERNELS: Final = {
    "aten.roll.default": lambda self, shifts, dims: np.roll(np.atleast_1d(self), shifts, dims or None),
    "aten.linalg_vander.default": lambda x, N: vander(x, N, increasing=True),
    "aten.flip.default": lambda self, dims: np.flip(self, axes_of(list(dims), self.ndim) if len(dims) else ()).copy(),
    "aten.repeat_interleave.Tensor": lambda repeats: repeat_interleave(np.arange(repeats.size), repeats),
    "aten.cartesian_prod.default": lambda tensors: stack([one.reshape(-1) for one in meshgrid(tensors)], 1),
    "aten.hstack.default": lambda tensors: cat([np.atleast_1d(one) for one in tensors], int(tensors[0].ndim > 1)),
    "aten.vstack.default": lambda tensors: cat([np.atleast_2d(one) for one in tensors], 0),
    "aten.dstack.default": lambda tensors: cat([np.atleast_3d(one) for one in tensors], 2),
    "aten.fliplr.default": lambda self: np.fliplr(self).copy(),
    "aten.flipud.default": lambda self: np.flipud(self).copy(),
    "aten.rot90.default": lambda self, k, dims: np.rot90(self, k, tuple(dims)).copy(),
    "aten._pad_circular.default": lambda self, pad: _pad_by(self, pad, "circular"),
    "aten.tril.default": lambda self, diagonal: np.tril(self, diagonal),
    "aten.triu.default": lambda self, diagonal: np.triu(self, diagonal),
    "aten.diag.default": lambda self, diagonal: np.diag(self, diagonal).copy(),
    "aten.diagflat.default": lambda self, offset: diag_embed(self.reshape(-1), offset),
    "aten.trace.default": lambda self: np.trace(wide(self)),
    "aten.column_stack.default": lambda tensors: cat(
        [one.reshape(-1, 1) if one.ndim < 2 else one for one in tensors], 1
    ),
    "aten.repeat.default aten.tile.default": lambda self, repeats: np.tile(self, tuple(repeats)),
}
