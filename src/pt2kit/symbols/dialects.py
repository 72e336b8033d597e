"""Parsing of expressions in either dialect, for a use as a size, a number or a truth value.

Nothing is kept between calls.
"""

from __future__ import annotations

from pt2kit.symbols.evaluation import check_constants
from pt2kit.symbols.expr import DEFAULT_LIMITS, Expr, Limits, fail
from pt2kit.symbols.growth import check_growth, check_terms, compared
from pt2kit.symbols.plain import parse_str
from pt2kit.symbols.srepr import parse_srepr
from pt2kit.symbols.value_kinds import Kind, kind

_SREPR_PARTS = ("Symbol('", "Integer(", "Float('", "Rational(", "ExprCondPair(")


def parse(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Parse an expression of either dialect; srepr is recognized by names that only it writes (`Integer(`, ...).

    Args:
        text: `expr_str` of a file.
        where: the place to name in errors.
        limits: what the expression may cost.

    Returns:
        The tree; both dialects of one expression give equal trees where its symbols have torch's usual assumptions.
        Cost: linear in the text, about 15 microseconds for 100 characters.

    Raises:
        ExpressionError: no expression of either dialect.
        LimitError: longer, larger or deeper than `limits` allow.
    """
    if not text or text.isspace():
        fail(where, "expected an expression, got an empty text")
    if any(part in text for part in _SREPR_PARTS):
        return parse_srepr(text, where=where, limits=limits)
    return parse_str(text, where=where, limits=limits)


def parse_size(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Parse an expression that must be usable as a size, stride or other int.

    Raises:
        ExpressionError: no expression, or one that yields no int or has no value whatever its symbols are.
        LimitError: too large, or it has numbers that may be far larger than its symbols.
    """
    return _computable(text, where, limits, "an int", ("int",))


def parse_number(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Parse an expression that must yield an int or a float, as a SymFloat may.

    Raises:
        ExpressionError: no expression, or one that yields a truth value or has no value whatever its symbols are.
        LimitError: too large, or it has numbers that may be far larger than its symbols.
    """
    return _computable(text, where, limits, "a number", ("int", "float", "any"))


def parse_truth(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Parse an expression that must yield a truth value, as a SymBool does.

    Raises:
        ExpressionError: no expression, or one that yields a number or has no value whatever its symbols are.
        LimitError: too large, or it has numbers that may be far larger than its symbols.
    """
    return _computable(text, where, limits, "a bool", ("bool",))


def _computable(text: str, where: str, limits: Limits, noun: str, kinds: tuple[Kind, ...]) -> Expr:
    """Parse an expression of one of some kinds, if computing it takes no minutes, neither here nor as one of sympy."""
    expr = parse(text, where=where, limits=limits)
    found = kind(expr, where=where)
    if found not in kinds:
        fail(where, f"expected an expression that yields {noun}, got one that yields a {found}")
    check_constants(expr, where=where)
    check_growth(expr, where=where)
    check_terms(expr, where=where)
    compared(expr, where=where)
    return expr
