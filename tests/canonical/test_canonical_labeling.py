"""The order of things that use one another, whatever their numbers."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt2kit.canonical import canonical_labeling
from pt2kit.canonical.canonical_labeling import Edge, Search, order

COLOURS = st.lists(st.integers(0, 1), min_size=1, max_size=7)


@st.composite
def structures(draw: st.DrawFn) -> tuple[dict[int, int], list[Edge]]:
    """A few things, each with one of two colours, and edges among them, cycles allowed."""
    colours = dict(enumerate(draw(COLOURS)))
    thing = st.integers(0, len(colours) - 1)
    edges = draw(st.lists(st.tuples(thing, st.integers(0, 1), thing, st.integers(0, 1)), max_size=12))
    return colours, edges


def code(colours: dict[int, int], edges: list[Edge], found: list[int]) -> object:
    """The structure with each thing called by its place in an order."""
    place = {thing: number for number, thing in enumerate(found)}
    return [colours[thing] for thing in found], sorted((place[a], slot, place[b], k) for a, slot, b, k in edges)


def renumbered(colours: dict[int, int], edges: list[Edge], names: list[int]) -> tuple[dict[int, int], list[Edge]]:
    """The same structure under other numbers."""
    return (
        {names[thing]: colour for thing, colour in colours.items()},
        [(names[a], slot, names[b], k) for a, slot, b, k in reversed(edges)],
    )


@settings(max_examples=400, deadline=None)
@given(structures(), st.integers(0, 2**32))
def test_the_order_does_not_depend_on_numbers(structure: tuple[dict[int, int], list[Edge]], seed: int) -> None:
    """Under all numberings the structure reads the same in the order that is found."""
    colours, edges = structure
    names = random.Random(seed).sample(range(100), len(colours))
    other = renumbered(colours, edges, names)
    found = order(colours, edges)
    assert sorted(found) == sorted(colours)
    assert code(*other, order(*other)) == code(colours, edges, found)


def _edges(pairs: list[tuple[int, int]]) -> list[Edge]:
    return [(a, 0, b, 0) for a, b in pairs]


def cycle(length: int, base: int = 0) -> list[tuple[int, int]]:
    return [(base + i, base + (i + 1) % length) for i in range(length)]


PETERSEN = [
    *[(i, (i + 1) % 5) for i in range(5)],
    *[(i, i + 5) for i in range(5)],
    *[(5 + i, 5 + (i + 2) % 5) for i in range(5)],
]
SYMMETRIC = {
    "cycles of two lengths": (cycle(3) + cycle(3, 3) + cycle(6, 6), 12),
    "petersen": (PETERSEN, 10),
    "petersen next to two cycles": (PETERSEN + cycle(5, 10) + cycle(5, 15), 20),
    "all pairs": (list(permutations(range(6), 2)), 6),
    "star": ([(i, 0) for i in range(1, 40)], 40),
    "chains from one": ([(3 * i + j + 1, 0 if j == 0 else 3 * i + j) for i in range(9) for j in range(3)], 28),
    "cube": ([(i, i ^ (1 << bit)) for i in range(8) for bit in range(3)], 8),
    "prism and cycle": (cycle(3) + cycle(3, 3) + [(0, 3), (1, 4), (2, 5)] + [(3, 0), (4, 1), (5, 2)], 6),
}


@pytest.mark.parametrize("case", SYMMETRIC)
def test_symmetric_structures_read_the_same_under_all_numberings(case: str) -> None:
    """The search tells apart what refinement does not, or the rest can be exchanged."""
    pairs, count = SYMMETRIC[case]
    colours, edges = dict.fromkeys(range(count), 0), _edges(pairs)
    first = code(colours, edges, order(colours, edges))
    for seed in range(6):
        other = renumbered(colours, edges, random.Random(seed).sample(range(count), count))
        assert code(*other, order(*other)) == first


def test_structures_that_differ_read_differently() -> None:
    """Two triangles are no hexagon, though each thing has one user and uses one."""
    colours = dict.fromkeys(range(6), 0)
    hexagon, triangles = _edges(cycle(6)), _edges(cycle(3) + cycle(3, 3))
    assert code(colours, hexagon, order(colours, hexagon)) != code(colours, triangles, order(colours, triangles))


def test_a_fence_is_refined_from_its_ends() -> None:
    """Thousands of things that only their distance from an end tells apart take one pass, no search."""
    count = 4000
    edges = [(count + i, slot, i + slot, 0) for i in range(count - 1) for slot in (0, 1)]
    colours = {thing: int(thing >= count) for thing in range(2 * count - 1)}
    names = random.Random(0).sample(range(2 * count - 1), 2 * count - 1)
    other = renumbered(colours, edges, names)
    assert code(*other, order(*other, Search(0))) == code(colours, edges, order(colours, edges, Search(0)))


def test_the_search_is_bounded() -> None:
    """Beyond the bound some order comes out all the same, soon."""
    rng = random.Random(1)
    count = 300
    pairs = [(i, j) for _ in range(3) for i, j in zip(range(count), rng.sample(range(count), count), strict=True)]
    assert sorted(order(dict.fromkeys(range(count), 0), _edges(pairs), Search(100))) == list(range(count))
    deep = [
        edge
        for i in range(canonical_labeling.MAX_DEPTH + 3)
        for edge in _edges([(2 * i, 2 * i + 1), (2 * i + 1, 2 * i)])
    ]
    colours = dict.fromkeys(range(2 * canonical_labeling.MAX_DEPTH + 6), 0)
    assert sorted(order(colours, deep)) == sorted(colours)
