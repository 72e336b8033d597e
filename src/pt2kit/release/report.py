"""Report of a conversion as data: its source, its target, changes and losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pt2kit.errors import Problem
from pt2kit.versions.conversion_log import Note


@dataclass(frozen=True, slots=True)
class Side:
    """One end of a conversion.

    Args:
        schema: the version of the programs: "8.20"; "8.14, 8.20" where they differ.
        layout: how the records are arranged: "archive", "archive-2.8", "plain-zip", or that of a container.
        release: the release of torch that writes this: "torch 2.4"; "" for a version that no release wrote.
    """

    schema: str
    layout: str
    release: str

    def __str__(self) -> str:
        return f"schema {self.schema}, {self.layout}{f' ({self.release})' if self.release else ''}"


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a conversion.

    Args:
        source, target: its two ends.
        models: names of the programs, in order.
        notes: changes that keep the meaning, and losses; places name the record.
        problems: facts that could not be judged, such as operators of an unknown namespace.
    """

    source: Side
    target: Side
    models: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def changed(self) -> tuple[Note, ...]:
        """Return the parts that are written in another way and mean the same."""
        return tuple(note for note in self.notes if note.kind == "changed")

    @property
    def lost(self) -> tuple[Note, ...]:
        """Return the parts that the target has no place for, and that were dropped."""
        return tuple(note for note in self.notes if note.kind == "lost")

    def to_tree(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        sides = {
            name: {"schema": side.schema, "layout": side.layout, "release": side.release}
            for name, side in (("source", self.source), ("target", self.target))
        }
        notes = [
            {
                "kind": note.kind,
                "name": note.name,
                "message": note.message,
                "since": note.since,
                "places": list(note.places),
                "count": note.count,
            }
            for note in self.notes
        ]
        problems = [{"loc": one.loc, "rule": one.rule, "message": one.message} for one in self.problems]
        return {**sides, "models": list(self.models), "notes": notes, "problems": problems}

    def __str__(self) -> str:
        lost = f"; lost: {', '.join(dict.fromkeys(note.name for note in self.lost))}" if self.lost else ""
        count = len(self.changed)
        return f"from {self.source} to {self.target}: {count} {'change' if count == 1 else 'changes'}{lost}"
