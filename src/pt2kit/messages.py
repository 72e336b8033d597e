"""Texts and values from files in messages: quoted, escaped, on one line, and cut if they are long.

A name from a file must neither end a line nor move the cursor of a terminal, and a name of a megabyte must not become a
message of a megabyte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

QUOTED: Final = 60
"""Default number of characters of a quoted name."""

PRINTED: Final = 200
"""Default number of characters of a text that is printed unquoted."""

_COMPARED: Final = 20_000
"""Names that a name is compared with; a program can have a million."""


def quote(value: object, limit: int = QUOTED) -> str:
    """Return a name, text, bytes or constant quoted as Python does; a long one is cut and followed by its length.

    Args:
        value: anything whose `repr` is cheap; text and bytes are cut before.
        limit: characters, or bytes, that are shown.
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= limit else f"{cut(value, limit)!r} ({len(value)} characters)"
    if isinstance(value, bytes):
        return repr(value) if len(value) <= limit else f"{value[:limit]!r}… ({len(value)} bytes)"
    return cut(repr(value), limit + 2)


def cut(text: str, limit: int = QUOTED) -> str:
    """Return the first `limit` characters of a text, with "…" for the rest."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def printable(text: str, limit: int = PRINTED) -> str:
    """Return a text with everything escaped that does not print (control characters, line ends), cut at `limit`."""
    shown = cut(text, limit)
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


def listed(texts: Sequence[str], limit: int, separator: str = ", ") -> str:
    """Return the first `limit` texts of many, joined, and how many more there are."""
    more = f" and {len(texts) - limit:,} more" if len(texts) > limit else ""
    return f"{separator.join(texts[:limit])}{more}"


def suggestion(name: str, names: Iterable[str], cutoff: float = 0.7) -> str:
    """Return the names that are close to one that does not exist, as the end of a message; "" if there are none.

    Args:
        name: the name that does not exist; its first 200 characters are compared.
        names: the names that exist.
        cutoff: least similarity, from 0 to 1.
    """
    from difflib import get_close_matches

    close = get_close_matches(name[:PRINTED], list(islice(names, _COMPARED)), n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(map(printable, close))}?" if close else ""


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count and its unit: "1 tensor", "1,200 tensors"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def kind_of(value: Any) -> str:
    """Describe a JSON or Python value for the *got* of a message, by its value or its contents."""
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
