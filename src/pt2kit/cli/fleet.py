"""`pt2 fleet COMMAND TARGETS… -o DIR`: run a command on thousands of files; `pt2 fleet report DIR`: print results.

A progress bar is shown on standard error; the tables of a report are printed on standard output.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pt2kit.cli.common import bar_of, bytes_amount, check_page
from pt2kit.cli.frame import (
    Result,
    ResultOptions,
    argument,
    force_option,
    load_command,
    option,
    parameters,
    print_result,
    subcommand,
)
from pt2kit.cli.output import LazyGroup, help_texts, print_lines
from pt2kit.fleet.reading import DEFAULTS
from pt2kit.messages import count_text, printable, suggestion

if TYPE_CHECKING:
    from pt2kit.fleet.figures import Figures
    from pt2kit.fleet.running import Progress


WORKS: Final = {
    "show": "Summarize each file: writer, operators, tensors.",
    "check": "Check each file, and report what torch would run on loading it.",
    "digest": "Digest each program; find equal ones.",
    "convert": "Convert each file, below DIR by its relative path.",
    "sanitize": "Sanitize each file, below DIR by its relative path.",
    "report": "Report a dataset: releases, operators, findings by rule, sizes, equal programs, failures.",
}
BAR: Final = 24
_CELL: Final = 120
_LABEL: Final = 60


class Works(LazyGroup):
    """The commands of `pt2 fleet`: each runs the single command of its name on files, with some of its options."""

    helps = WORKS

    def load(self, name: str) -> click.Command:
        """Make the command of a name: options of all, and those of the single command that apply to many files."""
        if name == "report":
            return subcommand("report", ReportOptions, report)
        own = [option for option in load_command(name).params if option.name in DEFAULTS[name]]
        return click.Command(
            name, callback=partial(_run, name), params=[*parameters(SharedOptions), *own], help=WORKS[name]
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that arguments name.

        Raises:
            UsageError: there is no such command; the message suggests close names.
        """
        if args[0] not in WORKS and not ctx.resilient_parsing:
            raise click.UsageError(
                f"expected one of {', '.join(WORKS)}, got {args[0]!r}{suggestion(args[0], WORKS)}", ctx
            )
        return super().resolve_command(ctx, args)


def _fleet() -> None:
    """Run a command on many files, on this machine or a Dask cluster, and write a dataset of the results (Parquet).

    Examples:
      pt2 fleet check 'models/**/*.pt2' -o checked        all cores of this machine
      pt2 fleet show s3://bucket/models/ -o s3://bucket/shown --scheduler tcp://10.0.0.1:8786
      pt2 fleet convert names.txt --target torch==2.13 -o converted
      pt2 fleet check 'models/**/*.pt2' -o checked --resume
      pt2 fleet report checked -o report.html

    TARGETS are patterns of any file system that fsspec knows, folders (their .pt2 files), files, files that list
    these, one per line, and - for a list on standard input. Put patterns in quotes.

    Exit codes: 0 all files ok; 1 some have problems or were not read; 2 could not run; 130 interrupted.
    """


command = Works("fleet", callback=_fleet, **help_texts(_fleet))


def _storage_option() -> Any:
    return option("An option of the file system (fsspec).", "NAME=VALUE")


@dataclass(frozen=True, slots=True)
class SharedOptions(ResultOptions):
    """Options of all commands of `pt2 fleet` that run on files; each has some of the single command of its name."""

    targets: tuple[str, ...] = argument("TARGETS...", type=None)
    out: str = option(
        "Folder for the dataset and for written files; or a URL.", "--output", "-o", "--out", "DIR", required=True
    )
    scheduler: str | None = option("A Dask scheduler; without it, processes on this machine.", "ADDRESS")
    workers: int | None = option("Processes on this machine; as many as cores.", "N", type=click.IntRange(1))
    resume: bool = option("Continue the dataset in DIR; skip files that have a row.")
    again: tuple[str, ...] = option("With --resume: repeat files of this outcome.", "OUTCOME")
    timeout: float = option(
        "Time limit of one file (600).", "SECONDS", type=click.FloatRange(0, min_open=True), default=600.0
    )
    memory: int = option("Memory limit of one file (4G).", "BYTES", default="4G", callback=bytes_amount)
    storage: Mapping[str, str] = _storage_option()


def _run(work: str, **given: Any) -> int:
    """Run a command on all files, with a progress bar on a terminal, and print the outcomes."""
    from pt2kit.fleet.running import run

    out, storage, resume = given["out"], given["storage"], given["resume"]
    if given["scheduler"] and given["workers"]:
        raise click.UsageError("expected one of --scheduler and --workers, got both")
    named = {"seconds": given.pop("timeout"), "storage_options": given.pop("storage")}
    as_json = given.pop("as_json")
    try:
        with _bar(work) as bar:
            done = run(work, given.pop("targets"), on_progress=bar, **named, **given)
    except KeyboardInterrupt:
        click.echo(f"interrupted; go on with: --out {out} --resume", err=True)
        _leave(130)
    except TypeError as error:
        raise click.UsageError(str(error)) from error
    earlier = _earlier_failures(out, storage, done) if resume else Counter()
    tree = {key: getattr(done, key) for key in ("files", "bytes", "outcomes", "skipped", "gone")}
    code = int(done.files != done.outcomes["ok"] or bool(earlier))
    ending = Result(_ending(work, done, out, earlier), lambda: {"out": out, **tree, "earlier": earlier}, code)
    return print_result(ending, as_json)


