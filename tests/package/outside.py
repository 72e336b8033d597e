"""Archives whose weights are next to them, changed as somebody else could."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from pt2kit.package.external_list import RECORD
from pt2kit.zip.writer import ArchiveWriter


def archive_of(path: Path, records: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """The records of a file by their full names; those given, by their names below the root, are written into it."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    if records:
        root = next(iter(found)).partition("/")[0]
        found |= {f"{root}/{name}": data for name, data in records.items()}
        with ArchiveWriter(path, root=root) as writer:
            for name, data in found.items():
                writer.write(name.removeprefix(f"{root}/"), data)
    return found


def listed(path: Path) -> dict[str, Any]:
    """The list of payloads next to a file."""
    tree: dict[str, Any] = json.loads(next(data for name, data in archive_of(path).items() if name.endswith(RECORD)))
    return tree


def relisted(path: Path, *, only: str | None = None, **fields: Any) -> None:
    """Change some fields of every entry, or of one tensor's, of the list."""
    tree = listed(path)
    for row in tree["records"].values():
        if only in (None, row["tensor"]):
            row.update(fields)
    archive_of(path, {RECORD: json.dumps(tree).encode()})
