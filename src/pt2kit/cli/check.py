"""`pt2 check FILE...`: what is wrong with files, and what torch would run on loading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

from pt2kit.cli.accepted import Accepted, accepted
from pt2kit.cli.colours import colour, linked
from pt2kit.cli.common import choose_model, json_option, model_option, open_file, progress, standard_input
from pt2kit.cli.completion import complete_rules
from pt2kit.cli.output import print_json, print_lines
from pt2kit.cli.several import (
    Answer,
    Result,
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
"""The heading of a group -> the colour of its rules."""

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


@click.command("check", epilog=EPILOG)
@files_argument
@click.option("--payloads", is_flag=True, help="Read all records: compare checksums, look for NaN in the weights.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--full", is_flag=True, help="List every problem, not only the first few of each rule.")
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for code hosts and editors.")
@click.option(
    "--allow",
    metavar="RULE[,RULE]",
    multiple=True,
    shell_complete=complete_rules,
    help="Accept all findings of these rules.",
)
@click.option(
    "--baseline", type=click.Path(dir_okay=False, path_type=Path), help="Accept the findings that this file lists."
)
@click.option("--write-baseline", is_flag=True, help="Write the findings to the --baseline file.")
@model_option
@jobs_option
@json_option
def command(
    files: tuple[str, ...],
    payloads: bool,
    strict: bool,
    full: bool,
    sarif: bool,
    allow: tuple[str, ...],
    baseline: Path | None,
    write_baseline: bool,
    model: str | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Check .pt2 files without running anything of them: archive, JSON, graph, signature, operators, weights."""
    if sarif and as_json:
        raise click.UsageError("expected one of --json and --sarif, got both")
    if write_baseline and baseline is None:
        raise click.UsageError("expected --write-baseline with --baseline FILE, got it alone")
    chosen, several = chosen_files(files)
    if write_baseline and baseline is not None:
        return _write(baseline, accepted(allow, None), answers(chosen, partial(_check, payloads, model), jobs))
    without = accepted(allow, baseline)
    if not several:
        [file] = chosen
        problems = without.remaining(_shown(file), _check(payloads, model, file))
        _print(_shown(file), problems, full, sarif, as_json)
        return _code(problems, strict)
    if sarif:
        return _print_sarif_of_all(list(answers(chosen, partial(_check, payloads, model), jobs)), without, strict)
    task = partial(_task, payloads, model, without, strict, full)
    return run_task(chosen, task, jobs=jobs, as_json=as_json, outcomes=_OUTCOMES, style=_painter())


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


def _write(baseline: Path, without: Accepted, checked: Iterator[Answer[list[Problem]]]) -> int:
    """Write what is wrong with files as accepted."""
    from pt2kit.cli.accepted import write_baseline

    code, found = 0, {}
    for answer in checked:
        if answer.found is None:
            code = max(code, report_unread(answer))
        else:
            found[_shown(answer.file)] = without.remaining(_shown(answer.file), answer.found)
    write_baseline(baseline, found)
    count = sum(problem.severity != "note" for problems in found.values() for problem in problems)
    print_lines([f"{baseline}: {count:,} findings of {len(found):,} files are accepted"])
    return code


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


def _task(payloads: bool, model: str | None, without: Accepted, strict: bool, full: bool, file: str) -> Result:
    """Check one of several files."""
    from pt2kit.text.problems import problem_lines, problems_tree

    name = _shown(file)
    found = without.remaining(name, _check(payloads, model, file))
    severities = {problem.severity for problem in found} - {"note"}
    lines = [*problem_lines(name, found, full=full, notes=full), *([""] if severities or (full and found) else [])]
    tree = problems_tree(name, found)
    outcome = "error" if "error" in severities else "warning" if severities else "sound"
    totals = {key: tree[key] for key in ("errors", "warnings", "notes")}
    return Result(tree, lines, _code(found, strict), outcome, totals)


_OUTCOMES: Final = {"sound": "sound", "warning": "with warnings", "error": "with errors"}


def _print_sarif_of_all(checked: list[Answer[list[Problem]]], without: Accepted, strict: bool) -> int:
    """Print one SARIF document about all files."""
    found = {
        _shown(one.file): without.remaining(_shown(one.file), one.found) for one in checked if one.found is not None
    }
    unread = [one for one in checked if one.found is None]
    _print_sarif(found, {_shown(one.file): one.error for one in unread})
    return max([0, *(_code(problems, strict) for problems in found.values()), *map(report_unread, unread)])


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
            return click.style(linked(line), fg=style)
        return line if line.startswith(" ") else colour(line)

    return paint
