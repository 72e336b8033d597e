"""Protocol Buffers (proto3) definition of a field table that can hold everything the JSON can.

How JSON is represented by the messages:

    a union              a message with one `oneof`
    a list               `repeated`; inside a union or another list a message `…List` with `repeated items`
    a dict               `repeated …Entry` with key and value: the bytes of a `map`, but in the order of the file
    null, or a default   the field is not set
    an integer           `int64`; beyond 64 bits its decimal digits are in the `…_digits` field next to it
    a fixed-length array a message `…Tuple`; one of several types a message `…Or…`

Field numbers are the format's wire ids. The fields `…_digits` have the field's number plus 10000.
"""

from __future__ import annotations

from typing import TypeAlias

from pt2kit.errors import UnsupportedError
from pt2kit.idl.text import (
    all_types,
    banner,
    check_names,
    comment,
    entry_name,
    enum_numbers,
    members,
    noted,
    upper_snake,
    version_suffix,
    wrapper_name,
)
from pt2kit.schema.fieldtable import (
    AnyOf,
    Definition,
    DictOf,
    Field,
    ListOf,
    Nullable,
    Scalar,
    Table,
    TupleOf,
    Type,
    inner_types,
)
from pt2kit.schema.wire import as_written

DIGITS_ID = 10_000
"""Offset from a field's number to that of its digits; the largest wire id is 300."""

_SCALARS = {"int": "int64", "float": "double", "str": "string", "bool": "bool", "bytes": "bytes"}
_INT = Scalar("int")
Held: TypeAlias = ListOf | DictOf | TupleOf | AnyOf
"""The types that need a message where they cannot be repeated fields."""


def emit(types: Table) -> str:
    """Write a table as one .proto file; its package is that of the major version ("pt2.v8"), within which ids last."""
    table = as_written(types)
    package = version_suffix(types.version.split(".")[0] if types.has_ids else types.version)
    lines = [f"// {line}" for line in banner(types, "proto")]
    lines += ["// Dicts are lists of entries, which keeps their order: on the wire the same as map<string, …>."]
    lines += ["// A field …_digits holds an integer that 64 bits do not, in decimal, in place of the one it follows."]
    lines += ["", 'syntax = "proto3";', "", f"package pt2.{package};"]
    for definition in table.definitions.values():
        lines += ["", *comment("//", definition.doc), *_definition(definition)]
    helpers = _helpers(table)
    check_names(helpers, table, "Protocol Buffers")
    for name, rows in helpers.items():
        lines += ["", f"message {name} {{", *rows, "}"]
    return "\n".join(lines) + "\n"


def _definition(definition: Definition) -> list[str]:
    if definition.kind == "enum":
        return [f"enum {definition.name} {{", *_enum_rows(definition), "}"]
    is_union = definition.kind == "union"
    rows = []
    for field in definition.fields.values():
        first, *digits = arm_rows(field) if is_union else field_rows(field)
        rows += [noted(first, field.since), *digits]
    return [f"message {definition.name} {{", *(_oneof(rows) if is_union else rows), "}"]


def _enum_rows(definition: Definition) -> list[str]:
    # The names of enum values are global in a package, so they carry their type's.
    prefix = upper_snake(definition.name)
    numbers = enum_numbers(definition)
    rows = [] if 0 in numbers.values() else [f"  {prefix}_UNSPECIFIED = 0;"]
    # The first value must be 0.
    for value in sorted(definition.members.values(), key=lambda value: numbers[value.name] != 0):
        rows.append(noted(f"  {prefix}_{upper_snake(value.name)} = {numbers[value.name]};", value.since))
    return rows


def field_rows(field: Field) -> list[str]:
    """Return the lines of a struct's field.

    Raises:
        UnsupportedError: null inside another type.
    """
    kind, id = field.type, field.id or 0
    if isinstance(kind, ListOf):
        return _with_digits("repeated ", kind.item, field.name, id)
    if isinstance(kind, DictOf):
        return [f"  repeated {entry_name(kind.value)} {field.name} = {id};"]
    label = "optional " if isinstance(kind, Nullable) or field.default is not None else ""
    return _with_digits(label, kind.inner if isinstance(kind, Nullable) else kind, field.name, id)


def arm_rows(field: Field) -> list[str]:
    """Return the lines of a union's arm."""
    return _with_digits("", field.type, field.name, field.id or 0)


def _with_digits(label: str, kind: Type, name: str, id: int) -> list[str]:
    rows = [f"  {label}{single(kind)} {name} = {id};"]
    if kind == _INT:
        rows.append(f"  {label.replace('optional ', '')}string {name}_digits = {id + DIGITS_ID};")
    return rows


def single(kind: Type) -> str:
    """Return the type of one value that is neither repeated nor null.

    Raises:
        UnsupportedError: it may be null.
    """
    if isinstance(kind, Nullable):
        raise UnsupportedError("Protocol Buffers: expected null as a field of a struct only, got it inside a type")
    return _SCALARS[kind.name] if isinstance(kind, Scalar) else wrapper_name(kind)


def _helpers(table: Table) -> dict[str, list[str]]:
    """Return the messages for types that proto3 cannot spell in place: name -> lines."""
    messages: dict[str, list[str]] = {}
    for kind in all_types(table):
        if isinstance(kind, DictOf):
            rows = ["  string key = 1;", *_with_digits("", kind.value, "value", 2)]
            messages.setdefault(entry_name(kind.value), rows)
    for kind in _held_whole(table):
        messages.setdefault(wrapper_name(kind), _wrapper_rows(kind))
    return messages


def _held_whole(table: Table) -> list[Held]:
    """Return the lists, dicts, tuples and alternatives that need a message: all but a struct's repeated fields."""
    kinds: list[Held] = []
    for definition in table.definitions.values():
        for field in definition.fields.values():
            repeated = definition.kind == "struct" and isinstance(field.type, ListOf | DictOf)
            stack = list(inner_types(field.type)) if repeated else [field.type]
            while stack:
                kind = stack.pop()
                stack += inner_types(kind)
                kinds += [kind] if isinstance(kind, Held) else []
    return kinds


def _wrapper_rows(kind: Held) -> list[str]:
    if isinstance(kind, ListOf | DictOf):
        return field_rows(Field("items", kind, 1, None, ""))
    rows = [row for id, (name, inner) in enumerate(members(kind), 1) for row in _with_digits("", inner, name, id)]
    return rows if isinstance(kind, TupleOf) else _oneof(rows)


def _oneof(rows: list[str]) -> list[str]:
    return ["  oneof arm {", *(f"  {row}" for row in rows), "  }"]
