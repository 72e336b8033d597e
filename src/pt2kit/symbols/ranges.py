"""Bounds of an expression: its least and greatest value, from those of its symbols. Conservative: never too narrow.

Used to show the range of a dynamic dimension. Interval arithmetic treats every use of a symbol as independent, so
`s0 - s0` is not found to be 0; where no rule is known the interval is everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pt2kit.symbols.expr import (
    Boolean,
    Call,
    Expr,
    Float,
    Infinity,
    Integer,
    Leaf,
    Rational,
    Symbol,
    default_assumptions,
    fold,
)
from pt2kit.symbols.functions import by_name
from pt2kit.symbols.intervals import (
    ANY,
    INF,
    End,
    Interval,
    floor_divide,
    hull,
    modulo,
    outward,
    product,
    quotient,
    whole,
)
from pt2kit.symbols.kinds import Facts, facts_of_call, facts_of_leaf

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


def _literal(leaf: Integer | Rational | Float | Boolean | Infinity) -> Interval:
    match leaf:
        case Integer(value):
            return value, value
        case Rational(p, q):
            return outward(p / q, p / q) if max(p.bit_length(), q.bit_length()) < 1000 else ANY
        case Float(text, _):
            return float(text), float(text)
        case Boolean(value):
            return int(value), int(value)
        case Infinity(negative, _):
            return (-INF, -INF) if negative else (INF, INF)


def _sum(args: Sequence[Interval]) -> Interval:
    return sum(low for low, _ in args), sum(high for _, high in args)


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


def _true_divide(args: Sequence[Interval]) -> Interval:
    return quotient(args, lambda a, b: a / b)


def _modular_indexing(args: Sequence[Interval]) -> Interval:
    return modulo([outward(*floor_divide(args[:2])), args[2]], is_int=True)


def _absolute(args: Sequence[Interval]) -> Interval:
    low, high = args[0]
    return (0 if low < 0 < high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _rounding(rounding: Callable[[End], int]) -> Rule:
    return lambda args: (whole(rounding, args[0][0]), whole(rounding, args[0][1]))


def _float(args: Sequence[Interval]) -> Interval:
    return float(args[0][0]), float(args[0][1])


def _union(args: Sequence[Interval]) -> Interval:
    return min(low for low, _ in args), max(high for _, high in args)


def _less(args: Sequence[Interval], *, strict: bool) -> Interval:
    (low, high), (least, greatest) = args
    if high < least or (high == least and not strict):
        return 1, 1
    if low > greatest or (low == greatest and strict):
        return 0, 0
    return _TRUTH


def _negated(truth: Interval) -> Interval:
    return 1 - truth[1], 1 - truth[0]


def _equal(args: Sequence[Interval]) -> Interval:
    (low, high), (least, greatest) = args
    if high < least or greatest < low:
        return 0, 0
    return (1, 1) if low == high == least == greatest else _TRUTH


_RULES: Mapping[str, Rule] = by_name(
    {
        "Add": _sum,
        "Mul": product,
        "Max, Or": lambda args: (max(low for low, _ in args), max(high for _, high in args)),
        "Min, And": lambda args: (min(low for low, _ in args), min(high for _, high in args)),
        "Abs": _absolute,
        "Identity, ExprCondPair": lambda args: args[0],
        "Pow, PowByNatural": _power,
        "LShift": lambda args: product([args[0], _power([(2, 2), args[1]])]),
        "RShift": lambda args: floor_divide([args[0], _power([(2, 2), args[1]])]),
        "FloorDiv, CleanDiv": floor_divide,
        "CeilDiv": _ceil_divide,
        "ModularIndexing": _modular_indexing,
        "floor, FloorToInt": _rounding(math.floor),
        "ceiling, CeilToInt": _rounding(math.ceil),
        "TruncToInt": _rounding(math.trunc),
        "RoundToInt, Round": _rounding(round),
        "ToFloat": _float,
        "IntTrueDiv, FloatTrueDiv, TrueDiv": _true_divide,
        "IsNonOverlappingAndDenseIndicator, Xor": lambda _: _TRUTH,
        "ITE, Where": lambda args: _union(args[1:]),
        "Piecewise": _union,
        "StrictLessThan": lambda args: _less(args, strict=True),
        "LessThan": lambda args: _less(args, strict=False),
        "StrictGreaterThan": lambda args: _negated(_less(args, strict=False)),
        "GreaterThan": lambda args: _negated(_less(args, strict=True)),
        "Equality": _equal,
        "Unequality": lambda args: _negated(_equal(args)),
        "Not": lambda args: _negated(args[0]),
    }
)
