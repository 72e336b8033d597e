"""Interval arithmetic on the least and greatest values of numbers: ints, and infinity where a number has no bound.

Used by `ranges` for expressions and by `polynomials` for sizes. An interval is never too narrow; every use of a number
counts as independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pt2kit.symbols.expr import DEFAULT_LIMITS

End: TypeAlias = "int | float"
Interval: TypeAlias = "tuple[End, End]"

INF: Final = math.inf
ANY: Final[Interval] = (-INF, INF)
LARGEST: Final = 1 << DEFAULT_LIMITS.bits
"""Ends beyond this count as infinite."""


def outward(low: End, high: End) -> Interval:
    """Move ends that were rounded or have grown too large outward, so that no value is lost."""
    return -_widened(-low), _widened(high)


def _widened(high: End) -> End:
    if isinstance(high, float):
        # nan comes from inf - inf; a finite float may be half a unit too low.
        return INF if high != high else math.nextafter(high, INF)
    if -LARGEST <= high <= LARGEST:
        return high
    return INF if high > 0 else -LARGEST


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


def product(args: Sequence[Interval]) -> Interval:
    """Return the interval of a product; 1 of none."""
    low, high = args[0] if args else (1, 1)
    for least, greatest in args[1:]:
        low, high = outward(*hull([times(a, b) for a in (low, high) for b in (least, greatest)]))
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
        return divide(a, LARGEST) if isinstance(a, int) else min(a, 0.0)
    return divide(a, b)


def whole(rounding: Callable[[End], int], end: End) -> End:
    """Return an end rounded to an int; infinity is returned unchanged."""
    return end if isinstance(end, float) and math.isinf(end) else rounding(end)


def floor_divide(args: Sequence[Interval]) -> Interval:
    """Return the interval of a quotient rounded down."""
    low, high = quotient(args, lambda a, b: a // b)
    return whole(math.floor, low), whole(math.floor, high)


def modulo(args: Sequence[Interval], *, is_int: bool = True) -> Interval:
    """Return the interval of a remainder."""
    (low, high), (least, greatest) = args
    if least <= 0:
        return ANY
    top = greatest - 1 if is_int else greatest
    return (0, min(high, top)) if low >= 0 else (0, top)
