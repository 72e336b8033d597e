"""Kinds of expressions, known before any value: an int, a float or a truth value.

A tensor size must be an int: `s77*0.5` is refused without knowing s77. Arguments are checked on the way, so `true + 1`
is refused too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

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
from pt2kit.symbols.functions import FUNCTIONS, Function, check_arity

Kind = Literal["int", "float", "bool", "any"]


class Facts(NamedTuple):
    """Known facts of a part while a kind is computed.

    Args:
        kind: one of `Kind`; or "rational" for an exact quotient, or "pair" and the kind of its value inside a
            Piecewise. "any" is a whole input that a guard names; it fits everywhere.
        is_natural: whether it is a number that is surely not negative.
    """

    kind: str
    is_natural: bool = False


_WIDTH = {"any": 0, "int": 1, "rational": 2, "float": 3}
_KEEPS_SIGN = frozenset(
    ("Add", "Mul", "Min", "Pow", "PowByNatural", "FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "Identity")
)
_NAMES = {
    "int": "an int",
    "rational": "a fraction",
    "float": "a float",
    "number": "a number",
    "bool": "a truth value",
    "any": "an input",
    "value": "a value",
    "pair": "a pair",
}


def kind(expr: Expr, *, where: str = "") -> Kind:
    """Return the kind of an expression's value.

    Args:
        expr: the tree.
        where: the place to name in errors.

    Returns:
        "int", "bool", or "float", also for exact quotients such as `s0/2`; "any" for a guard's bare reference to an
        input.

    Raises:
        ExpressionError: a function gets a truth value where it takes a number, or the other way round.
    """

    def call(node: Call, args: list[Facts]) -> Facts:
        return facts_of_call(node, args, where)

    expr_kind = fold(expr, facts_of_leaf, call).kind
    if expr_kind.startswith("pair"):
        fail(where, "expected a value, got a pair that belongs in a Piecewise")
    return "float" if expr_kind == "rational" else cast("Kind", expr_kind)


def symbol_kind(symbol: Symbol) -> Kind:
    """Return the kind of a symbol, from its assumptions, else from those that torch makes on its name.

    Returns:
        "int" or "float"; "any" for a whole input that a guard names.
    """
    if "[" in symbol.name and not symbol.assumptions:
        return "any"
    known = symbol.assumptions or default_assumptions(symbol.name)
    return "int" if ("integer", True) in known else "float"


def facts_of_leaf(leaf: Leaf) -> Facts:
    """Return the known facts of a leaf."""
    match leaf:
        case Integer(value):
            return Facts("int", value >= 0)
        case Rational(p, _):
            return Facts("rational", p >= 0)
        case Float():
            return Facts("float")
        case Boolean():
            return Facts("bool")
        case Infinity(_, integer):
            return Facts("int" if integer else "float")
        case Symbol(name, assumptions):
            known = assumptions or default_assumptions(name)
            return Facts(symbol_kind(leaf), ("positive", True) in known or ("nonnegative", True) in known)


def facts_of_call(node: Call, args: Sequence[Facts], where: str) -> Facts:
    """Return the known facts of a call, from those of its arguments.

    Raises:
        ExpressionError: an unknown function, or arguments it does not take.
    """
    function = FUNCTIONS.get(node.function)
    if function is None:
        fail(where, f"expected a function that torch writes, got {node.function!r}")
    check_arity(node.function, function, len(args), where)
    kinds = [arg.kind for arg in args]
    _check_args(node.function, function, kinds, where)
    if node.function == "Abs":
        is_natural = True
    elif node.function == "Max":
        is_natural = any(arg.is_natural for arg in args)
    else:
        is_natural = node.function in _KEEPS_SIGN and all(arg.is_natural for arg in args)
    if function.gives == "power":
        return Facts(_power_kind(kinds, exponent_is_natural=args[1].is_natural), is_natural)
    return Facts(_result(node.function, function, kinds, where), is_natural)


def _check_args(name: str, function: Function, kinds: Sequence[str], where: str) -> None:
    takes = function.takes.split()
    if takes == ["same"]:
        takes = ["bool"] if "bool" in kinds else ["number"]
    for place, got in enumerate(kinds):
        expected = takes[min(place, len(takes) - 1)]
        if not _fits(got, expected):
            got = "pair" if got.startswith("pair") else got
            fail(where, f"expected {_NAMES[expected]} as argument {place + 1} of {name}, got {_NAMES[got]}")


def _fits(got: str, expected: str) -> bool:
    if expected == "pair" or got.startswith("pair"):
        return expected == "pair" and got.startswith("pair")
    if got == "any" or expected == "value":
        return True
    if expected == "number":
        return got != "bool"
    return got == expected


def _result(name: str, function: Function, kinds: Sequence[str], where: str) -> str:
    match function.gives:
        case "number":
            return _widest(kinds)
        case "first":
            return kinds[0]
        case "joined":
            values = [kind.removeprefix("pair ") for kind in (kinds if function.takes == "pair" else kinds[1:])]
            if "bool" not in values:
                return _widest(values)
            if not {"bool", "any"}.issuperset(values):
                fail(where, f"expected only numbers or only truth values as values of {name}, got both")
            return "bool"
        case "bits":
            return "bool" if all(kind == "bool" for kind in kinds) else "int"
        case "pair":
            return f"pair {kinds[0]}"
        case gives:
            return gives


def _widest(kinds: Sequence[str]) -> str:
    widest = max(kinds, key=_WIDTH.__getitem__)
    return "int" if widest == "any" else widest


def _power_kind(kinds: Sequence[str], *, exponent_is_natural: bool) -> str:
    base, exponent = (_widest([kind]) for kind in kinds)
    if base == "float" or exponent != "int":
        return "float"
    return base if exponent_is_natural else "rational"
