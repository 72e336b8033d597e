"""Field tables for schema generation: their sources (current classes, frozen history, a file) and output formats.

A format is the name of the language that a table is written in; each has the file of `idl` that writes it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pt2kit import schema
from pt2kit.errors import SchemaError, UnsupportedError, VersionError
from pt2kit.schema.fieldtable import (
    NAMES,
    UNNUMBERED,
    Table,
    first_versions,
    frozen_table,
    frozen_tables,
    make_table,
)

MAX_FILE = 1 << 20
"""Bytes of a field table in a file; the largest of any version has 12 thousand."""

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


def versions() -> tuple[str, ...]:
    """Return every version that `table` has, oldest first."""
    return NAMES


def current_table() -> Table:
    """Return the table of the classes in `pt2kit.schema`, with a sentence about each type."""
    number = schema.CURRENT.number
    types = schema.field_table()
    docs = {cls.__name__: " ".join((inspect.getdoc(cls) or "").split()) for cls in schema.TYPES}
    return make_table(
        number, types, "pt2kit.schema", docs=docs, since=first_versions({**frozen_tables(), number: types})
    )


def table(version: str | None = None) -> Table:
    """Return the table of a version; by default, and for the current version, that of the classes.

    Raises:
        VersionError: there is no such version.
    """
    return current_table() if version in (None, "current", schema.CURRENT.number) else frozen_table(version)


def read_table(path: Path) -> Table:
    """Read a field table from a YAML or JSON file, in the shape of `schema/history/` or of torch's `schema.yaml`.

    Raises:
        OSError: the file cannot be read.
        SchemaError: it holds no field table.
        UnsupportedError: PyYAML is not installed.
    """
    with path.open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise SchemaError(f"{path.name}: expected a field table of at most {MAX_FILE} bytes, got more")
    content = _load_yaml(data, path.name)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise SchemaError(f"{path.name}: expected types by name, got a {type(content).__name__}")
    if isinstance(content.get("types"), dict):
        version, types = content.get("schema_version"), content["types"]
    else:
        version = content.pop("SCHEMA_VERSION", None)
        types = {name: row for name, row in content.items() if name != "TREESPEC_VERSION"}
    return make_table(_version_text(version, path.name), _names_checked(types, path.name), path.name, docs={}, since={})


def _version_text(version: Any, where: str) -> str:
    match version:
        case None:
            return ""
        case str() if version in UNNUMBERED:
            return version
        case [int(major), int(minor)]:
            return f"{major}.{minor}"
        case str() | int() if not isinstance(version, bool):
            try:
                schema.parse_version(str(version))
            except VersionError as error:
                raise VersionError(f"{where}: {error}") from None
            return str(version)
        case float():
            raise SchemaError(f"{where}: expected the version in quotes (8.20 without them is 8.2), got {version}")
    raise SchemaError(f"{where}: expected a version like 8.20, got a {type(version).__name__}")


def _names_checked(types: Mapping[Any, Any], where: str) -> Mapping[str, Any]:
    for name in types:
        if not isinstance(name, str) or not name.isidentifier():
            raise SchemaError(f"{where}: expected the name of a type, got {str(name)[:60]!r}")
    return types


def _load_yaml(data: bytes, where: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise UnsupportedError(f"{where}: reading a field table from a file needs PyYAML: pip install pyyaml") from None

    class Loader(yaml.SafeLoader):
        """Refuses what a field table has no use for: aliases, and a key twice."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("expected no aliases, got one")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if twice := [key for key in keys if keys.count(key) > 1]:
                raise yaml.YAMLError(f"expected each key once, got {twice[0][:60]!r} twice")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(data, Loader)
    except yaml.YAMLError as error:
        raise SchemaError(f"{where}: not a field table: {' '.join(str(error).split())}") from None
    except (RecursionError, ValueError) as error:
        # Nested thousands of levels deep; or a number, a date or text that the loader itself stumbles over.
        raise SchemaError(f"{where}: not a field table: {type(error).__name__}") from None


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
