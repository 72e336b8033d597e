"""Measuring: a callable -> seconds, two callables -> their ratio, a command -> its CPU seconds and peak memory.

Both sides of a comparison run in the same process, in turn, so that a slow moment of the machine meets both. The best
of several rounds counts: noise only ever adds time. Before each round garbage is collected and what is left is frozen,
so a collection inside the timing walks only what the measured call made, as it would in a fresh process.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.py")
COMMAND_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of a command: CPU seconds of user and system, peak bytes, seconds on the clock; and its output."""

    cpu_s: float
    peak_bytes: int
    stdout: str
    wall_s: float


def timed(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call by a clock, the wall's by default; letting go of the result is not part of it."""
    gc.collect()
    gc.freeze()
    try:
        started = clock()
        result = call()
        seconds = clock() - started
        del result
    finally:
        gc.unfreeze()
    return seconds


def best(call: Callable[[], object], *, rounds: int, warmup: int = 1) -> float:
    """The smallest of `rounds` timings in seconds, after `warmup` untimed calls."""
    for _ in range(warmup):
        call()
    return min(timed(call) for _ in range(rounds))


def alternate(
    ours: Callable[[], object],
    reference: Callable[[], object],
    *,
    rounds: int,
    reference_rounds: int | None = None,
    warmup: int = 1,
    prepare: Callable[[], object] = lambda: None,
) -> tuple[float, float]:
    """The best timings in seconds of ours and of the reference, timed in turn.

    `reference_rounds` (at most `rounds`) spares a reference that takes seconds; such a reference is not warmed up.
    `prepare` is called before each of the calls and not timed.
    """
    for _ in range(warmup):
        prepare()
        ours()
        if reference_rounds is None:
            prepare()
            reference()
    mine: list[float] = []
    theirs: list[float] = []
    for index in range(rounds):
        prepare()
        mine.append(timed(ours))
        if reference_rounds is None or index < reference_rounds:
            prepare()
            theirs.append(timed(reference))
    return min(mine), min(theirs)


def command(argv: Sequence[str], *, rounds: int = 1, warmup: int = 1) -> Spent:
    """The best times and the largest peak memory of a command run `rounds` times, each in a fresh process.

    Raises: RuntimeError when the command fails, with the last line of what it said.
    """
    for _ in range(warmup):
        spawn(argv)  # fills the caches of bytecode and pages
    runs = [spawn(argv) for _ in range(rounds)]
    cpu_s, wall_s = min(run.cpu_s for run in runs), min(run.wall_s for run in runs)
    return Spent(cpu_s, max(run.peak_bytes for run in runs), runs[-1].stdout, wall_s)


def others_s() -> float | None:
    """Processor seconds that everything else on the machine has taken since it started, the kernel's own work and other
    machines on the same processors among it; None where the system does not say.

    Only differences mean something: of processes that this one started, those that have ended count as its own.
    """
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, fields[1:9])
    busy = (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    return busy - own.user - own.system - own.children_user - own.children_system


def spawn(argv: Sequence[str], *, timeout_s: float = COMMAND_TIMEOUT_S, allowed: Container[int] = (0,)) -> Spent:
    """Run a command once.

    Args:
        argv: its words.
        timeout_s: seconds on the clock that it may take.
        allowed: exit statuses that are no failure.

    Raises: RuntimeError when the command fails, with the last line of what it said.
    """
    launched = [sys.executable, "-I", "-S", str(LAUNCHER), *argv]
    # An installed package has its bytecode; a source tree must be allowed to write it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    done = subprocess.run(launched, capture_output=True, text=True, timeout=timeout_s, check=False, env=env)
    wall_s = time.perf_counter() - started
    *said, numbers = done.stderr.strip().splitlines() or [""]
    if done.returncode not in allowed:
        shown = f"{Path(argv[0]).name} {' '.join(argv[1:4])}".split("\n")[0]
        reason = next((line for line in reversed(said) if line.strip()), "it said nothing")
        raise RuntimeError(f"{shown} …: exit status {done.returncode}: {reason}")
    spent = json.loads(numbers)
    return Spent(spent["cpu_s"], spent["peak_bytes"], done.stdout, wall_s)
