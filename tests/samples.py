"""The files that tests read: real ones of real releases, and hostile ones with their manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
CORPUS = DATA / "corpus"


def numbers(release: str) -> list[int]:
    """Return the numbers of a release, by which releases are compared."""
    return [int(number) for number in release.split(".")]


def release_folders(corpus: Path = CORPUS) -> list[Path]:
    """Return the folders of a corpus, one for each release, oldest first."""
    return sorted((path for path in corpus.iterdir() if path.is_dir()), key=lambda path: numbers(path.name))


RELEASES = tuple(path.name for path in release_folders())
COVER_LIST = DATA / "cover.txt"
"""The files that are read without `--all-samples`, as `tests/cover.py` chose them."""
CURRENT_LAYOUT = tuple(release for release in RELEASES if numbers(release) >= [2, 9])


def corpus(*releases: str) -> list[Path]:
    """The sample files of some releases (all of them by default), oldest first."""
    return [path for release in releases or RELEASES for path in sorted((DATA / "corpus" / release).glob("*.pt2"))]


def sample(release: str, name: str) -> Path:
    """One sample file."""
    return DATA / "corpus" / release / f"{name}.pt2"


def hostile() -> list[dict[str, Any]]:
    """The cases of the manifest, each with the `path` of its file."""
    cases = json.loads((DATA / "hostile" / "manifest.json").read_text())["cases"]
    return [{**case, "path": DATA / "hostile" / case["file"]} for case in cases]


def release_id(path: Path) -> str:
    """A readable id for a parametrized test over files."""
    return f"{path.parent.name}/{path.stem}"
