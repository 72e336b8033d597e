"""Kernels: error functions, gamma functions and other special functions, most of them by SciPy."""

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
)
from pt2kit.runtime.table import kernel, write

_BLOCK = 1 << 14
"""Elements of float32 that `erf` computes at a time."""


def _by_element(function: Callable[[float], float], of_jax: str) -> Callable[[Array], Any]:
    """Return a function of arrays in double precision: for each element Python's own, or that of jax of some name."""
    of_elements = np.vectorize(function, otypes=[np.float64])
    return lambda x: x.special(of_jax) if isinstance(x, ForeignArray) else of_elements(x)


def _log_gamma(x: float) -> float:
    is_pole = x <= 0 and x == math.floor(x) if math.isfinite(x) else not math.isnan(x)
    return math.inf if is_pole else math.lgamma(x)


_precise_erf, erfc = _by_element(math.erf, "erf"), _by_element(math.erfc, "erfc")
lgamma = _by_element(_log_gamma, "gammaln")


@functools.cache
def _chebyshev() -> Any:
    """Return Chebyshev coefficients of erf(x) / x as a function of x*x in [0, 16], fitted to Python's own."""
    nodes = np.cos(np.pi * (np.arange(19) + 0.5) / 19)
    roots = np.sqrt(8 + 8 * nodes)
    return np.polynomial.chebyshev.chebfit(nodes, _precise_erf(roots) / roots, 18)


def erf(x: Array) -> Any:
    """Return the error function of float32 or float64 numbers."""
    if x.dtype != np.float32:
        return _precise_erf(x)
    if x.size <= _BLOCK or isinstance(x, ForeignArray):
        return _quick_erf(x)
    flat = x.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):  # twenty passes over what the caches hold
        result[start : start + _BLOCK] = _quick_erf(flat[start : start + _BLOCK])
    return result.reshape(x.shape)


def _quick_erf(x: Array) -> Any:
    """Return the error function of float32 numbers, by Clenshaw's recurrence with three buffers."""
    inside = np.clip(x, -3.95, 3.95).astype(np.float32, copy=False)
    place = inside * inside * np.float32(1 / 8) - np.float32(1)
    twice, coefficients = place + place, _chebyshev()
    first, second = np.full_like(place, coefficients[-1]), np.zeros_like(place)
    for coefficient in coefficients[-2:0:-1]:
        np.subtract(np.multiply(twice, first), second, out=second)
        second += np.float32(coefficient)
        first, second = second, first
    result = np.clip(inside * (place * first - second + np.float32(coefficients[0])), -1, 1)
    return np.where(np.isnan(x), x, result).astype(np.float32, copy=False)


@kernel("aten.mvlgamma.default", adapt=in_floats)
def mvlgamma(self: Array, p: int) -> Any:
    terms = [lgamma(double(asarray(self - i / 2))) for i in range(p)]
    return sum(terms) + p * (p - 1) / 4 * math.log(math.pi)


_OF_SCIPY: Final = {
    "digamma": "digamma",
    "erfinv": "erfinv",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "special_airy_ai": "airy",
    **{f"special_{name}": name for name in ("erfcx", "i0e", "i1", "i1e", "log_ndtr", "ndtri")},
    **{f"special_bessel_{name}": name for name in ("j0", "j1", "y0", "y1")},
    **{f"special_modified_bessel_{name}": name for name in ("i1", "k0", "k1")},
    **{f"special_scaled_modified_bessel_{name}": f"{name}e" for name in ("k0", "k1")},
}
"""Operator -> the function of SciPy that computes it; of several results the first."""


def _of_scipy(name: str, self: Any, other: Any = None) -> Any:
    """Return what a function of SciPy computes, or that of jax."""
    arrays, _ = operands(*(one for one in (self, other) if one is not None), floats=True)
    foreign = next((one for one in arrays if isinstance(one, ForeignArray)), None)
    if foreign is not None:
        return foreign.special(name, *arrays)
    try:
        from scipy import special
    except ImportError:
        message = "expected the package scipy, which is not installed: pip install 'pt2kit[scipy]'"
        raise UnsupportedError(message) from None
    found = getattr(special, name)(*arrays)
    return found[0] if isinstance(found, tuple) else found


def _polygamma(n: int, self: Array) -> Any:
    if n == 0:
        return _of_scipy("digamma", self)
    return (-1.0) ** (n + 1) * math.factorial(n) * _of_scipy("zeta", float(n + 1), double(self))


for _operator, _name in _OF_SCIPY.items():
    kernel(f"aten.{_operator}.default")(functools.partial(_of_scipy, _name))


KERNELS: Final = {
    "aten.erf.default": in_floats(lambda self: erf(self)),
    "aten.erfc.default": in_doubles(lambda self: erfc(self)),
    "aten.lgamma.default": in_doubles(lambda self: lgamma(self)),
    "aten.special_ndtr.default": in_doubles(lambda self: 0.5 * erfc(-self * math.sqrt(0.5))),
    "aten.i0.default aten.special_modified_bessel_i0.default": in_doubles(lambda self: np.i0(self)),
    "aten.special_zeta.default .self_scalar .other_scalar": functools.partial(_of_scipy, "zeta"),
    "aten.polygamma.default": lambda n, self: _polygamma(n, self),
    "aten.polygamma_.default": lambda self, n: write(self, _polygamma(n, self)),
    "aten.sinc.default": lambda self: np.sinc(floating(self)),
}
