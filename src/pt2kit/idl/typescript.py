"""TypeScript types of a field table's JSON: the result of `JSON.parse`, typed.

Needs no run time: the enums are constants with a type of their values. `Int` allows `bigint`, because `JSON.parse`
rounds integers beyond 2^53 (unbounded ranges have them) and careful parsers give a `bigint`.
"""

from __future__ import annotations

import json
from typing import Final

from pt2kit.idl.text import Forms, banner, check_names, noted, spelled
from pt2kit.schema.fieldtable import (
    AnyOf,
    Definition,
    DictOf,
    Field,
    ListOf,
    Nullable,
    Table,
    TupleOf,
)
from pt2kit.schema.wire import as_written, spelling

_SCALARS = {"int": "Int", "float": "Float", "str": "string", "bool": "boolean", "bytes": "Base64"}

_FORMS: Final[Forms[str]] = {
    ListOf: lambda item: f"({item})[]" if " | " in item else f"{item}[]",
    DictOf: "Record<string, {}>".format,
    Nullable: "{} | null".format,
    TupleOf: lambda *items: f"[{', '.join(items)}]",
    AnyOf: lambda *arms: " | ".join(arms),
}

_PRELUDE = """
/** An integer. JSON.parse rounds beyond 2^53; parse to bigint where every digit matters. */
export type Int = number | bigint;
/** A float; JSON has no number for three of its values. */
export type Float = number | "Infinity" | "-Infinity" | "NaN";
/** Bytes in base64. */
export type Base64 = string;
"""

_ONE_KEY = """/** An object with exactly one of the keys of T. */
type OneOf<T> = { [K in keyof T]: { [P in K]: T[P] } & { [Q in Exclude<keyof T, K>]?: never } }[keyof T];
"""

_ONE_VALUE = """/** An object with all the keys of T, null except for one. */
type OneOf<T> = { [K in keyof T]: { [P in K]: T[P] } & { [Q in Exclude<keyof T, K>]: null } }[keyof T];
"""


def emit(types: Table) -> str:
    """Write a table as one TypeScript module."""
    table = as_written(types)
    check_names(("Int", "Float", "Base64", "OneOf"), table, "TypeScript")
    lines = [f"// {line}" for line in banner(types, "typescript")[:2]]
    lines += [_PRELUDE + (_ONE_VALUE if spelling(table.version).padded_unions else _ONE_KEY)]
    lines += [f"export const SCHEMA_VERSION = {json.dumps(types.version)};"]
    for definition in table.definitions.values():
        lines += ["", *([f"/** {definition.doc} */"] if definition.doc else []), *_definition(definition)]
    return "\n".join(lines) + "\n"


def _definition(definition: Definition) -> list[str]:
    name = definition.name
    if definition.kind == "enum":
        rows = [
            noted(f"  {value.name}: {json.dumps(value.value)},", value.since) for value in definition.members.values()
        ]
        return [
            f"export const {name} = {{",
            *rows,
            "} as const;",
            f"export type {name} = (typeof {name})[keyof typeof {name}];",
        ]
    rows = [noted(f"  {_field(field)};", field.since) for field in definition.fields.values()]
    if definition.kind == "struct":
        return [f"export interface {name} {{", *rows, "}"]
    # The arms are an interface, which may mention the union itself; a type alias may not.
    return [
        f"export interface {name}Arms {{",
        *rows,
        "}",
        f"export type {name} = OneOf<{name}Arms>;",
    ]


def _field(field: Field) -> str:
    mark = "?" if field.default is not None else ""
    return f"{field.name}{mark}: {spelled(field.type, _SCALARS, str, _FORMS)}"
