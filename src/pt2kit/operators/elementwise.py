"""Element-wise, activation and quantization rows of the operator table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pt2kit.operators.facts import Scalar, Symbolic, Tensor, Unknown, broadcast, expect, may_be, require
from pt2kit.operators.pointwise import pointwise
from pt2kit.operators.promotion import (
    BOOL,
    FLOAT,
    category,
    complex_of,
    float_type,
    number_type,
    require_kind,
    unsure,
)
from pt2kit.operators.vocabulary import one_dtype
from pt2kit.schema import ScalarType
from pt2kit.tensors.dtypes import short_name

DTypeRule = Callable[[ScalarType], ScalarType]


def of_kinds(result: DTypeRule, kinds: str) -> DTypeRule:
    """Return a rule for dtypes that refuses operands of other categories."""

    def rule(dtype: ScalarType) -> ScalarType:
        require_kind(dtype, kinds, "operands")
        return result(dtype)

    return rule


def kept(kinds: str, *operands: Any) -> Tensor:
    """Return an element-wise result of the promoted dtype."""
    return pointwise(*operands, dtype=of_kinds(lambda dtype: dtype, kinds))


def floated(kinds: str, *operands: Any) -> Tensor:
    """Return an element-wise result of floats: ints and bools are computed in the default dtype."""
    return pointwise(*operands, dtype=of_kinds(float_type, kinds))


def truths(kinds: str, *operands: Any) -> Tensor:
    """Return an element-wise result of bools."""
    return pointwise(*operands, dtype=of_kinds(lambda dtype: ScalarType.BOOL, kinds))


def double_dtype(dtype: ScalarType) -> ScalarType:
    """Return the dtype of `float_power`."""
    return complex_of(ScalarType.DOUBLE) if category(dtype) > FLOAT else ScalarType.DOUBLE


def added(self: Tensor, other: Any, alpha: Scalar = 1) -> Tensor:
    """Return a sum with `alpha * other`, whose factor is of no higher category than the result."""
    result = pointwise(self, other)
    if result.dtype is not None and not isinstance(alpha, Symbolic):
        least, dtype = category(number_type(alpha)), short_name(result.dtype)
        is_bool = least != BOOL or result.dtype is ScalarType.BOOL
        expect(is_bool, f"alpha: expected a number, got bool for {dtype}", "dtype")
        fits = least < FLOAT or category(result.dtype) >= least
        expect(fits, f"alpha: expected an integer for {dtype}, got {alpha}", "dtype")
    return result


def subtracted(self: Tensor, other: Any, alpha: Scalar = 1) -> Tensor:
    """Return a difference, of any operands but bools."""
    for name, operand in (("self", self), ("other", other)):
        is_bool = (operand.dtype if isinstance(operand, Tensor) else number_type(operand)) is ScalarType.BOOL
        expect(not is_bool, f"{name}: expected numbers, got bool", "dtype")
    return added(self, other, alpha)


def power(self: Any, exponent: Any) -> Tensor:
    """Return a power, whose exponent for integers is 0 or more; kernels and fake tensors differ for bools."""
    result = pointwise(self, exponent, dtype=lambda dtype: unsure(dtype) if dtype is ScalarType.BOOL else dtype)
    if isinstance(exponent, int) and isinstance(self, Tensor) and self.dtype is not None and exponent < 0:
        expect(category(self.dtype) >= FLOAT, f"exponent: expected 0 or more for integers, got {exponent}")
    return result


def alike(*operands: Any) -> Tensor:
    """Return an element-wise result of tensors of one dtype, and of one shape unless they have no dimensions."""
    tensors = [one for one in operands if isinstance(one, Tensor)]
    one_dtype(*tensors)
    shapes = [one.sizes for one in tensors if one.sizes]
    for sizes in shapes[1:]:
        require(may_be(sizes, shapes[0]), "sizes", "expected the same sizes", shapes[0], sizes)
    return pointwise(*tensors, dtype=tensors[0].dtype)


def gradient_of(kinds: str, *operands: Tensor | None) -> Tensor:
    """Return a gradient, if all operands have its sizes and dtype; kernels and releases do not agree on others.

    Raises:
        Mismatch: the operands do not broadcast.
        Unknown: they have different dtypes or sizes.
    """
    tensors = [one for one in operands if one is not None]
    first = tensors[0]
    broadcast(*[one.sizes for one in tensors])
    if any(one.dtype is not first.dtype or not may_be(one.sizes, first.sizes) for one in tensors):
        raise Unknown("the operands of a gradient have different dtypes or sizes")
    result = kept(kinds, *tensors)
    is_ordered = all(one.strides == first.strides for one in tensors)
    return result if is_ordered else Tensor(result.sizes, result.dtype, None, result.device)
