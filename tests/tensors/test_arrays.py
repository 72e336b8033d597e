"""Cutting arrays into pieces."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.tensors.arrays import blocks, raw_bytes, without_repeats


@given(st.lists(st.integers(0, 6), max_size=4), st.randoms(use_true_random=False), st.integers(1, 40))
def test_blocks_are_the_array(sizes: list[int], random: object, elements: int) -> None:
    """The pieces of an array, in any order of dimensions, are its elements in row-major order, in bounded pieces."""
    order = list(range(len(sizes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    count = int(np.prod(sizes, dtype=int))
    array = np.arange(count).reshape([sizes[axis] for axis in order]).transpose(np.argsort(order))
    pieces = list(blocks(array, elements))
    assert [n for piece in pieces for n in piece.reshape(-1).tolist()] == array.reshape(-1).tolist()
    assert all(0 < piece.size <= elements for piece in pieces)
    assert all(np.shares_memory(piece, array) for piece in pieces)
    assert b"".join(map(bytes, map(raw_bytes, pieces))) == array.tobytes()


def test_pieces_are_not_too_small() -> None:
    """A long thin transposed array is not cut into its elements."""
    array = np.zeros((2, 100_000)).T
    assert len(list(blocks(array, 1000))) == 200


def test_without_repeats() -> None:
    """Dimensions that only repeat are cut to one; others, and empty arrays, stay."""
    array = np.broadcast_to(np.arange(3), (5, 3))
    assert without_repeats(array).tolist() == [[0, 1, 2]]
    assert without_repeats(np.empty((0, 3))).shape == (0, 3)
    assert without_repeats(np.array(5)) == 5