def _earlier_failures(out: str, storage: Mapping[str, str], done: Progress) -> Counter[str]:
    """Return the failures of a dataset that are not of this run: outcome -> files. The exit code counts them, too."""
    from pt2kit.fleet.figures import figures_of

    earlier = figures_of(out, storage).outcomes - done.outcomes
    return Counter({outcome: count for outcome, count in earlier.items() if outcome not in ("ok", "gone")})


def _leave(code: int) -> None:
    """Exit immediately: the dataset is written, and shutting down Dask and Arrow takes a second or two."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def _ending(work: str, done: Progress, out: str, earlier: Counter[str]) -> Iterator[str]:
    from pt2kit.text.format import bytes_text

    skipped = f"; {done.skipped:,} skipped (already processed)" if done.skipped else ""
    yield f"{work}: {count_text(done.files, 'file')}, {bytes_text(done.bytes)}{skipped}"
    for outcome, count in done.outcomes.most_common():
        yield f"  {outcome:<11} {count:,}"
    for outcome, count in earlier.most_common():
        yield f"  {outcome:<11} {count:,} (of an earlier run; repeat with --again {outcome})"
    if done.gone:
        yield f"  {'gone':<11} {done.gone:,} (removed since an earlier run)"
    yield f"dataset in {out}; see: pt2 fleet report {out}"


@dataclass(frozen=True, slots=True)
class ReportOptions(ResultOptions):
    """Options of `pt2 fleet report`."""

    folder: str = argument("DIR", type=None)
    html: str | None = option("Write a self-contained page with bars instead.", "--output", "-o", "--html", "FILE")
    storage: Mapping[str, str] = _storage_option()
    force: bool = force_option(is_page=True)


def report(options: ReportOptions) -> int:
    """Report a dataset: releases, operators, findings by rule, sizes, equal programs, failures."""
    from pt2kit.fleet.cluster import need_packages
    from pt2kit.fleet.figures import figures_of, page_of, report_tree
    from pt2kit.zip.target import replacing

    if options.html is not None and options.as_json:
        raise click.UsageError("expected one of --html and --json, got both")
    check_page(options.html, options.force)
    need_packages()
    figures = figures_of(options.folder, options.storage)
    if options.html is None:
        return print_result(Result(report_lines(figures), lambda: report_tree(figures)), options.as_json)
    page = page_of(figures).encode("utf-8", "backslashreplace")
    with replacing(options.html) as file:
        file.write(page)
    print_lines([options.html])
    return 0


@contextmanager
def _bar(work: str) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on standard error with files, bytes, rate, time left and failures, if that is a terminal.

    Yield a function that updates it, or None.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import TaskProgressColumn, TextColumn

    with bar_of(TaskProgressColumn(), TextColumn("{task.fields[text]}", markup=False)) as bar:
        task = bar.add_task(work, total=None, text="starting processes")
        shown = False

        def show(state: Progress) -> None:
            nonlocal shown
            if state.dashboard and not shown:
                shown = True
                bar.console.print(f"dashboard: {state.dashboard}", markup=False, highlight=False)
            done = state.files + state.skipped
            bar.update(task, completed=done, total=state.total_files or None, text=run_text(state, time.monotonic()))

        yield show


def run_text(state: Progress, now: float) -> str:
    """Return files, bytes, rate, time left and failures of a run, at a time of `time.monotonic()`."""
    from pt2kit.text.format import bytes_text

    took = max(now - state.started, 1e-9)
    rate = state.files / took
    done = state.files + state.skipped
    more = "" if state.counted else "+"
    of = f" of {state.total_files:,}{more}" if state.total_files else ""
    words = [f"{done:,}{of} files", bytes_text(state.bytes), f"{rate:,.1f} files/s"]
    if state.counted and state.total_files and rate:
        words.append(f"{timedelta(seconds=int(max(0, state.total_files - done) / rate))} left")
    words.append(f"{state.failures:,} failed")
    return ", ".join(words)


def report_lines(figures: Figures) -> Iterator[str]:
    """Yield the lines of all tables of a report."""
    from pt2kit.fleet.figures import headline, tables_of
    from pt2kit.text.format import table

    yield printable(headline(figures), 500)
    if figures.damaged:
        yield f"left out: {count_text(len(figures.damaged), 'damaged part')}; --resume does these files again"
    for one in tables_of(figures):
        yield from ("", one.title)
        rows = [(*one.columns[:2], "", *one.columns[2:])]
        rows += [(row.label, one.shown(row.number), bar(row.number, one.most), *row.more) for row in one.rows]
        cells = [[printable(cell, _CELL) for cell in row] for row in rows]
        yield from (f"  {line}" for line in table(cells, _LABEL, right=(1,)))
        if one.left_out:
            yield f"  … and {one.left_out:,} more"


def bar(number: int, most: int) -> str:
    """Return a bar of eighths of characters; numbers above 0 are always visible."""
    eighths = max(round(8 * BAR * number / most), 1 if number else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (chr(ord("█") + 8 - rest) if rest else "")
