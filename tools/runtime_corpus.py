"""Run a corpus of files with recorded inputs and outputs in sessions; print how many are equal, and what is not.

    python -m tools.runtime_corpus ROOT [--only TEXT]

ROOT has a folder per release; next to each `<model>.pt2` are `<model>.json` and `<model>.npz` with its calls. Exits
with 1 if a result differs, or if less than 97 % of the files without custom operators are equal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from tests.runtime.corpus_files import files, is_reproducible, outcome, register_operators

BAR = 0.97


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    register_operators()
    counts: Counter[str] = Counter()
    for path in files(options.root):
        name = f"{path.parent.name}/{path.stem}"
        if options.only not in name:
            continue
        meta = json.loads(path.with_suffix(".json").read_text()) | {"name": path.stem}
        try:
            found, why = outcome(path, meta, np.load(path.with_suffix(".npz")))
        except Exception as error:  # noqa: BLE001  # Shown with the file that raised it.
            found, why = "error", f"{type(error).__name__}: {error}"
        if found == "different" and not is_reproducible(meta):
            found = "not reproduced by its own release"
        counts[found] += 1
        if why:
            print(f"{found}: {name}: {why[:200]}")
    print(dict(counts))
    equal = counts["equal"] + counts["random"]
    total = sum(counts.values()) - counts["not reproduced by its own release"]
    return int(counts["different"] + counts["error"] > 0 or equal < BAR * total)


if __name__ == "__main__":
    sys.exit(main())
