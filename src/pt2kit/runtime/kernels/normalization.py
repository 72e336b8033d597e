"""Kernels: batch, layer, group, instance and RMS normalization, dropout-free weight norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, computed, wide
from pt2kit.runtime.kernels.reductions import norm_except_dim
from pt2kit.runtime.table import first, kernel, write


def _channels(values: Any, x: Array) -> Any:
    """Return one number per channel, shaped for a batch [n, channels, ...]."""
    return wide(values).reshape(-1, *(1,) * (x.ndim - 2))


def _scaled(x: Array, weight: Any, bias: Any) -> Array:
    if weight is not None:
        x = x * wide(weight)
    return x if bias is None else x + wide(bias)


def _batch_norm(
    x: Array, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the result, the mean and inverse deviation that were used, and the new running statistics."""
    x = wide(x)
    axes = (0, *range(2, x.ndim))
    new_mean, new_var = running_mean, running_var
    if training:
        mean = x.mean(axes)
        var = x.var(axes)
        count = x.size // max(1, x.shape[1])
        if running_mean is not None:
            new_mean = wide(running_mean) * (1 - momentum) + mean * momentum
        if running_var is not None:
            new_var = wide(running_var) * (1 - momentum) + var * (count / max(1, count - 1)) * momentum
    else:
        mean, var = wide(running_mean), wide(running_var)
    inverse = 1 / np.sqrt(var + var.dtype.type(eps))
    result = _by_channel((x - _channels(mean, x)) * _channels(inverse, x), weight, bias)
    return result, mean, inverse, new_mean, new_var


_EMPTY = np.zeros(0, np.float32)


def _variant(shown: Callable[..., Any], training: bool = False, *, writes: bool = True) -> Callable[..., Any]:
    """Return the kernel of an overload.

    Args:
        shown: chooses its results from those of `_batch_norm`, and whether the statistics of the batch are used.
        training: whether they are used, if no argument decides.
        writes: write new running statistics into the old ones.
    """

    def run(
        input: Array, weight: Any, bias: Any, running_mean: Any = None, running_var: Any = None,
        training: bool = training, *, momentum: float, eps: float,
    ) -> Any:  # fmt: skip
        uses_batch = training or running_mean is None
        found = _batch_norm(input, weight, bias, running_mean, running_var, uses_batch, momentum, eps)
        if writes and uses_batch and running_mean is not None:
            write(running_mean, found[3])
            write(running_var, found[4])
        return shown(found, uses_batch)

    return run


def _used(found: Any, uses_batch: bool) -> Any:
    """Return the result, the mean and the inverse deviation, the latter for gradients alone."""
    return found[:3] if uses_batch else (found[0], _EMPTY, _EMPTY)


@kernel("aten.instance_norm.default")
def instance_norm(
    input: Array, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum:
    float, eps: float,
) -> Any:  # fmt: skip
    # Each channel of each example is a channel of one batch.
    batch, channels = input.shape[:2]
    w, b, old_mean, old_var = (
        None if one is None else np.tile(one, batch) for one in (weight, bias, running_mean, running_var)
    )
    x = input.reshape(1, batch * channels, *input.shape[2:])
    result, _, _, mean, var = _batch_norm(x, w, b, old_mean, old_var, use_input_stats, momentum, eps)
    if use_input_stats and running_mean is not None:
        write(running_mean, mean.reshape(batch, channels).mean(0))
        write(running_var, var.reshape(batch, channels).mean(0))
    return result.reshape(input.shape)


def _over(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """Return a tensor without mean and with deviation 1 over some dimensions, and both."""
    mean = x.mean(axes, keepdims=True)
    centered = x - mean
    inverse = 1 / np.sqrt((centered * centered).mean(axes, keepdims=True) + x.dtype.type(eps))
    centered *= inverse
    return centered, mean, inverse


@kernel("aten.native_layer_norm.default", adapt=computed)
def native_layer_norm(input: Array, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    result, mean, inverse = _over(input, axes, eps)
    return _scaled(result, weight, bias), mean, inverse


@kernel("aten._fused_rms_norm.default", adapt=computed)
def fused_rms_norm(input: Array, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    small = input.dtype.type(float(ml_dtypes.finfo(input.dtype).eps) if eps is None else eps)
    inverse = 1 / np.sqrt((input * input).mean(axes, keepdims=True) + small)
    return _scaled(input * inverse, weight, None), inverse


def _by_channel(result: Array, weight: Any, bias: Any) -> Array:
    return _scaled(result, *(None if one is None else _channels(one, result) for one in (weight, bias)))


def _group_norm(input: Array, num_groups: int, weight: Any, bias: Any, eps: float) -> tuple[Array, Array, Array]:
    x = wide(input)
    if num_groups < 1 or x.ndim < 2 or x.shape[1] % num_groups:
        raise OperatorError(f"expected channels in {num_groups} num_groups, got sizes {list(x.shape)}")
    parts = x.reshape(x.shape[0], num_groups, x.shape[1] // num_groups * math.prod(x.shape[2:]))
    result, mean, inverse = _over(parts, (2,), eps)
    return _by_channel(result.reshape(x.shape), weight, bias), mean[..., 0], inverse[..., 0]


@kernel("aten._weight_norm.default aten._weight_norm_interface.default", adapt=computed)
def weight_norm(v: Array, g: Array, dim: int) -> Any:
    norm = norm_except_dim(v, 2, dim)
    return v * (g / norm), norm


KERNELS: Final = {
    "aten.batch_norm.default": first(_variant(_used)),
    "aten.native_batch_norm.default aten._native_batch_norm_legit.default .no_stats": _variant(_used),
    "aten._native_batch_norm_legit_no_training.default": _variant(_used),
    "aten._native_batch_norm_legit_functional.default": _variant(
        lambda found, uses_batch: (*_used(found, uses_batch), found[3].copy(), found[4].copy()), writes=False
    ),
    "aten._batch_norm_with_update.default": _variant(lambda found, _: (*found[:3], np.zeros(0, np.uint8)), True),
    "aten.layer_norm.default": first(native_layer_norm),
    "aten.rms_norm.default": first(fused_rms_norm),
    "aten.group_norm.default": first(_group_norm),
    "aten.native_group_norm.default": lambda input, weight, bias, group, eps: _group_norm(
        input, group, weight, bias, eps
    ),
}
