"""Programs of every operator and module of torch's own test databases -> whether each passes `check` and loads.

    python -m tools.operator_database FILE [--seed 1] [--share 1.0] [--variants plain,full] [--minutes 60] [--only TEXT]

Each program (`database_programs.py`) is exported and saved by torch, in a child process, and read by torch again. It
has to pass `pt2kit.check` without an error, load by `pt2kit.load`, and have the same digest when it is saved from
there. What torch doesn't export, save or load itself is counted apart. Results are lines of FILE; what it has is
not tried again, so that a run that was cut short goes on where it stood. Exits with 1 if a program is refused. Needs
torch.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tools.children import in_children, in_time
from tools.database_programs import VARIANTS, Source, exported, module_of, sources

import pt2kit

SECONDS = 60
"""How long one program may take."""
RIGHT = ("fine", "torch does not")
BATCH = 20
"""Programs that one child process tries, as torch may end the process."""


def try_one(source: Source, variant: str, seed: int) -> tuple[str, str]:
    """Try one program: return "fine", "torch does not" or "refused", and why."""
    buffer = io.BytesIO()
    try:
        made = module_of(source, variant, seed)
        if made is None:
            return "torch does not", "no sample"
        torch.export.save(exported(*made, variant), buffer)
        torch.export.load(io.BytesIO(buffer.getvalue()))
    except TimeoutError:
        raise
    except Exception as error:  # noqa: BLE001  # Whatever torch raises is its verdict.
        return "torch does not", _said(error)
    data = buffer.getvalue()
    try:
        errors = pt2kit.check(data, payloads=True).errors
        if errors:
            return "refused", f"check: {errors[0]}"
        again = io.BytesIO()
        pt2kit.save(pt2kit.load(io.BytesIO(data)), again)
        theirs, ours = pt2kit.digest(data), pt2kit.digest(again.getvalue())
    except TimeoutError:
        raise
    except Exception as error:  # noqa: BLE001  # Whatever it is, it is what was looked for.
        return "refused", _said(error)
    return ("fine", "") if theirs == ours else ("refused", "another digest when loaded and saved")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0][:300]


def try_all(wanted: list[tuple[Source, str]], seed: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Try programs, in child processes."""

    def row(task: tuple[Source, str], outcome: str, why: str) -> dict[str, Any]:
        return {"name": task[0].name, "variant": task[1], "seed": seed, "outcome": outcome, "why": why}

    def run(task: tuple[Source, str]) -> dict[str, Any]:
        return row(task, *in_time(lambda: try_one(*task, seed), SECONDS, ("late", f"more than {SECONDS} s")))

    return in_children(wanted, run, lambda task: row(task, "ended", "the process ended"), batch=BATCH, seconds=seconds)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read earlier rows."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the refusals, and the outcomes of each kind of program."""
    for row in rows:
        if row["outcome"] not in RIGHT:
            yield f"{row['name']} ({row['variant']}, seed {row['seed']}): {row['outcome']}: {row['why']}"
    for variant in VARIANTS:
        counts = Counter(row["outcome"] for row in rows if row["variant"] == variant)
        yield f"{variant:<12}" + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    tried = [row for row in rows if row["outcome"] not in ("torch does not", "unwritten")]
    yield f"{sum(row['outcome'] == 'fine' for row in tried)} of {len(tried)} programs that torch saves and loads"


def main() -> int:
    """Try what is left, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where results stand, a line for each program")
    parser.add_argument("--seed", type=int, default=1, help="what chooses samples, and the share")
    parser.add_argument("--share", type=float, default=1.0, help="of the programs, how many are tried")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--minutes", type=float, default=60, help="when to stop")
    parser.add_argument("--only", default="", help="operators with this text in their name")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    known = {(row["name"], row["variant"], row["seed"]) for row in read_rows(options.file)}
    wanted = []
    for source in sources():
        for variant in options.variants.split(","):
            drawn = random.Random(f"{options.seed} {source.name} {variant}").random() < options.share
            if drawn and options.only in source.name and (source.name, variant, options.seed) not in known:
                wanted.append((source, variant))
    with options.file.open("a") as log:
        for row in try_all(wanted, options.seed, 60 * options.minutes):
            print(json.dumps(row), file=log, flush=True)
    rows = [row for row in read_rows(options.file) if row["seed"] == options.seed and options.only in row["name"]]
    for line in table(rows):
        print(line)
    return int(any(row["outcome"] in ("refused", "late", "ended") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
