"""Coverage-guided fuzzing of every parser, and of convert, digest, diff, sanitize, check and load.

    python -m tools.fuzz --minutes 10 [--only archive --only pickle] [--memory 2048] [--work FOLDER]
    python -m tools.fuzz --choose --work FOLDER

Runs each harness of `fuzz_targets.py` for that long under libFuzzer (atheris), one after the other, each in a
process of bounded memory, and prints a table: inputs per second, edges covered, findings. A finding is any exception
but pt2kit's own, an input that takes 20 s, or one that passes the memory; it lies in `fuzz-findings/` with its
traceback. Exit code 1 if there is one. A fixed finding goes to `tests/data/fuzz/<harness>/`, which the tests read, as
do later runs.

Inputs that reached something new stay in the folder `--work`, where the next run goes on from them. `--choose` takes
the few of them that reach most beyond the sound inputs, for their size, into `tests/data/fuzz/<harness>.zip`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.fuzz_targets import HARNESSES, SEEDS, stored_inputs

FINDINGS = Path("fuzz-findings")
SECONDS_OF_ONE = 20
CHOSEN_BYTES = 48_000
"""How large the chosen inputs of one harness may be, compressed."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one harness.

    Args:
        runs: inputs tried.
        seconds: how long that took.
        covered: edges of the program that some input reached.
        findings: paths of inputs that failed.
        trouble: what ended it early, in a line.
    """

    runs: int
    seconds: int
    covered: int
    findings: tuple[Path, ...]
    trouble: str = ""


def fuzz(name: str, minutes: float, memory: int, work: Path) -> Outcome:
    """Run one harness in a process of its own; what it tried and found worth keeping is in `work` afterwards."""
    before = set(FINDINGS.glob(f"{name}-*"))
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds = write_seeds(name, Path(folder, "seeds"))
        limits = [f"-max_total_time={round(minutes * 60)}", f"-rss_limit_mb={memory}", f"-timeout={SECONDS_OF_ONE}"]
        options = ["-max_len=32768", "-print_final_stats=1", f"-artifact_prefix={FINDINGS}/{name}-"]
        done = run_child(name, work, seeds, *limits, *options)
    return read_outcome(done.stderr, done.returncode, tuple(sorted(set(FINDINGS.glob(f"{name}-*")) - before)))


def run_child(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run libFuzzer for one harness."""
    FINDINGS.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tools.fuzz_child", name, str(FINDINGS), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def write_seeds(name: str, folder: Path) -> Path:
    """The sound inputs of a harness, and those that were stored, as files of a new folder."""
    folder.mkdir()
    for number, seed in enumerate([*HARNESSES[name].seeds(), *stored_inputs(name)]):
        (folder / str(number)).write_bytes(seed)
    return folder


def choose(name: str, work: Path) -> list[Path]:
    """Store the inputs that reach most beyond the sound ones, for their size.

    The inner step of libFuzzer's merging runs a list of files and writes below it what each is the first to reach.
    """
    with tempfile.TemporaryDirectory() as folder:
        seeds, log = write_seeds(name, Path(folder, "seeds")), Path(folder, "log")
        sound = sorted(seeds.iterdir())
        files = [*sound, *sorted(work.iterdir(), key=lambda path: path.stat().st_size)]
        log.write_text("\n".join([str(len(files)), str(len(sound)), *map(str, files), ""]))
        run_child(name, "-merge_inner=1", f"-merge_control_file={log}")
        chosen = most_for_the_size({path: new for path, new in read_coverage(log.read_text()) if path.parent == work})
    SEEDS.mkdir(exist_ok=True)
    contents = [*stored_inputs(name), *(path.read_bytes() for path in chosen)]
    with zipfile.ZipFile(SEEDS / f"{name}.zip", "w") as archive:
        for number, data in enumerate(contents):
            archive.writestr(zipfile.ZipInfo(str(number)), data, zipfile.ZIP_DEFLATED, 9)
    return chosen


def read_coverage(log: str) -> Iterator[tuple[Path, int]]:
    """The list of files that libFuzzer ran: those that it got to, and how many edges each was the first to reach."""
    lines = log.splitlines()[2:]
    for line in lines:
        if line.startswith("COV "):
            _, number, *edges = line.split()
            yield Path(lines[int(number)]), len(edges)


def most_for_the_size(new: Mapping[Path, int]) -> list[Path]:
    """The inputs that reach something new, most for their compressed size first, as many as there is room for."""
    sizes = {path: len(zlib.compress(path.read_bytes(), 9)) + 100 for path in new}
    chosen, room = list[Path](), CHOSEN_BYTES
    for path in sorted(new, key=lambda path: new[path] / sizes[path], reverse=True):
        if new[path] and sizes[path] <= room:
            chosen.append(path)
            room -= sizes[path]
    return chosen


def read_outcome(log: str, code: int, findings: tuple[Path, ...]) -> Outcome:
    """Parse libFuzzer's log."""
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
    parser.add_argument("--work", type=Path, default=FINDINGS / "work", help="where inputs are kept between runs")
    parser.add_argument("--choose", action="store_true", help="store the inputs that reach most")
    options = parser.parse_args()
    names = options.only or HARNESSES
    if options.choose:
        for name in names:
            print(f"{name:<14}{len(choose(name, options.work / name)):>10,} stored", flush=True)
        return 0
    print(f"{'harness':<14}{'inputs':>10}{'per second':>12}{'coverage':>10}{'findings':>10}", flush=True)
    failed = False
    for name in names:
        outcome = fuzz(name, options.minutes, options.memory, options.work / name)
        rate = outcome.runs / outcome.seconds if outcome.seconds else 0.0
        print(f"{name:<14}{outcome.runs:>10,}{rate:>12,.0f}{outcome.covered:>10,}{len(outcome.findings):>10}  ", end="")
        print(outcome.trouble, *outcome.findings, sep="\n  " if outcome.findings else "", flush=True)
        failed = failed or bool(outcome.findings or outcome.trouble)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
