"""Coverage-guided fuzzing of every parser, and of convert, digest, diff, sanitize, check and load.

    python -m tools.fuzz --minutes 10 [--only archive --only pickle] [--memory 2048]

Runs each harness of `fuzz_targets.py` for that long under libFuzzer (atheris), one after the other, each in a
process of bounded memory, and prints a table: inputs per second, edges covered, findings. A finding is any exception
but pt2kit's own, an input that takes 20 s, or one that passes the memory; it lies in `fuzz-findings/` with its
traceback. Exit code 1 if there is one. A mended finding goes to `tests/data/fuzz/<harness>/`, which the tests read, as
do later runs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.fuzz_targets import HARNESSES, SEEDS

FINDINGS = Path("fuzz-findings")
SECONDS_OF_ONE = 20


@dataclass(frozen=True)
class Outcome:
    """What became of one harness.

    Args:
        runs: inputs tried.
        seconds: how long that took.
        covered: edges of the program that some input reached.
        findings: paths of inputs that made trouble.
        trouble: what ended it early, in a line.
    """

    runs: int
    seconds: int
    covered: int
    findings: tuple[Path, ...]
    trouble: str = ""


def fuzz(name: str, minutes: float, memory: int) -> Outcome:
    """Run one harness in a process of its own."""
    before = set(FINDINGS.glob(f"{name}-*"))
    with tempfile.TemporaryDirectory() as folder:
        work, seeds = Path(folder, "work"), Path(folder, "seeds")
        work.mkdir()
        seeds.mkdir()
        for number, seed in enumerate(HARNESSES[name].seeds()):
            (seeds / str(number)).write_bytes(seed)
        FINDINGS.mkdir(exist_ok=True)
        stored = [str(SEEDS / name)] if (SEEDS / name).is_dir() else []
        command = [sys.executable, "-m", "tools.fuzz_child", name, str(FINDINGS), str(work), str(seeds), *stored]
        limits = [f"-max_total_time={round(minutes * 60)}", f"-rss_limit_mb={memory}", f"-timeout={SECONDS_OF_ONE}"]
        options = ["-max_len=32768", "-print_final_stats=1", f"-artifact_prefix={FINDINGS}/{name}-"]
        done = subprocess.run(command + limits + options, capture_output=True, text=True, errors="replace", check=False)
    return read_outcome(done.stderr, done.returncode, tuple(sorted(set(FINDINGS.glob(f"{name}-*")) - before)))


def read_outcome(log: str, code: int, findings: tuple[Path, ...]) -> Outcome:
    """What libFuzzer's log says."""
    covered = [int(number) for number in re.findall(r"cov: (\d+)", log)]
    ended = re.search(r"Done (\d+) runs in (\d+) second", log)
    tried = [int(number) for number in re.findall(r"^#(\d+)", log, re.MULTILINE)]
    runs, seconds = (int(ended[1]), int(ended[2])) if ended else (max(tried, default=0), 0)
    lines = [line for line in log.splitlines() if "ERROR" in line or "Error" in line] or log.splitlines()[-1:] or [""]
    trouble = "" if ended and code == 0 else f"ended with {code}: {lines[0][:100]}"
    inputs = tuple(path for path in findings if path.suffix != ".txt")
    return Outcome(runs, seconds, max(covered, default=0), inputs, trouble)


def main() -> int:
    """Fuzz, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="for each harness")
    parser.add_argument("--memory", type=int, default=2048, help="MiB that a harness may take")
    parser.add_argument("--only", action="append", choices=HARNESSES, help="a harness; may be given several times")
    options = parser.parse_args()
    print(f"{'harness':<14}{'inputs':>10}{'per second':>12}{'coverage':>10}{'findings':>10}", flush=True)
    failed = False
    for name in options.only or HARNESSES:
        outcome = fuzz(name, options.minutes, options.memory)
        rate = outcome.runs / outcome.seconds if outcome.seconds else 0.0
        print(f"{name:<14}{outcome.runs:>10,}{rate:>12,.0f}{outcome.covered:>10,}{len(outcome.findings):>10}  ", end="")
        print(outcome.trouble, *outcome.findings, sep="\n  " if outcome.findings else "", flush=True)
        failed = failed or bool(outcome.findings or outcome.trouble)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
