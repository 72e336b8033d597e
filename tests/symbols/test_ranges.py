"""The interval of an expression."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.symbols.cases import EXPRESSIONS, INFIX

from pt2kit.errors import Pt2Error
from pt2kit.symbols import bounds, evaluate, parse

INF = math.inf
RANGES = {"s0": (2, 10), "s1": (1, 64), "u0": (-3, 5), "u1": (None, 7), "zf0": (-0.5, 1.5)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", (7, 7)),
        ("s0", (2, 10)),
        ("u1", (-INF, 7)),
        ("s9", (1, INF)),
        ("u9", (-INF, INF)),
        ("2*s0 + 1", (5, 21)),
        ("s0 - s1", (-62, 9)),
        ("s0*s1", (2, 640)),
        ("s0*u0", (-30, 50)),
        ("s0*s9", (2, INF)),
        ("u9*s0", (-INF, INF)),
        ("0*u9", (0, 0)),
        ("s0**2", (4, 100)),
        ("u0**2", (0, 25)),
        ("u0**3", (-27, 125)),
        ("s0**s1", (1, INF)),
        ("(s0//3)", (0, 3)),
        ("(u0//2)", (-2, 2)),
        ("(s9//4)", (0, INF)),
        ("(s1//s0)", (0, 32)),
        ("(s0//u0)", (-INF, INF)),
        ("CeilDiv(s0, 3)", (0, 4)),
        ("Mod(s0, 3)", (0, 2)),
        ("Mod(s0, 64)", (0, 10)),
        ("PythonMod(u0, s0)", (0, 9)),
        ("Mod(s0, u0)", (-INF, INF)),
        ("Mod(zf0, 2)", (0, 2)),
        ("ModularIndexing(s0, 2, 4)", (0, 3)),
        ("Max(s0, 5)", (5, 10)),
        ("Min(s0, 5)", (2, 5)),
        ("Abs(u0)", (0, 5)),
        ("LShift(s0, 3)", (16, 80)),
        ("RShift(s1, 3)", (0, 8)),
        ("TruncToInt(zf0)", (0, 1)),
        ("RoundToInt(zf0)", (0, 2)),
        ("floor(s0/2)", (0, 5)),
        ("ToFloat(s0)", (math.nextafter(2.0, 0), math.nextafter(10.0, 11))),
        ("Piecewise((1, Eq(u0, 1)), (0, True))", (0, 1)),
        ("Where(u0 > 1, s0, 20)", (2, 20)),
        ("s0 > 1", (1, 1)),
        ("s0 >= 11", (0, 0)),
        ("s0 < s1", (0, 1)),
        ("Eq(s0, 11)", (0, 0)),
        ("Ne(s0, 11)", (1, 1)),
        ("Eq(3, 3)", (1, 1)),
        ("(s0 > 1) & (u0 > 9)", (0, 0)),
        ("(s0 > 1) | (u0 > 2)", (1, 1)),
        ("~(s0 > 1)", (0, 0)),
        ("PowByNatural(s0, 9999)", (1, INF)),
        ("oo", (INF, INF)),
        ("oo - oo", (-INF, INF)),
        ("True", (1, 1)),
        ("cos(s0)", (-INF, INF)),
        ("IsNonOverlappingAndDenseIndicator(s0, 1)", (0, 1)),
    ],
)
def test_bounds(text, expected):
    """Each function has the interval that its arguments allow; what has no rule can be anything."""
    low, high = bounds(parse(text), RANGES)
    if text.startswith(("floor(", "CeilDiv")):
        # A rounded quotient may be one step wider.
        assert expected[0] <= low + 1
        assert high >= expected[1]
    else:
        assert (low, high) == expected


def test_huge_ends_move_outwards():
    """Numbers beyond the limit become infinite above, and stay below what they were below."""
    assert bounds(parse("s0*s0"), {"s0": (2**4000, 2**4001)}) == (2**4096, INF)
    assert bounds(parse("-s0*s0"), {"s0": (2**4000, 2**4001)}) == (-INF, -(2**4096))
    assert bounds(parse("s0*0.5"), {"s0": (10**400, 10**401)}) == (-INF, INF)


@given(INFIX, st.integers(2, 10), st.integers(1, 64), st.integers(-3, 5), st.integers(1, 9))
def test_bounds_hold_every_value(text, s0, s1, u0, s77):
    """No value lies outside the interval."""
    try:
        expr = parse(text)
        value = evaluate(expr, {"s0": s0, "s1": s1, "u0": u0, "s77": s77})
    except Pt2Error:
        return
    low, high = bounds(expr, {**RANGES, "s77": (1, 9)})
    assert low <= value <= high


@pytest.mark.parametrize("case", [case for case in EXPRESSIONS if case["values"]], ids=lambda case: case["text"])
def test_bounds_of_cases(case):
    """The value for a point lies in the interval of that point, and of everything."""
    expr = parse(case["text"])
    for values, result in case["values"]:
        for ranges in ({name: (value, value) for name, value in values.items()}, {}):
            low, high = bounds(expr, ranges)
            assert low <= float(result) <= high
