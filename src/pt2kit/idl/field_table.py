"""A field table as plain data (the shape of `schema/history/`) -> the same as typed data.

Also the two things that files hold but old tables do not say: see `as_written`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from pt2kit.errors import SchemaError
from pt2kit.idl.typetext import AnyOf, Ref, Scalar, Type, inner_types, parse_type, type_text

Kind = Literal["struct", "union", "enum"]

ROOTS = ("ExportedProgram", "GraphModule")
"""The type at the root of a program's JSON; the draft has no ExportedProgram."""

NULL_UNIONS = ("1", "2")
"""The versions whose unions hold every key, null except for one. All others hold exactly one key."""

_INT_OR_FLOAT = AnyOf((Scalar("int"), Scalar("float")))
_INT_OR_BOOL = AnyOf((Scalar("int"), Scalar("bool")))
_WRITTEN: Mapping[tuple[str, str], tuple[tuple[str, ...], Type]] = MappingProxyType(
    {
        ("RangeConstraint", "min_val"): (("2", "5.1", "5.3-traces", "5.3", "7.3"), _INT_OR_FLOAT),
        ("RangeConstraint", "max_val"): (("2", "5.1", "5.3-traces", "5.3", "7.3"), _INT_OR_FLOAT),
        ("ConstantValue", "as_int"): (("5.3", "7.3"), _INT_OR_BOOL),
    }
)
"""(Type, field) -> the versions whose files hold something else there than the table says, and what."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, or one arm of a union.

    Args:
        name: the key in JSON.
        type: what it holds.
        id: its wire id; None before 8.2, which had none.
        default: the text of what an absent key means; None where the key is required.
        since: the first version that has it.
    """

    name: str
    type: Type
    id: int | None
    default: str | None
    since: str


@dataclass(frozen=True, slots=True)
class EnumValue:
    """One value of an enum; `value` is what JSON holds: a number, or in the draft the name."""

    name: str
    value: int | str
    since: str


