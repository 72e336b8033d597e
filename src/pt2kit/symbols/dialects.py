"""Parsing of expressions in either dialect, for a use as a size, a number or a truth value.

Nothing is kept between calls.
"""

from __future__ import annotations

from pt2kit.symbols.evaluation import check_constants
from pt2kit.symbols.expr import DEFAULT_LIMITS, Expr, Limits, fail
from pt2kit.symbols.growth import check_growth, check_terms
from pt2kit.symbols.kinds import kind, require_int
from pt2kit.symbols.plain import parse_str
from pt2kit.symbols.srepr import parse_srepr

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
    return _computable(require_int(parse(text, where=where, limits=limits), where=where), where)


def parse_number(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Parse an expression that must yield an int or a float, as a SymFloat may.

    Raises:
        ExpressionError: no expression, or one that yields a truth value or has no value whatever its symbols are.
        LimitError: too large, or it has numbers that may be far larger than its symbols.
    """
    expr = parse(text, where=where, limits=limits)
    if kind(expr, where=where) == "bool":
        fail(where, "expected an expression that yields a number, got one that yields a bool")
    return _computable(expr, where)


def parse_truth(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Parse an expression that must yield a truth value, as a SymBool does.

    Raises:
        ExpressionError: no expression, or one that yields a number or has no value whatever its symbols are.
        LimitError: too large, or it has numbers that may be far larger than its symbols.
    """
    expr = parse(text, where=where, limits=limits)
    expr_kind = kind(expr, where=where)
    if expr_kind != "bool":
        fail(where, f"expected an expression that yields a bool, got one that yields a {expr_kind}")
    return _computable(expr, where)


def _computable(expr: Expr, where: str) -> Expr:
    """Return the same expression, if computing it takes no minutes, neither here nor as one of sympy."""
    check_constants(expr, where=where)
    check_growth(expr, where=where)
    check_terms(expr, where=where)
    return expr
