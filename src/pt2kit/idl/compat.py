"""Compatibility of two schema versions: the version number that a change demands, and whether the chosen one is right.

A major number forbids old readers to try; a minor one allows it, as long as a file uses nothing new. The
number after 8.20 is therefore 8.21 or 9.1. `history` holds the releases to it, and
`EXCEPTIONS` says where they did otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from pt2kit import schema
from pt2kit.errors import VersionError
from pt2kit.idl.table_changes import RULES, Change, Level, changes
from pt2kit.schema.fieldtable import Table, frozen_table

EXCEPTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("5.1", "5.3"): "A tensor in a list of optional tensors was a bare name and became an object, while torch 2.4 "
        "raised the minor only: the numbers do not tell a reader of 5.3 that it cannot read such a file of 5.1.",
        ("8.8", "8.14"): "Program and Model were containers around programs. No file of a release is known to hold "
        "one, so dropping them left none behind.",
        ("5.3-traces", "5.3"): "Two states of development had the number 5.3 at once. Compact stack traces are only in "
        "the one that was not released; the keys of a file tell which it is.",
    }
)
"""(old, new) -> why the number that was chosen is not the one that the rules demand."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The demand of a change on the version number, and the chosen number.

    Args:
        old: the version it starts from; "" where a file did not say.
        new: the version it got; likewise.
        changes: what changed.
    """

    old: str
    new: str
    changes: tuple[Change, ...]

    @property
    def demanded(self) -> Level:
        """Return the largest demand of any change."""
        return max((change.level for change in self.changes), default=Level.NONE)

    @property
    def chosen(self) -> Level | None:
        """Return the level of the step between the two numbers; None if one is missing.

        Raises:
            VersionError: the new number is below the old one.
        """
        if not (_numbered(self.old) and _numbered(self.new)):
            return None
        old, new = _pair(self.old), _pair(self.new)
        if new < old:
            raise VersionError(f"expected the older version first, got {self.old} and then {self.new}")
        return Level.NONE if old == new else Level.MAJOR if new[0] > old[0] else Level.MINOR

    @property
    def least(self) -> str:
        """Return the smallest number that satisfies the demand; "" if the old one has none."""
        return next_version(self.old, self.demanded) if _numbered(self.old) else ""

    @property
    def agrees(self) -> bool:
        """Return whether the number is raised as demanded, no less and no more; True if there are no two numbers."""
        return self.chosen in (None, self.demanded)

    @property
    def exception(self) -> str:
        """Return why the releases deviate from the demand here, if known."""
        return EXCEPTIONS.get((self.old, self.new), "")


def _numbered(version: str) -> bool:
    return version not in ("", "draft")


def _pair(version: str) -> tuple[int, int]:
    return schema.parse_version(version.removesuffix("-traces"))


def next_version(old: str, demanded: Level) -> str:
    """Return the smallest version after another that a demand allows: "8.20" -> "8.21" or "9.1".

    Raises:
        VersionError: the old version is no number.
    """
    if demanded is Level.NONE:
        return old
    major, minor = _pair(old)
    return f"{major}.{minor + 1}" if demanded is Level.MINOR else f"{major + 1}.1"


def verdict(old: Table, new: Table) -> Verdict:
    """Compare two tables.

    Args:
        old: the table that files were written with.
        new: the one that replaces it.
    """
    return Verdict(old.version, new.version, changes(old, new))


def history() -> tuple[Verdict, ...]:
    """Return every step between logged versions, oldest first, and the one between the two states of 5.3."""
    numbers = [version.number for version in schema.LOG]
    steps = [*pairwise(numbers), ("5.3-traces", "5.3")]
    return tuple(verdict(frozen_table(old), frozen_table(new)) for old, new in steps)


def rule_lines() -> list[str]:
    """Return the rules as a Markdown table."""
    words = {Level.NONE: "-", Level.MINOR: "minor", Level.MAJOR: "major"}
    rows = [f"| {rule} | {text} | {words[level]} |" for rule, (level, text) in RULES.items()]
    return ["| rule | change | demands |", "|---|---|---|", *rows]


def history_lines() -> list[str]:
    """Return every step of the history as a Markdown table: the changes, the demanded and the chosen level."""
    return ["| step | changes | demands | chosen | |", "|---|---|---|---|---|", *map(_history_line, history())]


def _history_line(step: Verdict) -> str:
    counts: dict[str, int] = {}
    for change in step.changes:
        counts[change.rule] = counts.get(change.rule, 0) + 1
    rules = sorted(counts, key=lambda rule: int(rule[1:]))
    listed = ", ".join(f"{rule} ({counts[rule]})" if counts[rule] > 1 else rule for rule in rules)
    chosen = step.chosen
    words = [(level.name.lower() if level is not None else "-") for level in (step.demanded, chosen)]
    verdict_text = "agrees" if step.agrees else f"**differs**: {step.exception or 'unexplained'}"
    return f"| {step.old} → {step.new} | {listed} | {words[0]} | {words[1]} | {verdict_text} |"
