"""Kernels: Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.runtime.arrays import Array, axes_of, complex_type, floating, in_floats, reserve
from pt2kit.runtime.kernels.convolutions import Window, folded, windows
from pt2kit.runtime.kernels.joining import pad_
from pt2kit.runtime.table import kernel


def _of_one(function: Callable[..., Any], self: Array, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
    """Return a transform of one dimension."""
    return function(floating(self), n, dim, norm)


def _of_many(function: Callable[..., Any], self: Array, s: Any, dim: Any, norm: str | None) -> Any:
    """Return a transform of several dimensions: of all, or of as many last ones as sizes, if none are passed."""
    if s is not None:
        dim = range(-len(s), 0) if dim is None else dim
    axes = axes_of(dim, self.ndim) if dim is None or isinstance(dim, int) or len(dim) else ()
    sizes = s and [self.shape[axis] if one == -1 else one for one, axis in zip(s, axes, strict=True)]
    if sizes and s[-1] == -1 and function is np.fft.irfftn:  # stored as half of them
        sizes[-1] = 2 * (sizes[-1] - 1)
    return function(floating(self), sizes, axes, norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    kernel(f"aten.fft_{_name}.default")(partial(_of_one, getattr(np.fft, _name)))
for _name in ("fft", "ifft", "rfft", "irfft"):
    kernel(f"aten.fft_{_name}n.default aten.fft_{_name}2.default")(partial(_of_many, getattr(np.fft, f"{_name}n")))
# The three that all transforms become; a normalization of 0 is none, 1 the square root of the size, 2 the size.


def _norm(normalization: int, is_inverse: bool) -> Any:
    """Return what NumPy calls a normalization; inverse transforms are divided by the size unless it says otherwise."""
    return ("forward" if is_inverse else "backward", "ortho", "backward" if is_inverse else "forward")[normalization]


@kernel("aten._fft_c2c.default")
def fft_c2c(self: Array, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    function = np.fft.fftn if forward else np.fft.ifftn
    return function(self.astype(complex_type(self.dtype)), axes=dim, norm=_norm(normalization, not forward))


@kernel("aten._fft_r2c.default", adapt=in_floats)
def fft_r2c(self: Array, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    return (np.fft.rfftn if onesided else np.fft.fftn)(self, axes=dim, norm=_norm(normalization, False))


@kernel("aten._fft_c2r.default")
def fft_c2r(self: Array, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    sizes = [*(self.shape[axis] for axis in dim[:-1]), last_dim_size]
    return np.fft.irfftn(self, sizes, dim, _norm(normalization, True))


# Short-time transforms.


def _frames(
    n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, **options: Any
) -> tuple[int, Array]:
    """Return the distance of neighboring frames, and the window of each, with zeros on both sides; of ones for None.

    Args:
        n_fft, hop_length, win_length, window, options: arguments of the operator.
    """
    width = win_length or n_fft
    given = np.ones(width) if window is None else window
    shape = np.zeros_like(given, np.complex128 if given.dtype.kind == "c" else np.float64, shape=n_fft)
    start = (n_fft - width) // 2
    shape[start : start + width] = given
    return hop_length or n_fft // 4, shape


@kernel("aten.stft.center")
def stft(
    self: Array,
    n_fft: int,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    **options: Any,
) -> Any:
    x = self if self.ndim == 2 else self[None]
    if center:
        x = pad_(x, [n_fft // 2, n_fft // 2], pad_mode)
    hop, shape = _frames(n_fft, **options)
    count = 1 + (x.shape[-1] - n_fft) // hop
    reserve((len(x), n_fft, count), np.complex128)
    frames = windows(x, Window([n_fft], [hop], [0], [1])) * shape
    is_half = frames.dtype.kind != "c" if onesided is None else onesided
    found = np.fft.rfft(frames) if is_half else np.fft.fft(frames)
    found = np.swapaxes(found, 1, 2) / (n_fft**0.5 if normalized else 1)
    found = found if self.ndim == 2 else found[0]
    return found if return_complex or return_complex is None else np.stack([found.real, found.imag], -1)


@kernel("aten.istft.default")
def istft(
    self: Array,
    n_fft: int,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
    **options: Any,
) -> Any:
    x = (self if self.ndim == 3 else self[None]) * (n_fft**0.5 if normalized else 1)
    hop, shape = _frames(n_fft, **options)
    is_half = x.shape[1] != n_fft if onesided is None else onesided
    if not return_complex and not is_half:
        x = x[:, : n_fft // 2 + 1]
    shape = shape[:, None]
    frames = (np.fft.ifft(x, n_fft, 1) if return_complex else np.fft.irfft(x, n_fft, 1)) * shape
    total = n_fft + hop * (frames.shape[2] - 1)

    def added(columns: Array) -> Array:
        return folded(columns[:, None], [total], Window([n_fft], [hop], [0], [1]))[:, 0]

    result, weight = added(frames), added(np.broadcast_to(shape * shape, (1, *frames.shape[1:])))
    first = n_fft // 2 if center else 0
    end = first + length if length is not None else (total - n_fft // 2 if center else total)
    result = (result / np.where(weight == 0, 1, weight))[:, first:end]
    if length is not None and result.shape[1] < length:
        result = np.pad(result, ((0, 0), (0, length - result.shape[1])))
    return result if self.ndim == 3 else result[0]


KERNELS: Final = {
    "aten.stft.default": lambda self, n_fft, **options: stft(self, n_fft, center=False, **options),
    "aten.fft_fftshift.default": lambda self, dim: np.fft.fftshift(self, axes_of(dim, self.ndim)),
    "aten.fft_ifftshift.default": lambda self, dim: np.fft.ifftshift(self, axes_of(dim, self.ndim)),
    "aten.fft_fftfreq.default": np.fft.fftfreq,
    "aten.fft_rfftfreq.default": np.fft.rfftfreq,
}
