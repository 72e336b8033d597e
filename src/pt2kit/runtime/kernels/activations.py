"""Kernels: activation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, axis_of, cast, floating, running, unary, wide
from pt2kit.runtime.kernels.special import erf
from pt2kit.runtime.table import kernel, kernels, write


@kernel("aten.elu.default")
def elu(self: Array, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    x = wide(self)
    a, s, i = (cast(number, x.dtype) for number in (alpha, scale, input_scale))
    return np.where(x > 0, x * s, np.expm1(np.minimum(x, 0) * i) * (a * s))


@kernel("aten.gelu.default")
def gelu(self: Array, approximate: str = "none") -> Any:
    x = wide(self)
    half = x.dtype.type(0.5)
    if approximate == "tanh":
        inner = x.dtype.type(math.sqrt(2 / math.pi)) * (x + x.dtype.type(0.044715) * x * x * x)
        return half * x * (1 + np.tanh(inner))
    if approximate != "none":
        raise OperatorError(f"expected the approximation none or tanh, got {approximate[:40]!a}")
    result = erf(x * x.dtype.type(math.sqrt(0.5)))
    result += 1
    result *= half * x
    return result


@kernel("aten.hardtanh.default")
def hardtanh(self: Array, min_val: float = -1, max_val: float = 1) -> Any:
    x = wide(self)
    return np.clip(x, cast(min_val, x.dtype), cast(max_val, x.dtype))


@kernel("aten.softshrink.default")
def softshrink(self: Array, lambd: float = 0.5) -> Any:
    x = wide(self)
    bound = x.dtype.type(lambd)
    return np.where(x > bound, x - bound, np.where(x < -bound, x + bound, x * 0))


@kernel("aten.softplus.default")
def softplus(self: Array, beta: float = 1, threshold: float = 20) -> Any:
    x = wide(self)
    scaled = x * x.dtype.type(beta)
    return np.where(scaled > threshold, x, np.log1p(np.exp(np.minimum(scaled, threshold))) / x.dtype.type(beta))


@kernel("aten.threshold.default")
def threshold_(self: Array, threshold: Any, value: Any) -> Any:
    x = wide(self)
    return np.where(x <= cast(threshold, x.dtype), cast(value, x.dtype), x)


@kernel("aten.log_sigmoid.default")
def log_sigmoid(self: Array) -> Any:
    x = wide(self)
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


@kernel("aten.log_sigmoid_forward.default")
def log_sigmoid_forward(self: Array) -> Any:
    x = wide(self)
    buffer = np.exp(-np.abs(x))
    return np.minimum(x, 0) - np.log1p(buffer), buffer


@kernel("aten.glu.default")
def glu(self: Array, dim: int = -1) -> Any:
    x = wide(self)
    axis = axis_of(dim, x.ndim)
    if x.ndim == 0 or x.shape[axis] % 2:
        raise OperatorError(f"expected an even size of dimension {dim}, got sizes {list(x.shape)}")
    a, b = np.split(x, 2, axis)
    return a * (1 / (1 + np.exp(-b)))


@kernel("aten.prelu.default aten._prelu_kernel.default")
def prelu(self: Array, weight: Array) -> Any:
    x, slope = wide(self), wide(weight)
    if slope.ndim == 1 and slope.size > 1 and x.ndim > 1:
        slope = slope.reshape(1, -1, *([1] * (x.ndim - 2)))
    elif slope.size == 1:
        slope = slope.reshape(())
    return np.where(x > 0, x, x * slope)


@kernel("aten.rrelu.default")
def rrelu(
    self: Array, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    x = wide(self)
    slope: Any = running().random.uniform(lower, upper, x.shape) if training else (lower + upper) / 2
    return np.where(x > 0, x, x * cast(slope, x.dtype))


@kernel("aten.rrelu_with_noise.default aten.rrelu_with_noise_functional.default")
def rrelu_with_noise(
    self: Array, noise: Array, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    if not training:
        return rrelu(self, lower, upper)
    slopes = np.where(self > 0, 1, running().random.uniform(lower, upper, self.shape))
    if noise.flags.writeable:
        write(noise, slopes)
    return wide(self) * cast(slopes, wide(self).dtype)


@kernel("aten.logit.default")
def logit(self: Array, eps: float | None = None) -> Any:
    x = floating(self)
    if eps is not None:
        x = np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
    return np.log(x / (1 - x))


kernels(
    {
        "aten.relu6.default": lambda self: hardtanh(self, 0, 6),
        "aten.celu.default": lambda self, alpha=1.0: elu(self, alpha, 1.0, 1.0 / alpha),
        "aten.selu.default": lambda self: elu(self, 1.6732632423543772, 1.0507009873554805),
    }
)


kernels(
    {
        "aten.relu.default": lambda self: np.maximum(self, np.zeros((), self.dtype)),
        "aten.leaky_relu.default": (
            lambda self, negative_slope=0.01: np.where(self > 0, self, self * cast(negative_slope, self.dtype))
        ),
        "aten.silu.default": lambda self: self / (1 + np.exp(-self)),
        "aten.mish.default": lambda self: self * np.tanh(np.logaddexp(self, 0)),
        "aten.hardsigmoid.default": lambda self: np.clip(self + 3, 0, 6) / self.dtype.type(6),
        "aten.hardswish.default": lambda self: self * np.clip(self + 3, 0, 6) / self.dtype.type(6),
        "aten.hardshrink.default": lambda self, lambd=0.5: np.where(
            (self >= -lambd) & (self <= lambd), self.dtype.type(0), self
        ),
    },
    unary(wide),
)


kernels(
    {
        "aten.sigmoid.default": lambda self: 1 / (1 + np.exp(-self)),
        "aten.special_entr.default": (
            lambda self: np.where(
                np.isnan(self), self, np.where(self > 0, -self * np.log(self), np.where(self == 0, 0, -np.inf))
            )
        ),
    },
    unary(floating),
)
