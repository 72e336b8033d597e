"""Parser and printer of the str dialect of `expr_str`, which torch wrote up to 2.5 and still uses for keys of ranges.

    s0*s1 - (s0//2) + Mod(s0, 3) + 3

What sympy's str() prints: Python's operators, `Eq(..)` and `Ne(..)`, `&`, `|`, `^` and `~` between truth values, calls
by class name, pairs in brackets inside `Piecewise`, `oo` and `int_oo`. `/` is exact division. The text does not contain
what is assumed about a symbol; `default_assumptions` has torch's assumptions about one of that name.

`to_str` prints with the brackets that torch up to 2.5 wrote, and `parse_str` reads that back. For a tree that came from
srepr the text is the one that str() of the sympy expression returned in torch 2.1 to 2.5, with these differences:
`Identity(x)` is written out (2.5 printed it as `I`); a divisor of the form `1/b` is bracketed (2.5 left that out, which
changed the value); a product that sympy would have simplified away (`Mul(Integer(2), Integer(3))`) is printed as it is;
floats of another precision than a double's, which torch does not make, are printed with the digits that srepr has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Literal, NamedTuple

from pt2kit.symbols.algebra import is_below, is_negative, make_product, make_sum, negate
from pt2kit.symbols.expr import (
    DEFAULT_LIMITS,
    MINUS_ONE,
    ONE,
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
    default_assumptions,
    fail,
    fold,
)
from pt2kit.symbols.functions import ALIASES, FUNCTIONS, make_call
from pt2kit.symbols.infix import Build, Grammar, parse_infix
from pt2kit.symbols.order import STR_DIGITS, by_key, by_size, decimal_text
from pt2kit.symbols.srepr import to_srepr

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

_OR, _AND, _RELATION, _BIT_OR, _BIT_XOR, _BIT_AND = 20, 30, 35, 36, 37, 38
_ADD, _MUL, _POW, _FUNCTION, _NOT, _ATOM = 40, 50, 60, 70, 100, 1000
_RELATIONS = {"GreaterThan": ">=", "LessThan": "<=", "StrictGreaterThan": ">", "StrictLessThan": "<"}
_CHAINS = {"And": (" & ", _BIT_AND, _AND), "Or": (" | ", _BIT_OR, _OR), "Xor": (" ^ ", _BIT_XOR, 10)}
_SHORT_NAMES = {"Equality": "Eq", "Unequality": "Ne"}
_BINDING = {"Equality": _MUL, "Unequality": _MUL, "Mod": _MUL, "Max": _ATOM, "Min": _ATOM}
_HALF = Rational(1, 2)
_MINUS_HALF = Rational(-1, 2)


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
    grammar = Grammar(_TOKEN, _BINARY, _UNARY, _name(assumptions), _call, conditional=False)
    return parse_infix(text, grammar, where, limits)


def call_operator(function: str) -> Build:
    """Return the builder of an operator that represents a function of two arguments; a row of them nests to the
    left."""
    return lambda signs, operands, where, limits: reduce(
        lambda left, right: make_call(function, (left, right), where), operands
    )


def row_operator(function: str) -> Build:
    """Return the builder of an operator that represents a function of a whole row: `a & b & c` is one call."""
    return lambda signs, operands, where, limits: Call(function, tuple(operands))


def _equality(signs: Sequence[str], operands: Sequence[Expr], where: str, limits: Limits) -> Expr:
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


def _call(name: str, args: Sequence[Expr], where: str) -> Expr:
    if name == "sqrt":
        return make_call("Pow", (*args, Rational(1, 2)), where)
    if name == "ExprCondPair":
        fail(where, "expected pairs in brackets, got ExprCondPair, which only the srepr dialect writes")
    if name in ("Max", "Min"):
        args = by_size(args)
    return make_call(name, args, where)


Binary = Mapping[str, tuple[int, Literal["left", "right", "none"], Build]]

ARITHMETIC: Binary = MappingProxyType(
    {
        "<": (10, "none", call_operator("StrictLessThan")),
        "<=": (10, "none", call_operator("LessThan")),
        ">": (10, "none", call_operator("StrictGreaterThan")),
        ">=": (10, "none", call_operator("GreaterThan")),
        "+": (40, "left", make_sum),
        "-": (40, "left", make_sum),
        "*": (50, "left", make_product),
        "//": (50, "left", call_operator("FloorDiv")),
        "**": (70, "right", call_operator("Pow")),
    }
)
"""Operators that mean the same in sympy's text and in Python."""
SIGNS: Mapping[str, tuple[int, Build]] = MappingProxyType(
    {
        "-": (60, lambda signs, operands, where, limits: make_product("*", (MINUS_ONE, *operands), where, limits)),
        "+": (60, lambda signs, operands, where, limits: operands[0]),
    }
)
_BINARY: Binary = MappingProxyType(
    {
        **ARITHMETIC,
        "==": (10, "none", _equality),
        "!=": (10, "none", _equality),
        "|": (20, "left", row_operator("Or")),
        "^": (22, "left", row_operator("Xor")),
        "&": (24, "left", row_operator("And")),
        "/": (50, "left", make_product),
        "%": (50, "left", call_operator("Mod")),
    }
)
_UNARY: Mapping[str, tuple[int, Build]] = MappingProxyType({**SIGNS, "~": (60, row_operator("Not"))})


