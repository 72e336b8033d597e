"""Formats of schema generation: a field table in the language of a format's name, by the file of `idl` that writes
it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from pt2kit.errors import UnsupportedError
from pt2kit.schema.fieldtable import Table

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
