"""What an expression yields, known before any value is: an int, a float or a truth value.

A tensor size must be an int: `s77*0.5` is refused without knowing s77. Arguments are checked on the way, so `true + 1`
is refused too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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
    default_assumptions,
    fail,
    fold,
)
from pt2kit.symbols.functions import FUNCTIONS, Function, Takes, check_arity

Kind = Literal["int", "float", "bool", "any"]

# Exact fractions are a kind of their own while a kind is computed, and so are the pairs inside a Piecewise (by the kind
# of their value). "any" is a whole input that a guard names; it fits everywhere.
_Inner = Literal["int", "rational", "float", "bool", "any", "pair int", "pair rational", "pair float", "pair bool"]
_WIDTH: dict[str, int] = {"any": 0, "int": 1, "rational": 2, "float": 3}


def kind(expr: Expr, *, where: str = "") -> Kind:
    """What an expression yields.

    Args:
        expr: the tree.
        where: the place to name in errors.

    Returns:
        "int", "bool", or "float", also for exact quotients such as `s0/2`; "any" for a guard's bare reference to an
        input.

    Raises:
        ExpressionError: a function gets a truth value where it takes a number, or the other way round.
    """

    def call(node: Call, args: list[str]) -> str:
        function = FUNCTIONS.get(node.function)
        if function is None:
            fail(where, f"expected a function that torch writes, got {node.function!r}")
        check_arity(node.function, function, len(args), where)
        _check_args(node.function, function, args, where)
        return _result(node, function, args)

    found = fold(expr, _leaf_kind, call)
    if found.startswith("pair"):
        fail(where, "expected a value, got a pair that belongs in a Piecewise")
    if found == "rational":
        return "float"
    return found  # type: ignore[return-value]  # what is left are the names of Kind


def require_int(expr: Expr, *, where: str = "") -> Expr:
    """The same expression, if it yields an int.

    Raises:
        ExpressionError: it yields a float or a truth value.
    """
    found = kind(expr, where=where)
    if found != "int":
        fail(where, f"expected an expression that yields an int, got one that yields a {found}")
    return expr


def symbol_kind(symbol: Symbol) -> Kind:
    """What a symbol stands for: what its assumptions say, else those that torch makes on its name.

    Returns:
        "int" or "float"; "any" for a whole input that a guard names.
    """
    if "[" in symbol.name and not symbol.assumptions:
        return "any"
    known = symbol.assumptions or default_assumptions(symbol.name)
    return "int" if ("integer", True) in known else "float"


def _leaf_kind(leaf: Leaf) -> str:
    match leaf:
        case Integer():
            return "int"
        case Rational():
            return "rational"
        case Float():
            return "float"
        case Boolean():
            return "bool"
        case Infinity(_, integer):
            return "int" if integer else "float"
        case Symbol():
            return symbol_kind(leaf)


def _check_args(name: str, function: Function, args: Sequence[str], where: str) -> None:
    takes = function.takes
    if takes == "any":
        return
    if takes == "same":
        takes = "bool" if "bool" in args else "number"
    for place, got in enumerate(args):
        expected = _expected(takes, place)
        if not _fits(got, expected):
            fail(where, f"expected {_NAMES[expected]} as argument {place + 1} of {name}, got {_NAMES[got]}")


def _expected(takes: Takes, place: int) -> str:
    if takes == "pairs":
        return "pair"
    if takes == "ite":
        return "bool"
    if takes == "pair":
        return "bool" if place == 1 else "value"
    if takes == "where":
        return "bool" if place == 0 else "value"
    return takes


_NAMES = {
    "int": "an int", "rational": "a fraction", "float": "a float", "number": "a number", "bool": "a truth value",
    "any": "an input", "pair": "a pair", "value": "a value", "pair int": "a pair", "pair rational": "a pair",
    "pair float": "a pair", "pair bool": "a pair", "pair any": "a pair",
}  # fmt: skip


def _fits(got: str, expected: str) -> bool:
    if expected == "pair" or got.startswith("pair"):
        return expected == "pair" and got.startswith("pair")
    if got == "any" or expected == "value":
        return True
    if expected == "number":
        return got != "bool"
    return got == expected


def _result(node: Call, function: Function, args: list[str]) -> str:
    gives = function.gives
    match gives:
        case "number":
            return _widest(args)
        case "power":
            return _power_kind(node, args)
        case "first":
            return args[0]
        case "joined":
            values = [arg.removeprefix("pair ") for arg in (args if function.takes == "pairs" else args[1:])]
            return "bool" if "bool" in values else _widest(values)
        case "bits":
            return "bool" if all(arg == "bool" for arg in args) else "int"
        case "pair":
            return f"pair {args[0]}"
        case _:
            return gives


def _widest(args: Sequence[str]) -> str:
    widest = max(args, key=_WIDTH.__getitem__)
    return "int" if widest == "any" else widest


def _power_kind(node: Call, args: Sequence[str]) -> str:
    base, exponent = (_widest([arg]) for arg in args)
    if base == "float" or exponent != "int":
        return "float"
    return base if fold(node.args[1], _leaf_is_natural, _call_is_natural) else "rational"


def _leaf_is_natural(leaf: Leaf) -> bool:
    if isinstance(leaf, Symbol):
        known = leaf.assumptions or default_assumptions(leaf.name)
        return ("positive", True) in known or ("nonnegative", True) in known
    return isinstance(leaf, Integer) and leaf.value >= 0


def _call_is_natural(node: Call, args: list[bool]) -> bool:
    if node.function == "Max":
        return any(args)
    if node.function == "Abs":
        return True
    return node.function in _KEEPS_SIGN and all(args)


_KEEPS_SIGN = frozenset(
    ("Add", "Mul", "Min", "Pow", "PowByNatural", "FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "Identity")
)
