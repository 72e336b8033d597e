"""Longest common subsequence of two sequences, as `diff` finds it between two texts.

The shortest script of insertions and deletions, found greedily from the front (Myers 1986): it takes time and memory
for the square of the differences, not for the lengths. After `WINDOW` differences the way that came furthest is taken
and the search starts anew from its end, so that long sequences with little in common take linear time all the same; the
script then is a short one, not always the shortest.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

WINDOW: Final = 64
"""Differences up to which a script is the shortest."""

Pairs = list[tuple[int, int]]


def common(old: Sequence[Hashable], new: Sequence[Hashable]) -> Pairs:
    """Pair equal items of two sequences so that no two pairs cross.

    Args:
        old, new: the sequences.

    Returns:
        (old position, new position), ascending in both.

    Cost: the lengths, plus the square of the number of differences up to `WINDOW` and `WINDOW` times it beyond.
    """
    shared = set(old) & set(new)
    places = [place for place, item in enumerate(old) if item in shared]
    others = [place for place, item in enumerate(new) if item in shared]
    numbers = {item: number for number, item in enumerate(shared)}
    one, other = [numbers[old[place]] for place in places], [numbers[new[place]] for place in others]
    pairs: Pairs = []
    x = y = 0
    while x < len(one) and y < len(other):
        part, x, y = _window(one, other, x, y)
        pairs += part
    return [(places[x], others[y]) for x, y in pairs]


def _window(old: list[int], new: list[int], x: int, y: int) -> tuple[Pairs, int, int]:
    """Return the pairs from (x, y) on up to the end or to `WINDOW` differences, and where they end."""
    rows = len(old) - x, len(new) - y
    # furthest[k]: how far old can be read on diagonal k, where old and new are k items apart.
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(WINDOW, sum(rows)) + 1):
        trail.append(
            dict(furthest) if edits == 0 else {k: furthest[k] for k in range(-edits, edits + 2) if k in furthest}
        )
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
            at = furthest.get(k + 1, 0) if down else furthest.get(k - 1, 0) + 1
            while at < rows[0] and 0 <= at - k < rows[1] and old[x + at] == new[y + at - k]:
                at += 1
            furthest[k] = at
            if at >= rows[0] and at - k >= rows[1]:
                return _pairs(trail, k, at, x, y), len(old), len(new)
    ends = [(min(at, rows[0]), k) for k, at in furthest.items() if (k + WINDOW) % 2 == 0 and 0 <= at - k <= rows[1]]
    at, k = max(ends, key=lambda end: (2 * end[0] - end[1], -abs(end[1])))
    return _pairs(trail, k, at, x, y), x + at, y + at - k


def _pairs(trail: list[dict[int, int]], k: int, at: int, x: int, y: int) -> Pairs:
    """Return the pairs on the way to (at, at - k), read backwards."""
    pairs: Pairs = []
    for edits in range(len(trail) - 1, -1, -1):
        before = trail[edits]
        down = k == -edits or (k != edits and before.get(k - 1, -1) < before.get(k + 1, -1))
        start = before.get(k + 1, 0) if down else before.get(k - 1, 0) + 1
        if edits == 0:
            start = 0
        pairs += [(x + one, y + one - k) for one in range(at - 1, start - 1, -1)]
        k = k + 1 if down else k - 1
        at = start if down else start - 1
    return pairs[::-1]
