"""Sample files, converted to a release and run in that very release -> a table of how many give the recorded outputs.

    python -m tools.converted_runs CORPUS 2.4=ENVIRONMENT 2.5=ENVIRONMENT

CORPUS is a folder of release folders; a release's own files are run as well, since what it cannot do with its own file
of a model needs no excuse from a conversion. Each `RELEASE=ENVIRONMENT` names an environment with that torch.

    --from 2.13.0,2.6.0   convert only files of these releases
    --only cond,mlp       only files whose names contain one of these
    --keep FOLDER         where the converted files are left
    --docs                write the table into docs/compatibility.md; without it, print it and every failure

The columns: files that there are; those that `pt2kit.convert` refuses (each refusal names what stands in the way);
converted; of these, those that run to equal outputs, or load where outputs are random; those that fail as the release
fails on its own file of the same model; and those that just fail.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pt2kit
from pt2kit.errors import Pt2Error

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
MARKS = ("<!-- converted runs -->", "<!-- end of converted runs -->")
RUNNER = ROOT / "tools" / "run_in_release.py"
LOSSES = ("persistent", "dialect", "class_fqn", "model_name", "extra_files", "example_inputs", "other_records")
GOOD = ("equal", "random")


@dataclass(frozen=True)
class Result:
    """What became of one file: "refused by pt2kit", or what `run_in_release` says; and why."""

    outcome: str
    why: str


def convert_all(files: Iterable[Path], release: str, folder: Path) -> tuple[list[tuple[str, str]], dict[str, Result]]:
    """Convert files to a release.

    Returns:
        Pairs for `run_in_release`, and what `convert` refused: file -> why.
    """
    pairs, refused = [], {}
    for path in files:
        target = folder / f"{path.parent.name}__{path.name}"
        try:
            names = {"NT": "corpus.NT"}
            pt2kit.convert(path, target, target=f"torch=={release}", allow=LOSSES, namedtuples=names)
        except Pt2Error as error:
            lines = str(error).splitlines()
            refused[label(path)] = Result("refused by pt2kit", " ".join(lines[1:2] or lines).strip())
        else:
            pairs.append((str(target), str(path)))
    return pairs, refused


def run(environment: Path, pairs: list[tuple[str, str]], folder: Path) -> dict[str, Result]:
    """Run files in an environment; one that takes the process down is noted, and the rest is run in a new one."""
    found: dict[str, Result] = {}
    listed = folder / "files.json"
    while rest := [pair for pair in pairs if label(Path(pair[1])) not in found]:
        listed.write_text(json.dumps(rest), encoding="utf-8")
        command = [str(environment / "bin" / "python"), str(RUNNER), str(listed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        started, *lines = [json.loads(line) for line in done.stdout.splitlines()] or [None]
        if started is None:
            raise RuntimeError(f"{command[0]}: expected {RUNNER.name} to start there, got {done.stderr[-1000:]}")
        for line, (_, path) in zip(lines, rest, strict=False):
            found[label(Path(path))] = Result(line["outcome"], line["why"])
        if len(lines) < len(rest):
            ending = " ".join(done.stderr.split())[-300:]
            found[label(Path(rest[len(lines)][1]))] = Result("crashes", f"exit {done.returncode}: {ending}")
    return found


def label(path: Path) -> str:
    """How a sample file is named here: "2.13.0/cond__decomp"."""
    return f"{path.parent.name}/{path.stem}"


def model(name: str) -> str:
    """The model of a sample file, whatever variant it is."""
    return name.rpartition("/")[2].partition("__")[0]


def judge(release: str, environment: Path, files: list[Path], own: list[Path], keep: Path) -> dict[str, Result]:
    """Convert and run files, and settle which failures are the release's own."""
    folder = keep / release
    folder.mkdir(parents=True, exist_ok=True)
    pairs, results = convert_all(files, release, folder)
    results |= run(environment, pairs, folder)
    failing = {model(name) for name, result in results.items() if result.outcome not in (*GOOD, "refused by pt2kit")}
    baseline = run(environment, [(str(path), str(path)) for path in own if model(path.stem) in failing], folder)
    broken = {model(name): f"{name}: {bad.why}" for name, bad in baseline.items() if bad.outcome not in GOOD}
    for name, result in results.items():
        if result.outcome not in (*GOOD, "refused by pt2kit") and model(name) in broken:
            results[name] = Result("own", f"{result.why} | its own: {broken[model(name)]}")
    return results


def row(release: str, results: dict[str, Result]) -> str:
    """The line of a release."""
    counts = Counter(result.outcome for result in results.values())
    refused, own = counts["refused by pt2kit"], counts["own"]
    good = counts["equal"] + counts["random"]
    converted = len(results) - refused
    share = f"{100 * (good + own) / converted:.1f} %" if converted else "-"
    bad = converted - good - own
    return f"| {release} | {len(results)} | {refused} | {converted} | {good} | {own} | {bad} | {share} |"


HEAD = (
    "| to | files | refused | converted | equal outputs | fails on its own file too | fails | good |\n"
    "|---|---|---|---|---|---|---|---|"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("environments", nargs="+", metavar="RELEASE=ENVIRONMENT")
    parser.add_argument("--from", dest="sources")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args()
    sources = options.sources.split(",") if options.sources else None
    parts = options.only.split(",")
    files = [
        path
        for path in sorted(options.corpus.glob("*/*.pt2"))
        if path.with_suffix(".npz").exists()
        and (sources is None or path.parent.name in sources)
        and any(part in path.stem for part in parts)
    ]
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for given in options.environments:
            release, _, environment = given.partition("=")
            own = sorted(options.corpus.glob(f"{release}.*/*.pt2"))
            others = [path for path in files if not path.parent.name.startswith(f"{release}.")]
            results = judge(release, Path(environment), others, own, options.keep or Path(temporary))
            rows.append(row(release, results))
            print(rows[-1], flush=True)
            failures += [f"{release} {name}: {bad.outcome}: {bad.why}" for name, bad in results.items()
                         if bad.outcome not in GOOD]  # fmt: skip
    table = "\n".join([HEAD, *rows])
    if options.docs:
        text = PAGE.read_text(encoding="utf-8")
        inner = re.compile(f"{MARKS[0]}.*?{MARKS[1]}", re.DOTALL)
        PAGE.write_text(inner.sub(f"{MARKS[0]}\n{table}\n{MARKS[1]}", text), encoding="utf-8")
    print("\n".join(failures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
