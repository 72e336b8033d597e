"""`Line`, the unit of a comparison's text, and limits on how much is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pt2kit.diffs.changes import Change
from pt2kit.text.format import dotted

ALIKE: Final = 3
"""Changes of one kind that are shown; the rest of them is counted."""

SHOWN: Final = 100
"""Changes of one section that are shown."""

NAMED: Final = 5
"""Names in a list of what was left out."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a section.

    Args:
        mark: "+", "-", "~", "@" for where a piece of a graph begins, or "" for context and for details.
        text: what to print; printable.
    """

    mark: str
    text: str


def left_out(changes: Sequence[Change]) -> Line:
    """Return how many changes of one kind are not shown, and the names of the first of them."""
    names = ", ".join(dotted(change.name) for change in changes[:NAMED])
    more = ", …" * (len(changes) > NAMED)
    return Line("", f"… {len(changes):,} more {changes[0].kind} like these: {names}{more}")
