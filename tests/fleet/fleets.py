"""`pt2 fleet` in processes of its own, and what came of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests import samples
from tests.cli.run import ENVIRONMENT, Result

FAULTS = Path(__file__).parent / "faults"
VARIABLE = ("seconds", "ended")
"""Columns that differ from run to run."""


def environment(**more: str) -> dict[str, str]:
    """An environment in which workers know the URLs of `faults`."""
    path = os.pathsep.join([str(FAULTS), *filter(None, sys.path)])
    return {**ENVIRONMENT, "PYTHONPATH": path, **more}


def start(*args: str | Path, **more: str) -> subprocess.Popen[bytes]:
    """Start `pt2 fleet` in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-m", "pt2kit", "fleet", *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=environment(**more),
    )


def finish(process: subprocess.Popen[bytes]) -> Result:
    """Wait for a command; it and all that it started are ended if it takes minutes."""
    try:
        out, err = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Result(process.returncode, out.decode(), err.decode(errors="replace"))


def fleet(*args: str | Path, **more: str) -> Result:
    """Run `pt2 fleet`."""
    return finish(start(*args, **more))


def wait_for_parts(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a run has written something."""
    for _ in range(1200):
        if list((folder / "files").glob("*.parquet")):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError("no part was written")


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The process ids of the Dask workers of a command."""
    import psutil

    children = psutil.Process(process.pid).children(recursive=False)
    return [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]


def rows(folder: Path | str, table: str = "files") -> list[dict[str, Any]]:
    """The rows of a table, ordered, without what differs from run to run."""
    import pyarrow.parquet as pq

    found = pq.read_table(str(folder) + f"/{table}").to_pylist()
    return sorted(({k: v for k, v in row.items() if k not in VARIABLE} for row in found), key=repr)


def by_name(folder: Path | str) -> dict[str, dict[str, Any]]:
    """The rows of `files` by the last part of the name; each file has one."""
    found = rows(folder)
    named = {row["url"].rpartition("/")[2]: row for row in found}
    assert len(named) == len(found)
    return named


def copies(folder: Path, count: int) -> list[Path]:
    """Sample files in folders two levels deep, with names of their own."""
    sources = samples.corpus("2.13.0")[:20]
    made = []
    for number in range(count):
        path = folder / f"team{number % 3}" / f"m{number:05}.pt2"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sources[number % len(sources)], path)
        made.append(path)
    return made
