"""Classes that stand in for named tuples nobody has registered: what they are called, in a tree spec and in a pickle.

Loading makes them and notes both names on them; saving writes the names again.
"""

from __future__ import annotations

from typing import Any, Final

STAND_IN_NAME: Final = "__pt2kit_type_name__"
"""The attribute of a stand-in class that holds the registered type name it stands in for."""

PICKLED_NAME: Final = "__pt2kit_pickled_name__"
"""The attribute that holds "module.Class", by which the pickled sample inputs know the class; only on some."""


def stand_in_name(kind: Any) -> str | None:
    """The type name that a class stands in for; None for any other class."""
    name = vars(kind).get(STAND_IN_NAME) if isinstance(kind, type) else None
    return name if isinstance(name, str) else None


def pickled_name(kind: Any) -> str | None:
    """What a stand-in class is called in a pickle, "module.Class"; None for any other class."""
    name = stand_in_name(kind)
    if name is None:
        return None
    path = vars(kind).get(PICKLED_NAME)
    return path if isinstance(path, str) else name
