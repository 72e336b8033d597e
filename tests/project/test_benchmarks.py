"""The machinery of the benchmarks, with made-up benchmarks: verdicts, reports, the cost of commands."""

from __future__ import annotations

import io
import json
import sys

import pytest
from benchmarks import harness, measure, programs, report
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings, TimesBetter

MB = 1_000_000


def broken(settings: Settings) -> Measured:
    """Fail."""
    raise RuntimeError("made to fail")


MADE_UP = (
    Bench("ratio_met", "1 s : 1 s", AtMost(1.5), lambda _: Measured(1.0, 1.0)),
    Bench("ratio_missed", "2 s : 1 s", AtMost(1.5), lambda _: Measured(2.0, 1.0)),
    Bench("better_met", "1 s : 200 s", TimesBetter(150), lambda _: Measured(1.0, 200.0)),
    Bench("limit_missed", "70 MB", Limit(60 * MB, "B"), lambda _: Measured(70 * MB, unit="B", note="seventy")),
    Bench("no_bar", "2 ms : 1 ms", None, lambda _: Measured(0.002, 0.001)),
    Bench("broken", "nothing", AtMost(1.0), broken),
)


def test_verdicts() -> None:
    """Bars decide, a failure costs only its own row, the table and the JSON agree."""
    outcomes = [harness.run(bench, Settings()) for bench in MADE_UP]
    assert [outcome.reached for outcome in outcomes] == [True, False, True, False, None, None]
    out = io.StringIO()
    report.show(outcomes, out)
    for text in ("1.5x", "200x better", "70 MB", "seventy", "NO", "did not run", "RuntimeError: made to fail"):
        assert text in out.getvalue()
    assert report.line(outcomes[3]).startswith("limit_missed: 70 MB : -, - (bar ≤ 60 MB: NO); limit_missed: seventy")
    entries = json.loads(report.as_json(outcomes, Settings()))["benchmarks"]
    assert [entry["reached"] for entry in entries] == [outcome.reached for outcome in outcomes]


@pytest.mark.skipif(sys.platform == "win32", reason="counts what POSIX counts of a process")
def test_commands() -> None:
    """The time and memory of a command are its own, not those of the process that starts it."""
    ballast = b"x" * (200 * MB)
    idle = measure.command([sys.executable, "-S", "-c", "print('hello')"])
    assert idle.stdout == "hello\n"
    assert idle.peak_bytes < 100 * MB < len(ballast)
    busy = measure.command([sys.executable, "-S", "-c", "x = b'x' * 150_000_000; sum(range(10**6))"])
    assert 150 * MB < busy.peak_bytes < 250 * MB
    assert busy.cpu_s > idle.cpu_s > 0
    with pytest.raises(RuntimeError, match="went wrong"):
        measure.command([sys.executable, "-c", "raise SystemExit('went wrong')"])


def test_names() -> None:
    """Names of subjects, benchmarks and programs are understood."""
    assert {bench.name for bench in harness.select(["open"])} >= {bench.name for bench in harness.select(["show_time"])}
    assert programs.recipe_of("chain_10000") == ("chain", 10_000)
