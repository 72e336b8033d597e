"""Texts as sympy writes them: the order of arguments of commutative functions, and decimal numbers.

str and srepr agree on the order of terms and factors, so a tree keeps the written one. They differ for `Max` and `Min`
(str sorts by `sort_key`, srepr by size first), and a factor under a fraction bar has lost its place in str text; for
these two the order is computed here.

Source: sympy/core/expr.py, sorting.py and function.py, 1.12 to 1.14 (sort keys and class keys).

Decimal numbers: srepr writes a double with 17 significant digits (`0.10000000000000001`), str with 15 (`0.1`, or
`0.100000000000000` where the number stands alone). Both write `1.0e-7` and `2.5e+20` outside a middle range.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pt2kit.symbols.expr import (
    Boolean,
    Call,
    Expr,
    Float,
    Infinity,
    Integer,
    Leaf,
    Rational,
    Symbol,
    constant_value,
    fail,
    fold,
    quote,
    walk,
)
from pt2kit.symbols.functions import FUNCTIONS

# Sorting costs keys that are linear in the nodes; larger arguments keep the order in which they are written.
MAX_SORTED_NODES = 128

# A flat sequence in which a difference always falls on two values of one type: class, argument count, arguments,
# exponent, coefficient. Flat, because comparing nested tuples recurses.
Key = list[Any]

_NUMBER: Key = [1, 0, "Number"]
_ONE: Key = [*_NUMBER, 0, 1]

_CLASSES = {"Mul": (3, 0), "Add": (3, 1), "Pow": (3, 2)}
_BASIC = {"Max", "Min"}.union(name for name, function in FUNCTIONS.items() if function.gives in ("bool", "pair"))
_RANKS = {"exp": 10, "log": 11, "sin": 20, "cos": 21, "tan": 22, "sinh": 30, "cosh": 31, "tanh": 32}
_ANY_ARITY = frozenset(("Piecewise", "IsNonOverlappingAndDenseIndicator", "Identity", "CeilDiv"))


def sort_key(expr: Expr) -> Key:
    """Return the key by which sympy sorts factors: comparable with every other key."""
    return fold(expr, _leaf_key, _call_key)[0]


def by_key(args: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return arguments in the order of `sort_key`: factors of a product, and `Max` and `Min` in str."""
    return tuple(sorted(args, key=sort_key)) if _are_small(args) else tuple(args)


def by_size(args: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return arguments in the order of `Max` and `Min` in srepr: fewest nodes first, then by `sort_key`."""
    return tuple(sorted(args, key=lambda arg: (_size(arg), sort_key(arg)))) if _are_small(args) else tuple(args)


def _are_small(args: Sequence[Expr]) -> bool:
    return next(islice(walk(*args), MAX_SORTED_NODES, None), None) is None


def _size(expr: Expr) -> float:
    def call(node: Call, sizes: list[float]) -> float:
        # sympy counts the number in front of a product once, srepr writes a negative one as two factors.
        written_twice = node.function == "Mul" and len(sizes) > 1 and _is_number(node.args[1])
        return 1.0 + sum(sizes[1:] if written_twice else sizes)

    return fold(expr, lambda leaf: 0.5 if isinstance(leaf, Float) else 1.0, call)


# Each node has two keys: its own, and that of itself as the base of a power (class and arguments alone).
Keys = tuple[Key, Key]


def _leaf_key(leaf: Leaf) -> Keys:
    match leaf:
        case Symbol(name, _):
            base: Key = [2, 0, "Symbol", 1, name]
            return [*base, *_ONE, 1], base
        case Boolean(value):
            base = [5, 0, "BooleanTrue" if value else "BooleanFalse", 0]
            return [*base, *_ONE, 1], base
        case _:
            number = constant_value(leaf)
            return [*_NUMBER, 0, number], [*_NUMBER, 1, str(number)]


def _call_key(node: Call, keys: list[Keys]) -> Keys:
    own = [key for key, _ in keys]
    base = _base_key(node.function, own)
    if node.function == "Pow":
        return [*keys[0][1], *own[1], 1], base
    if node.function != "Mul":
        return [*base, *_ONE, 1], base
    coefficient = 1
    while len(own) > 1 and _is_number(node.args[-len(own)]):
        coefficient *= own.pop(0)[-1]
    if len(own) == 1:
        return [*own[0][:-1], coefficient], base
    return [*_base_key("Mul", own), *_ONE, coefficient], base


def _is_number(expr: Expr) -> bool:
    return isinstance(expr, Integer | Rational | Float | Infinity)


def _base_key(name: str, keys: Sequence[Key]) -> Key:
    if name in _CLASSES:
        key: Key = [*_CLASSES[name], name, len(keys)]
    elif name in _BASIC:
        key = [5, 0, name, len(keys)]
    else:
        key = [4, _RANKS.get(name, 0 if name in _ANY_ARITY else 10000), name, len(keys)]
    for part in keys:
        key += part
    return key


SREPR_DIGITS = 17
STR_DIGITS = 15

_DECIMAL = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"


def float_of(text: str, precision: int = 53, where: str = "") -> Float:
    """Return the node of a decimal text as srepr writes it; the text is kept.

    Raises:
        ExpressionError: not a decimal number, or too large for a double.
    """
    if not re.fullmatch(_DECIMAL, text, re.ASCII):
        fail(where, f"expected a decimal number in Float, got {quote(text)}")
    if float(text) in (float("inf"), float("-inf")):
        fail(where, f"expected a number that fits a double, got {quote(text)}")
    return Float(text, precision)


def float_from(value: float) -> Float:
    """Return the node of a finite double, written as srepr writes it."""
    return Float(decimal_text(value, SREPR_DIGITS))


def decimal_text(value: float, digits: int, *, strip: bool = True) -> str:
    """Return a finite double as sympy writes it.

    Args:
        value: the number.
        digits: significant digits; a tie is rounded away from zero.
        strip: leave out zeros at the end.

    Source: what mpmath 1.3 and sympy 1.12 to 1.14 print; fixed notation from 1e-5 (exclusive) up to 1e<digits>.
    """
    if value == 0:
        return "0.0"
    from decimal import ROUND_HALF_UP, Context  # costs 3 ms to import, and few expressions hold a float

    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(value)
    exponent = rounded.adjusted()
    if min(-(digits // 3), -5) < exponent < digits:
        text, power = f"{rounded:.{digits - 1 - exponent}f}", ""
    else:
        text, e, power = f"{rounded:.{digits - 1}e}".partition("e")
        power = e + power
    text = text if "." in text else f"{text}."
    if strip:
        text = text.rstrip("0")
        text += "0" if text.endswith(".") else ""
    return text + power