@dataclass(frozen=True, slots=True)
class Definition:
    """One type: its fields, or for an enum its values, in the order of the table."""

    name: str
    kind: Kind
    fields: tuple[Field, ...]
    values: tuple[EnumValue, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class Table:
    """All types of one version.

    Args:
        version: "8.20"; "draft" and "5.3-traces" for the two without a number of their own; "" where a file gave none.
        definitions: in the order of the table.
    """

    version: str
    definitions: tuple[Definition, ...]

    @property
    def by_name(self) -> dict[str, Definition]:
        """Type name -> its definition."""
        return {definition.name: definition for definition in self.definitions}

    @property
    def root(self) -> str:
        """The type of a whole program; "" where the table has none."""
        return next((name for name in ROOTS if name in self.by_name), "")

    @property
    def has_ids(self) -> bool:
        """Whether every field has its wire id."""
        return all(field.id is not None for definition in self.definitions for field in definition.fields)

    @property
    def null_unions(self) -> bool:
        """Whether a union holds every key, null except for one."""
        return self.version in NULL_UNIONS


def make_table(
    version: str, types: Mapping[str, Any], where: str, *, docs: Mapping[str, str], since: Mapping[tuple[str, str], str]
) -> Table:
    """Turn a plain table into a typed one.

    Args:
        version: what the table calls itself.
        types: type name -> {"kind": …, "fields": …}, as `schema.field_table()` gives it.
        where: its source, for messages.
        docs: type name -> a sentence about it; empty where there is none.
        since: (type name, field) -> the first version that has it; missing entries are the table's own version.

    Raises:
        SchemaError: the table is malformed, or a field's type is no type of the table.
    """
    found: list[Definition] = []
    for name, row in types.items():
        place = f"{where}: {name}"
        kind, fields = _kind_and_fields(row, place)
        doc = docs.get(name, "")
        members = [(key, value, f"{place}.{key}", since.get((name, key), version)) for key, value in fields.items()]
        if kind == "enum":
            values = tuple(EnumValue(key, _enum_value(value, at), first) for key, value, at, first in members)
            found.append(Definition(name, kind, (), values, doc))
        else:
            found.append(Definition(name, kind, tuple(_field(*member) for member in members), (), doc))
    table = Table(version, tuple(found))
    _check_references(table, where)
    return table


def _kind_and_fields(row: Any, where: str) -> tuple[Kind, dict[str, Any]]:
    if not isinstance(row, dict) or row.get("kind") not in ("struct", "union", "enum"):
        raise SchemaError(f"{where}: expected a kind of struct, union or enum, got {_brief(row)}")
    fields = row.get("fields")
    if fields is None and row["kind"] == "enum" and isinstance(members := row.get("members"), list):
        fields = {name: name for name in members if isinstance(name, str)}
    if not isinstance(fields, dict) or not all(isinstance(name, str) and name.isidentifier() for name in fields):
        raise SchemaError(f"{where}: expected fields by name, got {_brief(fields)}")
    return row["kind"], fields


def _enum_value(value: Any, where: str) -> int | str:
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    raise SchemaError(f"{where}: expected the number of an enum value, got {_brief(value)}")


def _field(name: str, row: Any, where: str, since: str) -> Field:
    row = {"type": row} if isinstance(row, str) else row
    if not isinstance(row, dict) or not isinstance(row.get("type"), str):
        raise SchemaError(f"{where}: expected a type, got {_brief(row)}")
    id, default = row.get("id"), row.get("default")
    if id is not None and (not isinstance(id, int) or isinstance(id, bool) or not 0 < id < 2**15):
        raise SchemaError(f"{where}: expected a wire id from 1 to {2**15 - 1}, got {_brief(id)}")
    if default is None and "default" in row:
        raise SchemaError(f'{where}: expected the text of a default, got null; write "None" for null')
    if default is not None and not isinstance(default, str):
        raise SchemaError(f"{where}: expected the text of a default, got {_brief(default)}")
    return Field(name, parse_type(row["type"], where), id, default, since)


def _brief(value: Any) -> str:
    """A value for a message, short whatever a file put there."""
    return repr(value)[:60] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


def _check_references(table: Table, where: str) -> None:
    known = table.by_name
    for definition in table.definitions:
        for field in definition.fields:
            for name in references(field.type):
                if name not in known:
                    raise SchemaError(
                        f"{where}: {definition.name}.{field.name}: expected a type of the table, got {name}"
                    )


def references(kind: Type) -> Iterator[str]:
    """The names of the types of the table that a type mentions."""
    if isinstance(kind, Ref):
        yield kind.name
    for inner in inner_types(kind):
        yield from references(inner)


def plain_table(table: Table) -> dict[str, Any]:
    """The table as plain data, in the shape of `schema.field_table()`."""

    def row(field: Field) -> dict[str, Any]:
        rest = {"id": field.id, "default": field.default}
        return {"type": type_text(field.type), **{key: value for key, value in rest.items() if value is not None}}

    return {
        definition.name: {
            "kind": definition.kind,
            "fields": {value.name: value.value for value in definition.values}
            if definition.kind == "enum"
            else {field.name: row(field) for field in definition.fields},
        }
        for definition in table.definitions
    }


def as_written(table: Table) -> Table:
    """The table with what files of its version hold beyond it, for generators.

    Wire ids where there are none yet: ten times the position, which is stable because released tables never change, but
    means nothing across versions. And two fields where writers did not keep to the table: from 2 to 7.3 the ends of
    ranges are declared as integers but may be infinite; in 5.3 and 7.3 a constant that is a truth value is under
    `as_int`.

    Source: files of torch 2.2 to 2.5.
    """
    has_ids = table.has_ids
    written = (_definition_as_written(each, table.version, has_ids) for each in table.definitions)
    return replace(table, definitions=tuple(written))


def _definition_as_written(definition: Definition, version: str, has_ids: bool) -> Definition:
    fields = []
    for position, field in enumerate(definition.fields, 1):
        versions, kind = _WRITTEN.get((definition.name, field.name), ((), field.type))
        id = field.id if has_ids else 10 * position
        fields.append(replace(field, id=id, type=kind if version in versions else field.type))
    return replace(definition, fields=tuple(fields))


def enum_numbers(definition: Definition) -> dict[str, int]:
    """Enum value name -> its number; the position where the table gives none, as the draft's."""
    return {
        value.name: value.value if isinstance(value.value, int) else position
        for position, value in enumerate(definition.values)
    }


def default_value(field: Field) -> Any:
    """What an absent key of a field with a default means, as a new tree.

    Raises:
        SchemaError: the default's text is not understood.
    """
    text, kind = field.default, field.type
    if text is None:
        raise SchemaError(f"{field.name}: expected a default, got a required field")
    if kind == Scalar("str"):
        return text
    if text in ("[]", "{}"):
        return [] if text == "[]" else {}
    if text in ("None", "False", "True"):
        return {"None": None, "False": False, "True": True}[text]
    if kind == Scalar("int") and text.lstrip("-").isdecimal():
        return int(text)
    raise SchemaError(f"{field.name}: expected a default like None, False, [] or a number, got {text!r}")
