"""Ranges of symbols."""

from __future__ import annotations

import sympy
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from pt2kit.bridge.write.program import write_range_constraints
from pt2kit.schema import RangeConstraint


def test_ranges():
    """Whole bounds stay, infinite ones are open, fractions are rounded to the inside."""
    s, t, u, f = sympy.symbols("s0 s1 u0 zuf0")
    ranges = {
        s: ValueRanges(2, 64),
        t: ValueRanges(0, int_oo),
        u: ValueRanges(-int_oo, int_oo),
        f: ValueRanges(sympy.Rational(3, 2), sympy.Float(7.9)),
    }
    assert write_range_constraints(ranges) == {
        "s0": RangeConstraint(2, 64),
        "s1": RangeConstraint(0, None),
        "u0": RangeConstraint(None, None),
        "zuf0": RangeConstraint(2, 7),
    }


def test_infinite_floats():
    """sympy's own infinities are open ends too."""
    span = ValueRanges(-sympy.oo, sympy.oo)
    assert write_range_constraints({sympy.Symbol("zuf0"): span}) == {"zuf0": RangeConstraint(None, None)}
