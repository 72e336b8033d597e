"""Sample files with recorded outputs -> a table: how many of each release open, load, run, and run in stock torch.

    python -m tools.compatibility [CORPUS] [--release 2.6.0] [--json]

CORPUS is a folder of release folders; each `.pt2` has a `.json` and a `.npz` next to it with inputs and outputs that
the release itself recorded. The columns:

    files        that are there
    opens        `pt2kit.open` gives every program, raised to the current schema, and describes every payload
    loads        `pt2kit.load` gives a live program
    runs         that program gives the recorded outputs at all recorded sizes
    converted    `pt2kit.convert` to the installed torch, then torch.export.load alone: likewise
    random       files whose outputs nobody can compare, counted in none of the last two
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from tests.bridge import recorded
from tests.bridge.read import corpus_types
from tests.samples import CORPUS, release_folders

import pt2kit

COLUMNS = ("files", "opens", "loads", "runs", "converted", "random")
LOSSES = ("persistent", "dialect", "class_fqn", "model_name", "extra_files", "example_inputs")
TARGET = f"torch=={'.'.join(torch.__version__.split('.')[:2])}"


def look_at(path: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Try everything with one file.

    Returns:
        column -> 1 or 0, and column -> why not.
    """
    row, reasons = dict.fromkeys(COLUMNS, 0), dict[str, str]()
    row["files"] = 1
    row["opens"] = _try(reasons, "opens", lambda: _open(path))
    row["loads"] = _try(reasons, "loads", lambda: pt2kit.load(path) and "")
    if json.loads(path.with_suffix(".json").read_text())["nocompare"]:
        row["random"] = 1
        return row, reasons
    row["runs"] = _try(reasons, "runs", lambda: _difference(path, lambda: pt2kit.load(path)))
    row["converted"] = _try(reasons, "converted", lambda: _difference(path, _converted(path)))
    return row, reasons


def _try(reasons: dict[str, str], column: str, attempt: Callable[[], str]) -> int:
    try:
        found = attempt()
    except Exception as error:  # noqa: BLE001 - whatever it is belongs into the table
        found = f"{type(error).__name__}: {error}"
    if found:
        reasons[column] = " ".join(found.split())[:200]
    return int(not found)


def _open(path: Path) -> str:
    with pt2kit.open(path) as package:
        for model, program in package.programs.items():
            payloads = {**package.weights(model), **package.constants(model)}
            if program.schema_version.minor < 0 or not all(view.name == name for name, view in payloads.items()):
                return "names of payloads that are not theirs"
    return ""


def _difference(path: Path, load: Callable[[], Any]) -> str:
    return recorded.difference(load(), path, fresh=load)


def _converted(path: Path) -> Callable[[], Any]:
    buffer = io.BytesIO()
    names = {kind.__name__: f"corpus.{kind.__name__}" for kind in (corpus_types.NT,)}
    pt2kit.convert(path, buffer, target=TARGET, allow=LOSSES, namedtuples=names)
    return lambda: torch.export.load(io.BytesIO(buffer.getvalue()))


def table(corpus: Path, only: str | None = None) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, str]]]:
    """Look at all files that have recorded outputs.

    Returns:
        release -> column -> count, and file -> column -> why not.
    """
    rows: dict[str, dict[str, int]] = {}
    failures: dict[str, dict[str, str]] = {}
    for folder in release_folders(corpus):
        for path in sorted(folder.glob("*.pt2")):
            if only not in (None, folder.name) or not recorded.has_outputs(path):
                continue
            row, reasons = look_at(path)
            held = rows.setdefault(folder.name, dict.fromkeys(COLUMNS, 0))
            rows[folder.name] = {column: held[column] + row[column] for column in COLUMNS}
            if reasons:
                failures[f"{folder.name}/{path.stem}"] = reasons
    return rows, failures


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Let what programs print (some do, from C++) go to the other stream."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def main() -> int:
    """Print the table, and each file that is not in all columns with the reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", default=CORPUS, type=Path)
    parser.add_argument("--release")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    with _silence():
        rows, failures = table(options.corpus, options.release)
    if options.json:
        print(json.dumps({"target": TARGET, "table": rows, "failures": failures}, indent=1))
        return 0
    print(f"{'release':<9}" + "".join(f"{column:>11}" for column in COLUMNS))
    total = {column: sum(row[column] for row in rows.values()) for column in COLUMNS}
    for release, row in [*rows.items(), ("total", total)]:
        print(f"{release:<9}" + "".join(f"{row[column]:>11}" for column in COLUMNS))
    for name, reasons in failures.items():
        for column, why in reasons.items():
            print(f"{name}: not {column}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
