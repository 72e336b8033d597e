"""Kernels: maximum and average pooling, adaptive pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, Final

import numpy as np

from pt2kit.operators.convolutions import per_dimension
from pt2kit.runtime.arrays import INT64, Array, ArraySpec, cast, check_indices, kind, last, merged, wide
from pt2kit.runtime.kernels.convolutions import Window, offsets, pad_around, window_of
from pt2kit.runtime.kernels.indexing import summed_at
from pt2kit.runtime.table import first


def _windows(
    self: Array,
    counts: Sequence[int],
    value: Callable[[Array], Any],
    kernel_size: Any,
    stride: Any = (),
    **options: Any,
) -> tuple[Array, Array, Window]:
    """Return an array, also padded as far as its windows reach, and the windows.

    Args:
        self, kernel_size, stride, options: arguments of the operator.
        counts: how many windows each of the last dimensions has.
        value: computes the number around the array.
    """
    x, steps = wide(self), stride if stride or stride == 0 else kernel_size
    window = window_of(len(counts), kernel_size, steps, **options)
    ends = [(count - 1) * s + span for count, s, span in zip(counts, window.stride, window.spans, strict=True)]
    after = [max(0, end - size - p) for p, end, size in zip(window.padding, ends, x.shape[-len(ends) :], strict=True)]
    return x, pad_around(x, window.padding, after, value(x)), window


def _lowest(x: Array) -> Any:
    return -np.inf if kind(x.dtype) == 2 else np.iinfo(x.dtype).min


def max_pool(n: int, self: Array, result: ArraySpec, **options: Any) -> tuple[Array, Array]:
    """Return the maximum of each window, and where it is in the plane."""
    sizes, counts = self.shape[-n:], result.sizes[-n:]
    x, padded, window = _windows(self, counts, _lowest, **options)
    plane = np.arange(math.prod(sizes)).reshape(sizes)
    places = _windows(plane, counts, lambda _: -1, **options)[1]
    most, where = np.full_like(x, _lowest(x), shape=result.sizes), np.full_like(x, -1, INT64, shape=result.sizes)
    for _, cut in offsets(counts, window):
        values = padded[last(cut)]
        # As in torch, the place of the last nan, or else of the first maximum, which is not one of the padding.
        is_better = (values > most) | np.isnan(values) | (where < 0)
        most, where = np.where(is_better, values, most), np.where(is_better, places[cut], where)
    return most, where


def avg_pool(
    n: int, self: Array, result: ArraySpec, count_include_pad: bool = True, divisor_override: Any = None, **options: Any
) -> Any:
    """Return the mean of each window."""
    counts = result.sizes[-n:]
    x, padded, window = _windows(self, counts, lambda _: 0, **options)
    total = np.zeros_like(padded, shape=(*padded.shape[:-n], *counts))
    for _, cut in offsets(counts, window):
        total += padded[last(cut)]
    divisor = divisor_override or _elements(x, counts, window, count_include_pad)
    if kind(x.dtype) == 2:
        return total / divisor
    return (total - np.fmod(total, divisor)) // divisor  # integers round to 0


def _elements(x: Array, counts: Sequence[int], window: Window, count_include_pad: bool) -> Array:
    """Return how many elements of an array each window has, or with those of its padding."""
    lengths = []
    for size, count, tap, s, p in zip(
        x.shape[-len(counts) :], counts, window.sizes, window.stride, window.padding, strict=True
    ):
        start = np.arange(count) * s - p
        end = np.minimum(start + tap, size + p)
        lengths.append(end - start if count_include_pad else np.minimum(end, size) - np.maximum(start, 0))
    return cast(reduce(np.multiply.outer, lengths), x.dtype)


# Adaptive pooling.


def _bounds(size: int, count: int) -> list[slice]:
    """Return the parts of a dimension."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _parts(bounds: Sequence[Sequence[slice]]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield each position of a result with the slices that it is computed from, out of a list for each dimension."""
    places = itertools.product(*(range(len(one)) for one in bounds))
    return zip(places, itertools.product(*bounds), strict=True)


def adaptive_avg_pool(n: int, self: Array, result: ArraySpec) -> Any:
    """Return the means of parts of the last dimensions, of each in turn."""
    x = wide(self)
    if n == 3 and x.dtype != self.dtype:
        return _stored_means(self, [_bounds(*one) for one in zip(x.shape[-n:], result.sizes[-n:], strict=True)])
    for axis, count in enumerate(result.sizes[-n:], x.ndim - n):
        bounds = [np.arange(part.start, part.stop) for part in _bounds(x.shape[axis], count)]
        means = [np.take(x, part, axis).mean(axis, keepdims=True) for part in bounds]
        x = np.concatenate(means, axis) if means else np.take(x, np.arange(0), axis)
    return x


def _stored_means(x: Array, bounds: Sequence[Sequence[slice]]) -> Array:
    """Return the means of the last dimensions between bounds; their sums are stored in the type of the elements."""
    lead, n = x.shape[: -len(bounds)], len(bounds)
    result = np.zeros_like(wide(x), shape=(*lead, *map(len, bounds)))
    for place, cut in _parts(bounds):
        part = x[last(cut)]
        total = np.cumsum(part.reshape(*lead, math.prod(part.shape[-n:])), -1)[..., -1]
        result[last(place)] = wide(total) / math.prod(part.shape[-n:])
    return result


def adaptive_max_pool(n: int, self: Array, result: ArraySpec) -> Any:
    """Return the maxima of parts of the last dimensions, and where they are in the plane."""
    return _maxima(wide(self), [_bounds(*one) for one in zip(self.shape[-n:], result.sizes[-n:], strict=True)])


