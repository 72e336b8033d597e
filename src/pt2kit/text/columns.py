"""Texts -> columns and wrapped lines. A character counts as many columns as a terminal gives it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 100
"""Columns that a line of text should fit in."""
_BREAK = re.compile(r"(?<=[,;]) ")


def display_width(text: str) -> int:
    """Columns that a text takes on a terminal: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """A text filled up with blanks to a number of columns, on its right or on its left; longer ones are left alone."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def wrap(text: str, width: int) -> Iterator[str]:
    """The lines of a text that is broken after commas and semicolons; a longer part stands alone on too long a line."""
    line, used = "", 0
    for part in _BREAK.split(text):
        columns = display_width(part)
        if line and used + 1 + columns > width:
            yield line
            line, used = part, columns
        else:
            line, used = (f"{line} {part}", used + 1 + columns) if line else (part, columns)
    yield line


def table(rows: Iterable[Sequence[str]], limit: int, *, right: Iterable[int] = ()) -> Iterator[str]:
    """Rows as lines with aligned columns, two blanks apart; nothing is cut.

    Args:
        rows: all of the same length.
        limit: the most columns that the first cell gets; a longer one stands on a line of its own, above its row.
        right: numbers of the columns that are aligned on the right.
    """
    rows = list(rows)
    if not rows:
        return
    to_the_right = frozenset(right)
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    widths[0] = max((width for row in rows if (width := display_width(row[0])) <= limit), default=0)
    for first, *cells in rows:
        if display_width(first) > limit:
            yield first
            first = ""
        padded = [
            pad(cell, widths[number], right=number in to_the_right) for number, cell in enumerate((first, *cells))
        ]
        yield "  ".join(padded).rstrip()
