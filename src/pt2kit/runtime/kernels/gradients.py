"""Kernels: backward operators, which graphs with a loss contain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, axis_of, check_indices, last, reserve, wide
from pt2kit.runtime.kernels.convolutions import offsets, pad_around, spread, spread_back
from pt2kit.runtime.kernels.scattering import scatter_add
from pt2kit.runtime.table import kernel, kernels


@kernel("aten._softmax_backward_data.default")
def softmax_backward_data(grad_output: Array, output: Array, dim: int, input_dtype: Any) -> Any:
    grad, y = wide(grad_output), wide(output)
    product = grad * y
    return product - y * product.sum(axis_of(dim, y.ndim) if y.ndim else None, keepdims=True)


@kernel("aten._log_softmax_backward_data.default")
def log_softmax_backward_data(grad_output: Array, output: Array, dim: int, input_dtype: Any) -> Any:
    grad, y = wide(grad_output), wide(output)
    return grad - np.exp(y) * grad.sum(axis_of(dim, y.ndim) if y.ndim else None, keepdims=True)


@kernel("aten.native_layer_norm_backward.default")
def native_layer_norm_backward(
    grad_out: Array, input: Array, normalized_shape: Sequence[int], mean: Array, rstd: Array, weight: Any, bias: Any,
    output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    grad, x = wide(grad_out), wide(input)
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    outer = tuple(range(x.ndim - len(normalized_shape)))
    normal = (x - wide(mean)) * wide(rstd)
    inner = grad if weight is None else grad * wide(weight)
    centered = inner - inner.mean(axes, keepdims=True) - normal * (inner * normal).mean(axes, keepdims=True)
    found = (centered * wide(rstd), (grad * normal).sum(outer), grad.sum(outer))
    return tuple(one if wanted else None for one, wanted in zip(found, output_mask, strict=True))


# Convolutions and pooling.


@kernel("aten.convolution_backward.default")
def convolution_backward(
    grad_output: Array, input: Array, weight: Array, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    grad, x, w = wide(grad_output), wide(input), wide(weight)
    n = w.ndim - 2
    steps, around, gaps = spread(stride, n), spread(padding, n), spread(dilation, n)
    if transposed:
        raise OperatorError("expected a convolution, got the gradient of a transposed one")
    kernel_size = w.shape[2:]
    found: list[Any] = [None, None, None]
    if output_mask[0]:
        whole = [
            size + 2 * p - (k - 1) * d - 1 for size, p, k, d in zip(x.shape[2:], around, kernel_size, gaps, strict=True)
        ]
        extra = [size % s for size, s in zip(whole, steps, strict=True)]
        found[0] = spread_back(grad, w, steps, around, gaps, extra, groups)
    if output_mask[1]:
        found[1] = _weight_gradient(grad, pad_around(x, around, around), w, steps, gaps, groups)
    if output_mask[2]:
        found[2] = grad.sum((0, *range(2, grad.ndim)))
    return tuple(found)


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


@kernel("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool2d_backward(grad_output: Array, self: Array) -> Any:
    grad = wide(grad_output)
    result = np.zeros_like(grad, shape=self.shape)
    counts, sizes = grad.shape[-2:], self.shape[-2:]
    for place in itertools.product(*map(range, counts)):
        cut = tuple(slice(i * s // c, -(-(i + 1) * s // c)) for i, s, c in zip(place, sizes, counts, strict=True))
        area = math.prod(part.stop - part.start for part in cut)
        result[last(cut)] += (grad[last(place)] / area)[..., None, None]
    return result


@kernel("aten.embedding_dense_backward.default")
def embedding_dense_backward(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    grad = wide(grad_output)
    chosen = check_indices(indices.reshape(-1), num_weights)
    rows = grad.reshape(chosen.size, -1)
    if scale_grad_by_freq:
        counts = np.bincount(chosen, minlength=num_weights)
        rows = rows / counts[chosen][:, None].astype(rows.dtype)
    used = chosen != padding_idx
    result = np.zeros_like(grad, shape=reserve((num_weights, rows.shape[1]), grad.dtype))
    np.add.at(result, chosen[used], rows[used])
    return result


kernels(
    {
        "aten.native_dropout_backward.default": lambda grad_output, mask, scale: wide(grad_output) * mask * scale,
    }
)
