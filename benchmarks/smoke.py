"""A quick look at the benchmarks' own machinery, with made-up benchmarks: `python -m benchmarks.smoke`.

Needs neither torch nor a built program; exits with a message when something is off.
"""

from __future__ import annotations

import io
import json
import sys
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import harness, measure, programs, report
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings, TimesBetter
from benchmarks.server import serving

MB = 1_000_000


def expect(what: str, expected: object, got: object) -> None:
    """Stop with a message unless both are equal."""
    if expected != got:
        sys.exit(f"smoke: {what}: expected {expected!r}, got {got!r}")


def _broken(settings: Settings) -> Measured:
    raise RuntimeError("made to fail")


MADE_UP = (
    Bench("ratio_met", "1 s : 1 s", AtMost(1.5), lambda _: Measured(1.0, 1.0)),
    Bench("ratio_missed", "2 s : 1 s", AtMost(1.5), lambda _: Measured(2.0, 1.0)),
    Bench("better_met", "1 s : 200 s", TimesBetter(150), lambda _: Measured(1.0, 200.0)),
    Bench("limit_missed", "70 MB", Limit(60 * MB, "B"), lambda _: Measured(70 * MB, unit="B", note="seventy")),
    Bench("no_bar", "2 ms : 1 ms", None, lambda _: Measured(0.002, 0.001)),
    Bench("broken", "nothing", AtMost(1.0), _broken),
)


def check_verdicts() -> None:
    """Bars decide, a failure costs only its own row, table and JSON say the same."""
    outcomes = [harness.run(bench, Settings()) for bench in MADE_UP]
    expect("verdicts", [True, False, True, False, None, None], [outcome.reached for outcome in outcomes])
    out = io.StringIO()
    report.show(outcomes, out)
    table = out.getvalue()
    for text in ("1.5x", "200x better", "70 MB", "seventy", "NO", "did not run", "RuntimeError: made to fail"):
        expect(f"{text!r} in the table", True, text in table)
    expect("one line", "limit_missed: 70 MB : -, - (bar ≤ 60 MB: NO); limit_missed: seventy", report.line(outcomes[3]))
    entries = json.loads(report.as_json(outcomes, Settings()))["benchmarks"]
    expect("JSON verdicts", [outcome.reached for outcome in outcomes], [entry["reached"] for entry in entries])
    print(table, end="")


def check_commands() -> None:
    """A command's own time and memory are measured, not those of the process that asks."""
    ballast = bytearray(400 * MB)
    ballast[:: 1 << 12] = b"x" * len(ballast[:: 1 << 12])
    idle = measure.command([sys.executable, "-S", "-c", "print('hello')"])
    expect("stdout", "hello\n", idle.stdout)
    expect("an idle command under 100 MB", True, idle.peak_bytes < 100 * MB)
    busy = measure.command([sys.executable, "-S", "-c", "x = b'x' * 150_000_000; sum(range(10**6))"])
    expect("150 MB seen", True, 150 * MB < busy.peak_bytes < 250 * MB)
    expect("CPU time seen", True, busy.cpu_s > idle.cpu_s > 0)
    try:
        measure.command([sys.executable, "-c", "raise SystemExit('went wrong')"])
    except RuntimeError as error:
        expect("the reason is given", True, "went wrong" in str(error))
    else:
        sys.exit("smoke: a failing command: expected RuntimeError, got none")


def check_server() -> None:
    """Ranges are answered and counted."""
    with TemporaryDirectory() as folder, serving(Path(folder)) as server:
        Path(folder, "file").write_bytes(bytes(range(200)))
        for wanted, expected in (("bytes=10-19", range(10, 20)), ("bytes=-5", range(195, 200)), ("", range(200))):
            request = urllib.request.Request(server.url("file"), headers={"Range": wanted} if wanted else {})
            with urllib.request.urlopen(request) as response:
                expect(f"Range {wanted!r}", bytes(expected), response.read())
        expect("requests", 3, server.requests)
    expect("bytes sent", 215, server.sent)


def check_names() -> None:
    """Every registered benchmark has a name of its own; names of programs are understood."""
    expect("selection by subject", True, len(harness.select(["open"])) > 1)
    expect("recipe", ("chain", 10_000), programs.recipe_of("chain_10000"))


if __name__ == "__main__":
    check_verdicts()
    check_commands()
    check_server()
    check_names()
    print("smoke: all as expected")
