"""Liveness of the values of a graph: which storages are allocated at each node, in the order of execution.

A storage is freed after the last node that uses a value in it, as the runtime and torch's interpreter do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pt2kit import schema
from pt2kit.graph.argument_values import arguments
from pt2kit.symbols.polynomials import Polynomial, Size, bounds, hint, largest


class Liveness:
    """The storages of a graph while its nodes are gone through.

    Args:
        graph: the graph; its inputs belong to the caller and count as nothing.
    """

    def __init__(self, graph: schema.Graph) -> None:
        self.now: Size = 0
        self._last: dict[str, int] = {}
        for number, node in enumerate(graph.nodes):
            for named in node.inputs:
                for name in arguments(named.arg):
                    self._last[name] = number
        for output in graph.outputs:
            for name in arguments(output):
                self._last[name] = len(graph.nodes)
        self._owner: dict[str, str] = {}
        self._bytes: dict[str, Size] = {}
        self._users: dict[str, set[str]] = {}
        self._ends: dict[int, list[str]] = {}

    def define(self, number: int, made: Sequence[tuple[str, str | None, Size]]) -> None:
        """Allocate the results of a node.

        Args:
            number: of the node.
            made: for each result its name, the value whose storage it shares, and its bytes.
        """
        for name, source, size in made:
            owner = self._owner.get(source, source) if source is not None else name
            self._owner[name] = owner
            if source is None:
                self._bytes[name] = size
                self.now = self.now + size
            self._users.setdefault(owner, set()).add(name)
            self._ends.setdefault(self._last.get(name, number), []).append(name)

    def release(self, number: int) -> None:
        """Free the storages that no node after this one uses."""
        for name in self._ends.pop(number, ()):
            owner = self._owner[name]
            users = self._users[owner]
            users.discard(name)
            if not users:
                self.now = self.now - self._bytes.pop(owner, 0)


def frontier(sizes: Iterable[Size]) -> Size:
    """Return the greatest of many sizes: those that are never greater than another one are left out first."""
    kept: list[Size] = []
    for size in sorted(set(sizes), key=lambda one: -(hint(one) or 0)):
        if not any(_exceeds(one, size) for one in kept):
            kept.append(size)
    return largest(*kept)


def _exceeds(one: Size, other: Size) -> bool:
    difference = one - other
    return difference >= 0 if not isinstance(difference, Polynomial) else bounds(difference)[0] >= 0
