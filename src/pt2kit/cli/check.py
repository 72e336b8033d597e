"""`pt2 check FILE...`: problems of files, and what torch would run on loading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click

from pt2kit.cli.accepted import Accepted, accepted
from pt2kit.cli.colours import colour, linked
from pt2kit.cli.common import choose_model, json_option, model_option, open_file, progress, standard_input
from pt2kit.cli.completion import complete_rules
from pt2kit.cli.frame import Result, flag, option, shared, subcommand
from pt2kit.cli.output import print_json, print_lines
from pt2kit.cli.several import (
    Answer,
    answers,
    chosen_files,
    files_argument,
    jobs_option,
    report_unread,
    run_task,
)
from pt2kit.errors import Problem

STYLES: Final = {
    "errors": "red",
    "what torch would run on loading this": "yellow",
    "warnings": "yellow",
    "notes": "cyan",
}
"""The heading of a group -> the color of its rules."""

EPILOG = """\b
Examples:
  pt2 check model.pt2                   structure, signature, operators, what would be run
  pt2 check model.pt2 --payloads        reads the weights as well: checksums, NaN
  pt2 check models/ 'more/*.pt2' --jobs 4
  pt2 check models/ --strict --sarif > check.sarif
  pt2 check models/ --allow X2,X11 --baseline accepted.json
  curl -s https://host/model.pt2 | pt2 check -

\b
A folder means all .pt2 files in it and below. Of several files, notes are listed with --full.

\b
Exit codes: 0 sound (with --strict: no warnings either), 1 a problem was found, 2 a file could not be read.
What --allow and --baseline accept does not count.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `pt2 check`."""

    files: tuple[str, ...] = files_argument()
    payloads: bool = flag("Read all records: compare checksums, look for NaN in the weights.")
    strict: bool = flag("Treat warnings as errors.")
    full: bool = flag("List every problem, not only the first few of each rule.")
    sarif: bool = flag("Print SARIF 2.1.0, for code hosts and editors.")
    allow: tuple[str, ...] = option(
        "Accept all findings of these rules.", metavar="RULE[,RULE]", multiple=True, shell_complete=complete_rules
    )
    baseline: str | None = option("Accept the findings that this file lists.", type=click.Path(dir_okay=False))
    write_baseline: bool = flag("Write the findings to the --baseline file.")
    model: str | None = shared(model_option)
    jobs: int = jobs_option()
    as_json: bool = shared(json_option)


def run(options: Options) -> int:
    """Check .pt2 files without running anything of them: archive, JSON, graph, signature, operators, weights."""
    if options.sarif and options.as_json:
        raise click.UsageError("expected one of --json and --sarif, got both")
    if options.write_baseline and options.baseline is None:
        raise click.UsageError("expected --write-baseline with --baseline FILE, got it alone")
    chosen, several = chosen_files(options.files)
    baseline = None if options.baseline is None else Path(options.baseline)
    if options.write_baseline and baseline is not None:
        without = accepted(options.allow, None)
        return _write(baseline, answers(chosen, partial(_check, options, without), options.jobs))
    without = accepted(options.allow, baseline)
    if options.sarif and several:
        return _print_sarif_of_all(list(answers(chosen, partial(_check, options, without), options.jobs)), options)
    if options.sarif:
        problems = _check(options, without, chosen[0])
        _print_sarif({_shown(chosen[0]): problems})
        return _code(problems, options.strict)
    task = partial(_task, options, without, several)
    return run_task(
        chosen, several, task, jobs=options.jobs, as_json=options.as_json, outcomes=_OUTCOMES, style=_painter()
    )


command = subcommand("check", Options, run, EPILOG)


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


def _write(baseline: Path, checked: Iterator[Answer[list[Problem]]]) -> int:
    """Write the problems of files as accepted."""
    from pt2kit.cli.accepted import write_baseline

    code, found = 0, {}
    for answer in checked:
        if answer.found is None:
            code = max(code, report_unread(answer))
        else:
            found[_shown(answer.file)] = answer.found
    write_baseline(baseline, found)
    count = sum(problem.severity != "note" for problems in found.values() for problem in problems)
    print_lines([f"{baseline}: {count:,} findings of {len(found):,} files are accepted"])
    return code


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


def _print_sarif_of_all(checked: list[Answer[list[Problem]]], options: Options) -> int:
    """Print one SARIF document about all files."""
    found = {_shown(one.file): one.found for one in checked if one.found is not None}
    unread = [one for one in checked if one.found is None]
    _print_sarif(found, {_shown(one.file): one.error for one in unread})
    return max([0, *(_code(problems, options.strict) for problems in found.values()), *map(report_unread, unread)])


def _print_sarif(found: Mapping[str, Sequence[Problem]], unread: Mapping[str, str] | None = None) -> None:
    from importlib.metadata import PackageNotFoundError, version

    from pt2kit.text.sarif import sarif_tree

    try:
        number = version("pt2kit")
    except PackageNotFoundError:  # a checkout on the path, not installed
        number = "0+unknown"
    print_json(sarif_tree(found, number, unread))


def _painter() -> Callable[[str], str]:
    """Return a function that colors lines: headings bold, rules in the color of their group, hints dim."""
    style = ""

    def paint(line: str) -> str:
        nonlocal style
        style = STYLES.get(line, style)
        if line.startswith("      -> "):
            return click.style(line, dim=True)
        if line.startswith("  ") and not line.startswith("   "):
            return click.style(linked(line), fg=style)
        return line if line.startswith(" ") else colour(line)

    return paint
