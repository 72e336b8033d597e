"""Fourier transform rows of the operator table: torch.fft, stft and istft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pt2kit.messages import count_text
from pt2kit.operators.facts import (
    Tensor,
    Unknown,
    agree,
    at_least,
    axes,
    expect,
    new,
    require_rank,
    unlike_strides,
)
from pt2kit.operators.promotion import COMPLEX, category, complex_of, float_type, real_of
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size

COMPLEX_RESULT, HALVED, DOUBLED = range(3)
"""Result of the last transformed dimension: complex numbers; the first half of them; real numbers of a half."""


def dtype_of(tensor: Tensor, is_complex: bool) -> ScalarType | None:
    """Return the dtype of a transform; None if torch has none."""
    if tensor.dtype is None:
        return None
    dtype = float_type(tensor.dtype)
    try:
        return complex_of(dtype) if is_complex else real_of(dtype)
    except Unknown:
        return None


def transformed(self: Tensor, s: Sequence[Size | None] | None, dim: Any, norm: Any, kind: int) -> Tensor:
    """Return a transform along dimensions, of which the last one is complex, halved, or real.

    Args:
        self: what is transformed.
        s: the length along each dimension; None, or -1, for that of the tensor.
        dim: the dimensions; the last ones, or all, if they are not named.
        norm: the name of a normalization.
        kind: of the last dimension.

    Raises:
        Mismatch: a length below 1, another number of lengths, or a name that is no normalization.
    """
    if dim is None and s is not None:
        expect(len(s) <= self.rank, f"s: expected at most {self.rank} sizes, got {len(s)}")
        dim = tuple(range(self.rank - len(s), self.rank))
    dims = tuple(range(self.rank)) if dim is None else axes(dim, self.rank)
    if s is not None:
        expect(len(s) == len(dims), f"s: expected {count_text(len(dims), 'size')}, got {len(s)}")
    expect(self.rank > 0 or not dims, "self: expected dimensions, got a scalar tensor", "sizes")
    is_norm = norm in (None, "forward", "backward", "ortho")
    expect(is_norm, f"norm: expected 'forward', 'backward' or 'ortho', got {norm!r}")
    if self.dtype is not None and kind == HALVED:
        expect(category(self.dtype) != COMPLEX, f"self: expected real numbers, got {self.dtype.name}", "dtype")
    sizes = list(self.sizes)
    for position, at in enumerate(dims):
        length = None if s is None else s[position]
        if length is not None and length != -1:
            sizes[at] = length
        elif kind == DOUBLED and position == len(dims) - 1:
            sizes[at] = 2 * (sizes[at] - 1)
        expect(at_least(sizes[at], 1), f"expected 1 element or more along dimension {at}, got {sizes[at]}", "sizes")
    if kind == HALVED and dims:
        sizes[dims[-1]] = sizes[dims[-1]] // 2 + 1
    return unlike_strides(new(sizes, dtype_of(self, kind != DOUBLED), self.device))


def windows_transformed(
    self: Tensor, n_fft: int, hop: int, window: Tensor | None, center: bool, onesided: Any, return_complex: Any
) -> Tensor:
    """Return the transforms of overlapping windows of signals, which are padded if the windows are centered."""
    require_rank(self, (1, 2), "self")
    length = self.sizes[-1] + 2 * (n_fft // 2) if center else self.sizes[-1]
    expect(at_least(length - n_fft, 0), f"n_fft: expected at most {length}, got {n_fft}", "sizes")
    dtypes = [one.dtype for one in (self, window) if one is not None and one.dtype is not None]
    is_complex = any(category(dtype) == COMPLEX for dtype in dtypes)
    if self.dtype is None or (return_complex is None and not is_complex):
        raise Unknown("its dtype is not certain")
    bins = n_fft // 2 + 1 if (not is_complex if onesided is None else onesided) else n_fft
    sizes = (*self.sizes[:-1], bins, 1 + (length - n_fft) // hop)
    is_pair = return_complex is False
    return unlike_strides(new((*sizes, 2) if is_pair else sizes, dtype_of(self, not is_pair), self.device))


def step_of_windows(n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None) -> int:
    """Return the step of a window."""
    expect(n_fft > 0, f"n_fft: expected 1 or more, got {n_fft}")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    expect(hop > 0, f"hop_length: expected 1 or more, got {hop}")
    expect(0 < width <= n_fft, f"win_length: expected 1 to {n_fft}, got {width}")
    if window is not None:
        require_rank(window, (1,), "window")
        agree(window.sizes[0], width, "window: expected win_length elements")
    return hop
