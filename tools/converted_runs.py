"""Sample files, converted to a release and run in that very release -> a table of how many give the recorded outputs.

    python -m tools.converted_runs CORPUS 2.4=ENVIRONMENT 2.5=ENVIRONMENT

CORPUS is a folder of release folders; a release's own files are run as well, since what it cannot do with its own file
of a model needs no excuse from a conversion. Each `RELEASE=ENVIRONMENT` names an environment with that torch.

    --from 2.13.0,2.6.0   convert only files of these releases
    --only cond,mlp       only files whose names contain one of these
    --keep FOLDER         where the converted files are left
    --docs                put the figures into docs/converted-runs.json, and all that are there into compatibility.md

The columns: all files; those that `pt2kit.convert` refuses (each refusal names what stands in the way);
converted; of these, those that run to equal outputs, or load where outputs are random; those at which the release fails
as it does, at the same place, on its own file of the model; and those that just fail. A second table says from release
to release how many of the converted are good, which counts the first two.
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

from tests.samples import numbers

import pt2kit
from pt2kit.errors import Pt2Error

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
FIGURES = ROOT / "docs" / "converted-runs.json"
MARKS = ("<!-- converted runs -->", "<!-- end of converted runs -->")
RUNNER = ROOT / "tools" / "run_in_release.py"
LOSSES = ("persistent", "dialect", "class_fqn", "model_name", "extra_files", "example_inputs", "other_records")
GOOD = ("equal", "random")
REFUSED = "refused by pt2kit"
COLUMNS = ("files", "refused", "good", "own", "bad")
HEAD = (
    "| to | files | refused | converted | equal outputs | fails on its own file too | fails | good |",
    "|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Result:
    """The outcome of a file: "refused by pt2kit", or that of `run_in_release`; and why."""

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
            refused[label(path)] = Result(REFUSED, " ".join(lines[1:2] or lines).strip())
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
    failing = {name: result for name, result in results.items() if result.outcome not in (*GOOD, REFUSED)}
    models = {model(name) for name in failing}
    baseline = run(environment, [(str(path), str(path)) for path in own if model(path.stem) in models], folder)
    for name, result in failing.items():
        if excuse := _own_failure(name, result, baseline):
            results[name] = Result("own", f"{result.why} | its own: {excuse}")
    return results


def _own_failure(name: str, failing: Result, baseline: dict[str, Result]) -> str:
    """How the release fails in the same way, at the same place, on its own file of the model; "" where it does not."""
    for own, result in baseline.items():
        if model(own) == model(name) and result.outcome not in GOOD and _place(result) == _place(failing):
            return f"{own}: {result.why}"
    return ""


def _place(failing: Result) -> str:
    """Return a failure's place, without values: "AssertionError at form.py:79", "case 1: result 0"."""
    found = re.search(r"\w+ at [\w.]+:\d+|^case \d+: result \d+|^exit -?\d+", failing.why)
    return found[0] if found else failing.why


def counts(results: dict[str, Result]) -> dict[str, dict[str, int]]:
    """How many files of each release ended how: release -> column -> count."""
    found: dict[str, Counter[str]] = {}
    for name, result in results.items():
        of_release = found.setdefault(name.partition("/")[0], Counter(dict.fromkeys(COLUMNS, 0)))
        column = {REFUSED: "refused", "own": "own"}.get(result.outcome, "good" if result.outcome in GOOD else "bad")
        of_release.update(("files", column))
    return {release: dict(found[release]) for release in sorted(found, key=numbers)}


def row(release: str, figures: dict[str, dict[str, int]]) -> str:
    """The line of a release, over the files of all others."""
    files, refused, good, own, bad = (sum(figure[column] for figure in figures.values()) for column in COLUMNS)
    converted = files - refused
    share = f"{100 * (good + own) / converted:.1f} %" if converted else "-"
    return f"| {release} | {files} | {refused} | {converted} | {good} | {own} | {bad} | {share} |"


def matrix(figures: dict[str, dict[str, dict[str, int]]]) -> str:
    """A table from release to release: how many files are good, of how many that were converted."""
    sources = sorted({source for of_target in figures.values() for source in of_target}, key=numbers)
    lines = [f"| from | {' | '.join(f'to {target}' for target in figures)} |", "|---" * (len(figures) + 1) + "|"]
    for source in sources:
        cells = [_cell(of_target[source]) if source in of_target else "-" for of_target in figures.values()]
        lines.append(f"| {source} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(figure: dict[str, int]) -> str:
    return f"{figure['good'] + figure['own']} of {figure['files'] - figure['refused']}"


def page_with_tables(page: str, figures: dict[str, dict[str, dict[str, int]]]) -> str:
    """The page with both tables between the marks."""
    rows = [row(target, of_target) for target, of_target in figures.items()]
    text = "\n".join([MARKS[0], *HEAD, *rows, "", matrix(figures), MARKS[1]])
    return re.sub(f"{MARKS[0]}.*?{MARKS[1]}", lambda _: text, page, flags=re.DOTALL)


def record(figures: dict[str, dict[str, dict[str, int]]]) -> None:
    """Put the figures of some releases among those of all, and the tables of all into the page."""
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for target, of_target in figures.items():
        known[target] = {**known.get(target, {}), **of_target}
        known[target] = {source: known[target][source] for source in sorted(known[target], key=numbers)}
    known = {target: known[target] for target in sorted(known, key=numbers)}
    FIGURES.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), known), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("environments", nargs="+", metavar="RELEASE=ENVIRONMENT")
    parser.add_argument("--from", dest="sources")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args()
    if options.docs and options.only:
        parser.error("--docs: expected whole releases, got --only")
    sources = options.sources.split(",") if options.sources else None
    files = [
        path
        for path in sorted(options.corpus.glob("*/*.pt2"))
        if path.with_suffix(".npz").exists()
        and (sources is None or path.parent.name in sources)
        and any(part in path.stem for part in options.only.split(","))
    ]
    figures, failures = {}, []
    with tempfile.TemporaryDirectory() as temporary:
        for given in options.environments:
            release, _, environment = given.partition("=")
            own = sorted(options.corpus.glob(f"{release}.*/*.pt2"))
            others = [path for path in files if not path.parent.name.startswith(f"{release}.")]
            results = judge(release, Path(environment), others, own, options.keep or Path(temporary))
            figures[release] = counts(results)
            print(row(release, figures[release]), flush=True)
            failures += [
                f"{release} {name}: {bad.outcome}: {bad.why}"
                for name, bad in results.items()
                if bad.outcome not in GOOD
            ]
    if options.docs:
        record(figures)
    print(matrix(figures), *failures, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
