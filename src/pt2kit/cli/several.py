"""Several files -> what a command finds in each, in order, computed in this process or in a few others.

A file that cannot be read is said so and does not keep the others from being looked at; the exit code is the worst.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import click

from pt2kit.cli.common import FILE, Refusal
from pt2kit.cli.output import print_error, said
from pt2kit.errors import Pt2Error
from pt2kit.text.format import count_text
from pt2kit.zip.listing import is_many, list_files, pair_files
from pt2kit.zip.opening import is_url

T = TypeVar("T")

files_argument = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
jobs_option = click.option(
    "--jobs", "-j", type=click.IntRange(1), default=1, help="Look at that many files at once.", show_default=True
)
UNREADABLE = 2
"""The exit code where a file could not be read."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What was found in one file.

    Args:
        file: its name.
        found: what the work gave; None where the file could not be read.
        error: why it could not be read; "" where it could.
    """

    file: str
    found: T | None
    error: str = ""


def chosen_files(targets: Sequence[str]) -> tuple[list[str], bool]:
    """The files that arguments mean, and whether to answer for several: one file alone is answered for as it is.

    Raises:
        UsageError: standard input twice.
        OSError, Pt2Error: a folder without files, or a pattern that matches none.
    """
    if targets.count("-") > 1:
        raise click.UsageError("expected standard input once, got it twice")
    return list_files(targets), len(targets) > 1 or is_many(targets[0])


def chosen_targets(arguments: Sequence[str], *, needs_target: bool = True) -> tuple[dict[str, str], bool]:
    """File -> where what becomes of it goes, of arguments as `cp` takes them; and whether to answer for several.

    Args:
        arguments: a file and the file to write, or files, folders and patterns and the folder to write to.
        needs_target: whether something is written; otherwise one argument may stand alone, and goes nowhere ("").

    Raises:
        UsageError: there is no target.
        OSError, Pt2Error: as `chosen_files`, or two files that would go to one place.
    """
    if len(arguments) == 1:
        if needs_target:
            raise click.UsageError("expected SRC and DST, got one argument")
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
    """Ctrl-C is for all processes of a command; one of them says so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def report_unread(answer: Answer[T]) -> int:
    """Say why a file could not be read; the exit code that means."""
    print_error(answer.error if answer.file in answer.error else f"{answer.file}: {answer.error}")
    return UNREADABLE


def summary_line(count: int, *counts: tuple[int, str]) -> str:
    """The last line: "120 files: 117 sound, 2 with errors, 1 could not be read"; what there is none of is left out."""
    parts = ", ".join(f"{number:,} {what}" for number, what in counts if number)
    return f"{count_text(count, 'file')}: {parts or 'nothing to say'}"
