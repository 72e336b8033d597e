"""The sample files of the release before -> those of the installed torch, which reads them and writes them again.

    ENVIRONMENT/bin/python -m tools.sample_files        into tests/data/corpus/<release of this torch>/

The programs stay those of the files: what is tried with them is how a release writes. What it exports otherwise is
tried with the zoo. Exits with 1, and says why, if the release cannot read or write one of the files.
"""

from __future__ import annotations

import io
import logging
import sys
import warnings
import zipfile
from pathlib import Path

import torch
from tests.bridge.read import corpus_types  # registers operators and classes
from tests.samples import CORPUS, numbers, release_folders
from torch.export.pt2_archive import _package as archives

IN_MEMORY = "archive"
"""The root folder of what was saved to a file object; elsewhere it is the file's name."""


def write_again(old: Path, new: Path) -> None:
    """Read a file with torch and write all that is in it with torch, to a path or to memory as the file was."""
    contents = archives.load_pt2(old)
    with zipfile.ZipFile(old) as archive:
        root = archive.namelist()[0].partition("/")[0]
    target = io.BytesIO() if root == IN_MEMORY else new
    archives.package_pt2(target, exported_programs=contents.exported_programs, extra_files=contents.extra_files)
    if isinstance(target, io.BytesIO):
        new.write_bytes(target.getvalue())


def release_before(release: str, folder: Path | None = None) -> Path:
    """The folder of sample files of the newest release that is older."""
    return [path for path in release_folders(folder or CORPUS) if numbers(path.name) < numbers(release)][-1]


def main() -> int:
    """Write every sample file of the release before."""
    release = torch.__version__.partition("+")[0]
    for kind in (corpus_types.NT, corpus_types.DC):
        kind.__module__ = "make"  # pickled inputs name the classes by where they were made first
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)  # torch says at length that it unpickles the inputs
    before, folder = release_before(release), CORPUS / release
    folder.mkdir()
    failed = 0
    for old in sorted(before.glob("*.pt2")):
        try:
            write_again(old, folder / old.name)
        except Exception as error:  # noqa: BLE001 - torch has no error family
            failed += 1
            print(f"{old.name}: {type(error).__name__}: {error}"[:300])
    print(f"torch {release}: {len(list(folder.glob('*.pt2')))} of {before.name}'s files, {failed} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
