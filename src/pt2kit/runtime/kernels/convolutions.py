"""Kernels: convolutions of any number of dimensions, by copying windows into a matrix (im2col) and BLAS."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.operators.convolutions import per_dimension, window_count
from pt2kit.runtime.arrays import Array, DType, ForeignArray, cast, computed, last, require, reserve, strided, wide
from pt2kit.runtime.table import kernel


@dataclass(frozen=True, slots=True)
class Window:
    """Windows that slide over the last dimensions of an array, by one number per dimension.

    Args:
        sizes: elements of a window.
        stride: the distance of neighboring windows.
        padding: elements ahead of the array, and behind it.
        dilation: the distance of neighboring elements of a window.
    """

    sizes: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    @property
    def spans(self) -> list[int]:
        """Return how many elements of the array a window reaches over."""
        return [(size - 1) * gap + 1 for size, gap in zip(self.sizes, self.dilation, strict=True)]


def window_of(n: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, **options: Any) -> Window:
    """Return the windows of an operator over the last `n` dimensions.

    Args:
        n: how many dimensions.
        kernel_size, stride, padding, dilation: one number, or one per dimension.
        options: other arguments of the operator.

    Raises:
        Mismatch: other lengths, or numbers that are too small.
    """
    given = ("kernel size", kernel_size, 1), ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)
    numbers: list[Any] = [per_dimension(value, n, name, least) for name, value, least in given]
    return Window(*numbers)


def pad_around(x: Array, before: Sequence[int], after: Sequence[int], value: Any = 0) -> Array:
    """Return an array padded in its last dimensions."""
    if not any(before) and not any(after):
        return x
    widths = [(0, 0)] * (x.ndim - len(before)) + list(zip(before, after, strict=True))
    reserve([size + a + b for size, (a, b) in zip(x.shape, widths, strict=True)], x.dtype)
    return np.pad(x, widths, constant_values=value)


def windows(x: Array, window: Window) -> Array:
    """Return a view [..., *counts, *window.sizes] of the windows in the last dimensions of a padded array.

    Raises:
        OperatorError: a window that is larger than the array.
    """
    n, spans = len(window.sizes), window.spans
    counts = [(size - span) // s + 1 for size, span, s in zip(x.shape[-n:], spans, window.stride, strict=True)]
    if any(size < span for size, span in zip(x.shape[-n:], spans, strict=True)):
        raise OperatorError(f"expected windows of at most sizes {list(x.shape[-n:])}, got {spans}")
    lead, steps = x.shape[:-n], x.strides[-n:]
    strides = (
        *x.strides[:-n],
        *(step * s for step, s in zip(steps, window.stride, strict=True)),
        *(step * d for step, d in zip(steps, window.dilation, strict=True)),
    )
    return strided(x, (*lead, *counts, *window.sizes), strides)


def offsets(counts: Sequence[int], window: Window) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield each position in a window with the slices of the padded array that have the elements there."""
    for place in itertools.product(*map(range, window.sizes)):
        parts = zip(place, window.dilation, counts, window.stride, strict=True)
        yield place, tuple(slice(p * d, p * d + (count - 1) * s + 1, s) for p, d, count, s in parts)


