"""Two sequences: what they have in common, in order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt2kit.diffs import correspond
from pt2kit.diffs.correspond import common

TEXTS = st.text("abc", max_size=14)


def longest(one: str, two: str) -> int:
    """The length of the longest common subsequence, by the table of all prefixes."""
    row = [0] * (len(two) + 1)
    for item in one:
        last = row
        row = [0]
        for place, other in enumerate(two):
            row.append(last[place] + 1 if item == other else max(last[place + 1], row[-1]))
    return row[-1]


def check(one: str, two: str) -> int:
    """Check that pairs are of equal items and do not cross; how many there are."""
    pairs = common(one, two)
    assert all(one[x] == two[y] for x, y in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    return len(pairs)


@settings(max_examples=400, deadline=None)
@given(TEXTS, TEXTS)
def test_short_sequences_are_paired_as_well_as_can_be(one: str, two: str) -> None:
    """As many pairs as the longest common subsequence has."""
    assert check(one, two) == longest(one, two)


@pytest.mark.parametrize("window", [1, 2, 5])
def test_windows_end_where_they_must(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few differences are looked at at once, pairs are pairs, and all of equal sequences are found."""
    monkeypatch.setattr(correspond, "WINDOW", window)
    for one in ("", "a", "abcabc", "aabbccaabbcc"):
        assert check(one, one) == len(one)
        for two in ("", "b", "cba", "bcabca", "ccbbaaccbbaa"):
            assert check(one, two) <= longest(one, two)


def test_long_sequences_take_linear_time() -> None:
    """Tens of thousands of items with a third of them replaced, and with nothing in common."""
    one = "abcd" * 10_000
    two = "".join("x" if place % 3 == 0 else item for place, item in enumerate(one))
    assert check(one, two) > 0.6 * len(one)
    assert check(one, "e" * 40_000) == 0
