"""Sample files written down in another way: records renamed, reordered, renumbered, packed anew, JSON rewritten."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Records = dict[str, bytes]


def records(path: Path) -> Records:
    """The records of a file by name below the root folder, in order."""
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def packed(found: Records, *, root: str = "model", method: int = zipfile.ZIP_STORED) -> bytes:
    """A file of these records."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in found.items():
            archive.writestr(f"{root}/{name}", data)
    return buffer.getvalue()


def with_json(found: Records, suffix: str, change: Callable[[Any], Any]) -> Records:
    """The records with the JSON of some of them changed."""
    return {
        name: json.dumps(change(json.loads(data))).encode() if name.endswith(suffix) else data
        for name, data in found.items()
    }


def shuffled_keys(tree: Any, rng: random.Random) -> Any:
    """The same tree with the keys of all objects in another order."""
    if isinstance(tree, list):
        return [shuffled_keys(item, rng) for item in tree]
    if not isinstance(tree, dict):
        return tree
    keys = rng.sample(list(tree), len(tree))
    return {key: shuffled_keys(tree[key], rng) for key in keys}


def renumbered(found: Records) -> Records:
    """The same payloads under other record names."""
    numbered = re.compile(r"data/(weights|constants)/(weight|tensor)_(\d+)")
    other = {
        name: re.sub(r"\d+$", lambda m: str(int(m[0]) * 7 + 3), name) for name in found if numbered.fullmatch(name)
    }
    rest = [name for name in found if name not in other]

    def change(config: Any) -> Any:
        rows = {
            name: {**row, "path_name": _other_number(row["path_name"])}
            if re.fullmatch(r"(weight|tensor)_\d+", row["path_name"])
            else row
            for name, row in reversed(config["config"].items())
        }
        return {"config": rows}

    moved = {**{name: found[name] for name in rest}, **{other[name]: found[name] for name in reversed(other)}}
    return with_json(moved, "_config.json", change)


def _other_number(name: str) -> str:
    return re.sub(r"\d+$", lambda digits: str(int(digits[0]) * 7 + 3), name)


def without_traces(program: Any) -> Any:
    """A program's tree without the metadata of nodes, subgraphs included."""
    if isinstance(program, list):
        return [without_traces(item) for item in program]
    if not isinstance(program, dict):
        return program
    return {
        key: {} if key == "metadata" and "target" in program else without_traces(value)
        for key, value in program.items()
    }
