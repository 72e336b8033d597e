"""`python -m benchmarks --compare REV`: what became slower since a commit.

Each workload runs in processes of this tree and of the sources of the commit, in turn. The smallest count of user
instructions is compared if `perf stat` may count them, else the smallest CPU time of many rounds.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from benchmarks import programs

SLOWER: Final = 1.05
PROCESSES: Final = 4
ROUNDS: Final = 8
_COUNTED: Final = 4
Kind = Literal["instructions", "cpu seconds"]

WORKLOADS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "open": ("transformer_28", "pt2kit.open(file).programs['model']"),
        "check": ("bert_12", "pt2kit.check(file)"),
        "digest": ("bert_12", "pt2kit.digest(file)"),
        "canonicalize": ("bert_12", "pt2kit.canonicalize(pt2kit.open(file).programs['model'])"),
        "load": ("transformer_28", "pt2kit.load(file)"),
        "load_bert": ("bert_12", "pt2kit.load(file)"),
        "load_run": ("bert_12", "pt2kit.load(file).module()"),
        "load_module": ("transformer_28", "pt2kit.load_module(file)"),
        "load_module_bert": ("bert_12", "pt2kit.load_module(file)"),
        "save": ("bert_12", "pt2kit.save(program, io.BytesIO())"),
    }
)
"""Name -> the program that is measured, and what is done with it."""

_SCRIPT: Final = """
import gc, io, sys, time
file, rounds = sys.argv[1], int(sys.argv[2])
import pt2kit
program = pt2kit.load(file) if "program" in {code!r} else None
best = float("inf")
for _ in range(rounds + 1):
    gc.collect(); gc.freeze()
    started = time.process_time()
    {code}
    best = min(best, time.process_time() - started)
print(best)
"""


def compare(revision: str, names: Sequence[str] = ()) -> int:
    """Print a line for each workload; return 1 if one became slower by more than 5 %, 2 for an unknown commit or name.

    Args:
        revision: a commit of this repository.
        names: of workloads; all by default.
    """
    if unknown := [name for name in names if name not in WORKLOADS]:
        print(f"--compare: no workload is called {unknown[0]}; known: {', '.join(WORKLOADS)}", file=sys.stderr)
        return 2
    kind: Kind = "instructions" if _count([sys.executable, "-c", ""], {}) else "cpu seconds"
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", "--format=tar", revision, "src"], cwd=programs.ROOT, capture_output=True, check=False
        )
        if archive.returncode:
            print(f"--compare: {archive.stderr.decode().strip()}", file=sys.stderr)
            return 2
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        slower = [name for name in names or WORKLOADS if _report(name, Path(folder), kind)]
    print(f"slower by more than {SLOWER - 1:.0%}: {', '.join(slower) or 'nothing'}")
    return int(bool(slower))


def _report(name: str, old: Path, kind: Kind) -> bool:
    program, code = WORKLOADS[name]
    file = programs.path(program)
    best = {old: float("inf"), programs.ROOT: float("inf")}
    try:
        for _ in range(PROCESSES):
            for tree in best:
                best[tree] = min(best[tree], _spent(tree, code, file, kind))
    except RuntimeError as error:
        print(f"{name:20} did not run: {error}")
        return False
    before, after = best.values()
    print(f"{name:20} {before:12.4g} -> {after:12.4g} {kind}: {after / before:.3f}", flush=True)
    return after > before * SLOWER


def _spent(tree: Path, code: str, file: Path, kind: Kind) -> float:
    env = {"PYTHONPATH": str(tree / "src")}
    script = _SCRIPT.format(code=code)

    def command(rounds: int) -> list[str]:
        return [sys.executable, "-c", script, str(file), str(rounds)]

    if kind == "cpu seconds":
        return float(_run(command(ROUNDS), env).stdout)
    # The cost of imports is in both counts.
    few, many = (_count(command(rounds), env) for rounds in (0, _COUNTED))
    return (many - few) / _COUNTED


def _count(command: Sequence[str], env: Mapping[str, str]) -> float:
    """Return the user instructions of a command; 0 if they cannot be counted."""
    try:
        done = _run(["perf", "stat", "-x,", "-e", "instructions:u", *command], env)
    except (FileNotFoundError, RuntimeError):
        return 0
    count = done.stderr.strip().splitlines()[-1].partition(",")[0]
    return float(count) if count.isdecimal() else 0


def _run(command: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env={**own, **env})
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return done
