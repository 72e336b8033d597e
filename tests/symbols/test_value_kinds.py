"""The kind of an expression, before any value is known."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from tests.symbols.cases import EXPRESSIONS, TREES

from pt2kit.errors import ExpressionError, Pt2Error
from pt2kit.symbols import Call, Integer, Symbol, kind, parse, parse_size


@pytest.mark.parametrize(("text", "expected"), [(case["text"], case["kind"]) for case in EXPRESSIONS])
def test_kinds_of_cases(text, expected):
    """Every text has the kind that its values have."""
    assert kind(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s0*2", "int"),
        ("s0*2.0", "float"),
        ("s0/2", "float"),
        ("floor(s0/2)", "int"),
        ("zf0 + 1", "float"),
        ("zuf0", "float"),
        ("Max(s0, 1.5)", "float"),
        ("s0**2", "int"),
        ("s0**s1", "int"),
        ("s0**(s1*s2 + Max(0, u0))", "int"),
        ("s0**u0", "float"),
        ("s0**(-1)", "float"),
        ("1.5**2", "float"),
        ("sqrt(s0)", "float"),
        ("Where(s0 > 1, 1, 2)", "int"),
        ("Where(s0 > 1, 1, 2.5)", "float"),
        ("Piecewise((True, s0 > 1), (False, True))", "bool"),
        ("RoundDecimal(s0, 2)", "int"),
        ("RoundDecimal(zf0, 2)", "float"),
        ("BitwiseFn_bitwise_and(u0, 3)", "int"),
        ("BitwiseFn_bitwise_and(s0 > 1, s1 > 2)", "bool"),
        ("Eq(s0 > 1, True)", "bool"),
        ("ITE(s0 > 1, True, s1 > 2)", "bool"),
        ("int_oo", "int"),
        ("oo", "float"),
        ("Symbol('q', real=True)", "float"),
        ("Symbol('u0')", "int"),
    ],
)
def test_kinds(text, expected):
    """Floats and exact quotients spread, rounding gives ints, conditions give truth values."""
    assert kind(parse(text)) == expected


def test_inputs_of_guards_fit_everywhere():
    """A whole input that a guard names may be of any kind; alone its kind is not known."""
    symbol = Symbol("L['n']")
    assert kind(symbol) == "any"
    assert kind(Call("Add", (symbol, Integer(1)))) == "int"
    assert kind(Call("Not", (symbol,))) == "bool"


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Call("nope", (Integer(1),)), "expected a function that torch writes, got 'nope'"),
        (Call("Pow", (Integer(1),)), "expected 2 arguments of Pow, got 1"),
        (Call("ExprCondPair", (Integer(1), parse("True"))), "got a pair that belongs in a Piecewise"),
        (Call("Add", (Call("ExprCondPair", (Integer(1), parse("True"))),)), "expected a number as argument 1 of Add"),
    ],
)
def test_trees_that_make_no_sense(tree, message):
    """A tree that no text gives is refused with a reason, not with an error from inside."""
    with pytest.raises(ExpressionError) as caught:
        kind(tree, where="here")
    assert str(caught.value).startswith("here: ")
    assert message in str(caught.value)


@given(TREES)
def test_any_tree_has_a_kind_or_an_error(tree):
    """Only errors of this project come out."""
    with contextlib.suppress(Pt2Error):
        assert kind(tree) in ("int", "float", "bool")


def test_sizes_are_ints():
    """A size yields an int; the error names the place and what it got."""
    assert parse_size("2*s0 + 1") == parse("2*s0 + 1")
    with pytest.raises(ExpressionError, match=r"^sizes\[0\]: expected .* an int, got one that yields a float$"):
        parse_size("s77*0.5", where="sizes[0]")
