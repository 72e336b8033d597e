"""Names of the values and nodes of a graph that is being edited: which are taken, and new ones."""

from __future__ import annotations

import builtins
from collections.abc import Container, Mapping

from pt2kit.errors import GraphError
from pt2kit.messages import quote, suggestion
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

    def close_to(self, name: str) -> str:
        """Return the names of values that are close to one that does not exist, for messages."""
        return suggestion(name, self._values)

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
