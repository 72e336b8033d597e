"""The str dialect: text -> tree, as srepr would write it."""

from __future__ import annotations

import pytest
from tests.symbols.cases import EXPRESSIONS

from pt2kit.symbols import default_assumptions, parse_str, to_srepr

FREE = {"s15", "s86"}
INTEGER = (("integer", True),)
PAIRS = sorted({(case["str"], case["srepr"]) for case in EXPRESSIONS if "str" in case})


@pytest.mark.parametrize(("text", "srepr"), PAIRS)
def test_reads_what_sympy_printed(text, srepr):
    """A text of sympy's str() gives the tree that srepr() writes of the same expression."""
    # The names of these two do not tell that they may be 0 or negative.
    written = to_srepr(parse_str(text, assumptions=lambda name: INTEGER if name in FREE else default_assumptions(name)))
    assert written == srepr


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("-2*s0", "(-2)*s0"),
        ("s0*(-2)", "-2*s0"),
        ("-s0**2", "-(s0**2)"),
        ("2**-s0", "2**(-s0)"),
        ("2**s0**u0", "2**(s0**u0)"),
        ("--s0", "s0"),
        ("+s0", "s0"),
        ("s0 - -2", "s0 + 2"),
        ("s0 - (-3*s1)", "s0 + 3*s1"),
        ("s0 - s1*(-3)", "s0 + 3*s1"),
        ("2*3*s0", "6*s0"),
        ("s0*2/6", "s0/3"),
        ("s0/(1/2)", "2*s0"),
        ("2*(3*s0)", "6*s0"),
        ("s1*2/s0", "2*s1/s0"),
        ("1/s0**(-2)", "s0**2"),
        ("1/s0**s1", "s0**(-s1)"),
        ("s0//2*3", "(s0//2)*3"),
        ("s0 % 3", "Mod(s0, 3)"),
        ("Max(s1*s0 + 1, s0)", "Max(s0, s1*s0 + 1)"),
        ("s0>1&(s1<2)", "s0 > (1 & (s1 < 2))"),
        ("Eq(s0, 1) | Eq(s1, 2) & Eq(s2, 3)", "Eq(s0, 1) | (Eq(s1, 2) & Eq(s2, 3))"),
        ("-oo", "-(oo)"),
        ("-1.5*s0", "(-1.5)*s0"),
        ("s0*1.5e3", "s0*1500.0"),
        ("Ge(s0, 1)", "s0 >= 1"),
        ("sqrt(s0)", "s0**(1/2)"),
    ],
)
def test_operators_group_as_in_python(text, same):
    """Precedence, signs and numbers in front of products are those of Python and sympy."""
    assert parse_str(text) == parse_str(same)


def test_assumptions_are_the_callers():
    """Callers can pass assumptions that symbols' names do not carry."""
    tree = parse_str("s0 + x", assumptions=lambda name: (("real", True),) if name == "x" else ())
    assert to_srepr(tree) == "Add(Symbol('s0'), Symbol('x', real=True))"
