"""Arithmetic on sizes of the schema (`schema.SymInt`), with their values in the example.

The arithmetic is that of `symbols.polynomials`; two sizes are the same if their polynomials are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import UNSET

from pt2kit import schema, symbols
from pt2kit.symbols import polynomials
from pt2kit.symbols.expr import Expr
from pt2kit.symbols.polynomials import Size, Undecided

Hint: TypeAlias = "int | None"


def number(size: int) -> schema.SymInt:
    """Return a known size."""
    return schema.SymInt(as_int=size)


def known(size: schema.SymInt) -> int | None:
    """Return the number that a size is; None for an expression."""
    return None if size.as_int is UNSET else size.as_int


def hint(size: schema.SymInt) -> Hint:
    """Return the value of a size in the example; None if it has none there."""
    if size.as_int is not UNSET:
        return size.as_int
    expr_hint = size.value.hint
    return expr_hint.as_int if expr_hint is not None and isinstance(expr_hint.as_int, int) else None


def same(a: schema.SymInt, b: schema.SymInt) -> bool:
    """Return whether two sizes are the same, whatever the symbols stand for."""
    return a == b or a.value == b.value or _read(a) == _read(b)


def all_same(a: Sequence[schema.SymInt], b: Sequence[schema.SymInt]) -> bool:
    """Return whether two lists of sizes are the same, one by one."""
    return len(a) == len(b) and all(map(same, a, b))


def product(sizes: Iterable[schema.SymInt]) -> schema.SymInt:
    """Return the product of sizes; 1 of none."""
    listed = list(sizes)
    hints = [one for one in map(hint, listed) if one is not None]
    value = math.prod(hints) if len(hints) == len(listed) else None
    return _write(polynomials.product(map(_read, listed)), value)


def parsed(text: str) -> schema.SymInt:
    """Return a size from text: "s77", "2*s77 + 1", or an srepr.

    Raises:
        ExpressionError, LimitError: no expression that yields an int.
    """
    return expr_size(symbols.parse_size(text))


def expr_size(expr: Expr) -> schema.SymInt:
    """Return a size from an expression, without a value in the example; one of too many terms is written unchanged."""
    try:
        return _write(polynomials.from_expression(expr, polynomials.symbol), None)
    except Undecided:
        return _as_expression(expr, None)


def expression(size: schema.SymInt) -> Expr:
    """Return a size as an expression in the form of a polynomial; as it is stored if that has too many terms."""
    try:
        return polynomials.to_expression(_read(size))
    except Undecided:
        return _parse(size.value.expr_str)


def symbols_of(meta: object) -> tuple[symbols.Symbol, ...]:
    """Return the symbols in a size, or in the meta of a value of any kind."""
    if isinstance(meta, schema.TensorMeta):
        numbers = (*meta.sizes, *meta.strides, meta.storage_offset)
        return tuple(symbol for number in numbers for symbol in symbols_of(number))
    expr = getattr(meta, "as_expr", UNSET)
    return () if expr is UNSET else tuple(symbols.free_symbols(_parse(expr.expr_str)))


def _read(size: schema.SymInt) -> Size:
    return size.as_int if size.as_int is not UNSET else _cached(size.value.expr_str)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Expr:
    return symbols.parse(text)


@lru_cache(maxsize=4096)
def _cached(text: str) -> Size:
    return polynomials.from_expression(_parse(text), polynomials.symbol)


def _write(size: Size, value: Hint) -> schema.SymInt:
    if isinstance(size, int):
        return number(size)
    return _as_expression(polynomials.to_expression(size), value)


def _as_expression(expr: Expr, value: Hint) -> schema.SymInt:
    expr_hint = None if value is None else schema.SymExprHint(as_int=value)
    return schema.SymInt(as_expr=schema.SymExpr(symbols.to_srepr(expr), expr_hint))
