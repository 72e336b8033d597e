"""Polynomials: what they cost, whatever expressions they are made from."""

from __future__ import annotations

import math

from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import measure
from pt2kit.symbols.polynomials import MAX_NODES, Polynomial, Size, from_expression, largest, symbol, to_expression


def size_of(text: str) -> Size:
    return from_expression(parse(text), lambda leaf: symbol(leaf.name, 2, 64))


def test_atoms_in_products_do_not_grow_exponentially() -> None:
    """Multiplying out writes an atom twice in each level: 40 levels would take 2**40 nodes."""
    text = "s0"
    for level in range(40):
        text = f"Mod({text}*(s{level} + {level + 1}), {level + 3})"
    size = size_of(text)
    assert isinstance(size, Polynomial)
    assert size.is_unknown
    assert size.bounds == (0, 41)


def test_a_long_chain_of_divisions_has_a_form() -> None:
    """The size after many convolutions is far below the limit."""
    text = "s0"
    for _ in range(60):
        text = f"((({text}) + 1)//2)"
    size = size_of(text)
    assert measure(to_expression(size))[0] < MAX_NODES


def test_many_arguments_are_not_compared() -> None:
    """The largest of a few sizes is found; of many, all are kept."""
    s0 = symbol("s0", 2, 64)
    assert largest(s0, s0 + 1) == s0 + 1
    assert len(str(largest(*(s0 + number for number in range(9))))) > len(str(s0 + 8))
    assert largest(*([s0] * 30)) == s0


def test_powers_of_powers_do_not_grow_exponentially() -> None:
    """Neither numbers nor values of the example have more bits than can be computed."""
    for inner in ("2", "s0", "(s0 + 1)", "3*s0"):
        text = inner
        for _ in range(100):
            text = f"({text})**8"
        size = from_expression(parse(text), lambda leaf: symbol(leaf.name, 2, 64, hint=7))
        assert isinstance(size, Polynomial)
        assert size.is_unknown
        assert size.hint is None


def test_ends_beyond_floats() -> None:
    """A range may be written with ends that no float has; sums and products of them with infinity are infinite."""
    huge, size = symbol("u0", low=-(1 << 1100), high=1 << 1100), symbol("s0", low=2)
    for one in (huge + size, huge * size, 3 * huge, size - huge):
        assert isinstance(one, Polynomial)
        assert one.bounds == (-math.inf, math.inf)
    least = (size + 5) // huge
    assert isinstance(least, Polynomial)
    assert least.bounds == (-math.inf, math.inf)
