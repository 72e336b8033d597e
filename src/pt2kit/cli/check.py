"""`pt2 check FILE...`: what is wrong with files, and what torch would run on loading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import click

from pt2kit.cli.colours import colour
from pt2kit.cli.common import choose_model, json_option, model_option, open_file, progress, standard_input
from pt2kit.cli.output import print_json, print_lines
from pt2kit.cli.several import (
    Answer,
    answers,
    chosen_files,
    files_argument,
    jobs_option,
    report_unread,
    summary_line,
)
from pt2kit.errors import Problem

STYLES: Final = {
    "errors": "red",
    "what torch would run on loading this": "yellow",
    "warnings": "yellow",
    "notes": "cyan",
}
"""The heading of a group -> the colour of its rules."""

EPILOG = """\b
Examples:
  pt2 check model.pt2                   structure, signature, operators, what would be run
  pt2 check model.pt2 --payloads        reads the weights as well: checksums, NaN
  pt2 check models/ 'more/*.pt2' --jobs 4
  pt2 check models/ --strict --sarif > check.sarif
  curl -s https://host/model.pt2 | pt2 check -

\b
A folder means all .pt2 files in it and below. Of several files, notes are listed with --full.

\b
Exit codes: 0 sound (with --strict: no warnings either), 1 a problem was found, 2 a file could not be read.
"""


@click.command("check", epilog=EPILOG, short_help="What is wrong with files.")
@files_argument
@click.option("--payloads", is_flag=True, help="Read all records: compare checksums, look for NaN in the weights.")
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@click.option("--full", is_flag=True, help="List every problem, not only the first few of each rule.")
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for code hosts and editors.")
@model_option
@jobs_option
@json_option
def command(
    files: tuple[str, ...],
    payloads: bool,
    strict: bool,
    full: bool,
    sarif: bool,
    model: str | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Check .pt2 files without running anything of them: archive, JSON, graph, signature, operators, weights."""
    if sarif and as_json:
        raise click.UsageError("expected one of --json and --sarif, got both")
    chosen, several = chosen_files(files)
    if not several:
        [file] = chosen
        problems = _check(payloads, model, file)
        _print(_shown(file), problems, full, sarif, as_json)
        return _code(problems, strict)
    checked = answers(chosen, partial(_check, payloads, model), jobs)
    if sarif or as_json:
        return _print_all(list(checked), strict, sarif)
    return _print_each(checked, len(chosen), strict, full)


def _check(payloads: bool, model: str | None, file: str) -> list[Problem]:
    """The problems of a file; of one program of it where that is asked for.

    Raises:
        OSError: it cannot be opened.
        Refusal: there is no such program in it.
    """
    from pt2kit.checks.run import check

    with progress(f"checking {file}", wanted=payloads) as report:
        if model is None:
            return check(standard_input() if file == "-" else file, payloads=payloads, progress=report)
        with open_file(file) as package:
            return check(package, payloads=payloads, model=choose_model(package, model), progress=report)


def _code(found: Sequence[Problem], strict: bool) -> int:
    weights = {problem.severity for problem in found}
    return int("error" in weights or (strict and "warning" in weights))


def _shown(file: str) -> str:
    return "stdin" if file == "-" else file


def _print(file: str, found: Sequence[Problem], full: bool, sarif: bool, as_json: bool) -> None:
    from pt2kit.text.problems import problem_lines, problems_tree

    if sarif:
        _print_sarif({file: found})
    elif as_json:
        print_json(problems_tree(file, found))
    else:
        print_lines(problem_lines(file, found, full=full), _painter())


def _print_each(checked: Iterator[Answer[list[Problem]]], count: int, strict: bool, full: bool) -> int:
    """Print what is wrong with each file, as soon as that is known, and a summary."""
    from pt2kit.text.problems import problem_lines

    code, unread = 0, 0
    weights: list[str] = []
    for answer in checked:
        if answer.found is None:
            unread += 1
            code = max(code, report_unread(answer))
            continue
        code = max(code, _code(answer.found, strict))
        severities = {problem.severity for problem in answer.found} - {"note"}
        weights.append("error" if "error" in severities else "warning" if severities else "sound")
        lines = problem_lines(_shown(answer.file), answer.found, full=full, notes=full)
        print_lines([*lines, *([""] if severities or (full and answer.found) else [])], _painter())
    counts = [(weights.count(key), text) for key, text in _WORDS.items()]
    print_lines([summary_line(count, *counts, (unread, "not readable"))])
    return code


_WORDS: Final = {"sound": "sound", "warning": "with warnings", "error": "with errors"}


def _print_all(checked: list[Answer[list[Problem]]], strict: bool, sarif: bool) -> int:
    """Print one document about all files."""
    from pt2kit.text.problems import problems_tree

    problems_by_file = {_shown(answer.file): answer.found for answer in checked if answer.found is not None}
    code = max((_code(problems, strict) for problems in problems_by_file.values()), default=0)
    unread = {_shown(answer.file): answer.error for answer in checked if answer.found is None}
    if sarif:
        _print_sarif(problems_by_file, unread)
    else:
        rows = [problems_tree(file, problems) for file, problems in problems_by_file.items()]
        counts = {key: sum(row[key] for row in rows) for key in ("errors", "warnings", "notes")}
        unreadable = [{"file": file, "error": error} for file, error in unread.items()]
        print_json({"files": rows, "unreadable": unreadable, "summary": {"files": len(checked), **counts}})
    return max([code, *(report_unread(answer) for answer in checked if answer.found is None)])


def _print_sarif(found: Mapping[str, Sequence[Problem]], unread: Mapping[str, str] | None = None) -> None:
    from importlib.metadata import PackageNotFoundError, version

    from pt2kit.text.sarif import sarif_tree

    try:
        number = version("pt2kit")
    except PackageNotFoundError:  # a checkout on the path, not installed
        number = "0+unknown"
    print_json(sarif_tree(found, number, unread))


def _painter() -> Callable[[str], str]:
    """Line -> the same with colours: headings bold, rules in the colour of their group, hints dim."""
    style = ""

    def paint(line: str) -> str:
        nonlocal style
        style = STYLES.get(line, style)
        if line.startswith("      -> "):
            return click.style(line, dim=True)
        if line.startswith("  ") and not line.startswith("   "):
            return click.style(line, fg=style)
        return line if line.startswith(" ") else colour(line)

    return paint
