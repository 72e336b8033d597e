"""Errors as problems, and lists of problems with a bound."""

from __future__ import annotations

import pytest

from pt2kit import errors
from pt2kit.checks import RULES
from pt2kit.checks.findings import MAX_PER_RULE, distinct, problem_of
from pt2kit.errors import Problem, Pt2Error


@pytest.mark.parametrize(
    ("message", "loc", "text"),
    [
        ("r.json: $.a: expected 1, got 2", "r.json: $.a", "expected 1, got 2"),
        ("f.pt2: r.json: expected 1, got 2", "r.json", "expected 1, got 2"),
        ("f.pt2: expected a zip, got a text: expected", "here", "expected a zip, got a text: expected"),
        ("here: byte 3: not JSON", "here", "byte 3: not JSON"),
        ("something else", "here", "something else"),
    ],
)
def test_place_and_message(message: str, loc: str, text: str) -> None:
    """The text before "expected" is the place; without it, the caller's place is used."""
    assert problem_of(Pt2Error(message, rule="J1"), "here", "f.pt2") == Problem(loc, "J1", text)


def test_errors_without_a_rule() -> None:
    """Every class of errors has a rule for those that carry none, and the rule exists."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Pt2Error)]
    assert len(kinds) > 10
    for kind in kinds:
        assert problem_of(kind("expected 1, got 2"), "here").rule in RULES


def test_each_problem_once() -> None:
    """Equal problems are one; the order is kept."""
    a, b = Problem("a", "G1", "x"), Problem("b", "G1", "x")
    assert list(distinct([a, b, a, a])) == [a, b]


def test_bound() -> None:
    """Of one rule no more than the bound is given, then the number of the others."""
    many = [Problem(str(number), "G1", "x") for number in range(MAX_PER_RULE + 7)]
    found = list(distinct([*many, Problem("z", "G2", "y")]))
    assert len(found) == MAX_PER_RULE + 2
    assert found[-2] == Problem("z", "G2", "y")
    assert found[-1] == Problem(many[-1].loc, "G1", "and 7 more like these, the last one here")
