"""YAML of a field table, in the shape of the frozen tables in `schema/history/`, by which a new one is frozen."""

from __future__ import annotations

import json

from pt2kit.idl.text import banner
from pt2kit.schema.fieldtable import Definition, Field, Table, type_text


def emit(types: Table) -> str:
    """Write a table as YAML that reads back to the same table; the wire ids are those it has, none are made up."""
    lines = [f"# {line}" for line in banner(types, "yaml")[:2]]
    number = types.version.removesuffix("-traces")
    lines += [f"schema_version: {json.dumps(number)}", "types:"]
    return "\n".join([*lines, *(line for each in types.definitions.values() for line in _definition(each))]) + "\n"


def _definition(definition: Definition) -> list[str]:
    head = [f"  {definition.name}:", f"    kind: {definition.kind}"]
    if definition.kind != "enum":
        return [*head, "    fields:", *map(_field, definition.fields.values())]
    if any(isinstance(value.value, str) for value in definition.members.values()):
        return [*head, f"    members: [{', '.join(value.name for value in definition.members.values())}]"]
    return [*head, "    fields:", *(f"      {value.name}: {value.value}" for value in definition.members.values())]


def _field(field: Field) -> str:
    parts = [f"type: {json.dumps(type_text(field.type))}"]
    parts += [f"id: {field.id}"] if field.id is not None else []
    parts += [f"default: {json.dumps(field.default)}"] if field.default is not None else []
    return f"      {field.name}: {{{', '.join(parts)}}}"
