"""Names and texts from a file -> what may be printed on a terminal."""

from __future__ import annotations

from pt2kit.treespec.callsig import show_name

MAX_CHARACTERS = 200


def printable(text: str, limit: int = MAX_CHARACTERS) -> str:
    """A text with everything escaped that does not print (control characters, line ends), cut at a length."""
    shown = text if len(text) <= limit else f"{text[:limit]}…"
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


def dotted(name: str) -> str:
    """A dotted name as it is if each part is plain, quoted otherwise."""
    parts = name.split(".")
    if all(part.isalnum() or part.replace("_", "a").isalnum() for part in parts) and len(name) <= MAX_CHARACTERS:
        return name
    return f'"{printable(name)}"'


def value_name(name: str) -> str:
    """The name of a value: `%x`."""
    return f"%{show_name(name)}"


__all__ = ["MAX_CHARACTERS", "dotted", "printable", "show_name", "value_name"]
