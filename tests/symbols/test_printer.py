"""Tree -> the str dialect."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from tests.symbols.cases import EXPRESSIONS, INFIX, TREES

from pt2kit.errors import Pt2Error
from pt2kit.symbols import Integer, Symbol, fold, kind, parse, parse_str, to_srepr, to_str

CASES = sorted({(case["srepr"], case["str"]) for case in EXPRESSIONS if "str" in case})


@pytest.mark.parametrize(("srepr", "text"), CASES)
def test_prints_what_sympy_prints(srepr, text):
    """The text of a tree is that of torch 2.5, from whichever dialect the tree was read."""
    assert to_str(parse(srepr)) == text
    assert to_str(parse_str(text)) == text


def has_constant_part(tree):
    """Return whether sympy would have simplified a part of a tree."""

    def call(node, args):
        constant = all(kind_of_arg == "number" for kind_of_arg in args)
        trivial = node.function == "Pow" and node.args[1] in (Integer(0), Integer(1))
        return "found" if constant or trivial or "found" in args else "other"

    return fold(tree, lambda leaf: "other" if isinstance(leaf, Symbol) else "number", call) == "found"


@given(INFIX)
def test_reads_what_it_printed(text):
    """Reading the text of a tree that came from text gives the tree again, if the tree could come from sympy at all."""
    try:
        tree = parse_str(text)
        kind(tree)
    except Pt2Error:
        assume(False)
    assume(not has_constant_part(tree))
    assert parse_str(to_str(tree)) == tree
    assert parse(to_srepr(tree)) == tree


@given(TREES)
def test_any_tree_has_a_text(tree):
    """Printing never fails, whatever the tree is."""
    assert to_str(tree)


def test_nested_fractions_are_linear():
    """A hundred fractions inside each other print at once."""
    text = "s0"
    for _ in range(90):
        text = f"1/(s1 + {text})"
    assert to_str(parse_str(text)).startswith("1/(s1 + 1/(s1 + ")
