"""Kernels: backward operators, which graphs with a loss contain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, axis_of, check_indices, computed, last, require, reserve, wide
from pt2kit.runtime.kernels.convolutions import offsets, pad_around, spread, spread_back
from pt2kit.runtime.kernels.pooling import parts
from pt2kit.runtime.kernels.scattering import scatter_add
from pt2kit.runtime.table import kernel


@kernel("aten._softmax_backward_data.default", adapt=computed)
def softmax_backward_data(grad_output: Array, output: Array, dim: int) -> Any:
    product = grad_output * output
    return product - output * product.sum(axis_of(dim, output.ndim) if output.ndim else None, keepdims=True)


@kernel("aten._log_softmax_backward_data.default", adapt=computed)
def log_softmax_backward_data(grad_output: Array, output: Array, dim: int) -> Any:
    total = grad_output.sum(axis_of(dim, output.ndim) if output.ndim else None, keepdims=True)
    return grad_output - np.exp(output) * total


def _masked(found: Sequence[Any], output_mask: Sequence[bool]) -> tuple[Any, ...]:
    """Return the gradients that are wanted, and None for the others."""
    return tuple(one if wanted else None for one, wanted in zip(found, output_mask, strict=True))


@kernel("aten.native_layer_norm_backward.default", adapt=computed)
def native_layer_norm_backward(
    grad_out: Array, input: Array, normalized_shape: Sequence[int], mean: Array, rstd: Array, weight: Any, bias: Any,
    output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    first = input.ndim - len(normalized_shape)
    outer, axes = tuple(range(first)), tuple(range(first, input.ndim))
    normal = (input - mean) * rstd
    inner = grad_out if weight is None else grad_out * weight
    centered = inner - inner.mean(axes, keepdims=True) - normal * (inner * normal).mean(axes, keepdims=True)
    return _masked((centered * rstd, (grad_out * normal).sum(outer), grad_out.sum(outer)), output_mask)


# Convolutions and pooling.


@kernel("aten.convolution_backward.default", adapt=computed)
def convolution_backward(
    grad_output: Array, input: Array, weight: Array, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    n = weight.ndim - 2
    steps, around, gaps = spread(stride, n), spread(padding, n), spread(dilation, n)
    require(not transposed, "expected a convolution, got the gradient of a transposed one")
    of_input = of_weight = None
    if output_mask[0]:
        sizes = zip(input.shape[2:], around, weight.shape[2:], gaps, steps, strict=True)
        extra = [(size + 2 * p - (k - 1) * d - 1) % s for size, p, k, d, s in sizes]
        of_input = spread_back(grad_output, weight, steps, around, gaps, extra, groups)
    if output_mask[1]:
        of_weight = _weight_gradient(grad_output, pad_around(input, around, around), weight, steps, gaps, groups)
    return _masked((of_input, of_weight, grad_output.sum((0, *range(2, grad_output.ndim)))), output_mask)


def _weight_gradient(grad: Array, x: Array, w: Array, steps: Any, gaps: Any, groups: int) -> Array:
    batch, outputs = grad.shape[:2]
    per_group = w.shape[1]
    result = np.zeros_like(grad, shape=w.shape)
    rows = grad.reshape(batch, groups, outputs // groups, -1)
    for place, where in offsets(grad.shape[2:], w.shape[2:], steps, gaps):
        columns = x[last(where)].reshape(batch, groups, per_group, -1)
        part = np.matmul(rows, columns.swapaxes(-1, -2)).sum(0)
        result[last(place, 2)] = part.reshape(outputs, per_group)
    return result


@kernel("aten.max_pool2d_with_indices_backward.default")
def max_pool2d_backward(
    grad_output: Array, self: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Array,
) -> Any:  # fmt: skip
    lead, size = self.shape[:-2], math.prod(self.shape[-2:])
    zeros = np.zeros_like(wide(self), shape=(*lead, size))
    result = scatter_add(zeros, -1, indices.reshape(*lead, -1), grad_output.reshape(*lead, -1))
    return result.reshape(self.shape)


@kernel("aten.avg_pool2d_backward.default")
def avg_pool2d_backward(
    grad_output: Array, self: Array, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Any:  # fmt: skip
    if ceil_mode or (not count_include_pad and any(spread(padding, 2))):
        raise OperatorError("expected windows that are inside, got partial ones")
    taps, around = spread(kernel_size, 2), spread(padding, 2)
    steps = spread(stride, 2) if isinstance(stride, int) or len(stride) else taps
    sizes = [size + 2 * p for size, p in zip(self.shape[-2:], around, strict=True)]
    result = np.zeros_like(wide(self), shape=(*self.shape[:-2], *sizes))
    part = wide(grad_output) / (divisor_override or math.prod(taps))
    for _, where in offsets(part.shape[-2:], taps, steps, (1, 1)):
        result[last(where)] += part
    return result[last((slice(p, p + size) for p, size in zip(around, self.shape[-2:], strict=True)))]


@kernel("aten._adaptive_avg_pool2d_backward.default", adapt=computed)
def adaptive_avg_pool2d_backward(grad_output: Array, self: Array) -> Any:
    result = np.zeros_like(grad_output, shape=self.shape)
    for place, cut in parts(self.shape[-2:], grad_output.shape[-2:]):
        area = math.prod(part.stop - part.start for part in cut)
        result[last(cut)] += (grad_output[last(place)] / area)[..., None, None]
    return result


@kernel("aten.embedding_dense_backward.default", adapt=computed)
def embedding_dense_backward(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    chosen = check_indices(indices.reshape(-1), num_weights)
    rows = grad_output.reshape(chosen.size, -1)
    if scale_grad_by_freq:
        counts = np.bincount(chosen, minlength=num_weights)
        rows = rows / counts[chosen][:, None].astype(rows.dtype)
    used = chosen != padding_idx
    result = np.zeros_like(rows, shape=reserve((num_weights, rows.shape[1]), rows.dtype))
    np.add.at(result, chosen[used], rows[used])
    return result


KERNELS: Final = {
    "aten.native_dropout_backward.default": lambda grad_output, mask, scale: wide(grad_output) * mask * scale,
}