def correlate(x: Array, weight: Array, window: Window, groups: int) -> Array:
    """Return the correlation of a padded batch [n, channels, ...] with a weight [outputs, channels / groups, ...]."""
    batch, channels = x.shape[:2]
    outputs, per_group = weight.shape[:2]
    n = len(window.sizes)
    if isinstance(x, ForeignArray):
        return x.correlate(weight, window.stride, [(0, 0)] * n, (1,) * n, window.dilation, groups)
    view = windows(x, window)
    counts = view.shape[2 : 2 + n]
    size, taps = math.prod(counts), math.prod(window.sizes)
    matrix = weight.reshape(groups, outputs // groups, per_group * taps)
    result = np.empty((batch, groups, outputs // groups, size), x.dtype)
    order = (0, *range(1 + n, 1 + 2 * n), *range(1, 1 + n))
    reserve((channels * taps, size), x.dtype)
    for i in range(batch):
        columns = view[i].transpose(order).reshape(groups, per_group * taps, size)
        np.matmul(matrix, columns, out=result[i])
    return result.reshape(batch, outputs, *counts)


def spread_back(
    x: Array, weight: Array, window: Window, output_padding: Sequence[int], groups: int, stored: DType | None = None
) -> Array:
    """Return the transposed convolution of a batch with a weight [channels, outputs / groups, ...].

    Args:
        stored: the type in which products and sums are stored; that of the batch by default.
    """
    batch, channels, *sizes = x.shape
    per_group = weight.shape[1]
    if isinstance(x, ForeignArray):
        flipped = np.flip(weight.reshape(groups, channels // groups, *weight.shape[1:]), range(3, weight.ndim + 1))
        ends = zip(window.spans, window.padding, output_padding, strict=True)
        rows = [(span - 1 - p, span - 1 - p + extra) for span, p, extra in ends]
        turned = flipped.swapaxes(1, 2).reshape(groups * per_group, channels // groups, *window.sizes)
        return x.correlate(turned, (1,) * len(rows), rows, window.stride, window.dilation, groups)
    size, taps = math.prod(sizes), math.prod(window.sizes)
    reserve((batch, groups, per_group * taps, size), x.dtype)
    matrix = weight.reshape(groups, channels // groups, per_group * taps).swapaxes(1, 2)
    columns = np.matmul(matrix, x.reshape(batch, groups, channels // groups, size))
    columns = cast(columns, stored or x.dtype).reshape(batch, groups * per_group, *window.sizes, *sizes)
    parts = zip(sizes, window.stride, window.spans, output_padding, strict=True)
    return folded(columns, [(size - 1) * s + span + extra for size, s, span, extra in parts], window)


def folded(columns: Array, whole: Sequence[int], window: Window) -> Array:
    """Return the sums of windows [batch, channels, *window.sizes, *counts] where they overlap, without padding.

    Args:
        columns: the elements of the windows.
        whole: the sizes with padding.
        window: the windows.
    """
    counts = columns.shape[2 + len(whole) :]
    result = np.zeros_like(columns, shape=reserve((*columns.shape[:2], *whole), columns.dtype))
    for place, where in offsets(counts, window):
        result[last(where)] += columns[last(place, 2)]
    return result[last((slice(p, size - p) for p, size in zip(window.padding, whole, strict=True)))]


@kernel("aten.convolution.default aten._convolution.default")
def convolution(
    input: Array, weight: Array, bias: Array | None, transposed: bool, output_padding: Any, groups: int, **options: Any
) -> Any:
    x, w = wide(input), wide(weight)
    n = w.ndim - 2
    require(n >= 1, f"expected a kernel with dimensions, got sizes {list(w.shape)}")
    x = x.reshape(-1, *x.shape[-1 - n :])
    window = window_of(n, w.shape[2:], **options)
    if transposed:
        extra: Any = per_dimension(output_padding, n, "output_padding", 0)
        # Torch stores the sums in float16 on CPUs without instructions for it; for bfloat16 it has kernels that do not.
        stored = input.dtype if input.dtype == np.float16 else None
        result = wide(spread_back(x, w, window, extra, groups, stored))
    else:
        result = correlate(pad_around(x, window.padding, window.padding), w, window, groups)
    return result if bias is None else result + wide(bias).reshape(-1, *(1,) * n)


conv = partial(convolution, transposed=False, output_padding=0)


@kernel("aten.conv1d.padding aten.conv2d.padding aten.conv3d.padding aten._convolution_mode.default")
def conv_mode(input: Array, weight: Array, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Any:
    n = weight.ndim - 2
    if padding == "valid":
        return conv(input, weight, bias, groups=groups, stride=stride, dilation=dilation)
    spans = window_of(n, weight.shape[2:], dilation=dilation).spans
    padded = pad_around(wide(input), [(span - 1) // 2 for span in spans], [span // 2 for span in spans])
    return conv(padded, weight, bias, groups=groups, stride=stride, dilation=dilation)


@kernel("aten.conv_tbc.default")
def conv_tbc(self: Array, weight: Array, bias: Array, pad: int) -> Any:
    found = conv(self.transpose(1, 2, 0), weight.transpose(2, 1, 0), bias, groups=1, padding=pad)
    return found.transpose(2, 0, 1)


def masked(found: Sequence[Any], output_mask: Sequence[bool]) -> tuple[Any, ...]:
    """Return the gradients that are wanted, and None for the others."""
    return tuple(one if wanted else None for one, wanted in zip(found, output_mask, strict=True))


@kernel("aten.convolution_backward.default", adapt=computed)
def convolution_backward(
    grad_output: Array,
    input: Array,
    weight: Array,
    transposed: bool,
    groups: int,
    output_mask: Sequence[bool],
    **options: Any,
) -> Any:
    window, batch = window_of(weight.ndim - 2, weight.shape[2:], **options), len(input)
    of_input = of_weight = None
    # The gradient of the input of a transposed convolution is a convolution: input and gradient exchange places.
    x, grad = (grad_output, input) if transposed else (input, grad_output)
    padded = pad_around(x, window.padding, window.padding)
    if output_mask[0] and transposed:
        of_input = correlate(padded, weight, window, groups)[last(map(slice, input.shape[2:]))]
    elif output_mask[0]:
        parts = zip(input.shape[2:], window.padding, window.spans, window.stride, strict=True)
        extra = [(size + 2 * p - span) % s for size, p, span, s in parts]
        of_input = spread_back(grad_output, weight, window, extra, groups)
    if output_mask[1]:
        # So is that of the weight: batch and channels exchange places, steps within windows and between them.
        split = padded.reshape(batch, groups, weight.shape[1], *padded.shape[2:])
        turned = split.swapaxes(0, 2).reshape(weight.shape[1], groups * batch, *padded.shape[2:])
        exchanged = Window(grad.shape[2:], window.dilation, window.padding, window.stride)
        found = correlate(turned, grad.swapaxes(0, 1), exchanged, groups)
        of_weight = found[last(map(slice, weight.shape[2:]))].swapaxes(0, 1)
    return masked((of_input, of_weight, grad_output.sum((0, *range(2, grad_output.ndim)))), output_mask)


# Windows as columns (`torch.nn.Unfold` and `Fold`).


@kernel("aten.im2col.default")
def im2col(self: Array, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x = self if self.ndim == 4 else self[None]
    window = window_of(2, kernel_size, stride, padding, dilation)
    view = windows(pad_around(x, window.padding, window.padding), window)
    return view.transpose(0, 1, 4, 5, 2, 3).copy()


@kernel("aten.col2im.default")
def col2im(self: Array, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x = wide(self if self.ndim == 3 else self[None])
    window = window_of(2, kernel_size, stride, padding, dilation)
    sizes: Any = per_dimension(output_size, 2, "output_size", 1)
    channels = x.shape[1] // math.prod(window.sizes)
    counts = map(window_count, sizes, window.sizes, window.stride, window.padding, window.dilation)
    whole = [size + 2 * p for size, p in zip(sizes, window.padding, strict=True)]
    return folded(x.reshape(x.shape[0], channels, *window.sizes, *counts), whole, window)


KERNELS: Final = {
    "aten.conv1d.default aten.conv2d.default aten.conv3d.default": conv,
    "aten.conv_transpose1d.default aten.conv_transpose2d.input aten.conv_transpose3d.input": partial(
        convolution, transposed=True
    ),
}
