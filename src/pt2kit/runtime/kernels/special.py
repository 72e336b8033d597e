"""Kernels: error functions, gamma functions and other special functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pt2kit.errors import UnsupportedError
from pt2kit.runtime.arrays import (
    Array,
    ForeignArray,
    asarray,
    double,
    floating,
    in_doubles,
    in_floats,
    operands,
    promoted_floats,
    require,
)
from pt2kit.runtime.table import kernel, write

_SMALL = 3.0
"""The x at which `erf` changes from a series in x to one of erfc in 1/x."""
_BLOCK = 1 << 14
"""Elements that `erf` computes at a time."""


@functools.cache
def _chebyshev(which: str, degree: int) -> Any:
    """Return Chebyshev coefficients of a smooth factor of an error function, fitted to Python's own."""
    if which in ("single", "near"):  # erf(x) / x over x*x in [0, 16] or [0, 9]
        low, high = 0.0, 16.0 if which == "single" else _SMALL**2
        one = lambda u: math.erf(math.sqrt(u)) / math.sqrt(u) if u > 0 else 2 / math.sqrt(math.pi)  # noqa: E731
    else:  # erfc(x) * exp(x*x) over t = 2 / (2 + x) from x = 26 to 3 (far), or from 3 to 0 (half)
        low, high = (2 / 28, 2 / (2 + _SMALL)) if which == "far" else (2 / (2 + _SMALL), 1.0)
        one = lambda t: math.erfc(2 / t - 2) * math.exp((2 / t - 2) ** 2)  # noqa: E731
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    values = [one(low + (high - low) * (node + 1) / 2) for node in nodes]
    return low, high, np.polynomial.chebyshev.chebfit(nodes, values, degree)


def _series(which: str, degree: int, x: Array) -> Any:
    """Return a sum of Chebyshev polynomials, by Clenshaw's recurrence with three buffers."""
    low, high, coefficients = _chebyshev(which, degree)
    place = (x - x.dtype.type(low)) * x.dtype.type(2 / (high - low)) - x.dtype.type(1)
    twice = place + place
    first, second = np.full_like(place, coefficients[-1]), np.zeros_like(place)
    for coefficient in coefficients[-2:0:-1]:
        np.subtract(np.multiply(twice, first), second, out=second)
        second += x.dtype.type(coefficient)
        first, second = second, first
    return place * first - second + x.dtype.type(coefficients[0])


def erf(x: Array) -> Any:
    """Return the error function of float32 or float64 numbers."""
    if x.size <= _BLOCK or isinstance(x, ForeignArray):
        return _erf(x)
    flat = x.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):  # twenty passes over what the caches hold
        result[start : start + _BLOCK] = _erf(flat[start : start + _BLOCK])
    return result.reshape(x.shape)


def _erf(x: Array) -> Any:
    if x.dtype == np.float32:
        inside = np.clip(x, -3.95, 3.95).astype(np.float32, copy=False)
        result = np.clip(inside * _series("single", 18, inside * inside), -1, 1)
        return np.where(np.isnan(x), x, result).astype(np.float32, copy=False)
    size = np.abs(x)
    near = x * _series("near", 32, np.minimum(x * x, _SMALL**2))
    return np.where(size < _SMALL, near, np.sign(x) * (1 - erfc(size)))


def scaled_erfc(x: Array) -> Any:
    """Return erfc(x) * exp(x*x) for x of at least 0."""
    t = 2 / (2 + np.minimum(x, 26))
    far = _series("far", 20, np.minimum(t, 2 / (2 + _SMALL)))
    near = _series("half", 24, np.maximum(t, 2 / (2 + _SMALL)))
    # Beyond 26, the asymptotic series.
    big = np.maximum(x, 26)
    tail = (1 - 0.5 / big**2 + 0.75 / big**4 - 1.875 / big**6) / (big * math.sqrt(math.pi))
    return np.where(x > 26, tail, np.where(x > _SMALL, far, near))


def erfc(x: Array) -> Any:
    """Return the complementary error function."""
    y = x.astype(np.float64)
    size = np.abs(y)
    value = scaled_erfc(size) * np.exp(-size * size)
    return np.where(y < 0, 2 - value, value).astype(x.dtype)


@kernel("aten.special_erfcx.default", adapt=in_doubles)
def erfcx(self: Array) -> Any:
    of_size = scaled_erfc(np.abs(self))
    return np.where(self < 0, 2 * np.exp(self * self) - of_size, of_size)


@kernel("aten.special_log_ndtr.default", adapt=in_doubles)
def log_ndtr(self: Array) -> Any:
    t = self * math.sqrt(0.5)
    low = np.log(scaled_erfc(np.maximum(-t, 0)) / 2) - t * t
    return np.where(self < -1, low, np.log1p(-erfc(np.maximum(t, -1)) / 2))


@kernel("aten.erfinv.default", adapt=in_doubles)
def erfinv(self: Array) -> Any:
    y = np.abs(self)
    tail = np.clip(1 - y, 1e-17, 1)
    # Winitzki's estimate, then Halley's steps on erfc(x) - tail, near 0 on y - erf(x).
    a = 0.147
    log = np.log(tail * (1 + np.minimum(y, 1)))
    half = 2 / (math.pi * a) + log / 2
    x = np.sqrt(np.sqrt(half * half - log / a) - half)
    for _ in range(3):
        error = np.where(y < 0.5, y - erf(x), erfc(x) - tail)
        step = error / (-2 / math.sqrt(math.pi) * np.exp(-x * x))
        x = x - step / (1 + x * step)
    x = np.where(y == 1, np.inf, np.where(y > 1, np.nan, x))
    return np.copysign(x, self)


