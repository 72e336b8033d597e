"""`python -m benchmarks [NAME…] [--quick] [--json FILE]`: run benchmarks and print one table.

`python -m benchmarks --compare REV [WORKLOAD…]`: report what became slower since a commit.

Exit status: 0 when everything ran, 1 when something did not (or, with --strict, missed its bar), 2 for a wrong call.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import compare, harness, report

QUICK = (
    "cold_load_bert",
    "cold_load_module_bert",
    "open_vs_json",
    "check_small_time",
    "text_parse",
    "load_bert",
    "module_bert",
    "save_bert",
)
"""The default benchmarks of `--quick`: less than two minutes, once the programs are built."""


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The command line as options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks and print one table.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a benchmark or a subject; everything if none is given"
    )
    parser.add_argument("--quick", action="store_true", help="few rounds and small files; a few benchmarks by default")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the outcomes here as well")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and run nothing")
    parser.add_argument("--compare", metavar="REV", help="report workloads that became slower by 5 %% since a commit")
    parser.add_argument("--strict", action="store_true", help="exit 1 also when a bar is missed")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit status."""
    options = parse(argv)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if options.compare:
        return compare.compare(options.compare, options.names)
    try:
        benches = harness.select(options.names or (QUICK if options.quick else ()))
    except KeyError as unknown:
        known = ", ".join(f"{subject} ({len(group)})" for subject, group in harness.subjects().items())
        print(f"no benchmark or subject is called {unknown}; subjects: {known}; see --list", file=sys.stderr)
        return 2
    if options.list:
        for bench in benches:
            print(f"{bench.name:24} {bench.bar or '-'!s:16} {bench.subject}")
        return 0
    settings = harness.Settings(quick=options.quick)
    outcomes = []
    for bench in benches:
        print(f"running {bench.name} …", file=sys.stderr, flush=True)
        outcomes.append(harness.run(bench, settings))
        print(f"  {report.line(outcomes[-1])}", file=sys.stderr, flush=True)
        if options.json:  # each time: a run that is cut off has left what it had
            options.json.write_text(report.as_json(outcomes, settings), encoding="utf-8")
    report.show(outcomes, sys.stdout)
    failed = any(outcome.error or (options.strict and outcome.reached is False) for outcome in outcomes)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
