"""Sums, products and powers in infix text, built into the calls that sympy makes of them.

`s0/2 - 4*s1` is `Add(Mul(Rational(1, 2), s0), Mul(-1, 4, s1))`: a difference is a sum with a factor -1, a quotient a
product with a power -1, and the number in front of a product is one exact number, written after a -1 where it is
negative, as srepr writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from pt2kit.errors import LimitError
from pt2kit.symbols.expr import MINUS_ONE, ONE, Call, Expr, Float, Infinity, Integer, Limits, Rational, fail
from pt2kit.symbols.order import by_key


def make_sum(signs: Sequence[str], terms: Sequence[Expr], where: str, limits: Limits) -> Expr:
    """Return the sum of terms, each but the first added or subtracted as its sign says."""
    first, *rest = terms
    signed = (negate(term) if sign == "-" else term for sign, term in zip(signs, rest, strict=True))
    return Call("Add", (first, *signed))


def make_product(signs: Sequence[str], operands: Sequence[Expr], where: str, limits: Limits) -> Expr:
    """Return the product of operands, each but the first multiplied or divided by as its sign says, exactly.

    Raises:
        ExpressionError: a divisor is a literal zero.
        LimitError: the numbers together need more than `limits.bits`.
    """
    p = q = 1
    factors: list[Expr] = []
    for sign, operand in zip(("*", *signs), operands, strict=True):
        for factor in operand.args if isinstance(operand, Call) and operand.function == "Mul" else (operand,):
            if isinstance(factor, Float | Infinity) and is_negative(factor):
                p, factor = -p, negate(factor)
            match invert(factor, where) if sign == "/" else factor:
                case Integer(value):
                    p *= value
                case Rational(above, below):
                    p, q = p * above, q * below
                case other:
                    factors.append(other)
            bits = max(p.bit_length(), q.bit_length())
            if bits > limits.bits:
                fail(where, f"expected numbers of at most {limits.bits} bits, got one of {bits}", LimitError)
    if not factors:
        return exact(p, q)
    if any(map(is_below, factors)):  # the places of factors under the bar are not in the text
        factors = list(by_key(factors))
    if len(factors) == 1 and p == -q and isinstance(factors[0], Float | Infinity):
        return negate(factors[0])
    if abs(p) != q:
        factors.insert(0, exact(abs(p), q))
    if p < 0:
        factors.insert(0, MINUS_ONE)
    return factors[0] if len(factors) == 1 else Call("Mul", tuple(factors))


def negate(expr: Expr) -> Expr:
    """Return -expr, with the sign in the number in front."""
    match expr:
        case Integer(value):
            return Integer(-value)
        case Rational(p, q):
            return Rational(-p, q)
        case Float(text, precision):
            return Float(text[1:] if text.startswith("-") else f"-{text}", precision)
        case Infinity(negative, integer):
            return Infinity(not negative, integer)
        case Call("Mul", (number, *rest)) if rest and is_negative(number):
            if number != MINUS_ONE:
                return Call("Mul", (negate(number), *rest))
            return rest[0] if len(rest) == 1 else Call("Mul", tuple(rest))
        case Call("Mul", args):
            return Call("Mul", (MINUS_ONE, *args))
        case _:
            return Call("Mul", (MINUS_ONE, expr))


def is_negative(expr: Expr) -> bool:
    """Return whether an expression is a number below 0."""
    match expr:
        case Integer(value) | Rational(value, _):
            return value < 0
        case Float(text, _):
            return text.startswith("-")
        case Infinity(negative, _):
            return negative
        case _:
            return False


def is_below(expr: Expr) -> bool:
    """Return whether an expression belongs below the fraction bar of a product: a power with a negative exponent."""
    if not (isinstance(expr, Call) and expr.function == "Pow"):
        return False
    exponent = expr.args[1]
    return is_negative(exponent.args[0] if isinstance(exponent, Call) and exponent.function == "Mul" else exponent)


def invert(expr: Expr, where: str) -> Expr:
    """Return 1/expr as an exact number or a power.

    Raises:
        ExpressionError: expr is a literal zero.
    """
    if expr == Integer(0):
        fail(where, "expected a divisor other than 0, got 0")
    match expr:
        case Integer(value):
            return exact(1, value)
        case Rational(p, q):
            return exact(q, p)
        case Call("Pow", (base, exponent)):
            turned = negate(exponent)
            return base if turned == ONE else Call("Pow", (base, turned))
        case _:
            return Call("Pow", (expr, MINUS_ONE))


def exact(p: int, q: int) -> Integer | Rational:
    """Return the exact number p/q, q other than 0, in lowest terms."""
    common = gcd(p, q) if q > 0 else -gcd(p, q)
    return Integer(p // common) if q == common else Rational(p // common, q // common)
