"""Checks of external payloads, in files next to an archive: existence, size, digest (rules B2 to B7).

Files are opened and their headers read; bytes are compared with their SHA-256 where all payloads are read anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pt2kit.checks.findings import problem_of
from pt2kit.errors import Problem, Pt2Error
from pt2kit.package.external_list import RECORD
from pt2kit.package.open import Package

_SHOWN: Final = 5
_OF_FILES: Final = frozenset(("B2", "B3", "B4"))


def external_problems(package: Package) -> Iterator[Problem]:
    """Iterate problems of the external payloads of a package; first a note that external payloads exist (B7)."""
    if not package.external:
        return
    files = list(dict.fromkeys(row.url for row in package.external.values()))
    total = sum(row.nbytes for row in package.external.values())
    shown = ", ".join(ascii(url)[1:-1] for url in files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")
    yield Problem(
        RECORD,
        "B7",
        f"{len(package.external):,} of the payloads ({total:,} bytes) are in {shown}: torch does not read such a file, "
        "pt2 convert makes it whole",
        "note",
    )
    broken: set[str] = set()
    for record, row in package.external.items():
        if row.url in broken:
            continue
        try:
            package.archive.place_of(package.layout.record(record))
        except Pt2Error as error:
            yield problem_of(error, RECORD, package.name)
            if error.rule in _OF_FILES:
                broken.add(row.url)
