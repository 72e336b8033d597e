"""Arithmetic on sizes: numbers and symbolic expressions of the schema -> sums, products and exact quotients of them.

An expression is brought into the form of a polynomial over its symbols; what is no sum, product or natural power
(`FloorDiv(s0, 2)`, `Max(s0, s1)`) counts as a symbol of its own. Two sizes are the same if their polynomials are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import UNSET

from pt2kit import schema, symbols
from pt2kit.symbols.expr import Call, Expr, Integer
from pt2kit.symbols.order import by_key, by_size

Monomial: TypeAlias = "tuple[Expr, ...]"
"""Factors, each as often as its power says, in the order of `symbols.order.by_key`."""

Terms: TypeAlias = "dict[Monomial, int]"

Hint: TypeAlias = "int | None"

MAX_TERMS = 256
"""Of one polynomial; sizes have two or three."""


def number(size: int) -> schema.SymInt:
    """A known size."""
    return schema.SymInt(as_int=size)


def known(size: schema.SymInt) -> int | None:
    """The number that a size is; None for an expression."""
    return None if size.as_int is UNSET else size.as_int


def hint(size: schema.SymInt) -> Hint:
    """The number that a size had in the example."""
    if size.as_int is not UNSET:
        return size.as_int
    expr_hint = size.value.hint
    return expr_hint.as_int if expr_hint is not None and isinstance(expr_hint.as_int, int) else None


def is_one(size: schema.SymInt) -> bool:
    """Whether a size is known to be 1."""
    return size.as_int == 1


def same(a: schema.SymInt, b: schema.SymInt) -> bool:
    """Whether two sizes are the same, whatever the symbols stand for."""
    return a == b or a.value == b.value or _terms(a) == _terms(b)


def all_same(a: Sequence[schema.SymInt], b: Sequence[schema.SymInt]) -> bool:
    """Whether two lists of sizes are the same, one by one."""
    return len(a) == len(b) and all(map(same, a, b))


def product(sizes: Iterable[schema.SymInt]) -> schema.SymInt:
    """The product of sizes; 1 of none."""
    terms: Terms = {(): 1}
    value = 1
    hints: list[Hint] = []
    for size in sizes:
        hints.append(hint(size))
        if (plain := known(size)) is not None:
            value *= plain
        else:
            terms = _times(terms, _terms(size))
    return _size({factors: count * value for factors, count in terms.items()}, _multiplied(hints))


def total(sizes: Iterable[schema.SymInt]) -> schema.SymInt:
    """The sum of sizes; 0 of none."""
    terms: Terms = {}
    listed = list(sizes)
    for size in listed:
        for factors, count in _terms(size).items():
            terms[factors] = terms.get(factors, 0) + count
    hints = [hint(size) for size in listed]
    return _size(terms, None if None in hints else sum(one for one in hints if one is not None))


def negative(size: schema.SymInt) -> schema.SymInt:
    """The size with a minus."""
    return product((number(-1), size))


def quotient(size: schema.SymInt, by: schema.SymInt) -> schema.SymInt:
    """One size by another: exact where the polynomials divide, else rounded down (`FloorDiv`).

    Raises:
        ZeroDivisionError: by a known 0.
    """
    top, bottom = known(size), known(by)
    if top is not None and bottom is not None:
        return number(top // bottom)
    above, below = _terms(size), _terms(by)
    divided = _divided(above, below)
    a, b = hint(size), hint(by)
    value = None if a is None or not b else a // b
    if divided is not None:
        return _size(divided, value)
    return _size({(Call("FloorDiv", (_expression(above), _expression(below))),): 1}, value)


def computed(name: str, args: Sequence[schema.SymInt], value: Hint) -> schema.SymInt:
    """A call of a function over sizes ("Mod", "Max"), as an expression."""
    return _size({(_call(name, [_expression(_terms(arg)) for arg in args]),): 1}, value)


def parsed(text: str) -> schema.SymInt:
    """A size from text: "s77", "2*s77 + 1", or an srepr.

    Raises:
        ExpressionError, LimitError: no expression that yields an int.
    """
    expr = symbols.parse_size(text)
    return expr_size(expr)


def expr_size(expr: Expr, value: Hint = None) -> schema.SymInt:
    """A size from an expression."""
    return _size(_polynomial(expr), value)


def symbols_of(size: schema.SymInt) -> tuple[str, ...]:
    """The names of the symbols in a size."""
    if size.as_int is not UNSET:
        return ()
    return tuple(symbol.name for symbol in symbols.free_symbols(_parse(size.value.expr_str)))


def _multiplied(hints: Sequence[Hint]) -> Hint:
    value = 1
    for one in hints:
        if one is None:
            return None
        value *= one
    return value


def _terms(size: schema.SymInt) -> Terms:
    if size.as_int is not UNSET:
        return {(): size.as_int} if size.as_int else {}
    return dict(_cached(size.value.expr_str))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Expr:
    return symbols.parse(text)


@lru_cache(maxsize=4096)
def _cached(text: str) -> Mapping[Monomial, int]:
    return _polynomial(_parse(text))


def _polynomial(expr: Expr) -> Terms:
    """The polynomial of an expression; expressions are of bounded depth."""

    def call(node: Call, args: list[Terms]) -> Terms:
        if node.function == "Add":
            polynomial: Terms = {}
            for terms in args:
                for factors, count in terms.items():
                    polynomial[factors] = polynomial.get(factors, 0) + count
            return {factors: count for factors, count in polynomial.items() if count}
        if node.function == "Mul" and _small(args):
            polynomial = {(): 1}
            for terms in args:
                polynomial = _times(polynomial, terms)
            return polynomial
        power = node.args[1] if node.function == "Pow" else None
        if isinstance(power, Integer) and 0 < power.value <= 8 and len(args[0]) <= 2:
            polynomial = {(): 1}
            for _ in range(power.value):
                polynomial = _times(polynomial, args[0])
            return polynomial
        if all(len(terms) <= 1 for terms in args) or node.function in ("FloorDiv", "Mod", "Max", "Min"):
            return {(_call(node.function, [_expression(terms) for terms in args]),): 1}
        return {(node,): 1}

    def leaf(node: Expr) -> Terms:
        if isinstance(node, Integer):
            return {(): node.value} if node.value else {}
        return {(node,): 1}

    return symbols.fold(expr, leaf, call)


def _call(name: str, args: Sequence[Expr]) -> Call:
    """A call; the arguments of `Max` and `Min`, which have no order of their own, in the one that sympy gives them."""
    return Call(name, by_size(args) if name in ("Max", "Min") else tuple(args))


def _small(args: Sequence[Terms]) -> bool:
    count = 1
    for terms in args:
        count *= max(len(terms), 1)
    return count <= MAX_TERMS


def _times(a: Mapping[Monomial, int], b: Mapping[Monomial, int]) -> Terms:
    terms: Terms = {}
    for left, m in a.items():
        for right, n in b.items():
            factors = by_key((*left, *right)) if left and right else left or right
            terms[factors] = terms.get(factors, 0) + m * n
    return {factors: count for factors, count in terms.items() if count}


def _divided(above: Terms, below: Terms) -> Terms | None:
    """The exact quotient by a polynomial of one term; None where there is none."""
    if above == below:
        return {(): 1}
    if len(below) != 1:
        return None
    [(divisor, number_below)] = below.items()
    terms: Terms = {}
    for factors, count in above.items():
        rest = list(factors)
        for factor in divisor:
            if factor not in rest:
                return None
            rest.remove(factor)
        if count % number_below:
            return None
        terms[tuple(rest)] = count // number_below
    return terms


def _size(terms: Terms, value: Hint) -> schema.SymInt:
    expr = _expression(terms)
    if isinstance(expr, Integer):
        return number(expr.value)
    expr_hint = None if value is None else schema.SymExprHint(as_int=value)
    return schema.SymInt(as_expr=schema.SymExpr(symbols.to_srepr(expr), expr_hint))


def _expression(terms: Terms) -> Expr:
    """The expression of a polynomial, in an order that depends on nothing but its terms."""
    rows = sorted(terms.items(), key=lambda row: (-len(row[0]), [symbols.to_srepr(factor) for factor in row[0]]))
    parts = [_term(factors, count) for factors, count in rows if count]
    if not parts:
        return Integer(0)
    return parts[0] if len(parts) == 1 else Call("Add", tuple(parts))


def _term(factors: Monomial, count: int) -> Expr:
    powers: dict[Expr, int] = {}
    for factor in factors:
        powers[factor] = powers.get(factor, 0) + 1
    parts: list[Expr] = [
        factor if power == 1 else Call("Pow", (factor, Integer(power))) for factor, power in powers.items()
    ]
    if count != 1 or not parts:
        parts.insert(0, Integer(count))
    return parts[0] if len(parts) == 1 else Call("Mul", tuple(parts))


def expression(size: schema.SymInt) -> Expr:
    """A size as an expression in the form of a polynomial."""
    return _expression(_terms(size))
