"""Sums, products and powers in infix text, built into the calls that sympy makes of them.

`s0/2 - 4*s1` is `Add(Mul(Rational(1, 2), s0), Mul(-1, 4, s1))`: a difference is a sum with a factor -1, a quotient a
product with a power -1, and the number in front of a product is one exact number, written after a -1 where it is
negative, as srepr writes it. Sums and products that are being read are kept open, so long ones take linear time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from pt2kit.errors import LimitError
from pt2kit.symbols.expr import (
    MINUS_ONE,
    ONE,
    Call,
    Expr,
    Float,
    Infinity,
    Integer,
    Limits,
    Rational,
    fail,
)
from pt2kit.symbols.order import by_key


@dataclass(slots=True)
class OpenProduct:
    """A product whose end has not been read: an exact number p/q in front, and factors; only its reader holds it."""

    p: int = 1
    q: int = 1
    factors: list[Expr] = field(default_factory=list)
    is_fraction: bool = False


@dataclass(slots=True)
class OpenChain:
    """`a + b + c` or `a & b & c` whose end has not been read; only its reader holds it."""

    function: str
    args: list[Expr]


Operand = Expr | OpenProduct | OpenChain


def close(operand: Operand) -> Expr:
    """Return the finished expression of an operand."""
    if isinstance(operand, OpenProduct):
        return _close_product(operand)
    if isinstance(operand, OpenChain):
        return Call(operand.function, tuple(operand.args))
    return operand


def subtract(left: Operand, right: Operand, where: str, limits: Limits) -> Operand:
    """Return left - right; extends `left` in place if it is an open sum."""
    return chain("Add", left, negate(close(right)))


def chain(function: str, left: Operand, right: Operand) -> Operand:
    """Return function(left, right); extends `left` in place if it is an open chain of the same function."""
    if not (isinstance(left, OpenChain) and left.function == function):
        left = OpenChain(function, [close(left)])
    left.args.append(close(right))
    return left


def multiply(left: Operand, right: Operand, where: str, limits: Limits) -> Operand:
    """Return left * right; extends `left` in place if it is an open product.

    Raises:
        LimitError: the numbers together need more than `limits.bits`.
    """
    product = _open(left, where, limits)
    for factor in _factors(right):
        _times(product, factor, where, limits)
    return product


def divide(left: Operand, right: Operand, where: str, limits: Limits) -> Operand:
    """Return left / right as an exact quotient; extends `left` in place if it is an open product.

    Raises:
        ExpressionError: right is a literal zero.
        LimitError: the numbers together need more than `limits.bits`.
    """
    product = _open(left, where, limits)
    for factor in _factors(right):
        if isinstance(factor, Float | Infinity) and is_negative(factor):
            product.p = -product.p
            factor = negate(factor)
        _times(product, invert(factor, where), where, limits)
    return product


def minus(operand: Operand, where: str, limits: Limits) -> Operand:
    """Return -operand, open for further factors as in `-2*s0`."""
    product = _open(operand, where, limits)
    product.p = -product.p
    return product


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
        case Integer(1) | Integer(-1):
            return expr
        case Integer(value):
            return Rational(1, value) if value > 0 else Rational(-1, -value)
        case Rational(p, q):
            return exact(q, p) if p > 0 else exact(-q, -p)
        case Call("Pow", (base, exponent)):
            turned = negate(exponent)
            return base if turned == ONE else Call("Pow", (base, turned))
        case _:
            return Call("Pow", (expr, MINUS_ONE))


def exact(p: int, q: int) -> Integer | Rational:
    """Return the exact number p/q, q > 0, in lowest terms."""
    common = gcd(p, q)
    return Integer(p // common) if q == common else Rational(p // common, q // common)


def _open(operand: Operand, where: str, limits: Limits) -> OpenProduct:
    if isinstance(operand, OpenProduct):
        return operand
    product = OpenProduct()
    for factor in _factors(operand):
        _times(product, factor, where, limits)
    return product


def _factors(operand: Operand) -> tuple[Expr, ...]:
    expr = close(operand)
    return expr.args if isinstance(expr, Call) and expr.function == "Mul" else (expr,)


def _times(product: OpenProduct, factor: Expr, where: str, limits: Limits) -> None:
    match factor:
        case Integer(value):
            product.p *= value
        case Rational(p, q):
            product.p *= p
            product.q *= q
        case Float() | Infinity() if is_negative(factor):
            product.p = -product.p
            product.factors.append(negate(factor))
        case _:
            product.factors.append(factor)
            product.is_fraction = product.is_fraction or is_below(factor)
    bits = max(product.p.bit_length(), product.q.bit_length())
    if bits > limits.bits:
        fail(where, f"expected numbers of at most {limits.bits} bits, got one of {bits}", LimitError)


def _close_product(product: OpenProduct) -> Expr:
    factors = product.factors
    if not factors:
        return exact(product.p, product.q)
    if product.is_fraction:  # the places of factors under the bar are not in the text
        factors = list(by_key(factors))
    if len(factors) == 1 and product.p == -product.q and isinstance(factors[0], Float | Infinity):
        return negate(factors[0])
    if abs(product.p) != product.q:
        factors = [exact(abs(product.p), product.q), *factors]
    if product.p < 0:
        factors = [MINUS_ONE, *factors]
    return factors[0] if len(factors) == 1 else Call("Mul", tuple(factors))
