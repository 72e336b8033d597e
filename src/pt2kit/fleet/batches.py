"""Tasks of Dask workers: run a command on a batch of files in a child process, return rows as Arrow tables."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from distributed import WorkerPlugin, get_worker

from pt2kit.fleet.dataset import make_table
from pt2kit.fleet.isolation import Limits, Processes
from pt2kit.fleet.reading import Item, Job

NAME: Final = "pt2kit.fleet"


class Reading(WorkerPlugin):  # type: ignore[misc]
    """Keeps a worker's child processes from batch to batch.

    Args:
        job: what they do.
        limits: what one file may take.
    """

    idempotent = True

    def __init__(self, job: Job, limits: Limits) -> None:
        self.name = f"{NAME}-{uuid4().hex}"  # one for each run
        self._job, self._limits = job, limits
        self.processes: Processes | None = None

    def setup(self, worker: Any) -> None:
        """Begin a run; no process is started yet."""
        self.processes = Processes(self._job, self._limits)

    def teardown(self, worker: Any) -> None:
        """End the processes."""
        if self.processes is not None:
            self.processes.end()


class Uninterrupted(WorkerPlugin):  # type: ignore[misc]
    """Lets workers on this machine leave Ctrl-C to the command, which ends them."""

    name = f"{NAME}-uninterrupted"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Ignore the signal, which a terminal sends to all processes of a command."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def read_batch(plugin: str, items: Sequence[Item]) -> dict[str, Any]:
    """Read a batch of files, one after the other.

    Returns:
        table -> Arrow table of their rows; a file that had a row already has none.

    Raises:
        LimitError: no process can be started.
    """
    processes: Processes = get_worker().plugins[plugin].processes
    read = [processes.read(item) for item in items]
    tables = {
        "files": [one.files for one in read if one.files],
        "problems": [row for one in read for row in one.problems],
        "operators": [row for one in read for row in one.operators],
    }
    return {table: make_table(table, rows) for table, rows in tables.items()}
