"""Calls that make numbers out of numbers of the file -> these numbers: the masks by which buffers are filled.

A decomposed `select_scatter` compares `arange` with an index, and `where` takes one value or the other. What is
computed here is exact: integers that stay far from the limits of their type, and truth values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Final

from pt2kit.checks.shadows import are_ints
from pt2kit.errors import Pt2Error
from pt2kit.schema import ScalarType
from pt2kit.tensors.view import TensorView

MAX_ELEMENTS: Final = 1 << 16
"""Elements of one array of known numbers."""

_LARGEST: Final = 1 << 24
EXACT: Final = frozenset((ScalarType.LONG, ScalarType.INT, ScalarType.BOOL, None))
"""Types of numbers that are followed; None where a call names none."""
_BINARY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
        "add": "add", "sub": "subtract", "mul": "multiply", "remainder": "remainder", "fmod": "fmod",
        "floor_divide": "floor_divide", "logical_and": "logical_and", "logical_or": "logical_or",
        "logical_xor": "logical_xor", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
        "bitwise_xor": "bitwise_xor", "__and__": "bitwise_and", "__or__": "bitwise_or",
        "minimum": "minimum", "maximum": "maximum",
    }
)  # fmt: skip
_UNARY: Final[Mapping[str, str]] = MappingProxyType(
    {"logical_not": "logical_not", "neg": "negative", "signbit": "signbit", "abs": "absolute"}
)


def made(operator: str, call: Mapping[str, Any], operands: Sequence[Any]) -> Any:
    """The numbers that a call gives; None where they are not known.

    Args:
        operator: without overload ("aten.eq").
        call: the arguments that are plain numbers and lists, by name.
        operands: those by place that are tensors or numbers: arrays, ints, bools; None for what is not known.
    """
    name = operator.partition(".")[2]
    if call.get("dtype") not in EXACT:
        return None
    if name in ("arange", "iota"):
        return _range(name, call)
    if not operands or any(operand is None for operand in operands):
        return None
    function = _functions().get(name)
    if function is None or call.get("alpha", 1) != 1:
        return None
    try:
        result = function(*operands)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    if call.get("dtype") is not None and result is not None:
        result = result.astype(bool if call["dtype"] == ScalarType.BOOL else "int64")
    return result if _is_exact(result) else None


def _range(name: str, call: Mapping[str, Any]) -> Any:
    import numpy

    if name == "iota":
        start, step, length = call.get("start", 0), call.get("step", 1), call.get("length")
        if any(type(value) is not int for value in (start, step, length)):
            return None
        end = start + step * length
    else:
        start, end, step = call.get("start", 0), call.get("end"), call.get("step", 1)
        if any(type(value) is not int for value in (start, end, step)):
            return None
    if not step or abs(start) > _LARGEST or abs(end) > _LARGEST or abs((end - start) // step) >= MAX_ELEMENTS:
        return None
    return numpy.arange(start, end, step)


def _functions() -> Mapping[str, Callable[..., Any]]:
    import numpy

    return {
        **{name: _of_two(getattr(numpy, function)) for name, function in _BINARY.items()},
        **{name: _of_one(getattr(numpy, function)) for name, function in _UNARY.items()},
        "bitwise_not": _of_one(lambda value: ~value),
        "where": _chosen,
        "scalar_tensor": _of_one(lambda value: value),
        "convert_element_type": _of_one(lambda value: value),
        "_to_copy": _of_one(lambda value: value),
        "clone": _of_one(lambda value: value),
        "lift_fresh_copy": _of_one(lambda value: value),
    }


def _of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(first: Any, second: Any, *rest: Any) -> Any:
        import numpy

        if rest or numpy.broadcast(first, second).size > MAX_ELEMENTS:
            return None
        with numpy.errstate(all="raise"):
            try:
                return function(first, second)
            except FloatingPointError:
                return None

    return apply


def _chosen(condition: Any, first: Any, second: Any) -> Any:
    import numpy

    fits = numpy.broadcast(condition, first, second).size <= MAX_ELEMENTS
    return numpy.where(condition, first, second) if fits else None


def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(value: Any, *rest: Any) -> Any:
        import numpy

        return None if rest else function(numpy.asarray(value))

    return apply


def _is_exact(result: Any) -> bool:
    import numpy

    if not isinstance(result, (numpy.ndarray, numpy.generic)) or result.size > MAX_ELEMENTS:
        return False
    if result.dtype == bool:
        return True
    return result.dtype == numpy.int64 and (not result.size or int(numpy.abs(result).max()) <= _LARGEST)


def stored(payload: TensorView) -> Any:
    """The numbers of a tensor of the file, as they are; None where they are not followed."""
    if payload.dtype not in EXACT or payload.numel > MAX_ELEMENTS:
        return None
    try:
        numbers = payload.numpy()
    except Pt2Error:
        return None
    numbers = numbers if numbers.dtype == bool else numbers.astype("int64")
    return numbers if _is_exact(numbers) else None


def filled(value: Any, sizes: Sequence[int | None] | None) -> Any:
    """An array of one number, with one element for a symbol's dimension; None where it is not known."""
    import numpy

    if sizes is None or type(value) not in (int, bool) or abs(value) > _LARGEST:
        return None
    shape = [1 if size is None else size for size in sizes]
    return numpy.full(shape, value) if prod(shape) <= MAX_ELEMENTS else None


def restrided(numbers: Any, call: Mapping[str, Any]) -> Any:
    """What `as_strided` gives of numbers that lie in order; None where it is not known."""
    from numpy.lib.stride_tricks import as_strided

    sizes, strides, offset = call.get("size"), call.get("stride"), call.get("storage_offset") or 0
    if not are_ints(sizes) or not are_ints(strides) or len(sizes) != len(strides) or type(offset) is not int:
        return None
    # Only of numbers in one row, just made, it is certain how they lie.
    if numbers.base is not None or numbers.ndim != 1 or min((*sizes, *strides, offset), default=0) < 0 or 0 in sizes:
        return None
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if last >= numbers.size or prod(sizes) > MAX_ELEMENTS:
        return None
    flat = numbers.reshape(-1)[offset:]
    return as_strided(flat, sizes, [stride * flat.itemsize for stride in strides]).copy()
