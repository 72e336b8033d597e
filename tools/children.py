"""Run tasks in child processes and collect their results: torch may end a process, or take too long.

What a task gives is plain data, which its process hands over as a line of JSON as soon as it is there.
"""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Task = TypeVar("Task")
Row = dict[str, Any]
Result = TypeVar("Result")


def in_children(
    tasks: Sequence[Task], run: Callable[[Task], Row], ended: Callable[[Task], Row], *, batch: int, seconds: float
) -> Iterator[Row]:
    """Run tasks in their order, a batch of them in one child process after the other.

    Args:
        tasks: what to run.
        run: gives what became of a task, as plain data. It is called in the child.
        ended: gives the same for a task that ended its process. It is called here.
        batch: tasks that one process runs at most.
        seconds: after which no other process is started.
    """
    done, until = 0, time.monotonic() + seconds
    while done < len(tasks) and time.monotonic() < until:
        part = tasks[done : done + batch]
        count = 0
        for row in _one_child(part, run):
            count += 1
            yield row
        if count < len(part):
            yield ended(part[count])
            count += 1
        done += count


def _one_child(tasks: Sequence[Task], run: Callable[[Task], Row]) -> Iterator[Row]:
    """Yield a process's rows until it ends."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.close(read)
            with os.fdopen(write, "w") as out:
                for task in tasks:
                    print(json.dumps(run(task)), file=out, flush=True)
        except BaseException:  # noqa: BLE001  # Whatever it is, the child goes no further than this.
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)
    os.waitpid(child, 0)


def in_time(run: Callable[[], Result], seconds: int, late: Result) -> Result:
    """Return a function's result, or `late` if it takes more than that long."""
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(seconds)
    try:
        return run()
    except TimeoutError:
        return late
    finally:
        signal.alarm(0)


def _late(*_: object) -> None:
    raise TimeoutError
