"""Accepted findings of `pt2 check`: by rule (`--allow`), or one by one in a file (`--baseline`).

A baseline is JSON: for each file, by its path from the folder of the baseline, the rules, places and messages of its
findings. Numbers in places are ignored, because another export numbers its nodes differently; the number of equal
findings counts.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from pt2kit.cli.common import Refusal, suggestion
from pt2kit.errors import Problem
from pt2kit.rules import RULES

FORMAT: Final = "pt2kit check baseline 1"
Key = tuple[str, str, str]
"""Rule, place without numbers, message."""

_INDEX: Final = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Accepted:
    """Which findings do not count.

    Args:
        rules: of which rules.
        folder: what paths in the baseline are relative to.
        known: file, as the baseline names it -> how often each finding is accepted.
    """

    rules: frozenset[str] = frozenset()
    folder: str = ""
    known: Mapping[str, Counter[Key]] = field(default_factory=dict)

    def remaining(self, file: str, found: Sequence[Problem]) -> list[Problem]:
        """Return the findings of a file that were not accepted, in order."""
        left = Counter(self.known.get(_name(file, self.folder), ()))
        remaining = []
        for problem in found:
            key = _key(problem)
            if problem.rule in self.rules:
                continue
            if left[key] > 0:
                left[key] -= 1
                continue
            remaining.append(problem)
        return remaining


def accepted(allow: Iterable[str], baseline: Path | None) -> Accepted:
    """Read the accepted rules and findings.

    Args:
        allow: ids of rules, several with commas between them.
        baseline: the file; None for none.

    Raises:
        UsageError: no such rule.
        Refusal: the file is no baseline.
    """
    rules = {rule.strip() for entry in allow for rule in entry.split(",") if rule.strip()}
    for rule in sorted(rules):
        if rule not in RULES:
            raise click.UsageError(f"--allow: expected ids of rules, got {rule[:40]!r}{suggestion(rule, RULES)}")
    if baseline is None:
        return Accepted(frozenset(rules))
    return Accepted(frozenset(rules), _folder(baseline), _read(baseline))


def write_baseline(path: Path, found: Mapping[str, Sequence[Problem]]) -> None:
    """Write all errors and warnings of some files as accepted; entries of other files are kept.

    Raises:
        OSError: it cannot be written.
        Refusal: the file exists and is no baseline.
    """
    from pt2kit.tensors.output import new_file

    folder = _folder(path)
    files = dict(_read(path)) if path.exists() else {}
    for file, problems in found.items():
        files[_name(file, folder)] = Counter(_key(problem) for problem in problems if problem.severity != "note")
    tree = {
        "format": FORMAT,
        "files": {
            name: [
                {"rule": rule, "where": where, "message": message, "count": count}
                for (rule, where, message), count in sorted(counts.items())
            ]
            for name, counts in sorted(files.items())
            if counts
        },
    }
    with new_file(path) as out:
        out.write(json.dumps(tree, indent=1, ensure_ascii=True).encode() + b"\n")


def _read(path: Path) -> dict[str, Counter[Key]]:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        if tree["format"] != FORMAT:
            raise ValueError(f"the format {tree['format']!a}")
        return {str(name): Counter(dict(map(_entry, entries))) for name, entries in tree["files"].items()}
    except OSError as error:
        raise Refusal(f"--baseline: expected a file to read, got {path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Refusal(
            f"--baseline: expected what --write-baseline writes ({FORMAT!r}), got {path}: {str(error)[:200]}"
        ) from error


def _entry(row: Any) -> tuple[Key, int]:
    key = row["rule"], row["where"], row["message"]
    if not all(isinstance(text, str) for text in key) or type(row["count"]) is not int or row["count"] < 0:
        raise ValueError("a finding of another form")
    return key, row["count"]


def _key(problem: Problem) -> Key:
    return problem.rule or "", _INDEX.sub("[]", problem.where), _INDEX.sub("[]", problem.message)


def _folder(path: Path) -> str:
    return os.path.dirname(os.path.abspath(path))


def _name(file: str, folder: str) -> str:
    """Return the name of a file in a baseline: its path relative to the baseline's folder; URLs are unchanged."""
    if "://" in file or file == "stdin" or not folder:
        return file
    try:
        return os.path.relpath(os.path.abspath(file), folder).replace(os.sep, "/")
    except ValueError:  # on Windows, of another drive
        return file
