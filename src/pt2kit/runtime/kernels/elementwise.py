"""Kernels: arithmetic, comparisons, logic, rounding, powers, trigonometric and activation functions, by element."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from pt2kit.runtime.arrays import (
    ARRAYS,
    BOOL,
    Array,
    asarray,
    cast,
    complex_type,
    computed,
    converting,
    float_type,
    floating,
    in_floats,
    is_complex,
    kind,
    named,
    operands,
    promoted,
    promoted_floats,
    real_type,
    require,
    result_type,
    rounding,
    running,
    wide,
)
from pt2kit.runtime.kernels.special import erf
from pt2kit.runtime.table import first, functional, kernel, write

_SAME_NAME: Final = "cos cosh exp exp2 expm1 log log10 log1p log2 sin sinh sqrt tan tanh"
_FLOATING: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME_NAME.split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    "reciprocal": lambda self: 1 / self,
    "rsqrt": lambda self: 1 / np.sqrt(self),
}
"""Functions whose results are floating-point numbers, also of integers."""


for _name, _function in _FLOATING.items():
    kernel(f"aten.{_name}.default prims.{_name}.default", adapt=in_floats)(_function)


# Arithmetic.


def scaled(array: Any, factor: Any) -> Any:
    """Return an array times a number of its element type."""
    return array if factor == 1 else array * cast(factor, array.dtype)


@kernel("aten.div.Tensor .Scalar", adapt=functools.partial(promoted_floats, exact=True))
def div(self: Array, other: Array) -> Any:
    return self / other


@kernel("aten.div.Tensor_mode .Scalar_mode")
def div_mode(self: Array, other: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    (a, b), dtype = operands(self, other, exact=True)
    if kind(a.dtype) > 1:
        return np.trunc(rounding(dtype)(a / b) if np.ndim(other) else a / b)
    return floor_divide(a - np.fmod(a, b), b)


def _divided(function: Callable[..., Any], self: Array, other: Array) -> Any:
    """Return what a division makes of numbers; divisors that are integers are checked."""
    if kind(self.dtype) <= 1:
        require(self.size == 0 or np.all(other), "expected divisors other than 0, got 0")
    return function(self, other)


@kernel("aten.floor_divide.default .Scalar", adapt=functools.partial(promoted, exact=True))
def floor_divide(self: Array, other: Array) -> Any:
    if kind(self.dtype) <= 1:
        return _divided(np.floor_divide, self, other)
    # numpy's `floor_divide` by zero returns nan, torch's the result of division
    return np.where(other == 0, self / other, self // other)


@kernel("aten.pow.Tensor_Tensor .Tensor_Scalar .Scalar")
def pow_(self: Any, exponent: Any) -> Any:
    (a, b), _ = operands(self, exponent)
    if kind(a.dtype) > 1:
        if not isinstance(exponent, ARRAYS) and exponent in (2, 0.5) and kind(a.dtype) == 2:
            return a * a if exponent == 2 else np.sqrt(a)
        return np.power(a, b)
    if a.dtype == BOOL:
        return a | ~b
    # Of inverses of integers, those of -1, 0 (in torch) and 1 are integers: powers with any exponent as odd or even.
    powers = np.power(a, np.where(b < 0, 2 - b % 2, b).astype(b.dtype))
    return np.where((b < 0) & ((a < -1) | (a > 1)), 0, powers)


@kernel("aten.float_power.Tensor_Tensor .Tensor_Scalar .Scalar")
def float_power(self: Any, exponent: Any) -> Any:
    dtype = np.dtype("complex128" if kind(result_type(self, exponent)) == 3 else "float64")
    return np.power(cast(self, dtype), cast(exponent, dtype))


@kernel("aten.ldexp.Tensor")
def ldexp(self: Array, other: Array) -> Any:
    two = np.array(2, float_type(self.dtype))
    (a, b), _ = operands(self, cast(pow_(two, other), result_type(two, other)))
    return a * b


@kernel("aten.lerp.Tensor .Scalar")
def lerp(self: Array, end: Array, weight: Any) -> Any:
    (a, b), _ = operands(self, end)
    step = cast(weight, a.dtype)
    # As torch: each end is exact at its own side.
    return np.where(np.abs(step) < 0.5, a + step * (b - a), b - (b - a) * (1 - step))


# Signs, parts and rounding.


@kernel("aten.sign.default aten.sgn.default", adapt=computed)
def sign(self: Array) -> Any:
    if self.dtype == BOOL:
        return self.copy()
    if is_complex(self):
        size = np.abs(self)
        return np.where(size == 0, 0, self / np.where(size == 0, 1, size))
    return np.nan_to_num(np.sign(self), nan=0.0) if kind(self.dtype) == 2 else np.sign(self)


@kernel("aten.angle.default", adapt=in_floats)
def angle(self: Array) -> Any:
    return np.angle(self) if is_complex(self) else np.where(np.isnan(self), self, np.where(self < 0, np.pi, 0))


def _rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a function that leaves integers as they are."""
    function = named(function)

    @functools.wraps(function)
    def run(self: Array, **options: Any) -> Any:
        return self.copy() if kind(self.dtype) < 2 else function(wide(self), **options)

    return run


