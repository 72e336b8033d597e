"""Symbolic expressions as data <-> sympy's: the same as sympify gives, and back to what srepr prints."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._sympy import functions as torch_functions

from pt2kit.bridge.read.values import CLASSES, to_sympy
from pt2kit.errors import ExpressionError
from pt2kit.symbols import FUNCTIONS, parse, to_srepr

S0, S1 = (sympy.Symbol(name, positive=True, integer=True) for name in ("s0", "s1"))
U0 = sympy.Symbol("u0", integer=True)
EXPRESSIONS = [
    S0,
    U0,
    sympy.Integer(-7),
    sympy.Rational(1, 3) * S0,
    sympy.Float(0.1) * S0,
    2 * S0 + S1 - 3,
    S0**2 * S1,
    torch_functions.FloorDiv(S0, 2),
    torch_functions.Mod(S0, 3) + torch_functions.PythonMod(U0, 5),
    torch_functions.ModularIndexing(S0, 2, 3),
    torch_functions.ToFloat(S0),
    torch_functions.OpaqueUnaryFn_sqrt(torch_functions.ToFloat(S0)),
    torch_functions.IntTrueDiv(S0, 3),
    sympy.Max(S0, S1, 3),
    sympy.Eq(U0, 1),
    sympy.And(S0 > S1, sympy.Not(sympy.Eq(S0, 4))),
    sympy.Piecewise((1, sympy.Eq(U0, 1)), (0, True)),
    sympy.true,
    sympy.oo,
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_both_ways(expr: sympy.Basic) -> None:
    """The text of srepr is read into an equal expression, and is the text of the tree."""
    text = sympy.srepr(expr)
    built = to_sympy(parse(text))
    assert built == expr
    assert sympy.srepr(built) == text
    assert to_srepr(parse(sympy.srepr(built))) == text


numbers = st.integers(-50, 50).map(sympy.Integer)
leaves = st.sampled_from([S0, S1, U0]) | numbers


def _joined(parts: st.SearchStrategy) -> st.SearchStrategy:
    two = st.tuples(parts, parts)
    return (
        two.map(lambda pair: pair[0] + pair[1])
        | two.map(lambda pair: pair[0] * pair[1])
        | parts.map(lambda part: torch_functions.FloorDiv(part, 7))
        | parts.map(lambda part: torch_functions.PythonMod(part, 5))
    )


@given(st.recursive(leaves, _joined, max_leaves=8))
def test_any_expression(expr: sympy.Basic) -> None:
    """Any sum, product and quotient of symbols."""
    assert to_sympy(parse(sympy.srepr(expr))) == expr
    assert to_srepr(parse(sympy.srepr(expr))) == sympy.srepr(expr)


def test_every_function_has_a_class() -> None:
    """The table covers what the parser lets through."""
    missing = {name for name in ("BitwiseFn_bitwise_xor",) if not hasattr(torch_functions, name)}  # since 2.10
    assert CLASSES.keys() == FUNCTIONS.keys() - missing


@pytest.mark.parametrize("text", ["Mod(Integer(3), Integer(0))", "FloorDiv(Integer(1), Integer(0))"])
def test_without_value(text: str) -> None:
    """An expression without a value is an error of ours, with its place."""
    with pytest.raises(ExpressionError, match=r"^x\.sizes: expected an expression that has a value"):
        to_sympy(parse(text), "x.sizes")


def test_unknown_class() -> None:
    """Classes that the format has no name for are refused."""
    with pytest.raises(ExpressionError, match="here"):
        parse(sympy.srepr(sympy.besselj(1, S0)), where="here")
