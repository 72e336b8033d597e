"""Field tables -> the schema in other languages, and the rules for changing it.

sources      the tables of every version, of the classes, of a file
yaml, thrift, proto, jsonschema, cpp, typescript
             one `emit(types) -> str` each
proto_message, proto_tree
             JSON <-> messages of the generated Protocol Buffers definition
changes, compat
             what changed between two tables, and what that demands of the version number
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from pt2kit.errors import UnsupportedError
from pt2kit.idl.changes import RULES, Change, Level, changes
from pt2kit.idl.compat import EXCEPTIONS, Verdict, history, verdict
from pt2kit.idl.proto_message import to_message
from pt2kit.idl.proto_tree import to_tree
from pt2kit.idl.sources import current_table, frozen_table, read_table, table, versions
from pt2kit.idl.table import Table

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "yaml": "schema.yaml",
        "thrift": "schema.thrift",
        "proto": "schema.proto",
        "json-schema": "schema.json",
        "cpp": "schema.h",
        "typescript": "schema.ts",
    }
)
"""The name of a format -> the name of its file under `idl/`."""


def emit(types: Table, format: str) -> str:
    """Write a table in one of `FORMATS`.

    Args:
        types: the table, as `table("8.20")` gives it.
        format: a key of `FORMATS`.

    Raises:
        UnsupportedError: there is no such format, or it cannot express a type of the table.
    """
    if format not in FORMATS:
        raise UnsupportedError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
    module = importlib.import_module(f"pt2kit.idl.{format.replace('-', '')}")
    return str(module.emit(types))


__all__ = [
    "EXCEPTIONS",
    "FORMATS",
    "RULES",
    "Change",
    "Level",
    "Table",
    "Verdict",
    "changes",
    "current_table",
    "emit",
    "frozen_table",
    "history",
    "read_table",
    "table",
    "to_message",
    "to_tree",
    "verdict",
    "versions",
]
