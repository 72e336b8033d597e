"""Kernels: resizing of images (nearest, linear, cubic, with and without antialiasing), grid sampling."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, ArraySpec, Keep, asarray, computed, reserve, rounding, wide
from pt2kit.runtime.kernels.convolutions import pad_around
from pt2kit.runtime.table import kernel


def _step(size: int, count: int, factor: float | None, align_corners: bool) -> float:
    """Return how far apart the sources of neighboring elements are."""
    if align_corners:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return 1 / factor if factor is not None and factor > 0 else size / count


Taps = Callable[[int, int, float, bool], "list[tuple[Array, Any]]"]
"""Returns the elements of a dimension that one of another size is summed from, and their weights, or None for one
element: from both sizes, the step, and `align_corners`."""


def _nearest(offset: float, size: int, count: int, step: float, _: bool) -> list[tuple[Array, Any]]:
    """Return taps of the nearest elements, from that many steps after the beginning of each."""
    place = np.arange(count, dtype=np.float32) + np.float32(offset)
    return [(np.minimum(np.floor(place * np.float32(step)).astype(np.int64), size - 1), None)]


def _along(x: Array, axis: int, taps: Sequence[tuple[Array, Any]]) -> Array:
    """Return a weighted sum of elements of one dimension."""
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    total: Any = 0
    for source, weight in taps:
        if weight is None:
            return np.take(x, source, axis)
        if x.dtype.kind in "iu":
            message = "expected floating-point numbers, as torch rounds integers by tables of its own"
            raise OperatorError(f"{message}, got {x.dtype}")
        total = total + np.take(x, source, axis) * weight.astype(x.dtype).reshape(shape)
    return asarray(total)


def _interpolated(
    weight_of: Callable[[Array], Any], reach: int, size: int, count: int, step: float, align_corners: bool
) -> list[tuple[Array, Any]]:
    """Return taps of the elements around each place, whose weights depend on their distance; the last ones repeat."""
    place = np.arange(count)
    center = place * step if align_corners else (place + 0.5) * step - 0.5
    if reach == 1:
        center = np.maximum(center, 0)
    low = np.floor(center).astype(np.int64)
    sources = [low + shift for shift in range(1 - reach, reach + 1)]
    return [(np.clip(source, 0, size - 1), weight_of(center - source)) for source in sources]


def _triangle(distance: Array) -> Any:
    return np.maximum(0, 1 - np.abs(distance))


def _cubic(distance: Array, a: float = -0.75) -> Any:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _resize(
    taps: Taps,
    n: int,
    self: Array,
    result: ArraySpec,
    align_corners: bool = False,
    scale_factors: Any = None,
    scales: Any = None,
    scales_d: Any = None,
    scales_h: Any = None,
    scales_w: Any = None,
    are_stored: bool = False,
    whole: Sequence[int] = (),
) -> Any:
    """Return an array with its last dimensions resized, one after the other.

    Args:
        taps, n: how each of the last `n` dimensions is summed.
        self, result, align_corners, scale_factors, scales, scales_d, scales_h, scales_w: arguments of the operator.
        are_stored: whether weights are rounded to the type of the elements, the first of two to the rest of the second.
        whole: multiples of a size to which torch's kernel resizes without regard to the factor: 1 if it copies then.
    """
    factors = scale_factors or ([scales] if n == 1 else [scales_d, scales_h, scales_w][3 - n :])
    x, keep = wide(self), rounding(self.dtype)
    for axis, (count, factor) in enumerate(zip(result.sizes[2:], factors, strict=True), 2):
        is_whole = count in [x.shape[axis] * times for times in whole]
        step = _step(x.shape[axis], count, None if is_whole else factor, align_corners)
        found = taps(x.shape[axis], count, step, align_corners)
        if are_stored and x.dtype != self.dtype:
            *others, (source, weight) = [(source, keep(weight)) for source, weight in found]
            found = [
                *((one, keep(1 - weight) if len(found) == 2 else other) for one, other in others),
                (source, weight),
            ]
        x = _along(x, axis, found)
    return x


def _antialiased(
    filter_of: Callable[[Array], Any], support: float, size: int, count: int, step: float, align_corners: bool
) -> list[tuple[Array, Any]]:
    """Return taps whose window grows with the step, so that no element is left out."""
    scale = max(step, 1.0)
    reach = support * scale
    center = step * (np.arange(count) + 0.5)
    first = np.maximum((center - reach + 0.5).astype(np.int64), 0)
    last = np.minimum((center + reach + 0.5).astype(np.int64), size)
    width = int((last - first).max()) if count else 0
    reserve((count, width), np.float64)
    sources = first[:, None] + np.arange(width)
    weights = filter_of((sources - center[:, None] + 0.5) / scale) * (sources < last[:, None])
    weights = weights / weights.sum(1, keepdims=True)
    inside = np.minimum(sources, size - 1)
    return [(inside[:, k], weights[:, k]) for k in range(width)]


# Sampling at given places.


def _placed(keep: Keep, grid: Array, size: int, align_corners: bool) -> Array:
    scaled = keep(keep(grid + 1) * ((size - 1) / 2 if align_corners else size / 2))
    return scaled if align_corners else keep(scaled - 0.5)


def _reflected(place: Array, size: int, align_corners: bool) -> Array:
    low, high = (0, 2 * (size - 1)) if align_corners else (-1, 2 * size - 1)
    if low == high:
        return np.zeros_like(place)
    start, span = low / 2, (high - low) / 2
    distance = np.abs(place - start)
    turns = np.floor(distance / span)
    rest = distance - turns * span
    return np.where(turns % 2 == 0, rest + start, span - rest + start)


def _bounded(place: Array, size: int, padding_mode: int, align_corners: bool) -> Array:
    if padding_mode == 2:
        place = _reflected(place, size, align_corners)
    if padding_mode in (1, 2):
        place = np.clip(place, 0, size - 1)
    # Coordinates without an index in torch: far outside, and nan.
    return np.where(np.isfinite(place), np.clip(place, -(2.0**30), 2.0**30), -1)


def _fetch(padded: Array, places: Sequence[Array]) -> Array:
    """Return elements [n, channels, ...] at whole places of what is padded with zeros; these outside."""
    batch = np.arange(len(padded)).reshape(-1, *(1,) * (places[0].ndim - 1))
    inside = [np.clip(place, -1, size - 2) for place, size in zip(places, padded.shape[2:], strict=True)]
    index = (batch, *(place.astype(np.int64) + 1 for place in inside))
    return np.moveaxis(np.moveaxis(padded, 1, -1)[index], -1, 1)


@kernel("aten.grid_sampler.default aten.grid_sampler_2d.default aten.grid_sampler_3d.default")
def grid_sampler(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Return elements of a batch at the places of a grid [n, ..., dimensions], from -1 to 1.

    Each step is rounded as in torch, but for cubic sampling.
    """
    x, grid, mode = wide(input), wide(grid), interpolation_mode
    keep, n, sizes = rounding(x.dtype if mode == 2 else input.dtype), x.ndim - 2, x.shape[2:]
    raw = [_placed(keep, grid[..., n - 1 - axis], size, align_corners) for axis, size in enumerate(sizes)]

    def bounded(places: Sequence[Array]) -> list[Array]:
        return [_bounded(place, size, padding_mode, align_corners) for place, size in zip(places, sizes, strict=True)]

    padded = pad_around(x, (1,) * n, (1,) * n)
    if mode == 1:
        return _fetch(padded, [np.round(place) for place in bounded(raw)])
    # Cubic sampling bounds each place that it reads, linear sampling the place between them.
    places = raw if mode == 2 else bounded(raw)
    lows = [np.floor(np.where(np.isfinite(place), place, -1)) for place in places]
    total: Any = 0
    for steps in itertools.product((-1, 0, 1, 2) if mode == 2 else (0, 1), repeat=n):
        weight: Any = 1
        for step, place, low in reversed([*zip(steps, places, lows, strict=True)]):
            distance = keep(place - low) - step
            weight = keep(weight * (_cubic(distance, -0.75) if mode == 2 else keep(1 - np.abs(distance))))
        read = [low + step for low, step in zip(lows, steps, strict=True)]
        found = _fetch(padded, bounded(read) if mode == 2 else read)
        total = keep(total + keep(found * weight[:, None].astype(x.dtype)))
    return total


