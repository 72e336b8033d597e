"""Vocabulary of the operator table's rows: functions and dtypes that rows of all families may use (`rows.py`)."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pt2kit.operators import facts, pointwise, promotion, views
from pt2kit.operators.facts import Mismatch, Sizes, Tensor, Unknown, like, may_be, require, shape_text, unlike_strides
from pt2kit.operators.pointwise import is_contiguous
from pt2kit.operators.promotion import BOOL, FLOAT, INT, category
from pt2kit.schema import Layout as Layout
from pt2kit.schema import MemoryFormat as MemoryFormat
from pt2kit.schema import ScalarType
from pt2kit.symbols import polynomials
from pt2kit.symbols.polynomials import Size, unknown
from pt2kit.tensors.dtypes import short_name

DTYPE_NAMES: Final = MappingProxyType(
    {short_name(dtype): dtype for dtype in ScalarType if dtype is not ScalarType.UNKNOWN}
)


def is_tensor(value: Any) -> bool:
    """Return whether an argument is a tensor."""
    return isinstance(value, Tensor)


def is_number(value: Any) -> bool:
    """Return whether an argument is a known number."""
    return isinstance(value, (int, float))


def free(tensor: Tensor, sizes: Sizes | None = None, dtype: ScalarType | None = None) -> Tensor:
    """Return a new tensor of unknown strides, by default of the sizes and dtype of another one."""
    return unlike_strides(like(tensor, sizes, dtype))


def typed(tensor: Tensor, dtype: ScalarType | None) -> Tensor:
    """Return a tensor with another dtype; None if it is not known."""
    return Tensor(tensor.sizes, dtype, tensor.strides, tensor.device, tensor.offset, tensor.layout)


def with_places(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return values and where they were."""
    return values, typed(values, ScalarType.LONG)


def moved(tensor: Tensor, offset: Any = None) -> Tensor:
    """Return a tensor with another offset in its storage, by default an unknown one."""
    return Tensor(tensor.sizes, tensor.dtype, tensor.strides, tensor.device, offset, tensor.layout)


def some_of(self: Tensor) -> Size:
    """Return an unknown number of elements of a tensor."""
    count = self.numel
    return unknown(0, count) if isinstance(count, int) else unknown()


def one_dtype(*operands: Any) -> ScalarType | None:
    """Return the dtype that tensors share; None if one is unknown. Only tensors count, no numbers and missing operands.

    Raises:
        Mismatch: they have several.
    """
    dtypes = [one.dtype for one in operands if isinstance(one, Tensor)]
    known = [dtype for dtype in dtypes if dtype is not None]
    if any(dtype is not known[0] for dtype in known[1:]):
        names = " and ".join(sorted({dtype.name for dtype in known}))
        raise Mismatch(f"expected operands of one dtype, got {names}", "dtype")
    return known[0] if len(known) == len(dtypes) else None


def require_one_dtype(*tensors: Tensor | None) -> None:
    """Leave the result unknown if operands have several dtypes.

    Raises:
        Unknown: they have.
    """
    if len({one.dtype for one in tensors if one is not None}) > 1:
        raise Unknown("operands of several dtypes")


def if_contiguous(result: Tensor, *operands: Tensor | None) -> Tensor:
    """Return a result without its strides unless all operands are contiguous: otherwise torch's releases differ."""
    return result if all(one is None or is_contiguous(one) for one in operands) else unlike_strides(result)


def complex_dtype(tensor: Tensor) -> ScalarType | None:
    """Return the complex dtype with parts of the dtype of a tensor; None if that is not known."""
    return None if tensor.dtype is None else promotion.complex_of(tensor.dtype)


def is_float(tensor: Tensor) -> bool:
    """Return whether a tensor has float or complex elements; those of unknown dtype may have."""
    return tensor.dtype is None or category(tensor.dtype) >= FLOAT


def chosen(results: Sequence[Any], mask: Sequence[bool]) -> tuple[Any, ...]:
    """Return the results that a mask asks for, and None for the others."""
    return tuple([one if is_asked else None for one, is_asked in zip(results, mask, strict=True)])


def replaced(sizes: Sizes, place: int, *by: Any) -> tuple[Any, ...]:
    """Return sizes with others in place of one: none leaves it out."""
    return (*sizes[:place], *by, *sizes[place + 1 :])


def require_fit(result: Tensor, into: Tensor) -> None:
    """Refuse a result that cannot be written to a tensor.

    Raises:
        Mismatch: the tensor would have to grow, or its dtype is of a lower category.
    """
    fits = may_be(result.sizes, into.sizes)
    require(fits, "sizes", f"expected a result of sizes {shape_text(into.sizes)}", result)
    if result.dtype is None or into.dtype is None:
        return
    categories = category(result.dtype), category(into.dtype)
    if (categories[0] > categories[1] and categories[0] != INT) or categories == (INT, BOOL):
        raise Mismatch(f"expected a result of dtype {short_name(into.dtype)}, got {short_name(result.dtype)}", "dtype")


NAMES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        **vars(builtins),
        **globals(),
        **{
            name: value
            for module in (polynomials, promotion, pointwise, views, facts)
            for name, value in vars(module).items()
        },
        **DTYPE_NAMES,
    }
)
"""Name in a row -> what it stands for."""
