"""The YAML files of `src/pt2kit/schema/history/` -> `tables.json` next to them, which is read at run time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

HISTORY = Path(__file__).parents[1] / "src" / "pt2kit" / "schema" / "history"
TARGET = HISTORY / "tables.json"


def tables() -> dict[str, Any]:
    """Version name -> its types, each with its kind and fields."""
    found = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))["types"] for path in HISTORY.glob("*.yaml")}
    return {name: {key: _row(row) for key, row in types.items()} for name, types in sorted(found.items())}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    if "members" in row:
        return {"kind": row["kind"], "fields": {name: name for name in row["members"]}}
    fields = {name: {"type": field} if isinstance(field, str) else field for name, field in row["fields"].items()}
    return {"kind": row["kind"], "fields": fields}


def text() -> str:
    """The file's content: one type a line."""
    lines = []
    for name, types in tables().items():
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in types.items())
        lines.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
    return "{" + ",\n".join(lines) + "}\n"
