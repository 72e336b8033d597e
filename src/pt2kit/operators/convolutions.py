"""Convolution, pooling, resampling and torchvision rows of the operator table: sliding windows over dimensions.

Source: `pooling_output_shape` in aten/src/ATen/native/Pool.h and `conv_output_size` in ConvUtils.h, torch 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pt2kit.messages import count_text
from pt2kit.operators.facts import (
    Sizes,
    Tensor,
    Unknown,
    agree,
    at_least,
    decided,
    expect,
    like,
    require,
    require_least,
    require_rank,
    require_sizes,
    row_major,
)
from pt2kit.operators.pointwise import channels_last, compare, is_channels_last, is_contiguous
from pt2kit.operators.views import unsqueezed, without
from pt2kit.operators.vocabulary import if_contiguous, one_dtype, with_places
from pt2kit.schema import Device, ScalarType
from pt2kit.symbols.polynomials import Size, hint, product, same, unknown


def per_dimension(value: Any, count: int, name: str, least: int) -> tuple[Size, ...]:
    """Return one number per dimension, of a number, or of a list of one or of all.

    Raises:
        Mismatch: another length, or a number below `least`.
    """
    numbers = (value,) if isinstance(value, int) else tuple(value)
    require(len(numbers) in (1, count), "value", f"{name}: expected {count_text(count, 'number')}", len(numbers))
    require_least(numbers, least, f"{name}: expected numbers of {least} or more", "value")
    return numbers if len(numbers) == count else numbers * count


def window_count(
    size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, after: Size | None = None
) -> Size:
    """Return how many places of a window fit along a dimension; padding on both sides, or `after` on the second."""
    whole = size + padding + (padding if after is None else after)
    return (whole - dilation * (kernel - 1) - 1) // stride + 1


def spread_size(size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, more: Size) -> Size:
    """Return the size that a transposed convolution makes of a dimension: that of which windows are as many."""
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1


def pooled_size(size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, ceil_mode: bool) -> Size:
    """Return the size of a pooled dimension; in `ceil_mode` windows may end, but not start behind the input."""
    if not ceil_mode:
        return window_count(size, kernel, stride, padding, dilation)
    count = -(-(size + 2 * padding - dilation * (kernel - 1) - 1) // stride) + 1
    sign = decided(compare, (count - 1) * stride, size + padding)  # as torch: by the example, with a guard
    return unknown(0) if sign is None else count - 1 if sign >= 0 else count


def require_result(sizes: Sizes, what: str) -> None:
    """Refuse windows that do not fit: a result without elements along one of its dimensions."""
    require_least(sizes, 1, f"{what}: expected a window that fits, for result sizes of 1 or more")


def formatted(sizes: Sizes, dtype: ScalarType | None, device: Device | None, *sources: Tensor) -> Tensor:
    """Return a new tensor in channels_last if torch suggests that format for one of `sources`, else row-major.

    Strides are unknown if a source has another rank or order in memory, in channels_last_3d, and in channels_last
    outside the CPU: kernels differ.
    """
    return Tensor(tuple(sizes), dtype, _strides(sizes, device, sources), device)


def _strides(sizes: Sizes, device: Device | None, sources: Sequence[Tensor]) -> tuple[Size, ...] | None:
    if any(one.strides is None for one in sources):
        return None
    if all(is_contiguous(one) for one in sources) and not any(_is_ambiguous(one) for one in sources):
        return row_major(sizes)
    is_last = decided(any, map(is_channels_last, sources))
    if is_last is None:
        return None
    if len(sizes) == 3 or any(one.rank != len(sizes) for one in sources):
        return row_major(sizes) if not is_last and all(map(is_contiguous, sources)) else None
    if not is_last:
        return row_major(sizes)
    return channels_last(sizes) if len(sizes) == 4 and device is not None and device.type == "cpu" else None


def _is_ambiguous(tensor: Tensor) -> bool:
    """Return whether contiguous strides may also be those of channels_last: one channel, or one place."""
    return tensor.rank in (4, 5) and any(not isinstance(size, int) or size <= 1 for size in tensor.sizes[1:])


def in_format_of(tensor: Tensor, sizes: Sizes, dtype: ScalarType | None = None) -> Tensor:
    """Return a new tensor in the memory format that torch suggests for another one."""
    return formatted(sizes, tensor.dtype if dtype is None else dtype, tensor.device, tensor)


def convolve(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: Size
) -> Tensor:
    """Return the result of a convolution; without a batch if the input has none.

    Raises:
        Mismatch: channels, groups, dtypes or windows do not fit.
    """
    count = weight.rank - 2
    steps, apart = per_dimension(stride, count, "stride", 1), per_dimension(dilation, count, "dilation", 1)
    _check(input, weight, bias, groups, weight.sizes[0])
    channels = weight.sizes[1] * groups
    agree(input.sizes[-count - 1], channels, "expected groups times weight channels as input channels")
    if channels == 0:
        raise Unknown("kernels give as many channels as weights have, or none")
    moved = input.sizes[-count:]
    if padding == "same":
        expect(all(step == 1 for step in steps), "padding 'same': expected strides of 1, got others")
    else:
        is_named = isinstance(padding, str)
        expect(not is_named or padding == "valid", f"padding: expected 'same' or 'valid', got {padding!r}")
        borders = per_dimension(0 if is_named else padding, count, "padding", 0)
        moved = tuple(map(window_count, moved, weight.sizes[2:], steps, borders, apart))
        require_result(moved, "convolution")
    return _result(input, weight, weight.sizes[0], moved)


def transpose(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Size,
    dilation: Any,
) -> Tensor:
    """Return the result of a transposed convolution.

    Raises:
        Mismatch: channels, groups, dtypes or windows do not fit.
    """
    count = weight.rank - 2
    steps, apart = per_dimension(stride, count, "stride", 1), per_dimension(dilation, count, "dilation", 1)
    borders = per_dimension(padding, count, "padding", 0)
    more = per_dimension(output_padding, count, "output_padding", 0)
    channels = weight.sizes[1] * groups
    _check(input, weight, bias, groups, channels)
    agree(input.sizes[-count - 1], weight.sizes[0], "expected as many input channels as the weight has")
    moved = tuple(map(spread_size, input.sizes[-count:], weight.sizes[2:], steps, borders, apart, more))
    require_least(moved, 0, "expected a result with sizes of 0 or more")
    return _result(input, weight, channels, moved)


def _check(input: Tensor, weight: Tensor, bias: Tensor | None, groups: Size, channels: Size) -> None:
    require_rank(input, (weight.rank - 1, weight.rank), "input")
    expect(at_least(groups, 1), f"groups: expected 1 or more, got {groups}")
    expect(same(weight.sizes[0] % groups, 0), f"groups: expected a divisor of {weight.sizes[0]}, got {groups}")
    if bias is not None:
        require_rank(bias, (1,), "bias")
        agree(bias.sizes[0], channels, "expected a bias for each output channel")


def _result(input: Tensor, weight: Tensor, channels: Size, moved: Sizes) -> Tensor:
    dtype = one_dtype(input, weight)
    sizes = (*input.sizes[: input.rank - weight.rank + 1], channels, *moved)
    return formatted(sizes, dtype, input.device, input, weight)


def columns(spatial: Sizes, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Size, Size]:
    """Return the elements of a window, and how many windows there are."""
    kernel = per_dimension(kernel_size, 2, "kernel_size", 1)
    steps, apart = per_dimension(stride, 2, "stride", 1), per_dimension(dilation, 2, "dilation", 1)
    counts = tuple(map(window_count, spatial, kernel, steps, per_dimension(padding, 2, "padding", 0), apart))
    require_result(counts, "windows")
    return product(kernel), product(counts)


def convolution_flops(input: Tensor, weight: Tensor, result: Tensor, is_transposed: bool) -> Size:
    """Return two operations for each element of the weight and each place of the window."""
    count = weight.rank - 2
    batch = input.sizes[0] if input.rank == weight.rank else 1
    return 2 * batch * product((input if is_transposed else result).sizes[-count:]) * weight.numel


def pooled(
    self: Tensor, count: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Tensor:
    """Return the result of a pool.

    Raises:
        Mismatch: the window does not fit, or its padding exceeds half of it.
    """
    require_rank(self, (count + 1, count + 2), "self")
    kernel = per_dimension(kernel_size, count, "kernel_size", 1)
    steps = per_dimension(stride or kernel_size, count, "stride", 1)
    borders, apart = per_dimension(padding, count, "padding", 0), per_dimension(dilation, count, "dilation", 1)
    for window, border, gap in zip(kernel, borders, apart, strict=True):
        most = ((window - 1) * gap + 1) // 2
        if isinstance(border, int) and isinstance(most, int):
            expect(border <= most, f"padding: expected at most half of the window, {most}, got {border}")
    moved = [
        pooled_size(*each, ceil_mode) for each in zip(self.sizes[-count:], kernel, steps, borders, apart, strict=True)
    ]
    require_result(moved, "pool")
    return _in_memory_format(self, (*self.sizes[:-count], *moved), count)


def _in_memory_format(self: Tensor, sizes: Sizes, count: int) -> Tensor:
    """Return a result in the memory format of its input; without a batch, row-major if that is contiguous."""
    if count == 1 and self.rank == 3:  # torch computes it over two dimensions
        return without(in_format_of(unsqueezed(self, -2), (*sizes[:-1], 1, sizes[-1])), [2])
    if self.rank == count + 2:
        return in_format_of(self, sizes)
    return if_contiguous(like(self, sizes), self) if count > 1 else like(self, sizes)


def adaptive(self: Tensor, output_size: Any, count: int) -> Tensor:
    """Return the result of a pool that has a size of its own."""
    require_rank(self, (count + 1, count + 2), "self")
    is_one_each = isinstance(output_size, int) or len(output_size) == count
    expect(is_one_each, f"output_size: expected {count_text(count, 'size')}, got another number of them")
    return _in_memory_format(self, (*self.sizes[:-count], *per_dimension(output_size, count, "output_size", 0)), count)


def fractional(self: Tensor, kernel_size: Any, output_size: Any, count: int) -> tuple[Tensor, Tensor]:
    """Return the result of a pool of random windows, and its places."""
    kernel = per_dimension(kernel_size, count, "kernel_size", 1)
    sizes = adaptive(self, output_size, count).sizes
    for size, window, whole in zip(sizes[-count:], kernel, self.sizes[-count:], strict=True):
        if isinstance(whole, int) and isinstance(size, int) and isinstance(window, int):
            expect(size + window - 1 <= whole, f"expected a window that fits {whole} elements", "sizes")
    return with_places(like(self, sizes))


def _scaled(size: Size, factor: Any) -> Size:
    """Return a size times a factor, rounded down."""
    if not isinstance(factor, (int, float)):
        return unknown()
    if float(factor).is_integer():
        return size * int(factor)
    if isinstance(size, int):
        return math.floor(size * factor)
    example = hint(size)
    return unknown(0, math.inf, None if example is None else math.floor(example * factor))


def scaled_sizes(data: Tensor, output_size: Sizes | None, factors: Sequence[Any] | None) -> Sizes:
    """Return the sizes of a resampled tensor: those given, or the product with factors."""
    expect((output_size is None) != (factors is None), "expected either output_size or scale_factors")
    if factors is None:
        return output_size or ()
    expect(len(factors) == data.rank - 2, f"expected {data.rank - 2} scale_factors, got {len(factors)}")
    return [_scaled(*each) for each in zip(data.sizes[2:], factors, strict=True)]


def upsampled(data: Tensor, output_size: Sizes) -> Tensor:
    """Return a resampled tensor, which has elements."""
    expected = f"output_size: expected {data.rank - 2} sizes"
    require(len(output_size) == data.rank - 2, "value", expected, output_size)
    for sizes in (data.sizes[2:], output_size):
        require_least(sizes, 1, "expected sizes of 1 or more")
    return in_format_of(data, (*data.sizes[:2], *output_size))


def upsampled_gradient(grad_output: Tensor, output_size: Sizes, input_size: Sizes) -> Tensor:
    """Return the gradient of a tensor that was resampled.

    Raises:
        Mismatch: the gradient has not the sizes of the result.
    """
    expect(len(input_size) == grad_output.rank, f"input_size: expected {grad_output.rank} sizes", "sizes")
    require_sizes(grad_output, upsampled(like(grad_output, input_size), output_size).sizes, "grad_output")
    return in_format_of(grad_output, input_size)


def regions(data: Tensor, rois: Tensor, parts: Size, height: Size, width: Size) -> Tensor:
    """Return one result for each region, of a part of the channels.

    Rows of `rois` are the number of an image and a box.
    """
    require_rank(data, (4,), "input")
    require_rank(rois, (2,), "rois")
    agree(rois.sizes[1], 5, "rois: expected 5 numbers for each region")
    one_dtype(data, rois)
    return like(data, (rois.sizes[0], data.sizes[1] // parts, height, width))
