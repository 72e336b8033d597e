"""Choose the sample files that `make test` reads: few files in which everything occurs that occurs in all of them.

    python -m tests.cover        # writes tests/data/cover.txt

`make test-all`, which CI runs, reads every sample file. Each release has at least `PER_RELEASE` files in the cover;
every operator and every part of the schema that occurs in a sample file occurs in one of the cover.
"""

from __future__ import annotations

from pathlib import Path

from tests import samples
from tests.coverage import parts_in

import pt2kit
from pt2kit.errors import Pt2Error
from pt2kit.graph.traversal import walk

PER_RELEASE = 3


def features(path: Path) -> set[str]:
    """Return what occurs in a file: its release, parts of the schema, and operators."""
    found = {path.parent.name}
    try:
        with pt2kit.open(path) as package:
            found.add(type(package.layout).__name__)
            for program in package.programs.values():
                found |= parts_in(program)
                found |= {step.node.target for step in walk(program)}
    except Pt2Error as error:
        found.add(f"error {error.rule}")
    return found


def cover() -> list[Path]:
    """Choose the files: first each release's richest ones, then whichever adds most, then the smallest of the rest."""
    left = {path: features(path) for path in samples.corpus()}
    chosen: list[Path] = []
    missing = set().union(*left.values())
    for release in samples.RELEASES:
        for _ in range(PER_RELEASE):
            own = [path for path in left if path.parent.name == release]
            chosen.append(max(own, key=lambda path: (len(left[path] & missing), path.name)))
            missing -= left.pop(chosen[-1])
    while missing and left:
        chosen.append(max(left, key=lambda path: (len(left[path] & missing), path.name)))
        missing -= left.pop(chosen[-1])
    return sorted(chosen)


def main() -> None:
    """Write the list."""
    samples.COVER_LIST.write_text("".join(f"{samples.release_id(path)}\n" for path in cover()))


if __name__ == "__main__":
    main()
