"""Doubly linked list whose items know which of two comes first.

Each item has an order number, so inserting, erasing and comparing positions cost the same in a list of ten items and of
ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, cast

from pt2kit.messages import count_text, quote, suggestion

_GAP: Final = 1 << 60
"""Between the order numbers of two neighbors at the beginning; halved by each insertion between them."""

L = TypeVar("L", bound="Link[Any]")


class Link(Generic[L]):
    """An item of a list.

    Attributes:
        previous, next: its neighbors; None at the ends.
        order: grows along the list; negative once it was removed.
    """

    __slots__ = ("next", "order", "previous")

    def __init__(self) -> None:
        self.order = 0
        self.previous: L | None = None
        self.next: L | None = None


class Ordered(Generic[L]):
    """The items in order; the one at hand may be removed, and others inserted, while the list is iterated."""

    def __init__(self) -> None:
        self.first: L | None = None
        self.last: L | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[L]:
        item = self.first
        while item is not None:
            following = item.next
            yield item
            # Items that were inserted after this one are visited, unless it was removed.
            item = item.next if item.order >= 0 else following
            while item is not None and item.order < 0:
                item = item.next

    def __reversed__(self) -> Iterator[L]:
        item = self.last
        while item is not None:
            before = item.previous
            yield item
            item = before

    def link(self, item: L, before: L | None) -> None:
        """Insert an item before another, or at the end."""
        after = self.last if before is None else before.previous
        item.previous, item.next = after, before
        low = after.order if after is not None else 0
        high = before.order if before is not None else low + 2 * _GAP
        item.order = (low + high) // 2
        if after is None:
            self.first = item
        else:
            after.next = item
        if before is None:
            self.last = item
        else:
            before.previous = item
        self._count += 1
        if item.order <= low:
            # Needed once for about sixty insertions at one place.
            for number, one in enumerate(self, 1):
                one.order = number * _GAP

    def unlink(self, item: L) -> None:
        """Remove an item."""
        if item.previous is None:
            self.first = item.next
        else:
            item.previous.next = item.next
        if item.next is None:
            self.last = item.previous
        else:
            item.next.previous = item.previous
        item.order = -1
        self._count -= 1


class Nodes(Ordered[L]):
    """The nodes of a graph in execution order; the one at hand may be erased, and others inserted, on the way.

    Args:
        values: the values of the graph by name, each with the node that produces it.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        self._values = values

    def __getitem__(self, key: str | int) -> L:
        """Return a node by its name, that of a value it defines, or its index; an index takes time linear in the
        graph."""
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise IndexError(f"expected the place of one of {count_text(len(self), 'node')}, got {key}")
            return list(self)[key]
        value = self._values.get(key)
        if value is not None and value.producer is not None:
            producer: L = value.producer
            return producer
        nodes: Iterator[Any] = iter(self)
        named = {node.name: node for node in nodes}
        if key in named:
            return cast("L", named[key])
        meant = suggestion(key, named)
        raise KeyError(f"expected the name of a node, got {quote(key)}{meant}")
