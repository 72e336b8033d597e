"""Arithmetic on the values of expressions: exact for exact numbers, and never larger than a limit.

Values are bool, int, Fraction and float. Integers and fractions stay exact, a float makes the result a float. Division
and modulo round as in Python (down, the sign of the divisor), which is what torch does when it runs a program. Infinity
is a float here, also torch's `int_oo`; a result that is not a number is an error. The bits a result needs are checked
before it is computed where it can be far larger than its operands (powers, shifts). Python's own errors, such as
`ZeroDivisionError`, become ours in one place: callers pass what they compute to `real`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, Union

from pt2kit.errors import ExpressionError, LimitError
from pt2kit.symbols.expr import DEFAULT_LIMITS

if TYPE_CHECKING:
    from fractions import Fraction

T = TypeVar("T")
Number = Union[int, float, "Fraction"]

MAX_BITS = DEFAULT_LIMITS.bits


def checked(value: Number) -> Number:
    """Return the same value, a whole Fraction as an int.

    Raises:
        ExpressionError: it is not a number (nan).
        LimitError: it needs more than `MAX_BITS` bits.
    """
    if isinstance(value, float):
        if value != value:
            raise ExpressionError("the result is not a number")
        return value
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits > MAX_BITS:
        raise LimitError(f"expected numbers of at most {MAX_BITS} bits, got one of {bits}")
    return value.numerator if value.denominator == 1 else value


def combined(args: Sequence[Number], start: Number, operate: Callable[[Number, Number], Number]) -> Number:
    """Return a number and others, such as the terms of a sum, combined from left to right."""
    for arg in args:
        start = checked(mixed(start, arg, operate))
    return start


def power(args: Sequence[Number]) -> Number:
    """Return base ** exponent: exact for whole exponents of exact numbers, else a float."""
    base, exponent = args
    if isinstance(exponent, int) and not isinstance(base, float):
        return _exact_power(base, exponent)
    b, e = float(base), float(exponent)
    if b == 0 and e < 0:
        raise ExpressionError("division by zero")
    if b < 0 and not (e.is_integer() or math.isinf(e)):
        raise ExpressionError("a power of a negative number with a broken exponent is not real")
    return checked(math.sqrt(b) if e == 0.5 else b**e)


def _exact_power(base: int | Fraction, exponent: int) -> Number:
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base not in (-1, 0, 1) and abs(exponent) * (bits - 1) > MAX_BITS:
        raise LimitError(f"expected numbers of at most {MAX_BITS} bits, got a power that has more")
    raised = base ** abs(exponent)
    if exponent >= 0:
        return checked(raised)
    from fractions import Fraction  # costs 2 ms to import, and few expressions hold a fraction

    return checked(1 / Fraction(raised))


def floor_divide(args: Sequence[Number]) -> Number:
    """Return a // b rounded down, as an int if it is finite."""
    a, b = args
    return whole(math.floor, checked(mixed(a, b, _floor_quotient)))


def _floor_quotient(a: Number, b: Number) -> Number:
    # inf // 2 is nan in Python; torch rounds the quotient down instead.
    return a / b if isinstance(a, float) and math.isinf(a) else a // b


def modulo(args: Sequence[Number]) -> Number:
    """Return a % b with the sign of b."""
    a, b = args
    return checked(mixed(a, b, operator.mod))


def true_divide(args: Sequence[Number]) -> Number:
    """Return a / b as the nearest double, also for integers that no double represents."""
    a, b = args
    return checked(float(mixed(a, b, operator.truediv)))


def shift_left(args: Sequence[Number]) -> Number:
    """Return a * 2**b for whole numbers, b not negative."""
    a, b = integers(args)
    if b < 0:
        raise ExpressionError(f"expected a shift of at least 0, got {b}")
    if a and b + a.bit_length() > MAX_BITS:
        raise LimitError(f"expected numbers of at most {MAX_BITS} bits, got one of {b + a.bit_length()}")
    return a << b if a else 0


def shift_right(args: Sequence[Number]) -> Number:
    """Return a // 2**b for whole numbers, b not negative."""
    a, b = integers(args)
    if b < 0:
        raise ExpressionError(f"expected a shift of at least 0, got {b}")
    return a >> min(b, MAX_BITS + 1)


def natural_power(args: Sequence[Number]) -> Number:
    """Return a ** b for whole numbers, b not negative; exact also where torch returns `int_oo` (beyond 64 bits)."""
    a, b = integers(args)
    if b < 0:
        raise ExpressionError(f"expected an exponent of at least 0, got {b}")
    return power((a, b))


def modular_indexing(args: Sequence[Number]) -> Number:
    """Return (a // b) % c for whole numbers."""
    a, b, c = integers(args)
    return modulo((floor_divide((a, b)), c))


def ceil_divide(args: Sequence[Number]) -> Number:
    """Return a / b rounded up."""
    a, b = args
    return -floor_divide((-a, b))


def whole(rounding: Callable[[Number], int], value: Number) -> Number:
    """Return a number rounded to an int; infinity is returned unchanged."""
    if isinstance(value, float) and math.isinf(value):
        return value
    return checked(rounding(value))


def real(compute: Callable[[], T]) -> T:
    """Return the result of `compute`, with Python's errors converted to `ExpressionError`.

    Raises:
        ExpressionError: it divides by zero, leaves the domain of a function, or is too large for a float.
    """
    try:
        return compute()
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except ValueError:
        raise ExpressionError("the function has no value there") from None
    except OverflowError:
        raise ExpressionError("the number is too large for a float") from None


def mixed(a: Number, b: Number, operate: Callable[[Number, Number], Number]) -> Number:
    """Return operate(a, b), with both as floats if one is."""
    if isinstance(a, float) != isinstance(b, float):
        return operate(float(a), float(b))
    return operate(a, b)


def integers(args: Sequence[Number]) -> list[int]:
    """Return the same numbers, if all of them are whole.

    Raises:
        ExpressionError: one is not.
    """
    numbers = []
    for arg in args:
        if not isinstance(arg, int):
            raise ExpressionError(f"expected whole numbers, got {arg}")
        numbers.append(arg)
    return numbers
