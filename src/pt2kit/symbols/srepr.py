"""Parser and printer of the srepr dialect of `expr_str`, which torch writes since 2.6.

    Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))

Nested calls of class names; the leaves are `Symbol`, `Integer`, `Rational`, `Float`, `true`, `false`, `oo`, `-oo`,
`int_oo` and `-int_oo`. The tree keeps the written order, so printing it gives the same text byte for byte.

A function that torch's reader does not know (`OpaqueUnaryFn_sqrt`) becomes `Function('OpaqueUnaryFn_sqrt')` when torch
loads and saves a program; it is read as the function, and printed without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import gcd
from types import MappingProxyType
from typing import NoReturn

from pt2kit.errors import LimitError
from pt2kit.symbols.expr import (
    DEFAULT_LIMITS,
    Boolean,
    Call,
    Expr,
    Float,
    Infinity,
    Integer,
    Leaf,
    Limits,
    Rational,
    Symbol,
    check_size,
    fail,
    fold,
    quote,
)
from pt2kit.symbols.functions import make_call
from pt2kit.symbols.order import float_of

# One match is one leaf or one opened call; the groups say which (`lastindex` is the last group that took part).
# Patterns are compiled when they are first used, and kept by `re`: importing this package costs little that way.
_TOKEN = r"""\s*(?:
    Symbol\(\s*'([A-Za-z_]\w*)'((?:\s*,\s*\w+\s*=\s*(?:True|False))*)\s*\)   # 1 name, 2 assumptions
    |Integer\(\s*(-?\d+)\s*\)                                                # 3 value
    |Rational\(\s*(-?\d+)\s*,\s*(\d+)\s*\)                                   # 4 p, 5 q
    |Float\(\s*'([^']*)'\s*,\s*precision=(\d{1,5})\s*\)                      # 6 text, 7 precision
    |(?!Function\()([A-Za-z_]\w*)\(                                          # 8 function
    |(true|false|-?oo|-?int_oo)\b                                            # 9 constant
    |Function\(\s*'([A-Za-z_]\w*)'\s*\)\(                                    # 10 function that torch did not know
    )"""
_ASSUMPTION = r"(\w+)\s*=\s*(True|False)"

_CONSTANTS: Mapping[str, Leaf] = MappingProxyType(
    {
        "true": Boolean(True),
        "false": Boolean(False),
        "oo": Infinity(),
        "-oo": Infinity(negative=True),
        "int_oo": Infinity(integer=True),
        "-int_oo": Infinity(negative=True, integer=True),
    }
)
_NAMES = {leaf: name for name, leaf in _CONSTANTS.items()}


def parse_srepr(text: str, *, where: str = "", limits: Limits = DEFAULT_LIMITS) -> Expr:
    """Parse an expression in the srepr dialect.

    Args:
        text: what srepr wrote; spaces around commas and brackets do not matter.
        where: the place to name in errors.
        limits: what the expression may cost.

    Returns:
        The tree; equal symbols in it are one object. Cost: linear in the text.

    Raises:
        ExpressionError: not srepr, an unknown function, a wrong number of arguments.
        LimitError: longer, larger or deeper than `limits` allow.
    """
    if len(text) > limits.text:
        fail(where, f"expected at most {limits.text} characters, got {len(text)}", LimitError)
    match = re.compile(_TOKEN, re.VERBOSE | re.ASCII).match
    leaves: dict[str, Leaf] = {}
    opened: list[tuple[str, list[Expr]]] = []
    args: list[Expr] = []
    at = nodes = 0
    while True:
        token = match(text, at)
        if token is None:
            _refuse("a value", text, at, where)
        at = token.end()
        nodes += 1
        if token.lastindex in (8, 10):
            opened.append((token[token.lastindex], args))
            args = []
            if nodes > limits.nodes or len(opened) > limits.depth:
                check_size(nodes, len(opened), where, limits)
            if not text.startswith(")", at):
                continue
        else:
            written = token[0].lstrip()
            leaf = leaves.get(written)
            if leaf is None:
                leaf = leaves[written] = _leaf(token, where, limits)
            args.append(leaf)
        at = _skip(text, at)
        while text.startswith(")", at) and opened:
            args = _close_call(opened, args, where)
            at = _skip(text, at + 1)
        if not opened:
            break
        if not text.startswith(",", at):
            _refuse("',' or ')'", text, at, where)
        at += 1
    if at != len(text):
        _refuse("the end", text, at, where)
    check_size(nodes, 0, where, limits)
    return args[0]


def to_srepr(expr: Expr) -> str:
    """Write a tree in the srepr dialect; `parse_srepr` returns the same tree."""

    def call(node: Call, args: list[str]) -> str:
        return f"{node.function}({', '.join(args)})"

    return fold(expr, _leaf_text, call)


def whole_number(digits: str, where: str, limits: Limits) -> int:
    """Return the int of a run of decimal digits.

    Raises:
        LimitError: more digits than `limits.bits` can fill.
    """
    most = min(limits.digits, 4000)  # int() itself refuses more than 4,300
    if len(digits) > most:
        fail(where, f"expected at most {most} digits, got {len(digits)}", LimitError)
    return int(digits)


def _close_call(opened: list[tuple[str, list[Expr]]], args: list[Expr], where: str) -> list[Expr]:
    """End the innermost open call and return the arguments of the one around it."""
    name, outer = opened.pop()
    if name == "ExprCondPair" and not (opened and opened[-1][0] == "Piecewise"):
        fail(where, "expected ExprCondPair inside Piecewise, got it elsewhere")
    outer.append(make_call(name, args, where))
    return outer


def _refuse(expected: str, text: str, at: int, where: str) -> NoReturn:
    got = quote(text[at:]) if at < len(text) else "the end"
    fail(where, f"expected {expected} at character {at}, got {got} in {quote(text)}")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r\f\v":
        at += 1
    return at


def _leaf(token: re.Match[str], where: str, limits: Limits) -> Leaf:
    name, assumptions, value, p, q, decimal, precision, _, constant, _ = token.groups()
    if name is not None:
        pairs = tuple((key, truth == "True") for key, truth in re.findall(_ASSUMPTION, assumptions, re.ASCII))
        return Symbol(name, pairs)
    if value is not None:
        return Integer(whole_number(value, where, limits))
    if p is not None:
        return _rational(whole_number(p, where, limits), whole_number(q, where, limits), where)
    if decimal is not None:
        return float_of(decimal, int(precision), where)
    return _CONSTANTS[constant]


def _rational(p: int, q: int, where: str) -> Leaf:
    if q < 2 or gcd(p, q) != 1:
        fail(where, f"expected a fraction in lowest terms that is not whole, got Rational({p}, {q})")
    return Rational(p, q)


def _leaf_text(leaf: Leaf) -> str:
    match leaf:
        case Symbol(name, assumptions):
            return f"Symbol('{name}'{''.join(f', {key}={value}' for key, value in assumptions)})"
        case Integer(value):
            return f"Integer({value})"
        case Rational(p, q):
            return f"Rational({p}, {q})"
        case Float(text, precision):
            return f"Float('{text}', precision={precision})"
        case _:
            return _NAMES[leaf]
