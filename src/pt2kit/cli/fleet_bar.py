"""How far a run of `pt2 fleet` is -> a bar on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pt2kit.fleet.running import Progress


@contextmanager
def fleet_bar(work: str) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the block runs; give what to call with how far it is."""
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
        task = bar.add_task(work, total=None, told="starting")
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
