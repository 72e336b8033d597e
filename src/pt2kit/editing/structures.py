"""Structures of a graph that is being edited: the names that are taken, and a list that knows which item comes first.

The items of the list are linked in both directions and have an order number, so inserting, erasing and comparing
positions cost the same in a list of ten items and of ten thousand.
"""

from __future__ import annotations

import builtins
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, cast

from pt2kit.errors import GraphError
from pt2kit.messages import count_text, quote, suggestion
from pt2kit.schema.names import GLOBALS, free_name, is_variable


class Names:
    """The names that are taken in a graph.

    Args:
        values: its values, by name.
        others: what else holds names that no value can have.

    Attributes:
        nodes: the names of its nodes, of which most have that of a value.
    """

    def __init__(self, values: Mapping[str, object], *others: Container[str]) -> None:
        self._values = values
        self._others = others
        self.nodes: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wish: str) -> str:
        """Return an unused name: the requested one, or with a number appended. Takes constant time.

        Names of Python's own get a number too ("sum_1"), which `torch.fx` would give them on loading.
        """
        stem = wish if wish.isidentifier() else _identifier(wish)
        if is_variable(stem) and stem not in GLOBALS and not hasattr(builtins, stem) and not self._is_taken(stem):
            return stem
        name = free_name(stem, self._is_taken, self._next.get(stem, 1))
        self._next[stem] = int(name.removeprefix(f"{stem}_")) + 1
        return name

    def check_free(self, edit: str, name: str) -> None:
        """Refuse a name that cannot be a variable (G8) or is taken (G2, G14)."""
        check_name(edit, name)
        if self._is_value(name):
            raise GraphError(f"{edit}: expected a name that is not taken, got {quote(name)}", rule="G2")
        if name in self.nodes:
            raise GraphError(f"{edit}: expected a name that no node has, got {quote(name)}", rule="G14")

    def _is_value(self, name: str) -> bool:
        return name in self._values or any(name in table for table in self._others)

    def _is_taken(self, name: str) -> bool:
        return name in self.nodes or self._is_value(name)


def check_name(edit: str, name: str) -> None:
    """Refuse a name that could not be a variable in what torch generates (G8)."""
    if not is_variable(name):
        raise GraphError(
            f"{edit}: expected an identifier that is no keyword of Python, nor 'self', got {quote(name)}", rule="G8"
        )
    if name in GLOBALS:
        raise GraphError(
            f"{edit}: expected a name that torch does not use in generated source, got {quote(name)}", rule="G8"
        )


def _identifier(wish: str) -> str:
    """Return a text as an identifier: characters that a name cannot have become underscores."""
    stem = "".join(char if char.isidentifier() or char.isdigit() else "_" for char in wish)
    return stem if stem.isidentifier() else f"_{stem}"


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


class Nodes(Generic[L]):
    """The nodes of a graph in execution order; the one at hand may be erased, and others inserted, on the way.

    Args:
        values: the values of the graph by name, each with the node that produces it.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
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

    def __getitem__(self, key: str | int) -> L:
        """Return a node by its name, that of a value it defines, or its index; an index takes time linear in the
        graph."""
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise IndexError(f"expected the place of one of {count_text(len(self), 'node')}, got {key}")
            return list(self)[key]
        value = self._values.get(key)
        if value is not None and value.producer is not None:
            return cast("L", value.producer)
        nodes: Iterator[Any] = iter(self)
        named = {node.name: node for node in nodes}
        if key in named:
            return cast("L", named[key])
        meant = suggestion(key, named)
        raise KeyError(f"expected the name of a node, got {quote(key)}{meant}")
