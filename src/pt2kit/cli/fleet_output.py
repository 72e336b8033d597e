"""Terminal output of `pt2 fleet`: a progress bar on standard error, and the tables of a report on standard output."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pt2kit.cli.output import print_lines
from pt2kit.messages import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pt2kit.fleet.figures import Figures
    from pt2kit.fleet.running import Progress
    from pt2kit.fleet.tabulated import Table

BAR: Final = 24
WIDTH: Final = 140
"""Characters of a line in a pipe."""
_CELL: Final = 120


@contextmanager
def fleet_bar(work: str) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the block runs; yield a function that updates it."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}", markup=False),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task(work, total=None, told="starting processes")
        shown = False

        def show(state: Progress) -> None:
            nonlocal shown
            if state.dashboard and not shown:
                shown = True
                console.print(f"dashboard: {state.dashboard}", markup=False, highlight=False)
            done = state.files + state.skipped
            bar.update(task, completed=done, total=state.total_files or None, told=told(state, time.monotonic()))

        yield show


def told(state: Progress, now: float) -> str:
    """Files, bytes, rate, time left and failures of a run, at a time of `time.monotonic()`."""
    from pt2kit.text.format import bytes_text

    took = max(now - state.started, 1e-9)
    rate = state.files / took
    done = state.files + state.skipped
    more = "" if state.counted else "+"
    of = f" of {state.total_files:,}{more}" if state.total_files else ""
    words = [f"{done:,}{of} files", bytes_text(state.bytes), f"{rate:,.1f} files/s"]
    if state.counted and state.total_files and rate:
        words.append(f"{_clock(max(0, state.total_files - done) / rate)} left")
    words.append(f"{state.failures:,} failed")
    return ", ".join(words)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def print_report(figures: Figures) -> None:
    """Print all tables of a report."""
    from rich.console import Console

    from pt2kit.fleet.tabulated import headline, tables_of

    is_terminal = sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=sys.stdout if is_terminal else text,
        width=None if is_terminal else WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(printable(headline(figures), 500), soft_wrap=True)
    if figures.damaged:
        console.print(f"{len(figures.damaged):,} damaged parts are left out; --resume does their files again")
    for table in tables_of(figures):
        _print_table(console, table)
    print_lines((line.rstrip() for line in text.getvalue().splitlines()), str, fitted=False)


def _print_table(console: Console, table: Table) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=table.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    grid.add_column(table.label, overflow="fold", min_width=10)
    grid.add_column(table.unit, justify="right", no_wrap=True)
    grid.add_column("", no_wrap=True, width=BAR)
    for head in table.heads:
        grid.add_column(head, overflow="fold")
    most = max(row.number for row in table.rows) or 1
    for row in table.rows:
        cells = (Text(printable(cell, _CELL)) for cell in row.more)
        grid.add_row(
            Text(printable(row.label, _CELL)), table.shown(row.number), Text(bar(row.number, most), "cyan"), *cells
        )
    console.print()
    console.print(grid)
    if table.left_out:
        console.print(f"… and {table.left_out:,} more")


def bar(number: int, most: int) -> str:
    """Return a bar of eighths of characters; numbers above 0 are always visible."""
    eighths = max(round(8 * BAR * number / most), 1 if number else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (chr(ord("█") + 8 - rest) if rest else "")
