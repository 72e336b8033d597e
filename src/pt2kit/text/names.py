"""Escaping of names and texts from a file, so that they can be printed on a terminal safely."""

from __future__ import annotations

from pt2kit.messages import PRINTED, printable
from pt2kit.treespec.callsig import show_name


def dotted(name: str) -> str:
    """Return a dotted name unchanged if each part is plain, quoted otherwise."""
    parts = name.split(".")
    if all(part.isalnum() or part.replace("_", "a").isalnum() for part in parts) and len(name) <= PRINTED:
        return name
    return f'"{printable(name)}"'


def value_name(name: str) -> str:
    """Return the name of a value: `%x`."""
    return f"%{show_name(name)}"
