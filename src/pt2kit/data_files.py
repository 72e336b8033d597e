"""The files of data that are part of this package: tables, rules, the page of the viewer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable


def data_file(place: str) -> Path | Traversable:
    """Return a file or a folder of this package.

    Args:
        place: its path below `pt2kit`, with slashes: "operators/data/rows".
    """
    path = Path(__file__).parent / place
    if path.exists():
        return path
    # It reads a package inside a zip file, too, but imports tempfile, shutil and more, which nothing else here needs.
    from importlib.resources import files

    return files("pt2kit") / place
