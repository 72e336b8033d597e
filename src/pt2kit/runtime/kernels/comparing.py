"""Kernels: comparisons, logical and bitwise operators, tests of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pt2kit.runtime.arrays import BOOL, Array, asarray, cast, is_complex, kind, operands, reserve, wide
from pt2kit.runtime.table import kernel, kernels

_COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_LOGICAL: dict[str, Callable[..., Any]] = {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
_BITWISE: dict[str, Callable[..., Any]] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "__and__": np.bitwise_and, "__or__": np.bitwise_or, "__xor__": np.bitwise_xor,
}  # fmt: skip


def _compared(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(*operands(self, other)[0])


def _of_truth(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def run(self: Array, other: Array) -> Any:
        reserve(np.broadcast_shapes(self.shape, other.shape), BOOL)
        return function(cast(self, BOOL), cast(other, BOOL))

    return run


for _name, _function in _COMPARE.items():
    kernel(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_compared(_function))
for _name, _function in _LOGICAL.items():
    kernel(f"aten.{_name}.default")(_of_truth(_function))
for _name, _function in _BITWISE.items():
    kernel(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_compared(_function))
    if not _name.startswith("__"):
        kernel(f"aten.{_name}.Scalar_Tensor")(_compared(_function))


@kernel("aten.bitwise_left_shift.Tensor .Tensor_Scalar .Scalar_Tensor aten.__lshift__.Tensor .Scalar")
def left_shift(self: Any, other: Any) -> Any:
    (a, b), _ = operands(self, other)
    if kind(a.dtype) == 2:
        return a * np.exp2(b)
    return np.where(_in_range(a, b), np.left_shift(a, np.where(_in_range(a, b), b, 0).astype(a.dtype)), 0)


@kernel("aten.bitwise_right_shift.Tensor .Tensor_Scalar .Scalar_Tensor aten.__rshift__.Tensor .Scalar")
def right_shift(self: Any, other: Any) -> Any:
    (a, b), _ = operands(self, other)
    if kind(a.dtype) == 2:
        return a / np.exp2(b)
    most = a.dtype.itemsize * 8 - 1
    return np.right_shift(a, np.where(_in_range(a, b), b, most).astype(a.dtype))


def _in_range(a: Array, b: Array) -> Any:
    return (b >= 0) & (b < a.dtype.itemsize * 8)


def _test(function: Callable[..., Any], of_integers: bool) -> Callable[[Array], Any]:
    return lambda self: np.full(self.shape, of_integers) if kind(self.dtype) < 2 else function(wide(self))


for _name in ("isfinite", "isinf", "isnan", "isneginf", "isposinf"):
    kernel(f"aten.{_name}.default")(_test(getattr(np, _name), _name == "isfinite"))


@kernel("aten.isclose.default")
def isclose(self: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    a, b = wide(self), wide(other)
    reserve(np.broadcast_shapes(a.shape, b.shape))
    if kind(a.dtype) < 2 and not rtol and not atol:
        return a == b
    return np.isclose(a, b, rtol, atol, equal_nan)


@kernel("aten.allclose.default")
def allclose(self: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    return bool(np.all(isclose(self, other, rtol, atol, equal_nan)))


@kernel("aten.equal.default")
def equal(self: Array, other: Array) -> bool:
    return self.shape == other.shape and bool(np.all(wide(self) == wide(other)))


@kernel("aten.isin.Tensor_Tensor .Tensor_Scalar .Scalar_Tensor")
def isin(
    elements: Any = None,
    test_elements: Any = None,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    element: Any = None,
    test_element: Any = None,
) -> Any:
    found = elements if element is None else asarray(element)
    tested = test_elements if test_element is None else asarray(test_element)
    return np.isin(wide(found), wide(tested), invert=invert)


kernels(
    {
        "aten.bitwise_not.default": lambda self: np.bitwise_not(self),
        "aten.logical_not.default": lambda self: ~cast(self, BOOL),
        "aten.isreal.default": lambda self: self.imag == 0 if is_complex(self) else np.ones(self.shape, BOOL),
    }
)
