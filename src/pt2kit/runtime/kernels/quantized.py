"""Kernels: quantized_decomposed operators and torchao's, which compute with integers and their scales in plain tensors.

torchao's have one scale for each block of a tensor, and round every step to the type of their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import ml_dtypes
import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.messages import quote
from pt2kit.operators.facts import axis as axis_of
from pt2kit.runtime.arrays import FLOAT32, Array, DType, asarray, cast, joined_type, kind, wide
from pt2kit.runtime.table import first, kernel

_Q = "quantized_decomposed"


def _quantized(
    x: Array, scale: Any, zero: Any, quant_min: Any, quant_max: Any, dtype: Any, *, whole: bool = True
) -> Any:
    """Return integers for numbers, scales, and zero points, which are added after rounding if they are `whole`."""
    return cast(np.clip(_moved(x, scale, zero, whole), _one(quant_min), _one(quant_max)), dtype)


def _moved(x: Array, scale: Any, zero: Any, whole: bool) -> Any:
    # As torch: multiplied by the inverse of the scale in float32, rounded to even.
    found = wide(x) * (1.0 / scale).astype(FLOAT32)
    return np.round(found) + zero if whole else np.round(found + zero)


def _one(value: Any) -> Any:
    """Return the number in a tensor that holds one."""
    return asarray(value).astype(FLOAT32).reshape(())


def _of_channels(values: Any, x: Array, axis: int) -> Any:
    """Return one number per channel, shaped for a tensor; 0 for None."""
    if values is None:
        return np.float32(0)
    return wide(values).reshape([-1 if i == axis_of(axis, x.ndim) else 1 for i in range(x.ndim)])


def _dequantized(x: Array, scale: Any, zero: Any) -> Any:
    return (cast(x, FLOAT32) - zero) * scale


@kernel(f"{_Q}.quantize_per_channel.default")
def quantize_per_channel(input: Array, scales: Array, zero_points: Array, axis: int, **options: Any) -> Any:
    scale, zero = (_of_channels(one, input, axis) for one in (scales, zero_points))
    return _quantized(input, scale, zero, **options)


@kernel(f"{_Q}.choose_qparams.tensor")
def choose_qparams(input: Array, quant_min: int, quant_max: int, eps: float, dtype: Any) -> Any:
    low, high = _range(input)
    scale = max((high - low) / (quant_max - quant_min), low.dtype.type(eps))
    zero = quant_min - int(np.round(low / scale))
    return np.array([scale]), np.array([min(max(zero, quant_min), quant_max)])


def _range(input: Array, dim: int | None = None) -> Any:
    """Return the least and the greatest number of a tensor, or a dimension, and 0, in the type that torch computes in.

    The dimension keeps the size 1.
    """
    x, keepdims = wide(input), dim is not None
    return np.minimum(x.min(dim, keepdims=keepdims), 0), np.maximum(x.max(dim, keepdims=keepdims), 0)


@kernel(f"{_Q}.choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(input: Array, quant_min: int, quant_max: int, eps: float, dtype: Any) -> Any:
    low, high = _range(input)
    scale = max(max(-low, high) / ((quant_max - quant_min) / 2), low.dtype.type(eps))
    return np.array([scale]), np.array([128 if dtype == np.uint8 else 0])


@kernel(f"{_Q}.choose_qparams_per_token.default")
def choose_qparams_per_token(input: Array, dtype: Any) -> Any:
    most = np.max(np.abs(wide(input)), -1, keepdims=True)
    return np.maximum(most, 1e-5) / 127, np.zeros_like(most)


@kernel(f"{_Q}.choose_qparams_per_token_asymmetric.default", f"{_Q}._choose_qparams_per_token_asymmetric_impl.default")
def choose_qparams_per_token_asymmetric(input: Array, dtype: Any) -> Any:
    low, high = _range(input, -1)
    scale = np.maximum((high - low) / np.float32(255), np.finfo(np.float32).eps)
    lowest, highest = low / scale, high / scale
    zero = np.where((-128 + lowest) + (127 + highest) > 0, -128 - lowest, 127 - highest)
    return scale, np.round(np.clip(zero, -128, 127))


@kernel(f"{_Q}.quantize_per_token.default")
def quantize_per_token(input: Array, scales: Array, zero_points: Array, **options: Any) -> Any:
    return _quantized(input, wide(scales), wide(zero_points), whole=False, **options)


def dequantize_per_token(input: Array, scales: Array, zero_points: Array, **options: Any) -> Any:
    return _dequantized(input, wide(scales), wide(zero_points))


def _in_groups(
    function: Callable[..., Any], input: Array, scales: Array, zero_points: Any, group_size: int = 128, **options: Any
) -> Any:
    """Return what an operator makes of rows that have one scale for each group of their elements."""
    if group_size < 1 or input.ndim != 2 or input.shape[-1] % group_size:
        raise OperatorError(f"expected rows of groups of {group_size}, got sizes {list(input.shape)}")
    zero = np.zeros(scales.shape, FLOAT32) if zero_points is None else zero_points
    rows = input.reshape(-1, group_size)
    return function(rows, scales.reshape(-1, 1), zero.reshape(-1, 1), **options).reshape(input.shape)


@kernel(
    "aten.fake_quantize_per_tensor_affine_cachemask.default",
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
)
def fake_quantize_cachemask(
    self: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int, fake_quant_enabled: Any = None
) -> Any:
    x = wide(self)
    result, mask = _faked(x, np.asarray(scale, FLOAT32), np.asarray(zero_point, FLOAT32), quant_min, quant_max)
    if fake_quant_enabled is None:
        return result, mask
    is_off = asarray(fake_quant_enabled).reshape(()) == 0
    return np.where(is_off, x, result), mask | is_off


def _faked(x: Array, scale: Any, zero: Any, quant_min: int, quant_max: int, *, whole: bool = True) -> tuple[Any, Any]:
    moved = _moved(x, scale, zero, whole)
    mask = (moved >= quant_min) & (moved <= quant_max)
    # As in torch, nan is the least number.
    return (np.fmin(np.fmax(moved, quant_min), quant_max) - zero) * scale, mask


@kernel("aten.fake_quantize_per_channel_affine_cachemask.default")
def fake_quantize_per_channel_cachemask(
    self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> Any:
    factor, zero = (cast(_of_channels(one, self, axis), FLOAT32) for one in (scale, zero_point))
    return _faked(wide(self), factor, zero, quant_min, quant_max, whole=kind(zero_point.dtype) == 1)


def _in_blocks(x: Array, block_size: Sequence[int]) -> tuple[Array, list[int]]:
    """Return a tensor with each dimension divided into blocks, and the sizes of one number for each block."""
    if len(block_size) != x.ndim or any(
        size < 1 or whole % size for whole, size in zip(x.shape, block_size, strict=False)
    ):
        raise OperatorError(f"expected blocks that divide the sizes {list(x.shape)}, got {list(block_size)}")
    sizes = [(whole // size, size) for whole, size in zip(x.shape, block_size, strict=True)]
    return wide(x).reshape([*chain(*sizes)]), [*chain(*((count, 1) for count, _ in sizes))]


def _bounds(dtype: DType, quant_min: float | None = None, quant_max: float | None = None) -> tuple[Any, Any]:
    limits = np.iinfo(dtype) if kind(dtype) == 1 else ml_dtypes.finfo(dtype)
    return limits.min if quant_min is None else quant_min, limits.max if quant_max is None else quant_max


@kernel("torchao.choose_qparams_affine.default")
def choose_qparams_affine(
    input: Array,
    mapping_type: str,
    block_size: Sequence[int],
    target_dtype: Any,
    quant_min: Any = None,
    quant_max: Any = None,
    eps: Any = None,
    keepdim: bool = False,
    **options: Any,
) -> Any:
    x, _ = _in_blocks(input, block_size)
    if max(block_size, default=1) == 1:
        raise OperatorError("block_size: expected more than one element, got one")  # torchao takes all for one block
    axes, dtype = (*range(1, x.ndim, 2),), input.dtype
    low, high = np.minimum(x.min(axes), 0), np.maximum(x.max(axes), 0)
    least, most = _bounds(target_dtype, quant_min, quant_max)
    scales = {
        "SYMMETRIC": lambda: np.maximum(-low, high) / ((most - least) / 2),
        "SYMMETRIC_NO_CLIPPING_ERR": lambda: np.maximum(low / least, high / most),
        "ASYMMETRIC": lambda: cast(high - low, dtype) / (most - least),
    }
    if mapping_type not in scales:
        raise OperatorError(f"mapping_type: expected {', '.join(scales)}, got {quote(mapping_type)}")
    found = cast(scales[mapping_type](), dtype)
    scale = np.maximum(found, cast(ml_dtypes.finfo(dtype).tiny if eps is None else eps, dtype))
    zero: Any = np.full_like(scale, int((most + least + 1) / 2))
    if mapping_type == "ASYMMETRIC":
        zero = np.clip(least - np.round(cast(low / wide(scale), dtype)), least, most)
    # Without `keepdim`, dimensions that are one block go.
    pairs = zip(input.shape, block_size, strict=True)
    sizes = [whole // size for whole, size in pairs if keepdim or size == 1 or size < whole]
    return scale.reshape(sizes), zero.reshape(sizes)


@kernel("torchao.quantize_affine.default")
def quantize_affine(
    input: Array, block_size: Sequence[int], scale: Array, zero_point: Array, output_dtype: Any, **bounds: Any
) -> Any:
    x, sizes = _in_blocks(input, block_size)
    inverse = wide(cast(1 / wide(scale), scale.dtype)).reshape(sizes)
    found = np.round(cast(x * inverse, joined_type((input, scale)))) + wide(zero_point).reshape(sizes)
    return cast(np.clip(found, *_bounds(output_dtype, **bounds)).reshape(input.shape), output_dtype)


@kernel("torchao.dequantize_affine.default")
def dequantize_affine(
    input: Array,
    block_size: Sequence[int],
    scale: Array,
    zero_point: Any,
    input_dtype: Any,
    quant_min: Any = None,
    quant_max: Any = None,
    output_dtype: Any = FLOAT32,
) -> Any:
    x, sizes = _in_blocks(input, block_size)
    if zero_point is not None:
        x = wide(cast(cast(x, output_dtype) - cast(zero_point, output_dtype).reshape(sizes), output_dtype))
    return cast(x * wide(scale).reshape(sizes), output_dtype).reshape(input.shape)


KERNELS: Final = {
    f"{_Q}.quantize_per_tensor.default .tensor .tensor2": lambda input, scale, zero_point, **options: _quantized(
        input, asarray(scale).reshape(()), _one(zero_point), **options
    ),
    f"{_Q}.dequantize_per_tensor.default .tensor .tensor2": lambda input, scale, zero_point, **options: _dequantized(
        input, _one(scale), _one(zero_point)
    ),
    f"{_Q}.dequantize_per_channel.default": lambda input, scales, zero_points, axis, **options: _dequantized(
        input, _of_channels(scales, input, axis), _of_channels(zero_points, input, axis)
    ),
    f"{_Q}.dequantize_per_token.default": dequantize_per_token,
    f"{_Q}.quantize_per_channel_group.default": partial(_in_groups, quantize_per_token),
    f"{_Q}.dequantize_per_channel_group.default": partial(_in_groups, dequantize_per_token),
    "aten.fake_quantize_per_tensor_affine.default .tensor_qparams": first(fake_quantize_cachemask),
    "aten.fake_quantize_per_channel_affine.default": first(fake_quantize_per_channel_cachemask),
}
