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


def add(*terms: Number) -> Number:
    """Return the sum of numbers, added from left to right."""
    return _combined(terms, 0, operator.add)


def multiply(*factors: Number) -> Number:
    """Return the product of numbers, multiplied from left to right."""
    return _combined(factors, 1, operator.mul)


def _combined(args: Sequence[Number], start: Number, operate: Callable[[Number, Number], Number]) -> Number:
    for arg in args:
        start = checked(mixed(start, arg, operate))
    return start


def extreme(choose: Callable[[Sequence[Number]], Number]) -> Callable[..., Number]:
    """Return the function that chooses the greatest or the least of numbers: a float if one of them is."""
    return lambda *args: choose([*map(float, args)] if any(isinstance(arg, float) for arg in args) else args)


def power(base: Number, exponent: Number) -> Number:
    """Return base ** exponent: exact for whole exponents of exact numbers, else a float."""
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


def floor_divide(a: Number, b: Number) -> Number:
    """Return a // b rounded down, as an int if it is finite."""
    return whole(math.floor, checked(mixed(a, b, _floor_quotient)))


def _floor_quotient(a: Number, b: Number) -> Number:
    # inf // 2 is nan in Python; torch rounds the quotient down instead.
    return a / b if isinstance(a, float) and math.isinf(a) else a // b


def modulo(a: Number, b: Number) -> Number:
    """Return a % b with the sign of b."""
    return checked(mixed(a, b, operator.mod))


def true_divide(a: Number, b: Number) -> Number:
    """Return a / b as the nearest double, also for integers that no double represents."""
    return checked(float(mixed(a, b, operator.truediv)))


def shift_left(number: Number, count: Number) -> Number:
    """Return number * 2**count for whole numbers, the count not negative."""
    a, b = integers(number, count)
    if b < 0:
        raise ExpressionError(f"expected a shift of at least 0, got {b}")
    if a and b + a.bit_length() > MAX_BITS:
        raise LimitError(f"expected numbers of at most {MAX_BITS} bits, got one of {b + a.bit_length()}")
    return a << b if a else 0


def shift_right(number: Number, count: Number) -> Number:
    """Return number // 2**count for whole numbers, the count not negative."""
    a, b = integers(number, count)
    if b < 0:
        raise ExpressionError(f"expected a shift of at least 0, got {b}")
    return a >> min(b, MAX_BITS + 1)


def natural_power(base: Number, exponent: Number) -> Number:
    """Return a power of whole numbers, the exponent not negative; exact also where torch returns `int_oo` (beyond 64
    bits)."""
    a, b = integers(base, exponent)
    if b < 0:
        raise ExpressionError(f"expected an exponent of at least 0, got {b}")
    return power(a, b)


def modular_indexing(*args: Number) -> Number:
    """Return (a // b) % c for whole numbers."""
    a, b, c = integers(*args)
    return modulo(floor_divide(a, b), c)


def ceil_divide(a: Number, b: Number) -> Number:
    """Return a / b rounded up."""
    return -floor_divide(-a, b)


def whole(rounding: Callable[[Number], int], value: Number) -> Number:
    """Return a number rounded to an int; infinity is returned unchanged."""
    if isinstance(value, float) and math.isinf(value):
        return value
    return checked(rounding(value))


def rounding(function: Callable[[Number], int]) -> Callable[[Number], Number]:
    """Return the function that rounds a number to an int by another one."""
    return lambda value: whole(function, value)


def round_decimal(number: Number, decimals: Number) -> Number:
    """Return a number rounded to that many decimals, ties to even; an int stays an int, the rest are floats."""
    [digits] = integers(decimals)
    if isinstance(number, int):
        if digits >= 0:
            return number
        return 0 if -digits > MAX_BITS else checked(round(number, digits))
    # No double has more than 1,075 digits on either side of its point.
    return checked(round(float(number), max(-1100, min(1100, digits))))


def of_floats(function: Callable[..., float]) -> Callable[..., Number]:
    """Return the function of floats that another one computes."""
    return lambda *args: checked(function(*map(float, args)))


def bitwise(operate: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    """Return the function that combines the bits of two whole numbers, or two truth values."""

    def compute(a: Number, b: Number) -> Number:
        if not (isinstance(a, int) and isinstance(b, int)):
            raise ExpressionError(f"expected whole numbers or truth values, got {a} and {b}")
        return operate(a, b)

    return compute


def is_dense(*args: Number) -> Number:
    """Return 1 if strides, the second half of the arguments, lay out sizes, the first half, without gap or overlap;
    else 0.

    Source: torch/fx/experimental/symbolic_shapes.py 2.13 (a dimension of one element may have any stride).
    """
    numbers = integers(*args)
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


def integers(*args: Number) -> list[int]:
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