for _name, _function in {"ceil": np.ceil, "floor": np.floor, "trunc": np.trunc}.items():
    kernel(f"aten.{_name}.default prims.{_name}.default", adapt=_rounding)(_function)


@kernel("aten.round.default .decimals aten.special_round.default", adapt=_rounding)
def round_decimals(self: Array, decimals: int = 0) -> Any:
    scale = 10.0 ** abs(decimals)
    return np.round(self / scale) * scale if decimals < 0 else np.round(self * scale) / scale


@kernel("aten.nan_to_num.default")
def nan_to_num(self: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    if kind(self.dtype) < 2:
        return self.copy()
    limits = ml_dtypes.finfo(real_type(self.dtype))
    most = float(limits.max) if posinf is None else posinf
    least = float(limits.min) if neginf is None else neginf
    return np.nan_to_num(wide(self), nan=nan or 0.0, posinf=most, neginf=least)


# Complex numbers.


@kernel("aten._conj.default aten.conj.default")
def conj(self: Array) -> Any:
    return np.conjugate(self) if is_complex(self) else self


def _joined(real: Array, imag: Array) -> Any:
    real, imag = np.broadcast_arrays(real, imag)
    return np.stack((real, imag), -1).view(complex_type(real.dtype))[..., 0]


# Functions of two numbers.


for _name in ("maximum", "minimum", "fmax", "fmin", "hypot", "gcd", "lcm"):
    kernel(f"aten.{_name}.default", adapt=promoted)(getattr(np, _name))


@kernel("aten.logaddexp.default", adapt=promoted_floats)
def logaddexp(self: Array, other: Array) -> Any:
    if not is_complex(self):
        return np.logaddexp(self, other)
    high, low = np.where(self.real >= other.real, self, other), np.where(self.real >= other.real, other, self)
    same = (high == low) & np.isinf(high.real)
    return np.where(same, high, high + np.log1p(np.exp(low - high)))


def _times_log(log: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a product with a logarithm, which is 0 for a factor of 0."""
    return promoted_floats(
        lambda self, other: np.where(np.isnan(other), np.nan, np.where(self == 0, 0, self * log(other)))
    )


# Clamping and choosing.


@kernel("aten.clamp.default .Tensor aten.clamp_min.default .Tensor")
def clamp(self: Array, min: Any = None, max: Any = None) -> Any:
    bounds = [bound for bound in (min, max) if bound is not None]
    (x, *arrays), _ = operands(self, *bounds)
    if min is not None:
        x = np.maximum(x, arrays.pop(0))
    return x if max is None else np.minimum(x, arrays[0])


@kernel("aten.where.self .Scalar .ScalarSelf .ScalarOther")
def where(condition: Array, self: Any, other: Any) -> Any:
    dtype = result_type(self, other)
    return np.where(cast(condition, BOOL), cast(self, dtype), cast(other, dtype))


@kernel("aten._assert_async.default .msg aten._assert_scalar.default")
@kernel("aten._functional_assert_async.msg aten._functional_assert_scalar.default")
def assert_(self: Any, assert_msg: str = "", dep_token: Any = None) -> Any:
    require(np.all(self), f"assertion failed: {assert_msg[:400]!a}")
    return dep_token


# Comparisons and logic.


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    kernel(f"aten.{_name}.Tensor .Scalar", adapt=promoted)(getattr(operator, _name))

_of_truth = converting(lambda array: cast(array, BOOL))
for _name in ("and", "or", "xor"):
    _overloads = f"aten.bitwise_{_name}.Tensor .Scalar .Scalar_Tensor aten.__{_name}__.Tensor .Scalar"
    kernel(_overloads, adapt=promoted)(getattr(np, f"bitwise_{_name}"))
    kernel(f"aten.logical_{_name}.default", adapt=_of_truth)(getattr(np, f"logical_{_name}"))


def _shifted(shift: Callable[..., Any], scale: Callable[..., Any]) -> Callable[..., Any]:
    """Return a shift of integers, and of floats a multiplication or division by a power of 2."""
    return lambda self, other: scale(self, np.exp2(other)) if kind(self.dtype) == 2 else shift(self, other)


for _name, _shift, _scale in (("left", np.left_shift, operator.mul), ("right", np.right_shift, operator.truediv)):
    kernel(
        f"aten.bitwise_{_name}_shift.Tensor .Tensor_Scalar .Scalar_Tensor aten.__{_name[0]}shift__.Tensor .Scalar",
        adapt=promoted,
    )(_shifted(_shift, _scale))


for _name in ("isfinite", "isinf", "isnan", "isneginf", "isposinf"):
    kernel(f"aten.{_name}.default", adapt=computed)(getattr(np, _name))


@kernel("aten.isclose.default", adapt=computed)
def isclose(self: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    if kind(self.dtype) < 2 and not rtol and not atol:
        return self == other
    return np.isclose(self, other, rtol, atol, equal_nan)


@kernel("aten.isin.Tensor_Tensor .Tensor_Scalar .Scalar_Tensor")
def isin(elements: Any, test_elements: Any, invert: bool) -> Any:
    return np.isin(wide(asarray(elements)), wide(asarray(test_elements)), invert=invert)


# Activation functions.


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


@kernel("aten.log_sigmoid_forward.default", adapt=computed)
def log_sigmoid_forward(self: Array) -> Any:
    buffer = np.exp(-np.abs(self))
    return np.minimum(self, 0) - np.log1p(buffer), buffer


log_sigmoid = first(log_sigmoid_forward)


@kernel("aten.glu.default", adapt=computed)
def glu(self: Array, dim: int) -> Any:
    a, b = np.split(self, 2, dim)
    return a * sigmoid(b)


@kernel("aten.rrelu.default aten.rrelu_with_noise.default")
def rrelu(self: Array, lower: float, upper: float, training: bool, noise: Any = None) -> Any:
    if not training:
        return leaky_relu(self, (lower + upper) / 2)
    slopes = np.where(self > 0, 1, running().random.uniform(lower, upper, self.shape))
    if noise is not None and noise.flags.writeable:
        write(noise, slopes)
    return wide(self) * slopes


@kernel("aten.logit.default")
def logit(self: Array, eps: float | None) -> Any:
    x, keep = floating(self), rounding(float_type(self.dtype))
    if eps is not None:  # above 0.5, too, where the bounds change places
        low, high = x.dtype.type(keep(eps)), x.dtype.type(keep(1 - eps))
        x = np.where(x < low, low, np.minimum(x, high))
    return np.log(keep(x / keep(1 - x)))


@kernel("aten.leaky_relu.default aten._prelu_kernel.default", adapt=computed)
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
    "aten.deg2rad.default": in_floats(np.deg2rad),
    "aten.rad2deg.default": in_floats(np.rad2deg),
    "aten.frexp.Tensor": computed(np.frexp),
    "aten.remainder.Tensor .Scalar .Scalar_Tensor": promoted(functools.partial(_divided, np.remainder)),
    "aten.fmod.Tensor .Scalar": promoted(functools.partial(_divided, np.fmod)),
    "aten.complex.default": promoted(_joined),
    "aten.polar.default": promoted(lambda abs, angle: _joined(abs * np.cos(angle), abs * np.sin(angle))),
    "aten.max.other": promoted(np.maximum),
    "aten.min.other": promoted(np.minimum),
    "aten.add.Tensor .Scalar": promoted(lambda self, other, alpha: self + scaled(other, alpha), 3),
    "aten.sub.Tensor .Scalar": promoted(lambda self, other, alpha: self - scaled(other, alpha), 3),
    "aten.rsub.Tensor .Scalar": promoted(lambda self, other, alpha: other - scaled(self, alpha), 3),
    "aten.mul.Tensor .Scalar": promoted(lambda self, other: self * other, exact=True),
    "aten.heaviside.default": promoted(lambda self, values: np.where(self == 0, values, (self > 0).astype(self.dtype))),
    "aten.atan2.default": promoted_floats(np.arctan2),
    "aten.copysign.Tensor .Scalar": promoted_floats(np.copysign),
    "aten.logaddexp2.default": promoted_floats(np.logaddexp2),
    "aten.xlogy.Tensor .Scalar_Self .Scalar_Other": _times_log(np.log),
    "aten.special_xlogy.default .self_scalar .other_scalar": _times_log(np.log),
    "aten.special_xlog1py.default .self_scalar .other_scalar": _times_log(np.log1p),
    "aten.addcmul.default": promoted(
        lambda self, tensor1, tensor2, value: self + cast(value, self.dtype) * tensor1 * tensor2, 3
    ),
    "aten.addcdiv.default": promoted(
        lambda self, tensor1, tensor2, value: self + cast(value, self.dtype) * (tensor1 / tensor2), 3
    ),
    "aten.rrelu_with_noise_functional.default": functional(rrelu, "noise"),
    "aten.square.default": lambda self: pow_(self, 2),
    "aten._foreach_pow.ScalarAndTensor": lambda self, exponent: [pow_(self, one) for one in exponent],
    "aten._conj_physical.default": lambda self: np.conjugate(self) if is_complex(self) else self.copy(),
    "aten.resolve_conj.default aten.resolve_neg.default": lambda self: self,
    "aten.nextafter.default": np.nextafter,
    "aten.clamp_max.default .Tensor": lambda self, max: clamp(self, None, max),
    "aten.abs.default": computed(np.abs),
    "aten.neg.default": computed(np.negative),
    "aten.signbit.default": computed(lambda self: np.signbit(self) if kind(self.dtype) == 2 else self < 0),
    "aten.frac.default": computed(lambda self: self - np.trunc(self)),
    "aten.equal.default": computed(lambda self, other: self.shape == other.shape and bool(np.all(self == other))),
    "aten.bitwise_not.default": np.bitwise_not,
    "aten.logical_not.default": _of_truth(np.logical_not),
    "aten.isreal.default": lambda self: self.imag == 0 if is_complex(self) else np.ones(self.shape, BOOL),
    "aten.log_sigmoid.default": log_sigmoid,
    "aten.silu.default": computed(lambda self: self / (1 + np.exp(-self))),
    "aten.prelu.default": lambda self, weight: leaky_relu(self, weight.reshape(-1, *(1,) * (self.ndim - 2))),
    "aten.relu6.default": lambda self: hardtanh(self, 0, 6),
    "aten.celu.default": lambda self, alpha: elu(self, alpha, 1.0, 1.0 / alpha),
    "aten.selu.default": lambda self: elu(self, 1.6732632423543772, 1.0507009873554805),
    "aten.mish.default": computed(lambda self: self * np.tanh(np.logaddexp(self, 0))),
    "aten.hardsigmoid.default": computed(lambda self: np.clip(self + 3, 0, 6) / self.dtype.type(6)),
    "aten.hardswish.default": computed(lambda self: self * np.clip(self + 3, 0, 6) / self.dtype.type(6)),
    "aten.hardshrink.default": (
        lambda self, lambd: np.where(np.abs(self) <= cast(lambd, self.dtype), self.dtype.type(0), self)
    ),
    "aten.masked_fill.Scalar .Tensor": lambda self, mask, value: np.where(
        cast(mask, BOOL), cast(value, self.dtype), self
    ),
    "aten.threshold.default": computed(
        lambda self, threshold, value: np.where(self <= cast(threshold, self.dtype), cast(value, self.dtype), self)
    ),
    "aten.allclose.default": lambda self, other, **options: bool(np.all(isclose(self, other, **options))),
}
