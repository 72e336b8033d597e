"""Numeric functions of expressions by name: `NUMERIC` of the table in `functions`, computed by `arithmetic`.

Rounding, floats and the functions that only torch has; their rules are those of Python's `math`, which torch calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pt2kit.errors import ExpressionError
from pt2kit.symbols.arithmetic import (
    MAX_BITS,
    Number,
    add,
    ceil_divide,
    checked,
    floor_divide,
    integers,
    modular_indexing,
    modulo,
    multiply,
    natural_power,
    power,
    real,
    shift_left,
    shift_right,
    to_float,
    true_divide,
    whole,
)
from pt2kit.symbols.functions import OPAQUE, PLAIN

Numeric = Callable[[Sequence[Number]], Number]


def is_dense(args: Sequence[Number]) -> Number:
    """Return 1 if strides, the second half of the arguments, lay out sizes, the first half, without gap or overlap;
    else 0.

    Source: torch/fx/experimental/symbolic_shapes.py 2.13 (a dimension of one element may have any stride).
    """
    numbers = integers(args)
    if len(numbers) % 2:
        raise ExpressionError(f"expected as many strides as sizes, got {len(numbers)} numbers")
    dim = len(numbers) // 2
    sizes, strides = numbers[:dim], numbers[dim:]
    if dim == 1:
        return int(strides[0] == 1 or sizes[0] < 2)
    expected = 1
    for stride, size in sorted(zip(strides, sizes, strict=True), key=lambda pair: pair[0]):
        if size == 1:
            continue
        if stride != expected:
            return 0
        expected = int(checked(expected * size))
    return 1


def round_decimal(args: Sequence[Number]) -> Number:
    """Return the first number rounded to that many decimals, ties to even; an int stays an int, the rest are floats."""
    number, digits = args[0], integers(args[1:])[0]
    if isinstance(number, int):
        if digits >= 0:
            return number
        return 0 if -digits > MAX_BITS else checked(round(number, digits))
    # No double has more than 1,075 digits on either side of its point.
    return checked(round(to_float(number), max(-1100, min(1100, digits))))


def _rounding(rounding: Callable[[Number], int]) -> Numeric:
    return lambda args: whole(rounding, args[0])


def _float_function(function: Callable[[float], float]) -> Numeric:
    return lambda args: checked(real(lambda: function(to_float(args[0]))))


def _alike(args: Sequence[Number]) -> Sequence[Number]:
    return [to_float(arg) for arg in args] if any(isinstance(arg, float) for arg in args) else args


def _absolute(args: Sequence[Number]) -> Number:
    value = args[0]
    return -value if value < 0 else value


def _log(args: Sequence[Number]) -> Number:
    return checked(real(lambda: math.log(to_float(args[0]), *(to_float(base) for base in args[1:]))))


def _table() -> Mapping[str, Numeric]:
    table: dict[str, Numeric] = {
        "Add": add,
        "Mul": multiply,
        "Max": lambda args: max(_alike(args)),
        "Min": lambda args: min(_alike(args)),
        "Abs": _absolute,
        "Identity": lambda args: args[0],
        "Pow": power,
        "FloorDiv": floor_divide,
        "CleanDiv": floor_divide,
        "CeilDiv": ceil_divide,
        "Mod": modulo,
        "PythonMod": modulo,
        "ModularIndexing": modular_indexing,
        "LShift": shift_left,
        "RShift": shift_right,
        "PowByNatural": natural_power,
        "floor": _rounding(math.floor),
        "FloorToInt": _rounding(math.floor),
        "ceiling": _rounding(math.ceil),
        "CeilToInt": _rounding(math.ceil),
        "TruncToInt": _rounding(math.trunc),
        "RoundToInt": _rounding(round),
        "Round": _rounding(round),
        "RoundDecimal": round_decimal,
        "ToFloat": lambda args: to_float(args[0]),
        "TruncToFloat": lambda args: to_float(whole(math.trunc, args[0])),
        "IntTrueDiv": true_divide,
        "FloatTrueDiv": true_divide,
        "TrueDiv": true_divide,
        "FloatPow": lambda args: power((to_float(args[0]), to_float(args[1]))),
        "IsNonOverlappingAndDenseIndicator": is_dense,
        "log": _log,
    }
    functions: dict[str, Callable[[float], float]] = {
        "sqrt": math.sqrt, "cos": math.cos, "cosh": math.cosh, "sin": math.sin, "sinh": math.sinh, "tan": math.tan,
        "tanh": math.tanh, "asin": math.asin, "acos": math.acos, "atan": math.atan, "exp": math.exp, "log": math.log,
        "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "log2": math.log2,
    }  # fmt: skip
    table.update((f"OpaqueUnaryFn_{name}", _float_function(functions[name])) for name in OPAQUE)
    table.update((name, _float_function(functions[name])) for name in PLAIN)
    return MappingProxyType(table)


NUMERIC: Mapping[str, Numeric] = _table()
