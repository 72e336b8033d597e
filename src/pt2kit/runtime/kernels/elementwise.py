"""Kernels: arithmetic, rounding, powers and trigonometric functions, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import (
    ARRAYS,
    BOOL,
    Array,
    binary,
    cast,
    complex_type,
    floating,
    is_complex,
    is_known,
    kind,
    operands,
    real_type,
    require,
    reserve,
    result_type,
    unary,
    wide,
)
from pt2kit.runtime.table import kernel, kernels

_FLOATING: dict[str, Callable[[Array], Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "deg2rad": np.deg2rad, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "rad2deg": np.rad2deg,
    "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
"""Functions whose results are floating-point numbers, also of integers."""


def _unary(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    return lambda self: function(floating(self))


for _name, _function in _FLOATING.items():
    kernel(f"aten.{_name}.default")(_unary(_function))
    if _name not in ("deg2rad", "rad2deg"):
        kernel(f"prims.{_name}.default")(_unary(_function))


# Arithmetic.


@kernel("aten.add.Tensor .Scalar")
def add(self: Array, other: Any, alpha: Any = 1) -> Any:
    (a, b), _ = operands(self, other)
    if a.dtype == BOOL:
        return a | b if alpha else a | np.zeros_like(b)
    return a + b if alpha == 1 else a + b * cast(alpha, a.dtype)


@kernel("aten.div.Tensor .Scalar")
def div(self: Array, other: Any) -> Any:
    (a, b), _ = operands(self, other, floats=True)
    return a / b


@kernel("aten.div.Tensor_mode .Scalar_mode")
def div_mode(self: Array, other: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    if rounding_mode != "trunc":
        raise OperatorError(f"expected the rounding mode trunc or floor, got {rounding_mode[:40]!a}")
    (a, b), dtype = operands(self, other)
    if kind(a.dtype) > 1:
        return np.trunc(wide(cast(a / b, dtype)))
    _check_divisor(b)
    quotient = a // b
    return quotient + ((quotient * b != a) & (quotient < 0)).astype(a.dtype)


@kernel("aten.floor_divide.default .Scalar")
def floor_divide(self: Array, other: Any) -> Any:
    (a, b), _ = operands(self, other)
    if kind(a.dtype) <= 1:
        _check_divisor(b)
        return a // b
    # numpy's `floor_divide` by zero returns nan, torch's the result of division
    return np.where(b == 0, a / b, a // b)


@kernel("aten.remainder.Tensor .Scalar .Scalar_Tensor")
def remainder(self: Any, other: Any) -> Any:
    (a, b), _ = operands(self, other)
    if kind(a.dtype) <= 1:
        _check_divisor(b)
    return np.remainder(a, b)


@kernel("aten.fmod.Tensor .Scalar")
def fmod(self: Array, other: Any) -> Any:
    (a, b), _ = operands(self, other)
    if kind(a.dtype) <= 1:
        _check_divisor(b)
    return np.fmod(a, b)


def _check_divisor(b: Array) -> None:
    require(np.all(b), "expected divisors other than 0, got 0")


@kernel("aten.pow.Tensor_Tensor .Tensor_Scalar .Scalar")
def pow_(self: Any, exponent: Any) -> Any:
    (a, b), _ = operands(self, exponent)
    if kind(a.dtype) > 1:
        if not isinstance(exponent, ARRAYS) and exponent in (2, 0.5) and kind(a.dtype) == 2:
            return a * a if exponent == 2 else np.sqrt(a)
        return np.power(a, b)
    if a.dtype == BOOL:
        return a | ~b
    if not isinstance(exponent, ARRAYS) and exponent < 0:
        raise OperatorError(f"expected an exponent of at least 0 for integers, got {exponent}")
    negative = b < 0
    if is_known(negative) and not np.any(negative):
        return np.power(a, b)
    powers = np.power(a, np.where(negative, 0, b).astype(b.dtype))
    reciprocal = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(negative, reciprocal, powers)


@kernel("aten.float_power.Tensor_Tensor .Tensor_Scalar .Scalar")
def float_power(self: Any, exponent: Any) -> Any:
    dtype = np.dtype("complex128" if kind(result_type(self, exponent)) == 3 else "float64")
    return np.power(cast(self, dtype), cast(exponent, dtype))


@kernel("aten.addcmul.default")
def addcmul(self: Array, tensor1: Array, tensor2: Array, value: Any = 1) -> Any:
    (a, b, c), _ = operands(self, tensor1, tensor2)
    return a + cast(value, a.dtype) * b * c


@kernel("aten.addcdiv.default")
def addcdiv(self: Array, tensor1: Array, tensor2: Array, value: Any = 1) -> Any:
    (a, b, c), _ = operands(self, tensor1, tensor2)
    return a + cast(value, a.dtype) * (b / c)


@kernel("aten.lerp.Tensor .Scalar")
def lerp(self: Array, end: Array, weight: Any) -> Any:
    (a, b), _ = operands(self, end)
    step = cast(weight, a.dtype)
    # As torch: each end is exact at its own side.
    return np.where(np.abs(step) < 0.5, a + step * (b - a), b - (b - a) * (1 - step))


# Signs, parts and rounding.


@kernel("aten.sign.default aten.sgn.default")
def sign(self: Array) -> Any:
    if self.dtype == BOOL:
        return self
    x = wide(self)
    if is_complex(x):
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    return np.nan_to_num(np.sign(x), nan=0.0, posinf=1.0, neginf=-1.0) if kind(x.dtype) == 2 else np.sign(x)


@kernel("aten.angle.default")
def angle(self: Array) -> Any:
    x = floating(self)
    return np.angle(x) if is_complex(x) else np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0))


def _rounding(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    return lambda self: self.copy() if kind(self.dtype) < 2 else function(wide(self))


for _name, _function in {"ceil": np.ceil, "floor": np.floor, "trunc": np.trunc}.items():
    kernel(f"aten.{_name}.default", f"prims.{_name}.default")(_rounding(_function))


@kernel("aten.round.decimals aten.special_round.default")
def round_decimals(self: Array, decimals: int = 0) -> Any:
    if kind(self.dtype) < 2:
        return self.copy()
    x, scale = wide(self), 10.0 ** abs(decimals)
    return np.round(x / scale) * scale if decimals < 0 else np.round(x * scale) / scale


@kernel("aten.frexp.Tensor")
def frexp(self: Array) -> Any:
    mantissa, exponent = np.frexp(wide(self))
    return cast(mantissa, self.dtype), cast(exponent, np.dtype("int32"))


@kernel("aten.nan_to_num.default")
def nan_to_num(self: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    if kind(self.dtype) < 2:
        return self.copy()
    x = wide(self)
    import ml_dtypes

    limits = ml_dtypes.finfo(real_type(self.dtype))
    most = float(limits.max) if posinf is None else posinf
    least = float(limits.min) if neginf is None else neginf
    return np.nan_to_num(x, nan=nan or 0.0, posinf=most, neginf=least)


# Complex numbers.


@kernel("aten._conj.default aten._conj_physical.default aten.conj.default")
def conj(self: Array) -> Any:
    return np.conjugate(self) if is_complex(self) else self


@kernel("aten.complex.default")
def complex_(real: Array, imag: Array) -> Any:
    (a, b), _ = operands(real, imag)
    return _joined(a, b)


def _joined(real: Array, imag: Array) -> Array:
    real, imag = np.broadcast_arrays(real, imag)
    return np.stack((real, imag), -1).view(complex_type(real.dtype))[..., 0]


@kernel("aten.polar.default")
def polar(abs: Array, angle: Array) -> Any:
    (size, phase), _ = operands(abs, angle)
    return _joined(size * np.cos(phase), size * np.sin(phase))


# Functions of two numbers.

_BINARY: dict[str, tuple[Callable[..., Any], bool]] = {
    "atan2.default": (np.arctan2, True), "maximum.default": (np.maximum, False), "minimum.default": (np.minimum, False),
    "max.other": (np.maximum, False), "min.other": (np.minimum, False),
    "fmax.default": (np.fmax, False), "fmin.default": (np.fmin, False), "hypot.default": (np.hypot, False),
    "copysign.Tensor": (np.copysign, True), "copysign.Scalar": (np.copysign, True),
    "logaddexp2.default": (np.logaddexp2, True),
    "gcd.default": (np.gcd, False), "lcm.default": (np.lcm, False),
}  # fmt: skip


def _two(function: Callable[..., Any], floats: bool) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(*operands(self, other, floats=floats)[0])


for _name, (_two_argument, _floats) in _BINARY.items():
    kernel(f"aten.{_name}")(_two(_two_argument, _floats))


@kernel("aten.logaddexp.default")
def logaddexp(self: Array, other: Array) -> Any:
    (a, b), _ = operands(self, other, floats=True)
    if not is_complex(a):
        return np.logaddexp(a, b)
    high, low = np.where(a.real >= b.real, a, b), np.where(a.real >= b.real, b, a)
    same = (high == low) & np.isinf(high.real)
    return np.where(same, high, high + np.log1p(np.exp(low - high)))


@kernel("aten.heaviside.default")
def heaviside(self: Array, values: Array) -> Any:
    (a, b), _ = operands(self, values)
    return np.where(a == 0, b, (a > 0).astype(a.dtype))


# Clamping and choosing.


@kernel("aten.clamp.default .Tensor")
def clamp(self: Array, min: Any = None, max: Any = None) -> Any:
    bounds = [bound for bound in (min, max) if bound is not None]
    (x, *arrays), _ = operands(self, *bounds)
    if min is not None:
        x = np.maximum(x, arrays.pop(0))
    return x if max is None else np.minimum(x, arrays[0])


@kernel("aten.where.self .Scalar .ScalarSelf .ScalarOther")
def where(condition: Array, self: Any, other: Any) -> Any:
    dtype = result_type(self, other)
    a, b = cast(self, dtype), cast(other, dtype)
    if condition.shape != a.shape or a.shape != b.shape:
        reserve(np.broadcast_shapes(condition.shape, a.shape, b.shape), dtype)
    return np.where(cast(condition, BOOL), a, b)


@kernel("aten.masked_fill.Scalar .Tensor")
def masked_fill(self: Array, mask: Array, value: Any) -> Any:
    filled = cast(value, self.dtype)
    reserve(np.broadcast_shapes(self.shape, mask.shape), self.dtype)
    return np.where(cast(mask, BOOL), filled, self)


@kernel("aten._assert_async.default .msg aten._assert_scalar.default")
@kernel("aten._functional_assert_async.msg aten._functional_assert_scalar.default")
def assert_(self: Any, assert_msg: str = "", dep_token: Any = None) -> Any:
    require(np.all(self), f"assertion failed: {assert_msg[:400]!a}")
    return dep_token


kernels(
    {
        "aten.square.default": lambda self: pow_(self, 2),
        "aten.abs.default": lambda self: np.abs(wide(self)),
        "aten.neg.default": lambda self: np.negative(wide(self)),
        "aten.round.default": lambda self: _rounding(np.round)(self),
        "aten.resolve_conj.default aten.resolve_neg.default": lambda self: self,
        "aten.nextafter.default": lambda self, other: np.nextafter(self, other),
        "aten.clamp_min.default .Tensor": lambda self, min: clamp(self, min),
        "aten.clamp_max.default .Tensor": lambda self, max: clamp(self, None, max),
    }
)


kernels(
    {
        "aten.signbit.default": lambda self: np.signbit(self) if kind(self.dtype) == 2 else self < 0,
        "aten.frac.default": lambda self: self - np.trunc(self),
    },
    unary(wide),
)


kernels(
    {
        "aten.sub.Tensor .Scalar": lambda self, other, alpha=1: (
            self - other if alpha == 1 else self - other * cast(alpha, self.dtype)
        ),
        "aten.rsub.Tensor .Scalar": lambda self, other, alpha=1: other - self * cast(alpha, self.dtype),
        "aten.mul.Tensor .Scalar": lambda self, other: self * other,
    },
    binary(),
)


kernels(
    {
        "aten.ldexp.Tensor": lambda self, other: self * np.exp2(other),
        "aten.xlogy.Tensor .Scalar_Self .Scalar_Other aten.special_xlogy.default .self_scalar .other_scalar": (
            lambda self, other: np.where(np.isnan(other), np.nan, np.where(self == 0, 0, self * np.log(other)))
        ),
        "aten.special_xlog1py.default .self_scalar .other_scalar": (
            lambda self, other: np.where(np.isnan(other), np.nan, np.where(self == 0, 0, self * np.log1p(other)))
        ),
    },
    binary(floats=True),
)
