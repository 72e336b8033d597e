"""`Matching`: the pairs of nodes of two graphs that correspond, as they are found step by step (`correspond.py`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final

from pt2kit.canonical.facts import NO_VALUE
from pt2kit.diffs.fingerprints import Side

UNMATCHED: Final = -1
"""Stands where a node corresponds to none."""


class Matching:
    """Which nodes of an old and a new graph correspond.

    Args:
        old, new: the graphs.
        inputs: old value -> new value, of the graph inputs that correspond.

    Attributes:
        values: old value -> new value.
        to_new, to_old: node -> the node that corresponds to it, or `UNMATCHED`.
        is_mirrored: whether they were found from the new graph to the old one.
    """

    def __init__(self, old: Side, new: Side, inputs: Mapping[int, int]) -> None:
        self.old = old
        self.new = new
        self.values = dict(inputs)
        self.is_mirrored = False
        self.to_new = [UNMATCHED] * len(old.keys)
        self.to_old = [UNMATCHED] * len(new.keys)

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return (old index, new index) of the nodes that correspond, in the new order."""
        return tuple((node, number) for number, node in enumerate(self.to_old) if node != UNMATCHED)

    def match(self, old: int, new: int) -> None:
        """Record that two nodes correspond."""
        self.to_new[old], self.to_old[new] = new, old
        for before, after in zip(self.old.facts.results[old], self.new.facts.results[new], strict=False):
            self.values[before] = after

    def new_value(self, value: int) -> int | None:
        """Return the new value that an old one corresponds to; None if there is none."""
        return NO_VALUE if value == NO_VALUE else self.values.get(value)

    def mirrored(self, inputs: Mapping[int, int]) -> Matching:
        """Return the same matching, with the new graph as the old one; `inputs` are those of that direction."""
        matching = Matching(self.new, self.old, inputs)
        matching.is_mirrored = True
        for old, new in self.pairs():
            matching.match(new, old)
        return matching

    def unmatched(self) -> tuple[list[int], list[int]]:
        """Return the old and the new nodes that correspond to none."""
        return (
            [node for node, other in enumerate(self.to_new) if other == UNMATCHED],
            [node for node, other in enumerate(self.to_old) if other == UNMATCHED],
        )

    def is_exact(self) -> bool:
        """Return whether all nodes correspond to one that uses values that correspond."""
        before, after = self.old.facts, self.new.facts
        return UNMATCHED not in self.to_new and all(
            old != UNMATCHED
            and self.old.keys[old] == self.new.keys[new]
            and [slots for _, slots in after.inputs[new]]
            == [tuple(map(self.new_value, slots)) for _, slots in before.inputs[old]]
            for new, old in enumerate(self.to_old)
        )


def grouped(nodes: Iterable[int], key: Callable[[int], Hashable]) -> dict[Hashable, list[int]]:
    """Return key -> the nodes that have it, in the order given."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for node in nodes:
        groups[key(node)].append(node)
    return groups
