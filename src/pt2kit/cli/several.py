"""Commands on one or several files: `--jobs`, output per file, `--json`, the summary line, the exit code.

A command passes a task, file -> `Result`; `run_task` does the rest. A file that cannot be read is reported, and the
other files are processed all the same; the exit code is the worst of all files.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import click

from pt2kit import codec
from pt2kit.cli.common import Refusal
from pt2kit.cli.frame import Result, ResultOptions, model_option, option, print_result
from pt2kit.cli.output import colour, end_by_signal, error_text, print_error, print_json, print_lines
from pt2kit.errors import Pt2Error
from pt2kit.messages import count_text
from pt2kit.zip.listing import is_many, is_url, list_files, pair_files

T = TypeVar("T")

UNREADABLE = 2
"""The exit code if a file could not be read."""


@dataclass(frozen=True, slots=True)
class FilesOptions(ResultOptions):
    """Options of a command on one or several files, after its own."""

    model: str | None = model_option("; all by default")
    jobs: int = option(
        "Process this many files in parallel.", "--jobs", "-j", type=click.IntRange(1), default=1, show_default=True
    )


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


def run_task(
    files: Sequence[str],
    several: bool,
    task: Callable[[str], Result],
    options: FilesOptions,
    *,
    outcomes: Mapping[str, str] | None = None,
    summary: Callable[[Mapping[str, int]], str] | None = None,
    unread: str = "not readable",
    head: Mapping[str, Any] | None = None,
    style: Callable[[str], str] = colour,
) -> int:
    """Run a task on files and print its results; of several files, each as soon as it is there.

    Args:
        files: their names.
        several: whether to report on several files; otherwise the result of the one file is printed alone.
        task: file -> its result; a function of a module, or a `partial` of one.
        options: those of the command; with `as_json`, one JSON document is printed instead, with `files`, `unreadable`
            and `summary`.
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
    if not several:
        [file] = files
        return print_result(task(file), options.as_json, style)
    code, counts, totals = 0, Counter[str](), Counter[str]()
    rows, unreadable = [], []
    for answer in answers(files, partial(_computed, task, options.as_json), options.jobs):
        one = answer.found
        if one is None:
            unreadable.append({"file": answer.file, "error": answer.error})
            code = max(code, report_unread(answer))
            continue
        code = max(code, one.code)
        counts[one.outcome] += 1
        totals.update(one.totals)
        if options.as_json:
            rows.append({"file": answer.file, **one.tree()})
        else:
            print_lines(one.lines, style, fitted=one.fitted)
    if options.as_json:
        sums = {"files": len(files), **totals}
        print_json({**(head or {}), "files": rows, "unreadable": unreadable, "summary": sums})
    elif outcomes or summary:
        words = [f"{counts[key]:,} {text}" for key, text in (outcomes or {}).items() if counts[key]]
        words += [summary(totals)] if summary else []
        words += [f"{len(unreadable):,} {unread}"] if unreadable else []
        print_lines([f"{count_text(len(files), 'file')}: {', '.join(words)}"])
    return code


def _computed(task: Callable[[str], Result], as_json: bool, file: str) -> Result:
    """Return the result of a file with its lines or its tree computed, as another process can send it."""
    found = task(file)
    lines = [] if as_json else list(found.lines)
    return replace(found, lines=lines, tree=partial(dict, codec.to_tree(found.tree()) if as_json else ()))


def chosen_files(targets: Sequence[str]) -> tuple[list[str], bool]:
    """Return the files that arguments mean, and whether to report on several; one file is reported on alone.

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
    """Make the folder of a file that is to be written; nothing for a URL."""
    if not is_url(target):
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)


def answers(files: Sequence[str], work: Callable[[str], T], jobs: int = 1) -> Iterator[Answer[T]]:
    """Yield the result of work on each file, in the order of the files, as soon as it is there.

    Args:
        files: their names; standard input is read by this process, with all others.
        work: file -> its result; a function of a module, or a `partial` of one, as other processes call it.
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

    # Ctrl-C reaches all processes of a command, and only one reports it: the others end silently.
    ends_quietly = partial(signal.signal, signal.SIGINT, end_by_signal)
    pool = ProcessPoolExecutor(min(jobs, len(files)), initializer=ends_quietly)
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
        message = error.message if isinstance(error, Refusal) else error_text(error)
        return Answer(file, None, message)


def report_unread(answer: Answer[T]) -> int:
    """Report why a file could not be read, and return the exit code for that."""
    print_error(answer.error if answer.file in answer.error else f"{answer.file}: {answer.error}")
    return UNREADABLE
