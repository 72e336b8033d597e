"""Kernels: quantized_decomposed operators, which compute with integers and their scales in plain tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import FLOAT32, Array, asarray, axis_of, cast, kind, reserve, wide
from pt2kit.runtime.table import kernel

_Q = "quantized_decomposed"


def _affine(x: Array, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any) -> Any:
    # As torch: multiplied by the inverse of the scale in float32, rounded to even.
    inverse = (1.0 / asarray(scale)).astype(np.float32)
    moved = np.round(x * inverse) + asarray(zero_point).astype(np.float32)
    return cast(np.clip(moved, float(np.asarray(quant_min)), float(np.asarray(quant_max))), dtype)


@kernel(f"{_Q}.quantize_per_tensor.default", f"{_Q}.quantize_per_tensor.tensor", f"{_Q}.quantize_per_tensor.tensor2")
def quantize_per_tensor(input: Array, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any) -> Any:
    return _affine(wide(input), asarray(scale), asarray(zero_point), quant_min, quant_max, dtype)


@kernel(
    f"{_Q}.dequantize_per_tensor.default", f"{_Q}.dequantize_per_tensor.tensor", f"{_Q}.dequantize_per_tensor.tensor2"
)
def dequantize_per_tensor(
    input: Array, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any, out_dtype: Any = None
) -> Any:
    return (cast(input, FLOAT32) - asarray(zero_point).astype(np.float32)) * asarray(scale).astype(np.float32)


def _channel(values: Any, ndim: int, axis: int) -> Any:
    if values is None:
        return np.float32(0)
    return wide(values).reshape([-1 if i == axis_of(axis, ndim) else 1 for i in range(ndim)])


@kernel(f"{_Q}.quantize_per_channel.default")
def quantize_per_channel(
    input: Array, scales: Array, zero_points: Array, axis: int, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    scale, zero = (_channel(one, input.ndim, axis) for one in (scales, zero_points))
    return cast(np.clip(np.round(wide(input) * (1.0 / scale).astype(np.float32)) + zero, quant_min, quant_max), dtype)


@kernel(f"{_Q}.dequantize_per_channel.default")
def dequantize_per_channel(
    input: Array, scales: Array, zero_points: Any, axis: int, quant_min: int, quant_max: int, dtype: Any,
    out_dtype: Any = None,
) -> Any:  # fmt: skip
    scale, zero = (_channel(one, input.ndim, axis) for one in (scales, zero_points))
    return (cast(input, FLOAT32) - zero) * scale


def _params(x: Array, quant_min: int, quant_max: int, eps: Any) -> tuple[Any, Any]:
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = max((high - low) / float(quant_max - quant_min), float(np.asarray(eps)))
    zero = quant_min - round(low / scale)
    return np.float64(scale), np.int64(min(max(zero, quant_min), quant_max))


@kernel(f"{_Q}.choose_qparams.tensor")
def choose_qparams(input: Array, quant_min: int, quant_max: int, eps: float, dtype: Any) -> Any:
    return _params(wide(input), quant_min, quant_max, eps)


@kernel(f"{_Q}.choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(input: Array, quant_min: int, quant_max: int, eps: float, dtype: Any) -> Any:
    x = wide(input)
    most = max(abs(min(float(x.min()), 0.0)), max(float(x.max()), 0.0))
    scale = max(most / (float(quant_max - quant_min) / 2), float(eps))
    return np.float64(scale), np.int64(128 if dtype == np.uint8 else 0)


@kernel(f"{_Q}.choose_qparams_per_token.default")
def choose_qparams_per_token(input: Array, dtype: Any) -> Any:
    most = np.max(np.abs(wide(input)), -1, keepdims=True)
    return np.maximum(most, 1e-5) / 127, np.zeros_like(most)


@kernel(f"{_Q}.choose_qparams_per_token_asymmetric.default", f"{_Q}._choose_qparams_per_token_asymmetric_impl.default")
def choose_qparams_per_token_asymmetric(input: Array, dtype: Any) -> Any:
    x = wide(input)
    low = np.minimum(x.min(-1, keepdims=True), 0)
    high = np.maximum(x.max(-1, keepdims=True), 0)
    scale = np.maximum((high - low) / np.float32(255), np.finfo(np.float32).eps)
    first, last = low / scale, high / scale
    zero = np.where((-128 + first) + (127 + last) > 0, -128 - first, 127 - last)
    return scale, np.round(np.clip(zero, -128, 127))


@kernel(f"{_Q}.quantize_per_token.default")
def quantize_per_token(
    input: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    moved = np.round(wide(input) * (1.0 / wide(scales)) + wide(zero_points))
    return cast(np.clip(moved, quant_min, quant_max), dtype)


@kernel(f"{_Q}.dequantize_per_token.default")
def dequantize_per_token(
    input: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: Any,
    output_dtype: Any = None,
) -> Any:  # fmt: skip
    return (cast(input, FLOAT32) - wide(zero_points)) * wide(scales)


def _groups(input: Array, group_size: int) -> Array:
    if group_size < 1 or input.ndim != 2 or input.shape[-1] % group_size:
        raise OperatorError(f"expected rows of groups of {group_size}, got sizes {list(input.shape)}")
    return wide(input).reshape(-1, group_size)


@kernel(f"{_Q}.quantize_per_channel_group.default")
def quantize_per_channel_group(
    input: Array, scales: Array, zero_points: Array, quant_min: int, quant_max: int, dtype: Any, group_size: int = 128
) -> Any:
    rows = _groups(input, group_size)
    moved = np.round(rows * (1.0 / wide(scales).reshape(-1, 1)) + wide(zero_points).reshape(-1, 1))
    return cast(np.clip(moved, quant_min, quant_max), dtype).reshape(input.shape)


@kernel(f"{_Q}.dequantize_per_channel_group.default")
def dequantize_per_channel_group(
    input: Array, scales: Array, zero_points: Any, quant_min: int, quant_max: int, dtype: Any, group_size: int = 128,
    output_dtype: Any = None,
) -> Any:  # fmt: skip
    rows = _groups(cast(input, FLOAT32), group_size)
    zero = 0 if zero_points is None else wide(zero_points).reshape(-1, 1)
    return ((rows - zero) * wide(scales).reshape(-1, 1)).reshape(input.shape)


@kernel("aten.fake_quantize_per_tensor_affine.default .tensor_qparams")
def fake_quantize_per_tensor_affine(self: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    return fake_quantize_cachemask(self, scale, zero_point, quant_min, quant_max)[0]


@kernel("aten.fake_quantize_per_tensor_affine_cachemask.default")
@kernel("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default")
def fake_quantize_cachemask(
    self: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int, fake_quant_enabled: Any = None
) -> Any:
    return _faked(wide(self), np.asarray(scale, np.float32), np.asarray(zero_point, np.float32), quant_min, quant_max)


def _faked(x: Array, scale: Any, zero: Any, quant_min: int, quant_max: int) -> tuple[Any, Any]:
    moved = np.round(x * (np.float32(1) / scale) + zero)
    mask = (moved >= quant_min) & (moved <= quant_max)
    return (np.clip(moved, quant_min, quant_max) - zero) * scale, mask


@kernel("aten.fake_quantize_per_channel_affine.default")
def fake_quantize_per_channel_affine(
    self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> Any:
    return fake_quantize_per_channel_cachemask(self, scale, zero_point, axis, quant_min, quant_max)[0]


@kernel("aten.fake_quantize_per_channel_affine_cachemask.default")
def fake_quantize_per_channel_cachemask(
    self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> Any:
    if kind(self.dtype) != 2:
        raise OperatorError(f"expected floating-point numbers, got {self.dtype}")
    reserve(self.shape, FLOAT32)
    factor, zero = (cast(_channel(one, self.ndim, axis), FLOAT32) for one in (scale, zero_point))
    return _faked(wide(self), factor, zero, quant_min, quant_max)
