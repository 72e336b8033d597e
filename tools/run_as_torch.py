"""Sample files, loaded to run by pt2kit and by torch -> how many give the same bits and refuse the same calls.

    python -m tools.run_as_torch CORPUS [--few]

CORPUS is a folder of release folders with `.pt2` files; each is compared where the installed torch loads it. A row for
each release; every difference is printed, and the exit status is 1 if there is one. torch unpickles the sample inputs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.bridge.run.torch_oracle import compare_with_torch, quiet
from tests.samples import release_folders

WORDS = ("same", "differs", "not loaded", "no module", "no inputs")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--few", action="store_true", help="compare only some of the calls that may be refused")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for folder in release_folders(options.corpus):
        row = _release(folder, few=options.few)
        total += row
        print(_line(folder.name, row), flush=True)
    print(_line("all", total))
    return 1 if total["differs"] else 0


def _release(folder: Path, *, few: bool) -> Counter[str]:
    row: Counter[str] = Counter()
    for path in sorted(folder.glob("*.pt2")):
        with quiet():
            found = compare_with_torch(path, few=few)
        row.update({"files": 1, found.word: 1, "calls": found.calls, "refused": found.refused})
        if found.word == "differs":
            print(f"{path.parent.name}/{path.name}: {found.details}", flush=True)
    return row


def _line(name: str, row: Counter[str]) -> str:
    words = ", ".join(f"{row[word]} {word}" for word in WORDS if row[word])
    return f"{name}: {row['files']} files: {words}; {row['calls']} calls, {row['refused']} of them refused by both"


if __name__ == "__main__":
    sys.exit(main())
