"""The frozen field tables -> `tests/golden/programs/`: per version a program that uses everything the version has.

    python -m tools.golden          write the files and their manifest

A file is the JSON that the release of its version would write. It is never edited once its version is released: what a
version means does not change. The programs are made up: complete in form, and no sense as computations.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tools.golden_draft import draft, external_bytes
from tools.golden_maker import Maker

from pt2kit.schema.fieldtable import NAMES
from pt2kit.versions import encoding
from pt2kit.versions.check import check_tree

FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "programs"


def files() -> dict[str, bytes]:
    """Name -> content of every golden file."""
    found = {}
    for version in NAMES:
        tree = draft() if version == "draft" else Maker(version).program()
        check_tree(tree, version, version)
        found[f"{version}.json"] = encoding.encode(tree, version, version) + b"\n"
    found["draft.bin"] = external_bytes()
    rows = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in found.items()}
    found["manifest.json"] = json.dumps(rows, indent=1).encode() + b"\n"
    return found


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, data in files().items():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
