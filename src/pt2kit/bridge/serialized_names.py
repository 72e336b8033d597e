"""Node names that torch's reader replaces <-> the names the file has for them, so that a program can be written again.

torch's reader calls a node without a result after what it calls ("_assert_unused"), whatever the file says. A live
program has that name, as torch gives it, and remembers the file's.
"""

from __future__ import annotations

from typing import Any


class StoredName(str):
    """The name of a live node, which knows the name that the file has for it.

    Attributes:
        stored: the file's name.
    """

    __slots__ = ("stored",)
    stored: str

    def __new__(cls, name: str, stored: str) -> StoredName:
        """The name `name`, beside `stored`."""
        made = super().__new__(cls, name)
        made.stored = stored
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.stored


def stored_name(node: Any) -> str:
    """The name to write for a node: the one it was read with, unless another node of its graph bears that one now."""
    name: str = node.name
    if not isinstance(name, StoredName):
        return name
    return str(name) if any(other.name == name.stored for other in node.graph.nodes) else name.stored
