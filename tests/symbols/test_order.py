"""The order in which sympy writes arguments that have none of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.symbols.cases import TREES

from pt2kit.symbols import parse, to_str
from pt2kit.symbols.order import MAX_SORTED_NODES, by_key, by_size, sort_key


@given(TREES, TREES)
def test_keys_can_be_compared(one, other):
    """Any two keys have an order, and equal trees equal keys."""
    assert (sort_key(one) < sort_key(other)) + (sort_key(other) < sort_key(one)) <= 1
    assert sort_key(one) == sort_key(one)


@pytest.mark.parametrize(
    "texts",
    [
        ["-3", "1/2", "2", "s0", "s10", "s2"],
        ["s0**(-2)", "1/s0", "sqrt(s0)", "s0", "2*s0", "s0**2"],
        ["s0", "s0*s1", "s0 + 1", "exp(s0)", "FloorDiv(s0, 2)", "Mod(s0, 3)", "Max(s0, s1)"],
        ["-s0", "s0"],
        ["2**s0", "s0**2"],
    ],
)
def test_order_of_factors(texts):
    """Numbers, symbols by name, then products, sums, functions; then exponents, then the numbers in front."""
    trees = [parse(text) for text in texts]
    assert by_key(trees[::-1]) == tuple(trees)


def test_small_arguments_first():
    """Max in srepr starts with the smallest argument; the number in front of a product counts once."""
    trees = [parse(text) for text in ["s0*s1 + 1", "-4*s2 + 9", "2*u0", "-2*u0", "s9"]]
    assert [to_str(tree) for tree in by_size(trees)] == ["s9", "-2*u0", "2*u0", "-4*s2 + 9", "s0*s1 + 1"]


def test_large_arguments_keep_their_order():
    """Sorting has a limit, so that no text makes it expensive."""
    large = parse(" + ".join(f"s{i}" for i in range(MAX_SORTED_NODES)))
    assert by_key([large, parse("s0")])[0] is large
    nested = "s0"
    for _ in range(150):
        nested = f"Max({nested}, {'s1 + ' * 60}1)"
    assert parse(nested)