def _maxima(x: Array, bounds: Sequence[Sequence[slice]]) -> tuple[Array, Array]:
    """Return the maxima of the last dimensions between bounds, a list for each, and where they are in the plane."""
    lead, sizes = x.shape[: -len(bounds)], x.shape[-len(bounds) :]
    shape = (*lead, *map(len, bounds))
    result, where = np.empty_like(x, shape=shape), np.empty_like(x, INT64, shape=shape)
    flat = np.arange(math.prod(sizes)).reshape(sizes)
    for at, cut in _parts(bounds):
        block = merged(x[last(cut)], len(lead))
        best = block.argmax(-1)[..., None]
        for found, values in ((result, block), (where, np.broadcast_to(flat[cut].reshape(-1), block.shape))):
            found[last(at)] = np.take_along_axis(values, best, -1)[..., 0]
    return result, where


def max_unpool(n: int, self: Array, indices: Array, output_size: Any, **options: Any) -> Any:
    """Return zeros with each element at its index of the plane."""
    size = math.prod(output_size)
    lead = self.shape[:-n]
    result = np.zeros_like(self, shape=(*lead, size))
    chosen = merged(check_indices(indices, size), len(lead))
    np.put_along_axis(result, chosen, merged(self, len(lead)), -1)
    return result.reshape(*lead, *output_size)


def fractional_max_pool(n: int, self: Array, kernel_size: Any, random_samples: Array, result: ArraySpec) -> Any:
    """Return the maxima of windows at random steps, and where they are in the plane."""
    x = wide(self if self.ndim == n + 2 else self[None])
    sizes, samples = x.shape[-n:], random_samples.reshape(*x.shape[:2], n)[..., ::-1] if n == 2 else random_samples
    taps: Any = per_dimension(kernel_size, n, "kernel_size", 1)
    shape = (*x.shape[:2], *result.sizes[-n:])
    most, where = np.empty(shape, x.dtype), np.empty(shape, INT64)
    for plane in np.ndindex(*x.shape[:2]):
        bounds = [_shifted(*one) for one in zip(samples[plane], sizes, shape[2:], taps, strict=True)]
        most[plane], where[plane] = _maxima(x[plane], bounds)
    return most, where


def _shifted(sample: Any, size: int, count: int, taps: int) -> list[slice]:
    """Return the windows of a dimension: at steps that a number from 0 to 1 shifts, the last one at the end."""
    step = sample.dtype.type((size - taps) / (count - 1)) if count > 1 else sample
    starts = [*(int((i + sample) * step) - int(sample * step) for i in range(count - 1)), size - taps]
    return [slice(start, start + taps) for start in starts]


# Gradients.


def max_pool_backward(n: int, grad_output: Array, self: Array, indices: Array, **options: Any) -> Any:
    return summed_at(grad_output, indices, self.shape, n)


def avg_pool_backward(
    n: int, grad_output: Array, self: Array, count_include_pad: bool, divisor_override: int | None, **options: Any
) -> Any:
    counts = grad_output.shape[-n:]
    x, padded, window = _windows(self, counts, lambda _: 0, **options)
    divisor = divisor_override or _elements(x, counts, window, count_include_pad)
    part = wide(grad_output) / divisor
    result = np.zeros_like(padded)
    for _, cut in offsets(counts, window):
        result[last(cut)] += part
    return result[last((slice(p, p + size) for p, size in zip(window.padding, x.shape[-n:], strict=True)))]


def adaptive_avg_pool_backward(n: int, grad_output: Array, self: Array) -> Any:
    grad = wide(grad_output)
    result = np.zeros_like(grad, shape=self.shape)
    for place, cut in _parts([_bounds(*one) for one in zip(self.shape[-n:], grad.shape[-n:], strict=True)]):
        area = math.prod(part.stop - part.start for part in cut)
        result[last(cut)] += (grad[last(place)] / area).reshape(*grad.shape[:-n], *(1,) * n)
    return result


KERNELS: Final = {
    **{f"aten.fractional_max_pool{n}d.default": partial(fractional_max_pool, n) for n in (2, 3)},
    **{f"aten.max_pool{n}d.default": first(partial(max_pool, n)) for n in (1, 2, 3)},
    **{f"aten.max_pool{n}d_with_indices.default": partial(max_pool, n) for n in (1, 2, 3)},
    **{f"aten.avg_pool{n}d.default": partial(avg_pool, n) for n in (1, 2, 3)},
    **{f"aten.adaptive_avg_pool{n}d.default": partial(adaptive_avg_pool, n) for n in (1, 2, 3)},
    **{f"aten.adaptive_max_pool{n}d.default": partial(adaptive_max_pool, n) for n in (1, 2, 3)},
    **{f"aten._adaptive_avg_pool{n}d.default": partial(adaptive_avg_pool, n) for n in (2, 3)},
    **{f"aten.max_unpool{n}d.default": partial(max_unpool, n) for n in (2, 3)},
    **{f"aten.max_pool{n}d_with_indices_backward.default": partial(max_pool_backward, n) for n in (2, 3)},
    **{f"aten.adaptive_max_pool{n}d_backward.default": partial(max_pool_backward, n) for n in (2, 3)},
    **{f"aten.avg_pool{n}d_backward.default": partial(avg_pool_backward, n) for n in (2, 3)},
    **{f"aten._adaptive_avg_pool{n}d_backward.default": partial(adaptive_avg_pool_backward, n) for n in (2, 3)},
}
