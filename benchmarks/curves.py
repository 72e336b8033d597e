"""Work per node as programs grow: chains of 1,000 to 100,000 nodes -> seconds per node.

CPU seconds, because each call runs in one thread: other processes on the machine then hardly count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import measure, programs
from benchmarks.harness import Measured, Settings

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
QUICK = 3_000
"""The largest chain of a quick run."""


def curve(count: int, settings: Settings, prepare: Callable[[Path], Callable[[], object]]) -> Measured:
    """Seconds per node of a chain against those of the smallest chain.

    Args:
        count: nodes of the chain.
        settings: a quick run takes a small chain instead.
        prepare: makes the call to measure, for a chain's file.
    """
    count = min(count, QUICK) if settings.quick else count
    seconds = []
    for size in (SIZES[0], count):
        call = prepare(programs.path(f"grown_{size}"))
        rounds = 1 if size > 50_000 else settings.rounds(5 if size < 5_000 else 3)
        seconds.append(min(measure.timed(call, time.process_time) for _ in range(rounds + 1)) / size)
    return Measured(seconds[1], seconds[0], note=f"{seconds[1] * 1e6:.0f} µs of CPU per node at {count:,} nodes")
