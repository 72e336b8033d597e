"""JSON Schema (draft 7) of a field table for a whole program, with every type of the table under `definitions`.

Says what the encoding says: a union is an object with exactly one key, an enum one of its numbers, a float a number or
one of three words, bytes are base64. Objects may hold keys that the schema does not know, as newer minors write them;
unions may not. For another record than the program, such as a payload config, refer to `#/definitions/PayloadConfig`.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

from pt2kit.idl.text import Forms, banner, since_note, spelled
from pt2kit.schema.fieldtable import (
    AnyOf,
    Definition,
    DictOf,
    Field,
    ListOf,
    Nullable,
    Table,
    TupleOf,
    Type,
    default_value,
)
from pt2kit.schema.wire import as_written, spelling

_FLOAT_WORDS = ["Infinity", "-Infinity", "NaN"]
_FLOAT = {"anyOf": [{"type": "number"}, {"enum": _FLOAT_WORDS}]}
_BYTES = {"type": "string", "contentEncoding": "base64"}
_SCALARS: dict[str, dict[str, Any]] = {
    "int": {"type": "integer"},
    "float": {"$ref": "#/definitions/float"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "bytes": {"$ref": "#/definitions/bytes"},
}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _tuple(*items: dict[str, Any]) -> dict[str, Any]:
    listed = {"items": list(items)} if items else {}
    return {"type": "array", **listed, "minItems": len(items), "maxItems": len(items)}


_FORMS: Final[Forms[dict[str, Any]]] = {
    ListOf: lambda item: {"type": "array", "items": item},
    DictOf: lambda value: {"type": "object", "additionalProperties": value},
    Nullable: _nullable,
    TupleOf: _tuple,
    AnyOf: lambda *arms: {"anyOf": list(arms)},
}


def emit(types: Table) -> str:
    """Write a table as one JSON Schema; its root is the type of a whole program where the table has it."""
    table = as_written(types)
    definitions = {each.name: _definition(each, table) for each in table.definitions.values()}
    schema: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": " ".join(banner(types, "json-schema")[:2]),
        "title": f"PyTorch .pt2 program, schema {types.version}",
    }
    if table.root:
        schema["allOf"] = [_reference(table.root)]
    return json.dumps({**schema, "definitions": {"float": _FLOAT, "bytes": _BYTES, **definitions}}, indent=1) + "\n"


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}"}


def _definition(definition: Definition, table: Table) -> dict[str, Any]:
    doc = {"description": definition.doc} if definition.doc else {}
    if definition.kind == "enum":
        names = ", ".join(f"{value.value} {value.name}" for value in definition.members.values())
        return {**doc, "$comment": names, "enum": [value.value for value in definition.members.values()]}
    if definition.kind == "struct":
        properties = {field.name: _property(field) for field in definition.fields.values()}
        required = [field.name for field in definition.fields.values() if field.default is None]
        return {**doc, "type": "object", "properties": properties, **({"required": required} if required else {})}
    union = _null_union if spelling(table.version).padded_unions else _union
    return {**doc, **union(definition.fields.values())}


def _property(field: Field) -> dict[str, Any]:
    schema = _schema(field.type)
    # Draft 7 ignores keywords next to a $ref.
    notes: dict[str, Any] = {"$comment": note} if (note := since_note(field.since)) else {}
    if field.default is not None:
        notes["default"] = default_value(field)
    return {"allOf": [schema], **notes} if notes and "$ref" in schema else {**schema, **notes}


def _union(fields: Collection[Field]) -> dict[str, Any]:
    properties = {field.name: _property(field) for field in fields}
    counts = {"minProperties": 1, "maxProperties": 1}
    return {"type": "object", "properties": properties, "additionalProperties": False, **counts}


def _null_union(fields: Collection[Field]) -> dict[str, Any]:
    """Return the schema of a union whose keys are all present and of which all but one are null."""
    return {
        "type": "object",
        "properties": {field.name: _nullable(_schema(field.type)) for field in fields},
        "required": [field.name for field in fields],
        "additionalProperties": False,
        "oneOf": [{"properties": {field.name: {"not": {"type": "null"}}}} for field in fields],
    }


def _schema(kind: Type) -> dict[str, Any]:
    return spelled(kind, _SCALARS, _reference, _FORMS)