class _Text(NamedTuple):
    """A printed part: its text, how tightly it binds, the part itself, and the printed arguments of a Mul or Pow."""

    text: str
    precedence: int
    expr: Expr
    args: Sequence[_Text] = ()


def to_str(expr: Expr) -> str:
    """Write a tree in the str dialect of torch 2.1 to 2.5.

    Source: sympy/printing/str.py 1.12 to 1.14 and the `_sympystr` methods of torch/utils/_sympy/functions.py 2.5.1.
    """
    if isinstance(expr, Float) and expr.precision == 53:
        return decimal_text(float(expr.text), STR_DIGITS, strip=False)
    return fold(expr, _leaf, _call_text).text


def _leaf(leaf: Leaf) -> _Text:
    match leaf:
        case Symbol(name, _):
            text = name
        case Integer(value) | Boolean(value):
            text = str(value)
        case Rational(p, q):
            text = f"{p}/{q}"
        case Float(written, precision):
            text = decimal_text(float(written), STR_DIGITS) if precision == 53 else written
        case Infinity():
            text = to_srepr(leaf)
    precedence = _ADD if text.startswith("-") else _MUL if isinstance(leaf, Rational) else _ATOM
    return _Text(text, precedence, leaf)


def _call_text(node: Call, args: list[_Text]) -> _Text:
    name = node.function
    if name == "Add":
        return _Text(_sum(args), _ADD, node)
    if name == "Mul":
        return _product(node, args)
    if name == "Pow":
        return _Text(_power(args[0], args[1]), _POW, node, args)
    if name in ("FloorDiv", "CleanDiv"):
        # sympy leaves out the brackets of a//(1/b); then the text means another number.
        divisor = _bracket(args[1], _POW if is_below(args[1].expr) else _MUL)
        return _Text(f"({_bracket(args[0], _MUL)}//{divisor})", _MUL, node)
    if name in _RELATIONS:
        left, right = (_bracket(arg, _RELATION) for arg in args)
        return _Text(f"{left} {_RELATIONS[name]} {right}", _RELATION, node)
    if name in _CHAINS and len(args) > 1:
        sign, inner, outer = _CHAINS[name]
        return _Text(sign.join(_bracket(arg, inner) for arg in args), outer, node)
    if name == "Not":
        return _Text(f"~{_bracket(args[0], _NOT)}", _NOT, node)
    if name == "ExprCondPair":
        return _Text(f"({args[0].text}, {args[1].text})", _ATOM, node)
    if name in ("Max", "Min"):
        texts = {id(arg.expr): arg.text for arg in args}
        listed = ", ".join(texts[id(arg)] for arg in by_key(node.args))
    else:
        listed = ", ".join(arg.text for arg in args)
    return _Text(f"{_SHORT_NAMES.get(name, name)}({listed})", _BINDING.get(name, _FUNCTION), node)


def _bracket(part: _Text, level: int) -> str:
    return f"({part.text})" if part.precedence <= level else part.text


def _sum(terms: Sequence[_Text]) -> str:
    pieces: list[str] = []
    for term in terms:
        text = term.text
        is_sum = isinstance(term.expr, Call) and term.expr.function == "Add"
        sign = "+"
        if text.startswith("-") and not is_sum:
            sign, text = "-", text[1:]
        if term.precedence < _ADD or is_sum:
            text = f"({text})"
        if pieces:
            pieces.append(f" {sign} {text}")
        else:
            pieces.append(text if sign == "+" else f"-{text}")
    return "".join(pieces)


def _power(base: _Text, exponent: _Text) -> str:
    if exponent.expr == _HALF:
        return f"sqrt({base.text})"
    if exponent.expr == _MINUS_HALF:
        return f"1/sqrt({base.text})"
    if exponent.expr == MINUS_ONE:
        return f"1/{_bracket(base, _POW)}"
    return f"{_bracket(base, _POW)}**{_bracket(exponent, _POW)}"


def _product(node: Call, factors: Sequence[_Text]) -> _Text:
    """Return a product as `numerator/(denominator)` with the sign of its number in front."""
    minus = is_negative(node.args[0])
    level = _ADD if minus else _MUL
    above: list[str] = []
    below: list[str] = []
    for place, factor in enumerate(factors):
        if place == 0 and minus:
            factor = _negated(factor)
        if isinstance(factor.expr, Rational):
            above += [str(factor.expr.p)] if factor.expr.p != 1 else []
            below.append(str(factor.expr.q))
        elif factor.expr != ONE or place > 0:
            turned = _turned(factor)
            if turned is None:
                above.append(_bracket(factor, level))
            else:
                below.append(_bracket(turned, level))
    text = "*".join(above) or "1"
    if below:
        text += f"/{below[0]}" if len(below) == 1 else f"/({'*'.join(below)})"
    return _Text(f"-{text}" if minus else text, level, node, factors)


def _turned(factor: _Text) -> _Text | None:
    """Return the denominator of a power with a negative exponent; None for everything else."""
    if not is_below(factor.expr):
        return None
    base, exponent = factor.args
    turned = _negated(exponent)
    if turned.expr == ONE:
        return base
    return _Text(_power(base, turned), _POW, Call("Pow", (base.expr, turned.expr)))


def _negated(part: _Text) -> _Text:
    """Return the printed form of -part for a negative number or a product that starts with one."""
    expr = negate(part.expr)
    if not isinstance(expr, Call):
        return _leaf(expr)
    if expr.function == "Mul":
        return _Text(part.text[1:], _MUL, expr)
    return part.args[1]