@kernel("aten.lgamma.default", adapt=in_doubles)
def lgamma(self: Array) -> Any:
    if isinstance(self, ForeignArray):
        return self.lgamma()

    def one(value: float) -> float:
        if math.isnan(value):
            return value
        if math.isinf(value) or (value <= 0 and value == math.floor(value)):
            return math.inf
        return math.lgamma(value)

    return np.vectorize(one, otypes=[np.float64])(self)


@kernel("aten.mvlgamma.default", adapt=in_floats)
def mvlgamma(self: Array, p: int) -> Any:
    terms = [lgamma(asarray(self - i / 2)) for i in range(p)]
    return sum(terms) + p * (p - 1) / 4 * math.log(math.pi)


@kernel("aten.digamma.default", adapt=in_doubles)
def digamma(self: Array) -> Any:
    x = self
    pole = (x <= 0) & (x == np.floor(x))
    value, y = np.zeros_like(x), np.where(pole, 1.0, np.where(x < 0, 1 - x, x))
    for _ in range(10):
        small = y < 10
        value = value - np.where(small, 1 / y, 0)
        y = np.where(small, y + 1, y)
    inverse = 1 / (y * y)
    tail = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    value = value + np.log(y) - 0.5 / y - tail
    fraction = x - np.trunc(x)
    value = np.where(x < 0, value - np.pi / np.tan(np.pi * fraction), value)
    return np.where(pole, np.where(x == 0, -np.copysign(np.inf, x), np.nan), value)


@kernel("aten.special_zeta.default .self_scalar .other_scalar", adapt=promoted_floats)
def zeta(self: Array, other: Array) -> Any:
    s, q = double(self), double(other)
    total: Any = 0.0
    for k in range(12):  # then Euler's and Maclaurin's tail
        total = total + (q + k) ** -s
    y = q + 12
    total = total + y ** (1 - s) / (s - 1) + 0.5 * y**-s
    factor, power = s, y ** (-s - 1)
    for k, bernoulli in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)):
        total = total + bernoulli * factor * power
        factor, power = factor * (s + 2 * k + 1) * (s + 2 * k + 2), power / (y * y)
    integer = (q <= 0) & (q == np.floor(q))
    undefined = (s < 1) | ((q < 0) & ~integer & (s != np.floor(s)))
    return np.where(s == 1, np.inf, np.where(undefined, np.nan, np.where(integer, np.inf, total)))


@kernel("aten.polygamma.default")
def polygamma(n: int, self: Array) -> Any:
    if n == 0:
        return digamma(self)
    require(n >= 0, f"expected an order of at least 0, got {n}")
    return (-1.0) ** (n + 1) * math.factorial(n) * zeta(np.asarray(float(n + 1)), double(self))


_OF_SCIPY: Final = {
    "igamma": "gammainc", "igammac": "gammaincc", "special_airy_ai": "airy", "special_bessel_j0": "j0",
    "special_bessel_j1": "j1", "special_bessel_y0": "y0", "special_bessel_y1": "y1", "special_i0e": "i0e",
    "special_i1": "i1", "special_i1e": "i1e", "special_modified_bessel_i1": "i1", "special_modified_bessel_k0": "k0",
    "special_modified_bessel_k1": "k1", "special_scaled_modified_bessel_k0": "k0e",
    "special_scaled_modified_bessel_k1": "k1e",
}  # fmt: skip
"""Operator -> the function of SciPy that computes it; of several results the first."""


def _of_scipy(name: str) -> Callable[..., Any]:
    """Return the kernel of a function of SciPy, which is looked for when the kernel is called."""

    def run(self: Array, other: Array | None = None) -> Any:
        try:
            from scipy import special
        except ImportError:
            message = "expected the package scipy, which is not installed: pip install 'pt2kit[scipy]'"
            raise UnsupportedError(message) from None
        arrays, _ = operands(*(one for one in (self, other) if one is not None), floats=True)
        found = getattr(special, name)(*arrays)
        return found[0] if isinstance(found, tuple) else found

    return run


for _operator, _name in _OF_SCIPY.items():
    kernel(f"aten.{_operator}.default")(_of_scipy(_name))


KERNELS: Final = {
    "aten.erf.default": in_floats(lambda self: erf(self)),
    "aten.erfc.default": in_floats(lambda self: erfc(self)),
    "aten.special_ndtr.default": in_doubles(lambda self: 0.5 * erfc(-self * math.sqrt(0.5))),
    "aten.special_ndtri.default": in_doubles(lambda self: math.sqrt(2) * erfinv(2 * self - 1)),
    "aten.i0.default aten.special_modified_bessel_i0.default": in_doubles(lambda self: np.i0(self).reshape(self.shape)),
    "aten.polygamma_.default": lambda self, n: write(self, polygamma(n, self)),
    "aten.sinc.default": lambda self: np.sinc(floating(self)),
}
