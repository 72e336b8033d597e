"""The frame of commands on several files: `--jobs`, output per file, `--json`, the summary line, the exit code.

A command gives a task, file -> `Result`; `run_task` does the rest. A file that cannot be read is reported and does not
keep the others from being processed; the exit code is the worst of all files.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import click

from pt2kit.cli.colours import colour
from pt2kit.cli.common import FILE, Refusal
from pt2kit.cli.output import print_error, print_json, print_lines, said
from pt2kit.errors import Pt2Error
from pt2kit.text.format import count_text
from pt2kit.zip.listing import is_many, list_files, pair_files
from pt2kit.zip.opening import is_url

T = TypeVar("T")

files_argument = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
jobs_option = click.option(
    "--jobs", "-j", type=click.IntRange(1), default=1, help="Process this many files in parallel.", show_default=True
)
UNREADABLE = 2
"""The exit code if a file could not be read."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The result of work on one file.

    Args:
        file: its name.
        found: what the work returned; None if the file could not be read.
        error: why it could not be read; "" if it could.
    """

    file: str
    found: T | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command for one of several files.

    Args:
        tree: its keys in `--json`.
        lines: its lines in the report.
        code: the exit code of this file alone.
        outcome: what the summary counts it as.
        totals: numbers that the summary adds up over all files.
        fitted: whether lines may be broken to fit a terminal.
    """

    tree: Mapping[str, Any]
    lines: Sequence[str]
    code: int = 0
    outcome: str = ""
    totals: Mapping[str, int] = field(default_factory=dict)
    fitted: bool = True


def run_task(
    files: Sequence[str],
    task: Callable[[str], Result],
    *,
    jobs: int,
    as_json: bool,
    outcomes: Mapping[str, str] | None = None,
    summary: Callable[[Mapping[str, int]], str] | None = None,
    unread: str = "not readable",
    head: Mapping[str, Any] | None = None,
    style: Callable[[str], str] = colour,
) -> int:
    """Run a task on several files and print a report; each result is printed as soon as it is there.

    Args:
        files: their names.
        task: file -> its result; a function of a module, or a `partial` of one.
        jobs: the number of processes.
        as_json: print one JSON document instead: `files`, `unreadable`, `summary`.
        outcomes: outcome -> its words in the summary line.
        summary: totals -> the words of the summary line, instead of `outcomes`; without either there is no such line.
        unread: what the summary calls a file that could not be processed.
        head: keys at the beginning of the JSON document.
        style: line -> the same with colors.

    Returns:
        the exit code.

    Raises:
        Refusal: a process ended without an answer.
    """
    code, counts, totals = 0, Counter[str](), Counter[str]()
    rows, unreadable = [], []
    for answer in answers(files, task, jobs):
        one = answer.found
        if one is None:
            unreadable.append({"file": answer.file, "error": answer.error})
            code = max(code, report_unread(answer))
            continue
        code = max(code, one.code)
        counts[one.outcome] += 1
        totals.update(one.totals)
        if as_json:
            rows.append({"file": answer.file, **one.tree})
        else:
            print_lines(one.lines, style, fitted=one.fitted)
    if as_json:
        sums = {"files": len(files), **totals}
        print_json({**(head or {}), "files": rows, "unreadable": unreadable, "summary": sums})
    elif outcomes or summary:
        words = [f"{counts[key]:,} {text}" for key, text in (outcomes or {}).items() if counts[key]]
        words += [summary(totals)] if summary else []
        words += [f"{len(unreadable):,} {unread}"] if unreadable else []
        print_lines([f"{count_text(len(files), 'file')}: {', '.join(words)}"])
    return code


def chosen_files(targets: Sequence[str]) -> tuple[list[str], bool]:
    """The files that arguments mean, and whether to answer for several: one file alone is answered for as it is.

    Raises:
        UsageError: standard input twice.
        OSError, Pt2Error: a folder without files, or a pattern that matches none.
    """
    if targets.count("-") > 1:
        raise click.UsageError("expected standard input once, got it twice")
    return list_files(targets), len(targets) > 1 or is_many(targets[0])


def chosen_targets(
    arguments: Sequence[str], output: str | None = None, *, needs_target: bool = True
) -> tuple[dict[str, str], bool]:
    """Return file -> where its result is written, of arguments as `cp` takes them; and whether there are several.

    Args:
        arguments: a file and the file to write, or files, folders and patterns and the folder to write to.
        output: the file or folder to write to, of `--output`; all arguments are sources then.
        needs_target: whether something is written; otherwise one argument may stand alone, and goes nowhere ("").

    Raises:
        UsageError: there is no target.
        OSError, Pt2Error: as `chosen_files`, or two files that would go to one place.
    """
    arguments = arguments if output is None else (*arguments, output)
    if len(arguments) == 1:
        if needs_target:
            raise click.UsageError("expected SRC and DST, or SRC --output DST, got one argument")
        files, several = chosen_files(arguments)
        return dict.fromkeys(files, ""), several
    *sources, target = arguments
    if len(sources) == 1 and not is_many(sources[0]) and not (os.path.isdir(target) or target.endswith("/")):
        return {sources[0]: target}, False
    if "-" in sources or target == "-":
        raise click.UsageError("expected paths for several files, got -")
    if os.path.isfile(target):
        raise Refusal(f"{target}: expected a folder to write several files to, got a file")
    return pair_files(sources, target), True


def make_folder(target: str) -> None:
    """Make the folder that a file is to be written to, where it is a path."""
    if not is_url(target):
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)


def answers(files: Sequence[str], work: Callable[[str], T], jobs: int = 1) -> Iterator[Answer[T]]:
    """Work on files; answers come in the order of the files, as soon as they are there.

    Args:
        files: their names; standard input is read by this process, with all others.
        work: file -> what is found in it; a function of a module, or a `partial` of one, as other processes call it.
        jobs: the number of processes.

    Raises:
        Refusal: a process ended without an answer.
    """
    answer: Callable[[str], Answer[T]] = partial(_answer, work)
    if jobs == 1 or len(files) < 2 or "-" in files:
        yield from map(answer, files)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(min(jobs, len(files)), initializer=_die_quietly)
    try:
        # Small portions: one file may take as long as all others.
        yield from pool.map(answer, files, chunksize=max(1, min(8, len(files) // (4 * jobs))))
    except BrokenProcessPool:
        raise Refusal(
            "expected an answer from each process, got one that ended: memory may be short, try fewer --jobs"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _answer(work: Callable[[str], T], file: str) -> Answer[T]:
    try:
        return Answer(file, work(file))
    except (Pt2Error, OSError, Refusal) as error:
        message = error.message if isinstance(error, Refusal) else said(error)
        return Answer(file, None, message)


def _die_quietly() -> None:
    """Ctrl-C reaches all processes of a command; only one reports it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def report_unread(answer: Answer[T]) -> int:
    """Say why a file could not be read; the exit code that means."""
    print_error(answer.error if answer.file in answer.error else f"{answer.file}: {answer.error}")
    return UNREADABLE