@kernel("aten.affine_grid_generator.default", adapt=computed)
def affine_grid_generator(theta: Array, size: Sequence[int], align_corners: bool) -> Any:
    sizes, lines = size[2:], []
    for count in sizes:
        line = np.linspace(-1, 1, count, dtype=theta.dtype) if count > 1 else np.zeros(1, theta.dtype)
        lines.append(line if align_corners else line * (count - 1) / count)
    planes = np.meshgrid(*lines, indexing="ij")
    places = np.stack([*planes[::-1], np.ones(sizes, theta.dtype)], -1).reshape(-1, len(sizes) + 1)
    return (places @ theta.swapaxes(1, 2)).reshape(size[0], *sizes, len(sizes))


KERNELS: Final = {
    **{
        f"aten.upsample_nearest{n}d.default .vec": partial(_resize, partial(_nearest, 0.0), n, whole=whole)
        for n, whole in ((1, ()), (2, (1, 2)), (3, ()))
    },
    **{
        f"aten._upsample_nearest_exact{n}d.default .vec": partial(_resize, partial(_nearest, 0.5), n) for n in (1, 2, 3)
    },
    **{
        f"aten.upsample_{name}.default .vec": partial(
            _resize, partial(_interpolated, _triangle, 1), n, are_stored=n != 2, whole=(1,)
        )
        for n, name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d"))
    },
    "aten.upsample_bicubic2d.default .vec": partial(_resize, partial(_interpolated, _cubic, 2), 2, are_stored=True),
    "aten._upsample_bilinear2d_aa.default .vec": partial(_resize, partial(_antialiased, _triangle, 1.0), 2, whole=(1,)),
    "aten._upsample_bicubic2d_aa.default .vec": partial(
        _resize, partial(_antialiased, partial(_cubic, a=-0.5), 2.0), 2, whole=(1,)
    ),
}
