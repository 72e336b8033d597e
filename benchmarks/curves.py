"""Work per node as programs grow: chains of 1,000 to 100,000 nodes -> seconds per node.

CPU seconds, because each call runs in one thread: other processes on the machine then hardly count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import measure, programs
from benchmarks.harness import AtMost, Bench, Measured, Settings

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
QUICK = 3_000
"""The largest chain of a quick run."""


Prepare = Callable[[Path], Callable[[], object]]
"""Makes the call to measure, for a chain's file."""


def curve_benches(name: str, what: str, prepare: Prepare) -> Iterator[Bench]:
    """Yield a benchmark for each length of chain but the smallest, which the others are compared with."""
    smallest, *larger = SIZES
    for count in larger:
        subject = f"{what} of a {count:,}-node chain, per node : of a {smallest:,}-node chain, per node"
        yield Bench(f"{name}_curve_{count}", subject, AtMost(1.5), partial(curve, count, prepare))


def curve(count: int, prepare: Prepare, settings: Settings) -> Measured:
    """Seconds per node of a chain against those of the smallest chain; a quick run takes a small chain instead."""
    count = min(count, QUICK) if settings.quick else count
    seconds = []
    for size in (SIZES[0], count):
        call = prepare(programs.path(f"grown_{size}"))
        rounds = 1 if size > 50_000 else settings.rounds(5 if size < 5_000 else 3)
        seconds.append(min(measure.timed(call, time.process_time) for _ in range(rounds + 1)) / size)
    return Measured(seconds[1], seconds[0], note=f"{seconds[1] * 1e6:.0f} µs of CPU per node at {count:,} nodes")
