"""Tasks in child processes: each has a row, whatever becomes of the process that tried it."""

from __future__ import annotations

import os
import time
from typing import Any

from tools.children import in_children, in_time


def run(task: int) -> dict[str, Any]:
    """Numbers below 0 end the process, 0 fails, others are doubled."""
    if task < 0:
        os._exit(1)
    return {"row": 2 * task, "of": 1 // task}


def ended(task: int) -> dict[str, Any]:
    """Build the row of a task without a result."""
    return {"ended": task}


def test_rows() -> None:
    """Every task has one row, in order; the next process begins behind the task that ended one."""
    rows = list(in_children([1, -1, 2, 0, 3, -2], run, ended, batch=2, seconds=60))
    assert rows == [
        {"row": 2, "of": 1},
        {"ended": -1},
        {"row": 4, "of": 0},
        {"ended": 0},
        {"row": 6, "of": 0},
        {"ended": -2},
    ]
    assert list(in_children([1, 2], run, ended, batch=2, seconds=0)) == []


def sleep() -> str:
    """Takes half a minute."""
    time.sleep(30)
    return "made"


def test_in_time() -> None:
    """A call that takes too long is given up, and no alarm is left that would interrupt others."""
    assert in_time(sleep, 1, "late") == "late"
    assert in_time(lambda: "made", 1, "late") == "made"
