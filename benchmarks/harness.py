"""Benchmarks, their runner and reports: benchmarks -> outcomes -> one table, or JSON.

A subject is a file `bench_<subject>.py` with a tuple BENCHES. Each `Bench` names what it compares and the bar it must
reach; its `run` measures and returns numbers; whether the bar is reached is decided here.
"""

from __future__ import annotations

import importlib
import math
import os
import pkgutil
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import benchmarks
from benchmarks import measure

Unit = Literal["s", "B", "%"]
QUICK_PROGRAMS = {"chain_10000": "chain_1000", "weights_2gb": "weights_256mb"}
"""A large program -> the smaller one that replaces it in a quick run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How thorough to be; `quick` takes few rounds and small files, to see that everything runs."""

    quick: bool = False

    def rounds(self, full: int) -> int:
        """Rounds to take where a full run takes `full`."""
        return min(full, 2) if self.quick else full

    def program(self, name: str) -> str:
        """Return the program to take where a full run takes that one."""
        return QUICK_PROGRAMS.get(name, name) if self.quick else name

    def reference_rounds(self, nodes: int) -> int:
        """Rounds of torch's side of a program of so many nodes: for thousands, one takes it many seconds."""
        if self.quick:
            return 1
        return 8 if nodes < 1000 else 2


@dataclass(frozen=True, slots=True)
class AtMost:
    """A bar on ours / reference: at most `times`."""

    times: float

    def __str__(self) -> str:
        return f"≤ {self.times:g}x"

    def value(self, measured: Measured) -> float:
        """The number that is compared with the bar."""
        return measured.ours / measured.reference if measured.reference else math.nan

    def reached(self, measured: Measured) -> bool:
        """Return whether the ratio is low enough."""
        return self.value(measured) <= self.times


@dataclass(frozen=True, slots=True)
class TimesBetter:
    """A bar on reference / ours: faster or smaller than the reference by at least `times`."""

    times: float

    def __str__(self) -> str:
        return f"≥ {self.times:g}x better"

    def value(self, measured: Measured) -> float:
        """The number that is compared with the bar."""
        return measured.reference / measured.ours if measured.reference and measured.ours else math.nan

    def reached(self, measured: Measured) -> bool:
        """Return whether the ratio is high enough."""
        return self.value(measured) >= self.times


@dataclass(frozen=True, slots=True)
class Limit:
    """A bar on ours alone, in the unit that it is measured in (s, B or %)."""

    limit: float
    unit: Unit

    def __str__(self) -> str:
        return f"≤ {quantity(self.limit, self.unit)}"

    def value(self, measured: Measured) -> float:
        """The number that is compared with the bar."""
        return measured.ours

    def reached(self, measured: Measured) -> bool:
        """Return whether ours is low enough."""
        return measured.ours <= self.limit


Bar = AtMost | TimesBetter | Limit


@dataclass(frozen=True, slots=True)
class Measured:
    """Ours, and the reference in the same unit where there is one; `note` says what else is worth knowing."""

    ours: float
    reference: float | None = None
    unit: Unit = "s"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bench:
    """One row of the table. A bench without a bar is for orientation."""

    name: str
    subject: str
    bar: Bar | None
    run: Callable[[Settings], Measured]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a bench: `measured`, or else the `error` that kept it from running.

    `others` is the share of all processors that other work took meanwhile; None where the system does not say.
    """

    bench: Bench
    measured: Measured | None
    error: str
    took_s: float
    others: float | None = None

    @property
    def reached(self) -> bool | None:
        """Return whether the bar is reached; None without a bar or measurement."""
        if self.bench.bar is None or self.measured is None:
            return None
        return self.bench.bar.reached(self.measured)


def subjects() -> dict[str, tuple[Bench, ...]]:
    """Every subject and its benchmarks, in the order of their file names."""
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name.startswith("bench_"))
    return {name.removeprefix("bench_"): importlib.import_module(f"benchmarks.{name}").BENCHES for name in names}


def select(names: Sequence[str]) -> list[Bench]:
    """The benchmarks with these names; a subject's name stands for all of its benchmarks, no names for everything.

    Raises: KeyError for a name that is neither; ValueError when two benchmarks have one name.
    """
    known = subjects()
    every = [bench for group in known.values() for bench in group]
    by_name = {bench.name: bench for bench in every}
    if len(by_name) != len(every):
        raise ValueError(f"benchmarks: expected different names, got {sorted(bench.name for bench in every)}")
    if not names:
        return every
    chosen: dict[str, Bench] = {}
    for name in names:
        for bench in known.get(name) or (by_name[name],):
            chosen[bench.name] = bench
    return list(chosen.values())


def run(bench: Bench, settings: Settings) -> Outcome:
    """Run a benchmark; what it raises becomes its outcome."""
    others, started = measure.others_s(), time.perf_counter()
    measured, error = None, ""
    try:
        measured = bench.run(settings)
    except Exception as exc:  # noqa: BLE001 - one benchmark that fails must not cost the others their row
        error = traceback.format_exception_only(exc)[-1].strip()
    took_s = time.perf_counter() - started
    after = measure.others_s()
    if others is None or after is None:
        return Outcome(bench, measured, error, took_s)
    return Outcome(bench, measured, error, took_s, max(0.0, after - others) / (took_s * (os.cpu_count() or 1)))


def quantity(value: float, unit: Unit) -> str:
    """A number with a unit that fits its size: seconds, bytes (decimal multiples) or per cent."""
    if unit == "%":
        return f"{value:.3g} %"
    if unit == "s":
        return f"{value:.3g} s" if value >= 0.1 else f"{value * 1e3:.3g} ms"
    for factor, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.0f} B"
