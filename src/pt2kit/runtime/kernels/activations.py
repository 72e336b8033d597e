"""Kernels: activation functions."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, axis_of, cast, computed, in_floats, require, running, wide
from pt2kit.runtime.kernels.special import erf
from pt2kit.runtime.table import first, kernel, write


@kernel("aten.elu.default", adapt=computed)
def elu(self: Array, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    a, s, i = (cast(number, self.dtype) for number in (alpha, scale, input_scale))
    return np.where(self > 0, self * s, np.expm1(np.minimum(self, 0) * i) * (a * s))


@kernel("aten.gelu.default", adapt=computed)
def gelu(self: Array, approximate: str) -> Any:
    number = self.dtype.type
    half = number(0.5) * self
    if approximate == "tanh":
        inner = number(math.sqrt(2 / math.pi)) * (self + number(0.044715) * self * self * self)
        return half * (1 + np.tanh(inner))
    require(approximate == "none", f"expected the approximation none or tanh, got {approximate[:40]!a}")
    result = erf(self * number(math.sqrt(0.5)))
    result += 1
    result *= half
    return result


@kernel("aten.hardtanh.default", adapt=computed)
def hardtanh(self: Array, min_val: float = -1, max_val: float = 1) -> Any:
    return np.clip(self, cast(min_val, self.dtype), cast(max_val, self.dtype))


@kernel("aten.softshrink.default", adapt=computed)
def softshrink(self: Array, lambd: float) -> Any:
    bound = self.dtype.type(lambd)
    return np.where(self > bound, self - bound, np.where(self < -bound, self + bound, self * 0))


@kernel("aten.softplus.default", adapt=computed)
def softplus(self: Array, beta: float, threshold: float) -> Any:
    factor = self.dtype.type(beta)
    scaled = self * factor
    return np.where(scaled > threshold, self, np.log1p(np.exp(np.minimum(scaled, threshold))) / factor)


@kernel("aten.threshold.default", adapt=computed)
def threshold_(self: Array, threshold: Any, value: Any) -> Any:
    return np.where(self <= cast(threshold, self.dtype), cast(value, self.dtype), self)


@kernel("aten.log_sigmoid_forward.default", adapt=computed)
def log_sigmoid_forward(self: Array) -> Any:
    buffer = np.exp(-np.abs(self))
    return np.minimum(self, 0) - np.log1p(buffer), buffer


log_sigmoid = first(log_sigmoid_forward)


@kernel("aten.glu.default", adapt=computed)
def glu(self: Array, dim: int) -> Any:
    axis = axis_of(dim, self.ndim)
    if self.ndim == 0 or self.shape[axis] % 2:
        raise OperatorError(f"expected an even size of dimension {dim}, got sizes {list(self.shape)}")
    a, b = np.split(self, 2, axis)
    return a * sigmoid(b)


@kernel("aten.prelu.default aten._prelu_kernel.default", adapt=computed)
def prelu(self: Array, weight: Array) -> Any:
    slope = weight
    if slope.ndim == 1 and slope.size > 1 and self.ndim > 1:
        slope = slope.reshape(1, -1, *([1] * (self.ndim - 2)))
    elif slope.size == 1:
        slope = slope.reshape(())
    return leaky_relu(self, slope)


@kernel("aten.rrelu.default", adapt=computed)
def rrelu(self: Array, lower: float = 0.125, upper: float = 1 / 3, training: bool = False) -> Any:
    slope: Any = running().random.uniform(lower, upper, self.shape) if training else (lower + upper) / 2
    return leaky_relu(self, slope)


@kernel("aten.rrelu_with_noise.default aten.rrelu_with_noise_functional.default")
def rrelu_with_noise(self: Array, noise: Array, lower: float, upper: float = 1 / 3, training: bool = False) -> Any:
    if not training:
        return rrelu(self, lower, upper)
    slopes = np.where(self > 0, 1, running().random.uniform(lower, upper, self.shape))
    if noise.flags.writeable:
        write(noise, slopes)
    return wide(self) * slopes


@kernel("aten.logit.default", adapt=in_floats)
def logit(self: Array, eps: float | None) -> Any:
    x = self if eps is None else np.clip(self, self.dtype.type(eps), self.dtype.type(1 - eps))
    return np.log(x / (1 - x))


@kernel("aten.leaky_relu.default", adapt=computed)
def leaky_relu(self: Array, negative_slope: Any = 0.01) -> Any:
    return np.where(self > 0, self, self * cast(negative_slope, self.dtype))


@kernel("aten.sigmoid.default", adapt=in_floats)
def sigmoid(self: Array) -> Any:
    return 1 / (1 + np.exp(-self))


@kernel("aten.relu.default", adapt=computed)
def relu(self: Array) -> Any:
    return np.maximum(self, np.zeros((), self.dtype))


@kernel("aten.special_entr.default", adapt=in_floats)
def entropy(self: Array) -> Any:
    of_positive = np.where(self > 0, -self * np.log(self), np.where(self == 0, 0, -np.inf))
    return np.where(np.isnan(self), self, of_positive)


KERNELS: Final = {
    "aten.log_sigmoid.default": log_sigmoid,
    "aten.silu.default": computed(lambda self: self / (1 + np.exp(-self))),
    "aten.relu6.default": lambda self: hardtanh(self, 0, 6),
    "aten.celu.default": lambda self, alpha: elu(self, alpha, 1.0, 1.0 / alpha),
    "aten.selu.default": lambda self: elu(self, 1.6732632423543772, 1.0507009873554805),
    "aten.mish.default": computed(lambda self: self * np.tanh(np.logaddexp(self, 0))),
    "aten.hardsigmoid.default": computed(lambda self: np.clip(self + 3, 0, 6) / self.dtype.type(6)),
    "aten.hardswish.default": computed(lambda self: self * np.clip(self + 3, 0, 6) / self.dtype.type(6)),
    "aten.hardshrink.default": (
        computed(lambda self, lambd: np.where((self >= -lambd) & (self <= lambd), self.dtype.type(0), self))
    ),
}
