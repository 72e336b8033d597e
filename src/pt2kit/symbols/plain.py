"""Parser of the str dialect of `expr_str`, which torch wrote up to 2.5 and still uses for the keys of ranges.

    s0*s1 - (s0//2) + Mod(s0, 3) + 3

What sympy's str() prints: Python's operators, `Eq(..)` and `Ne(..)`, `&`, `|`, `^` and `~` between truth values, calls
by class name, pairs in brackets inside `Piecewise`, `oo` and `int_oo`. `/` is exact division. The text does not say
what is assumed about a symbol; `default_assumptions` has torch's assumptions about one of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pt2kit.symbols.algebra import Operand, add, chain, close, divide, minus, multiply, subtract
from pt2kit.symbols.expr import (
    DEFAULT_LIMITS,
    Boolean,
    Call,
    Expr,
    Infinity,
    Leaf,
    Limits,
    Rational,
    Symbol,
    default_assumptions,
    fail,
)
from pt2kit.symbols.functions import ALIASES, FUNCTIONS, make_call
from pt2kit.symbols.infix import Binary, Grammar, Unary, parse_infix
from pt2kit.symbols.order import by_size

Assumptions = Callable[[str], tuple[tuple[str, bool], ...]]

NUMBER = r"(?P<float>(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.]))|(?P<int>(?:0|[1-9]\d*)(?![\w.]))"
_TOKEN = NUMBER + r"|(?P<name>[A-Za-z_]\w*)|(?P<op>\*\*|//|<=|>=|==|!=|[-+*/%<>~&|^(),])"

_NAMES: Mapping[str, Leaf] = MappingProxyType(
    {
        "True": Boolean(True),
        "true": Boolean(True),
        "False": Boolean(False),
        "false": Boolean(False),
        "oo": Infinity(),
        "int_oo": Infinity(integer=True),
    }
)
_NO_VALUES = frozenset({"nan", "zoo", "I", "E", "pi"})


def parse_str(
    text: str, *, where: str = "", assumptions: Assumptions = default_assumptions, limits: Limits = DEFAULT_LIMITS
) -> Expr:
    """Parse an expression in the str dialect.

    Args:
        text: what str() of a sympy expression printed.
        where: the place to name in errors.
        assumptions: symbol name -> its assumptions.
        limits: what the expression may cost.

    Returns:
        The tree, in the form in which srepr would write it. Cost: linear in the text.

    Raises:
        ExpressionError: no such expression, an unknown function, a wrong number of arguments.
        LimitError: longer, larger or deeper than `limits` allow.
    """
    return parse_infix(text, _grammar(assumptions), where, limits)


def call_operator(function: str) -> Binary:
    """Return the builder of a binary operator that represents a function."""

    def build(left: Operand, right: Operand, where: str, _: Limits) -> Operand:
        return make_call(function, (close(left), close(right)), where)

    return build


def chain_operator(function: str) -> Binary:
    """Return the builder of a binary operator whose calls grow: `a & b & c` is one call."""

    def build(left: Operand, right: Operand, _where: str, _limits: Limits) -> Operand:
        return chain(function, left, right)

    return build


def not_operator(operand: Operand, where: str, limits: Limits) -> Operand:
    """Return the builder of `~` and `not`."""
    return Call("Not", (close(operand),))


def plus_operator(operand: Operand, where: str, limits: Limits) -> Operand:
    """Return the builder of a leading `+`, which changes nothing."""
    return operand


def add_operator(left: Operand, right: Operand, where: str, limits: Limits) -> Operand:
    """Return the builder of `+`."""
    return add(left, right)


def subtract_operator(left: Operand, right: Operand, where: str, limits: Limits) -> Operand:
    """Return the builder of `-` between two values."""
    return subtract(left, right)


def _equality(left: Operand, right: Operand, where: str, limits: Limits) -> Operand:
    fail(where, "expected Eq(a, b) or Ne(a, b), got '==' or '!=', which sympy's text does not hold")


def _name(assumptions: Assumptions) -> Callable[[str, str], Expr]:
    known: dict[str, Expr] = dict(_NAMES)

    def name(written: str, where: str) -> Expr:
        leaf = known.get(written)
        if leaf is None:
            if written in _NO_VALUES:
                fail(where, f"expected a value a program can compute with, got {written}")
            if written in FUNCTIONS or written in ALIASES:
                fail(where, f"expected '(' after the function {written}, got none")
            leaf = known[written] = Symbol(written, assumptions(written))
        return leaf

    return name


def _call(name: str, args: Sequence[Expr], where: str, limits: Limits) -> Operand:
    if name == "sqrt":
        return make_call("Pow", (*args, Rational(1, 2)), where)
    if name == "ExprCondPair":
        fail(where, "expected pairs in brackets, got ExprCondPair, which only the srepr dialect writes")
    if name in ("Max", "Min"):
        args = by_size(args)
    return make_call(name, args, where)


_BINARY: Mapping[str, tuple[int, int, Binary]] = MappingProxyType(
    {
        "<": (10, 11, call_operator("StrictLessThan")),
        "<=": (10, 11, call_operator("LessThan")),
        ">": (10, 11, call_operator("StrictGreaterThan")),
        ">=": (10, 11, call_operator("GreaterThan")),
        "==": (10, 11, _equality),
        "!=": (10, 11, _equality),
        "|": (20, 20, chain_operator("Or")),
        "^": (22, 22, chain_operator("Xor")),
        "&": (24, 24, chain_operator("And")),
        "+": (40, 40, add_operator),
        "-": (40, 40, subtract_operator),
        "*": (50, 50, multiply),
        "/": (50, 50, divide),
        "//": (50, 50, call_operator("FloorDiv")),
        "%": (50, 50, call_operator("Mod")),
        "**": (70, 71, call_operator("Pow")),
    }
)
_UNARY: Mapping[str, tuple[int, Unary]] = MappingProxyType(
    {"-": (60, minus), "+": (60, plus_operator), "~": (60, not_operator)}
)


def _grammar(assumptions: Assumptions) -> Grammar:
    return Grammar(_TOKEN, _BINARY, _UNARY, _name(assumptions), _call, "Piecewise", conditional=False)
