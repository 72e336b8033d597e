"""Text of a conversion report: a headline, the changes, the losses."""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit.release.conversion import HARMLESS, Report
from pt2kit.versions.conversion_log import Note

_PLACES = 3
"""Places that are shown of each note."""


def headline(report: Report) -> str:
    """Return one line: source and target, and the names of what was lost."""
    return str(report)


def report_lines(report: Report) -> Iterator[str]:
    """Yield every line of a report.

    Args:
        report: as `convert` gives it.
    """
    yield headline(report)
    for title, notes in (("changed", report.changed), ("lost", report.lost)):
        if notes:
            yield ""
            yield title
        for note in notes:
            yield from _note_lines(note)
    if report.problems:
        yield ""
        yield "not judged"
        yield from (f"  {problem}" for problem in report.problems)


def _note_lines(note: Note) -> Iterator[str]:
    name = f"{note.name}: " if note.name else ""
    since = f", which came with {note.since}" if note.since else ""
    free = "" if note.kind != "lost" or note.name in HARMLESS else " (allowed)"
    yield f"  {name}{note.message}{since}{free}"
    yield from (f"      {place}" for place in note.places[:_PLACES])
    if note.count > _PLACES:
        yield f"      and {note.count - len(note.places[:_PLACES])} more"
