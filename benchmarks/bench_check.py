"""Checking: a file -> its problems, without its weights and with them; what that costs in time and memory."""

from __future__ import annotations

import sys

from benchmarks import measure, programs
from benchmarks.harness import Bench, Limit, Measured, Settings


def check_command(name: str, settings: Settings, *, memory: bool = False, payloads: bool = False) -> Measured:
    """The process time, or the peak memory, of `pt2 check` on a file."""
    file = programs.path(name)
    command = [sys.executable, "-m", "pt2kit", "check", str(file), *(["--payloads"] if payloads else [])]
    spent = measure.command(command, rounds=settings.rounds(6))
    if ": sound" not in spent.stdout:
        raise RuntimeError(f"pt2 check {file.name}: expected a sound file, got {spent.stdout[:200]!r}")
    note = f"{programs.facts(name)['nodes']} nodes, {file.stat().st_size / 1e6:.2f} MB"
    return Measured(spent.peak_bytes, unit="B", note=note) if memory else Measured(spent.cpu_s, note=note)


BENCHES = (
    Bench(
        "check_time",
        "pt2 check, 2,700-node transformer: process time",
        Limit(1.0, "s"),
        lambda settings: check_command(programs.TRANSFORMER, settings),
    ),
    Bench(
        "check_memory",
        "pt2 check, 2,700-node transformer: peak memory",
        Limit(150e6, "B"),
        lambda settings: check_command(programs.TRANSFORMER, settings, memory=True),
    ),
    Bench(
        "check_small_time",
        "pt2 check, 2 MB file, half of it graph: process time",
        Limit(0.5, "s"),
        lambda settings: check_command("transformer_2mb", settings),
    ),
    Bench(
        "check_payloads_time",
        "pt2 check --payloads, 12 MB file: process time",
        None,
        lambda settings: check_command(programs.TRANSFORMER, settings, payloads=True),
    ),
)
