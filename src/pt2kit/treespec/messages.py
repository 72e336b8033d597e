"""Names and JSON values of tree specs -> what a message says of them."""

from __future__ import annotations


def brief(value: object) -> str:
    """A JSON value for a message, in printable ASCII: scalars as they are, containers by what they hold."""
    if isinstance(value, dict):
        return f"an object with the keys {_cut(', '.join(map(ascii, value)))}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return _cut(ascii(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def printable(text: str, limit: int = 200) -> str:
    """A name for people: characters that do not print are escaped, and long text is cut after `limit` characters."""
    shown = text if len(text) <= limit else f"{text[:limit]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)
