"""Bounds of an expression: its least and greatest value, from those of its symbols. Conservative: never too narrow.

Used to show the range of a dynamic dimension; `polynomials` computes the ranges of sizes by the same rules. Interval
arithmetic treats every use of a symbol as independent, so `s0 - s0` is not found to be 0; where no rule is known the
interval is everything.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from pt2kit.symbols.expr import (
    DEFAULT_LIMITS,
    Call,
    Constant,
    Expr,
    Leaf,
    Symbol,
    constant_value,
    default_assumptions,
    fold,
)
from pt2kit.symbols.functions import by_name
from pt2kit.symbols.value_kinds import Facts, facts_of_call, facts_of_leaf

End: TypeAlias = "int | float"
Interval: TypeAlias = "tuple[End, End]"

INF: Final = math.inf
ANY: Final[Interval] = (-INF, INF)
LARGEST: Final = 1 << DEFAULT_LIMITS.bits
"""Ends beyond this count as infinite."""

Rule = Callable[[Sequence[Interval]], Interval]

_TRUTH: Interval = (0, 1)


def bounds(expr: Expr, ranges: Mapping[str, tuple[End | None, End | None]], *, where: str = "") -> Interval:
    """Return the interval that contains every value of an expression.

    Args:
        expr: the tree.
        ranges: symbol name -> its least and greatest value, None where there is none. A symbol that is missing has the
            range that its assumptions give: a positive integer is 1 or more.
        where: the place to name in errors.

    Returns:
        `(least, greatest)`, both ends included; ints where they are exact, `-inf` or `inf` where nothing is known.
        A truth value is 0 or 1.

    Raises:
        ExpressionError: a function gets a truth value where it takes a number, or the other way round.
    """

    def leaf(node: Leaf) -> tuple[Interval, Facts]:
        interval = _symbol(node, ranges.get(node.name)) if isinstance(node, Symbol) else _literal(node)
        return interval, facts_of_leaf(node)

    def call(node: Call, args: list[tuple[Interval, Facts]]) -> tuple[Interval, Facts]:
        facts = facts_of_call(node, [arg[1] for arg in args], where)
        return _call(node.function, [arg[0] for arg in args], is_int=facts.kind == "int"), facts

    return fold(expr, leaf, call)[0]


def _call(function: str, args: Sequence[Interval], *, is_int: bool) -> Interval:
    try:
        if function in ("Mod", "PythonMod"):
            return modulo(args, is_int=is_int)
        rule = _RULES.get(function)
        return ANY if rule is None else outward(*rule(args))
    except OverflowError:
        return ANY


def _symbol(symbol: Symbol, given: tuple[End | None, End | None] | None) -> Interval:
    assumptions = dict(symbol.assumptions or default_assumptions(symbol.name))
    smallest = 1 if assumptions.get("integer") else 0
    low: End = -INF
    high: End = INF
    if assumptions.get("positive"):
        low = smallest
    elif assumptions.get("nonnegative"):
        low = 0
    if assumptions.get("negative"):
        high = -smallest
    elif assumptions.get("nonpositive"):
        high = 0
    if given is None:
        return low, high
    least, greatest = given
    return low if least is None else max(low, least), high if greatest is None else min(high, greatest)


def _literal(leaf: Constant) -> Interval:
    value = constant_value(leaf)
    if isinstance(value, int | float):
        return +value, +value  # a truth value is 0 or 1
    is_small = max(value.numerator.bit_length(), value.denominator.bit_length()) < 1000
    return outward(float(value), float(value)) if is_small else ANY


def outward(low: End, high: End, largest: int = LARGEST) -> Interval:
    """Move ends that were rounded or are beyond the largest one outward, so that no value is lost."""
    return -_widened(-low, largest), _widened(high, largest)


def _widened(high: End, largest: int) -> End:
    if isinstance(high, float):
        # nan comes from inf - inf; a finite float may be half a unit too low.
        return INF if high != high else math.nextafter(high, INF)
    if -largest <= high <= largest:
        return high
    return INF if high > 0 else -largest


def hull(ends: Sequence[End]) -> Interval:
    """Return the interval of some ends."""
    return min(ends), max(ends)


def times(a: End, b: End) -> End:
    """Return the product of two ends."""
    if a == 0 or b == 0:
        return 0  # 0 * inf: an end that is never reached
    if a in ANY or b in ANY:
        return INF if (a > 0) == (b > 0) else -INF  # infinity times an int beyond all floats raises OverflowError
    return a * b


def product(args: Sequence[Interval], largest: int = LARGEST) -> Interval:
    """Return the interval of a product."""
    low, high = args[0]
    for least, greatest in args[1:]:
        low, high = outward(*hull([times(a, b) for a in (low, high) for b in (least, greatest)]), largest)
    return low, high


def quotient(args: Sequence[Interval], divide: Callable[[End, End], End]) -> Interval:
    """Return the interval of a quotient by a positive number; `divide` divides finite ends."""
    (low, high), (least, greatest) = args
    if least <= 0:
        return ANY
    return hull([_divided(a, b, divide) for a in (low, high) for b in (least, greatest)])


def _divided(a: End, b: End, divide: Callable[[End, End], End]) -> End:
    if isinstance(a, float) and math.isinf(a):
        return a
    if isinstance(b, float) and math.isinf(b):
        return divide((a > 0) - (a < 0), LARGEST) if isinstance(a, int) else min(a, 0.0)
    return divide(a, b)


def whole(rounding: Callable[[End], int], end: End) -> End:
    """Return an end rounded to an int; infinity is returned unchanged."""
    return end if isinstance(end, float) and math.isinf(end) else rounding(end)


def floor_divide(args: Sequence[Interval]) -> Interval:
    """Return the interval of a quotient rounded down."""
    low, high = quotient(args, operator.floordiv)
    return whole(math.floor, low), whole(math.floor, high)


def modulo(args: Sequence[Interval], *, is_int: bool = True) -> Interval:
    """Return the interval of a remainder."""
    (low, high), (least, greatest) = args
    if least <= 0:
        return ANY
    top = greatest - 1 if is_int else greatest
    return (0, min(high, top)) if low >= 0 else (0, top)


def _power(args: Sequence[Interval]) -> Interval:
    (low, high), (least, greatest) = args
    if least == greatest and isinstance(least, int) and 0 <= least < 64:
        ends = [low**least, high**least]
        return hull([*ends, 0] if least % 2 == 0 and low < 0 < high else ends)
    if least >= 0 and low >= 0:
        return (1 if low >= 1 else 0), INF
    return ANY


def _ceil_divide(args: Sequence[Interval]) -> Interval:
    low, high = quotient(args, lambda a, b: -(-a // b))
    return whole(math.floor, low), whole(math.ceil, high)


def _absolute(args: Sequence[Interval]) -> Interval:
    low, high = args[0]
    return (0 if low < 0 < high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _monotone(function: Callable[[Sequence[End]], End]) -> Rule:
    """Return the rule of a function whose result grows with each of its arguments."""
    return lambda args: (function([low for low, _ in args]), function([high for _, high in args]))


def _rounding(rounding: Callable[[End], int]) -> Rule:
    return _monotone(lambda ends: whole(rounding, ends[0]))


def _union(args: Sequence[Interval]) -> Interval:
    return hull([end for ends in args for end in ends])


def _compared(is_less: Callable[[End, End], bool]) -> Rule:
    """Return the rule of `<` or `<=`: whether it holds for all values, and whether it does for any."""
    return lambda args: (int(is_less(args[0][1], args[1][0])), int(is_less(args[0][0], args[1][1])))


def _negated(truth: Interval) -> Interval:
    return 1 - truth[1], 1 - truth[0]


def _equal(args: Sequence[Interval]) -> Interval:
    (low, high), (least, greatest) = args
    return int(low == high == least == greatest), int(low <= greatest and least <= high)


_RULES: Mapping[str, Rule] = by_name(
    {
        "Add": _monotone(sum),
        "Mul": product,
        "Max, Or": _monotone(max),
        "Min, And": _monotone(min),
        "Abs": _absolute,
        "Identity, ExprCondPair": lambda args: args[0],
        "Pow, PowByNatural": _power,
        "LShift": lambda args: product([args[0], _power([(2, 2), args[1]])]),
        "RShift": lambda args: floor_divide([args[0], _power([(2, 2), args[1]])]),
        "FloorDiv, CleanDiv": floor_divide,
        "CeilDiv": _ceil_divide,
        "ModularIndexing": lambda args: modulo([outward(*floor_divide(args[:2])), args[2]]),
        "floor, FloorToInt": _rounding(math.floor),
        "ceiling, CeilToInt": _rounding(math.ceil),
        "TruncToInt": _rounding(math.trunc),
        "RoundToInt, Round": _rounding(round),
        "ToFloat": _monotone(lambda ends: float(ends[0])),
        "IntTrueDiv, FloatTrueDiv, TrueDiv": lambda args: quotient(args, operator.truediv),
        "IsNonOverlappingAndDenseIndicator, Xor": lambda _: _TRUTH,
        "ITE, Where": lambda args: _union(args[1:]),
        "Piecewise": _union,
        "StrictLessThan": _compared(operator.lt),
        "LessThan": _compared(operator.le),
        "StrictGreaterThan": lambda args: _compared(operator.lt)(args[::-1]),
        "GreaterThan": lambda args: _compared(operator.le)(args[::-1]),
        "Equality": _equal,
        "Unequality": lambda args: _negated(_equal(args)),
        "Not": lambda args: _negated(args[0]),
    }
)
