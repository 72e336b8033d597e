"""Formatting of short text: numbers with units (`31.2 kB`, `12,345`), escaped names, columns, line wrapping.

Numbers are also counts (`4 tensors`). Names and texts from a file are escaped, so that they can be printed on a
terminal safely. Columns and line wrapping follow the display width: a character counts as many columns as a terminal
uses for it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from pt2kit.messages import PRINTED, printable
from pt2kit.treespec.callsig import show_name

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")

WIDTH = 100
"""Columns that a line of text should fit in."""
_BREAK = re.compile(r"(?<=[,;]) ")

_PLACES = (re.compile(r"  +(?=\S)"), re.compile(r"(?<=[,;]) +(?=\S)|(?<=->) "), re.compile(r" +(?=\S)"))
"""Places to break a line, best first."""


def bytes_text(count: int) -> str:
    """Return a number of bytes with a decimal unit: 31200 -> "31.2 kB"."""
    return with_unit(count, _UNITS)


def with_unit(count: int, units: Sequence[str]) -> str:
    """Return a number in the first of some units, each 1000 times the one before, that leaves at most three digits."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(units) - 1:
        value, unit = value / 1000, unit + 1
    return f"{f'{value:.3g}' if unit else count} {units[unit]}".rstrip()


def dotted(name: str) -> str:
    """Return a dotted name unchanged if each part is plain, quoted otherwise."""
    parts = name.split(".")
    if all(part.isalnum() or part.replace("_", "a").isalnum() for part in parts) and len(name) <= PRINTED:
        return name
    return f'"{printable(name)}"'


def value_name(name: str) -> str:
    """Return the name of a value: `%x`."""
    return f"%{show_name(name)}"


def display_width(text: str) -> int:
    """Return the columns that a text takes on a terminal: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text with blanks to a number of columns, on its right or on its left; longer texts are returned
    unchanged."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text that is broken after commas and semicolons; a longer part gets a line that is too
    long."""
    line, used = "", 0
    for part in _BREAK.split(text):
        columns = display_width(part)
        if line and used + 1 + columns > width:
            yield line
            line, used = part, columns
        else:
            line, used = (f"{line} {part}", used + 1 + columns) if line else (part, columns)
    yield line


def fit(line: str, width: int) -> Iterator[str]:
    """Yield a line as lines of at most some columns, broken between words; continuation lines are indented further.

    Breaks between columns of a table are taken before those after commas, and these before any blank; what follows a
    break inside a column of the left half stands below the column. A word that is longer than the room for it is left
    whole.
    """
    if display_width(line) <= width:
        yield line
        return
    margin = len(line) - len(line.lstrip(" "))
    indent = min(margin + 4, max(width // 3, min(margin, width // 2)))
    rest, begin = line, margin
    while display_width(rest) > width and (place := _break_place(rest, begin, width)):
        yield rest[:place].rstrip()
        if rest[place : place + 2] != "  ":
            indent = _column(rest, begin, place, width) or indent
        rest, begin = " " * indent + rest[place:].lstrip(" "), indent
    yield rest


def _column(line: str, begin: int, place: int, width: int) -> int:
    """Return where the column of a break begins, if it is in the left half and leaves space for each word; else 0."""
    room = width - max(map(display_width, line[place:].split()), default=0)
    columns = (gap.end() for gap in _PLACES[0].finditer(line, begin, place))
    return max((column for column in columns if column <= min(room, width // 2)), default=0)


def _break_place(line: str, begin: int, width: int) -> int:
    """Return the length of the first line; 0 if there is no place to break it."""
    limit = reach(line, width)
    places = [[place.start() for place in kind.finditer(line, begin + 1)] for kind in _PLACES]
    fitting = [[place for place in kind if place <= limit] for kind in places]
    # A break that leaves most of the line empty is no better than a worse place further right.
    for kind in fitting:
        if kind and kind[-1] - begin > (width - begin) // 3:
            return kind[-1]
    last = max((kind[-1] for kind in fitting if kind), default=0)
    return last or next(iter(places[-1]), 0)


def reach(line: str, width: int) -> int:
    """Return how many characters of a line fit in some columns."""
    if line.isascii():
        return width
    return bisect_right([*accumulate(map(display_width, line))], width)


def table(rows: Iterable[Sequence[str]], limit: int, *, right: Iterable[int] = ()) -> Iterator[str]:
    """Yield rows as lines with aligned columns, two blanks apart; nothing is cut.

    Args:
        rows: all of the same length.
        limit: the most columns that the first cell gets; a longer one gets a line of its own, above its row.
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
