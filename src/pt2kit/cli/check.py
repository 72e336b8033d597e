"""`pt2 check FILE...`: problems of files, what torch would run on loading them, and accepted findings (baselines).

Findings are accepted by rule (`--allow`), or one by one in a file (`--baseline`). A baseline is JSON: for each file, by
its path from the folder of the baseline, the rules, places and messages of its findings. Numbers in places are ignored,
because another export numbers its nodes differently; the number of equal findings counts.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from pt2kit.cli.common import Refusal, choose_model, open_file, progress, standard_input
from pt2kit.cli.completion import complete_rules
from pt2kit.cli.frame import Result, argument, option, path_option
from pt2kit.cli.output import colour, linked, print_json, print_lines
from pt2kit.cli.several import (
    Answer,
    FilesOptions,
    answers,
    chosen_files,
    report_unread,
    run_task,
)
from pt2kit.errors import Problem
from pt2kit.messages import suggestion
from pt2kit.rules import RULES

FORMAT: Final = "pt2kit check baseline 1"
Key = tuple[str, str, str]
"""Rule, place without numbers, message."""

_INDEX: Final = re.compile(r"\[\d+\]")

STYLES: Final = {
    "errors": "red",
    "what torch would run on loading this": "yellow",
    "warnings": "yellow",
    "notes": "cyan",
}
"""The heading of a group -> the color of its rules."""


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
            if problem.rule not in self.rules:
                left[_key(problem)] -= 1
                if left[_key(problem)] < 0:
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
    from pt2kit.tensors.export import new_file

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
    return problem.rule or "", _INDEX.sub("[]", problem.loc), _INDEX.sub("[]", problem.message)


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


@dataclass(frozen=True, slots=True)
class Options(FilesOptions):
    """Options of `pt2 check`."""

    files: tuple[str, ...] = argument("FILE...")
    payloads: bool = option("Read all records: compare checksums, look for NaN in the weights.")
    strict: bool = option("Treat warnings as errors.")
    full: bool = option("List every problem, not only the first few of each rule.")
    sarif: bool = option("Print SARIF 2.1.0, for code hosts and editors.")
    allow: tuple[str, ...] = option("Accept all findings of these rules.", "RULE[,RULE]", shell_complete=complete_rules)
    baseline: str | None = path_option("Accept the findings that this file lists.")
    write_baseline: bool = option("Write the findings to the --baseline file.")


def run(options: Options) -> int:
    """Check .pt2 files without running anything of them: archive, JSON, graph, signature, operators, weights.

    Examples:
      pt2 check model.pt2                   structure, signature, operators, what would be run
      pt2 check model.pt2 --payloads        reads the weights as well: checksums, NaN
      pt2 check models/ 'more/*.pt2' --jobs 4
      pt2 check models/ --strict --sarif > check.sarif
      pt2 check models/ --allow X2,X11 --baseline accepted.json
      curl -s https://host/model.pt2 | pt2 check -

    A folder means all .pt2 files in it and below. Of several files, notes are listed with --full.

    Exit codes: 0 sound (with --strict: no warnings either), 1 a problem was found, 2 a file could not be read.
    What --allow and --baseline accept does not count.
    """
    if options.sarif and options.as_json:
        raise click.UsageError("expected one of --json and --sarif, got both")
    if options.write_baseline and options.baseline is None:
        raise click.UsageError("expected --write-baseline with --baseline FILE, got it alone")
    chosen, several = chosen_files(options.files)
    baseline = None if options.baseline is None else Path(options.baseline)
    without = accepted(options.allow, None if options.write_baseline else baseline)
    if not (options.write_baseline or options.sarif):
        task = partial(_task, options, without, several)
        return run_task(chosen, several, task, options, outcomes=_OUTCOMES, style=_painter())
    check = partial(_check, options, without)
    if several or options.write_baseline:
        checked = list(answers(chosen, check, options.jobs))
    else:
        checked = [Answer(chosen[0], check(chosen[0]))]
    found = {_shown(one.file): one.found for one in checked if one.found is not None}
    unread = [one for one in checked if one.found is None]
    code = 0
    if options.write_baseline and baseline is not None:
        write_baseline(baseline, found)
        count = sum(problem.severity != "note" for problems in found.values() for problem in problems)
        print_lines([f"{baseline}: {count:,} findings of {len(found):,} files are accepted"])
    else:
        from pt2kit.text.problems import sarif_tree
        from pt2kit.version import __version__

        print_json(sarif_tree(found, __version__, {_shown(one.file): one.error for one in unread}))
        code = max((_code(problems, options.strict) for problems in found.values()), default=0)
    return max([code, *map(report_unread, unread)])


def _check(options: Options, without: Accepted, file: str) -> list[Problem]:
    """Return the problems of a file, or of one program of it, without those that are accepted.

    Raises:
        OSError: it cannot be opened.
        Refusal: there is no such program in it.
    """
    from pt2kit.checks.run import check

    payloads, model = options.payloads, options.model
    with progress(f"checking {file}", wanted=payloads) as report:
        if model is None:
            found = check(standard_input() if file == "-" else file, payloads=payloads, progress=report)
        else:
            with open_file(file) as package:
                found = check(package, payloads=payloads, model=choose_model(package, model), progress=report)
    return without.remaining(_shown(file), found)


def _code(found: Sequence[Problem], strict: bool) -> int:
    weights = {problem.severity for problem in found}
    return int("error" in weights or (strict and "warning" in weights))


def _shown(file: str) -> str:
    return "stdin" if file == "-" else file


def _task(options: Options, without: Accepted, several: bool, file: str) -> Result:
    """Check one file; of several, notes are listed with --full only."""
    from pt2kit.text.problems import problem_lines, problems_tree

    name, full = _shown(file), options.full
    found = _check(options, without, file)
    severities = {problem.severity for problem in found} - {"note"}
    lines = list(problem_lines(name, found, full=full, notes=full or not several))
    if several and (severities or (full and found)):
        lines.append("")
    tree = problems_tree(name, found)
    outcome = "error" if "error" in severities else "warning" if severities else "sound"
    totals = {key: tree[key] for key in ("errors", "warnings", "notes")}
    return Result(lines, lambda: tree, _code(found, options.strict), outcome=outcome, totals=totals)


_OUTCOMES: Final = {"sound": "sound", "warning": "with warnings", "error": "with errors"}


def _painter() -> Callable[[str], str]:
    """Return a function that colors lines: headings bold, rules in the color of their group, hints dim."""
    style = ""

    def paint(line: str) -> str:
        nonlocal style
        style = STYLES.get(line, style)
        if line.startswith("      -> "):
            return click.style(line, dim=True)
        if line.startswith("  ") and not line.startswith("   "):
            return click.style(linked(line), fg=style or None)
        return line if line.startswith(" ") else colour(line)

    return paint
