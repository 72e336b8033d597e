"""Kernels: comparisons, logical and bitwise operators, tests of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pt2kit.runtime.arrays import BOOL, Array, asarray, cast, computed, is_complex, kind, promoted, reserve, wide
from pt2kit.runtime.table import kernel


def _of_truth(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Array, other: Array) -> Any:
        reserve(np.broadcast_shapes(self.shape, other.shape), BOOL)
        return function(cast(self, BOOL), cast(other, BOOL))

    return run


@kernel("aten.bitwise_left_shift.Tensor .Tensor_Scalar .Scalar_Tensor aten.__lshift__.Tensor .Scalar", adapt=promoted)
def left_shift(self: Array, other: Array) -> Any:
    if kind(self.dtype) == 2:
        return self * np.exp2(other)
    inside = _in_range(self, other)
    return np.where(inside, np.left_shift(self, np.where(inside, other, 0).astype(self.dtype)), 0)


@kernel("aten.bitwise_right_shift.Tensor .Tensor_Scalar .Scalar_Tensor aten.__rshift__.Tensor .Scalar", adapt=promoted)
def right_shift(self: Array, other: Array) -> Any:
    if kind(self.dtype) == 2:
        return self / np.exp2(other)
    is_fitting, most = _in_range(self, other), self.dtype.itemsize * 8 - 1
    shifted = np.right_shift(self, np.where(is_fitting, other, most).astype(self.dtype))
    # Nothing is left of a number without a sign, not even its first bit.
    return shifted if self.dtype.kind == "i" else np.where(is_fitting, shifted, np.zeros_like(shifted))


def _in_range(a: Array, b: Array) -> Any:
    return (b >= 0) & (b < a.dtype.itemsize * 8)


def _test(function: Callable[..., Any], of_integers: bool) -> Callable[[Array], Any]:
    return lambda self: np.full(self.shape, of_integers) if kind(self.dtype) < 2 else function(wide(self))


for _name in ("isfinite", "isinf", "isnan", "isneginf", "isposinf"):
    kernel(f"aten.{_name}.default")(_test(getattr(np, _name), _name == "isfinite"))


@kernel("aten.isclose.default", adapt=computed)
def isclose(self: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    reserve(np.broadcast_shapes(self.shape, other.shape))
    if kind(self.dtype) < 2 and not rtol and not atol:
        return self == other
    return np.isclose(self, other, rtol, atol, equal_nan)


@kernel("aten.allclose.default")
def allclose(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> bool:
    return bool(np.all(isclose(self, other, rtol, atol, equal_nan)))


@kernel("aten.isin.Tensor_Tensor .Tensor_Scalar .Scalar_Tensor")
def isin(elements: Any, test_elements: Any, invert: bool) -> Any:
    return np.isin(wide(asarray(elements)), wide(asarray(test_elements)), invert=invert)


KERNELS: Final = {
    "aten.equal.default": computed(lambda self, other: self.shape == other.shape and bool(np.all(self == other))),
    "aten.eq.Tensor .Scalar": promoted(np.equal),
    "aten.ne.Tensor .Scalar": promoted(np.not_equal),
    "aten.lt.Tensor .Scalar": promoted(np.less),
    "aten.le.Tensor .Scalar": promoted(np.less_equal),
    "aten.gt.Tensor .Scalar": promoted(np.greater),
    "aten.ge.Tensor .Scalar": promoted(np.greater_equal),
    "aten.bitwise_and.Tensor .Scalar .Scalar_Tensor aten.__and__.Tensor .Scalar": promoted(np.bitwise_and),
    "aten.bitwise_or.Tensor .Scalar .Scalar_Tensor aten.__or__.Tensor .Scalar": promoted(np.bitwise_or),
    "aten.bitwise_xor.Tensor .Scalar .Scalar_Tensor aten.__xor__.Tensor .Scalar": promoted(np.bitwise_xor),
    "aten.logical_and.default": _of_truth(np.logical_and),
    "aten.logical_or.default": _of_truth(np.logical_or),
    "aten.logical_xor.default": _of_truth(np.logical_xor),
    "aten.bitwise_not.default": np.bitwise_not,
    "aten.logical_not.default": lambda self: ~cast(self, BOOL),
    "aten.isreal.default": lambda self: self.imag == 0 if is_complex(self) else np.ones(self.shape, BOOL),
}
