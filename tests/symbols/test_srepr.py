"""The srepr dialect: text <-> tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.narrow import instance
from tests.symbols.cases import EXPRESSIONS, TREES

from pt2kit.errors import ExpressionError
from pt2kit.symbols import Call, Float, Infinity, Integer, Rational, Symbol, parse, parse_srepr, to_srepr

TEXTS = sorted({case["srepr"] for case in EXPRESSIONS if "srepr" in case})


@pytest.mark.parametrize("text", TEXTS)
def test_prints_what_it_read(text):
    """Printing the tree of a text gives the text, byte for byte."""
    assert to_srepr(parse_srepr(text)) == text


@given(TREES)
def test_reads_what_it_printed(tree):
    """Reading the text of any tree gives the tree, whether it makes sense or not."""
    assert parse_srepr(to_srepr(tree)) == tree


def test_leaves():
    """Every leaf keeps all that is written about it."""
    assert parse_srepr("Symbol('zuf0')") == Symbol("zuf0")
    assert instance(Symbol, parse_srepr("Symbol('s0', positive=True, integer=False)")).assumptions == (
        ("positive", True),
        ("integer", False),
    )
    assert parse_srepr("Float('0.50', precision=113)") == Float("0.50", 113)
    assert parse_srepr("Rational(-3, 7)") == Rational(-3, 7)
    assert parse_srepr("-int_oo") == Infinity(negative=True, integer=True)


def test_functions_that_torch_did_not_know():
    """The form of opaque functions that torch writes after loading a program is read as the function."""
    text = "Function('OpaqueUnaryFn_sqrt')(IntTrueDiv(Symbol('s0', positive=True, integer=True), Integer(4)))"
    assert to_srepr(parse_srepr(text)) == text.replace("Function('OpaqueUnaryFn_sqrt')", "OpaqueUnaryFn_sqrt")
    for wrong in (
        "Function('system')(Integer(1))",
        "Function(Integer(1))",
        "Function('Mod')",
        "Function('')(Integer(1))",
    ):
        with pytest.raises(ExpressionError, match="expected"):
            parse_srepr(wrong)


def test_spaces_do_not_matter():
    """Texts with other spaces than torch's are read too."""
    loose = " Add( Integer( 1 ) ,\n Symbol( 's0' , positive = True ,integer=True ) , Abs( oo ) )\t"
    assert parse_srepr(loose) == parse_srepr("Add(Integer(1), Symbol('s0', positive=True, integer=True), Abs(oo))")


def test_equal_symbols_are_shared():
    """Within one text, one symbol is one object."""
    tree = parse_srepr("Add(Symbol('s0'), Mul(Integer(2), Symbol('s0')))")
    first, product = instance(Call, tree).args
    assert first is instance(Call, product).args[1]


def test_short_names_become_class_names():
    """`Eq` and its like are read as the classes that sympy prints."""
    assert parse_srepr("Eq(Integer(1), Integer(2))") == Call("Equality", (Integer(1), Integer(2)))
    assert parse("Ge(s0, 2)") == parse("s0 >= 2")


@pytest.mark.parametrize("text", ["s0", "s0 + 1", "Add(s0, 1)", "True", "Integer(1) + Integer(2)", ""])
def test_the_other_dialect_is_refused(text):
    """Text of the str dialect is no srepr."""
    with pytest.raises(ExpressionError, match=r"^place: expected"):
        parse_srepr(text, where="place")
