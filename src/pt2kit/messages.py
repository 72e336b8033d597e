"""Names, texts and values from a file -> what a message may say of them: quoted, on one line, cut where they are long.

What a file puts into a name must neither end the line nor move the cursor of a terminal, and a name of a megabyte must
not become a message of a megabyte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

QUOTED: Final = 60
"""Characters of a quoted name, where nothing else is asked for."""

PRINTED: Final = 200
"""Characters of a text that is printed as it is."""


def quote(value: object, limit: int = QUOTED) -> str:
    """Quote a name, a text, bytes or a constant as Python writes it; a long one is cut, and its length said.

    Args:
        value: anything whose `repr` is cheap to make; text and bytes are cut before.
        limit: characters, or bytes, that are shown.
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= limit else f"{cut(value, limit)!r} ({len(value)} characters)"
    if isinstance(value, bytes):
        return repr(value) if len(value) <= limit else f"{value[:limit]!r}… ({len(value)} bytes)"
    return cut(repr(value), limit + 2)


def cut(text: str, limit: int = QUOTED) -> str:
    """The first `limit` characters of a text, with "…" for what is left out."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def printable(text: str, limit: int = PRINTED) -> str:
    """A text as it is, with everything escaped that does not print (control characters, line ends), cut at `limit`."""
    shown = cut(text, limit)
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


def listed(texts: Sequence[str], limit: int, separator: str = ", ") -> str:
    """The first `limit` texts of many, and how many more there are."""
    more = f" and {len(texts) - limit:,} more" if len(texts) > limit else ""
    return f"{separator.join(texts[:limit])}{more}"


def kind_of(value: Any) -> str:
    """What a JSON or Python value is, for the *got* of a message: what it says, or what it holds."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"the integer {value}" if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the string {quote(value)}"
    if isinstance(value, dict):
        return f"an object with the keys {listed([quote(key) for key in value], 6)}" if value else "an empty object"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"
