"""Field tables of schema versions, and the type texts of their fields ("dict[str, SymInt]"), as typed data.

Tables are plain data: YAML files of `history/`, reflected classes. `history/tables.json` holds every frozen table, so
that no YAML is read at run time; `make regen` makes it from the YAML files, and a test keeps the two
equal. The draft's enums have names instead of numbers.

Type texts are parsed into types as data, and printed. Two spellings are read: the one of the frozen tables
(`list[int]`, `int | None`, `A or B`) and the one of torch's own `schema.yaml` (`List[int]`, `Optional[int]`).
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from pt2kit.data_files import data_file
from pt2kit.errors import SchemaError, VersionError
from pt2kit.schema.versions import LOG

MAX_TEXT = 200
"""Characters of a type's text; the longest of any version has 60. It bounds the nesting as well."""

SCALARS = ("int", "float", "str", "bool", "bytes")

NAMES: Final = (
    "draft",
    *(name for row in LOG for name in (("5.3-traces", "5.3") if row.number == "5.3" else (row.number,))),
)
"""The frozen tables there are, oldest first."""

UNNUMBERED: Final = ("draft", "5.3-traces")
"""The two development states whose tables carry no number of their own."""

ROOTS: Final = ("ExportedProgram", "GraphModule")
"""The type at the root of a program's JSON; the draft has no ExportedProgram."""

Kind = Literal["struct", "union", "enum"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of `SCALARS`; bytes are base64 text in JSON, the infinities and nan of a float are strings."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref:
    """Another type of the same table, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A JSON array whose items all have one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class DictOf:
    """A JSON object with free keys whose values all have one type."""

    value: Type


@dataclass(frozen=True, slots=True)
class Nullable:
    """A value or null."""

    inner: Type


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A JSON array of fixed length."""

    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A value of one of several types that only its own shape distinguishes."""

    arms: tuple[Type, ...]


Type = Scalar | Ref | ListOf | DictOf | Nullable | TupleOf | AnyOf


def parse_type(text: str, where: str) -> Type:
    """Turn a type's text into data.

    Args:
        text: as the field tables write it.
        where: the field, for messages.

    Raises:
        SchemaError: the text is no type.
    """
    try:
        return _parsed(text)
    except ValueError as error:
        raise SchemaError(f"{where}: {error}") from None


# The tables use some ninety texts, thousands of times.
@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Type:
    if len(text) > MAX_TEXT:
        raise ValueError(f"expected a type of at most {MAX_TEXT} characters, got {len(text)}")
    try:
        return _type(ast.parse(text, mode="eval").body)  # has the syntax of Python; nothing is evaluated
    except (SyntaxError, ValueError):
        expected = "a type such as int, Graph, list[T], dict[str, T], tuple[T, T], T | None, T or T"
        raise ValueError(f"expected {expected}, got {text!r}") from None


def _type(node: ast.expr) -> Type:
    match node:
        case ast.Name(name):
            return Scalar(name) if name in SCALARS else Ref(name)
        case ast.BinOp(inner, ast.BitOr(), ast.Constant(None)):
            return Nullable(_type(inner))
        case ast.BoolOp(ast.Or(), arms):
            return AnyOf(tuple(map(_type, arms)))
        case ast.Subscript(ast.Name(name), inside):
            arguments = tuple(map(_type, inside.elts if isinstance(inside, ast.Tuple) else [inside]))
            match name.lower(), arguments:
                case "list", (item,):
                    return ListOf(item)
                case "dict", (Scalar("str"), value):
                    return DictOf(value)
                case "optional", (inner_type,):
                    return Nullable(inner_type)
                case "tuple", items:
                    return TupleOf(items)
    raise ValueError


def type_text(kind: Type) -> str:
    """Return the text of a type, in the spelling of the frozen tables."""
    match kind:
        case Scalar(name) | Ref(name):
            return name
        case ListOf(item):
            return f"list[{type_text(item)}]"
        case DictOf(value):
            return f"dict[str, {type_text(value)}]"
        case Nullable(inner):
            return f"{type_text(inner)} | None"
        case TupleOf(items):
            return f"tuple[{', '.join(type_text(item) for item in items) or '()'}]"
        case AnyOf(arms):
            return " or ".join(type_text(arm) for arm in arms)


def inner_types(kind: Type) -> tuple[Type, ...]:
    """Return the types directly inside a type; none for scalars and references."""
    match kind:
        case ListOf(inner) | DictOf(inner) | Nullable(inner):
            return (inner,)
        case TupleOf(inners) | AnyOf(inners):
            return inners
        case _:
            return ()


def references(kind: Type) -> Iterator[str]:
    """Yield the names of the types of the table that a type mentions."""
    if isinstance(kind, Ref):
        yield kind.name
    for inner in inner_types(kind):
        yield from references(inner)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, or one arm of a union.

    Args:
        name: the key in JSON.
        type: of its value.
        id: its wire id; None before 8.2, which had none.
        default: the text of an absent key's value (see `default_value`); None if the key is required.
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
    """One type: its fields, or for an enum its values, by name and in the order of the table."""

    name: str
    kind: Kind
    fields: Mapping[str, Field]
    members: Mapping[str, EnumValue]
    doc: str


@dataclass(frozen=True, slots=True)
class Table:
    """All types of one version.

    Args:
        version: "8.20"; "draft" and "5.3-traces" for the two without a number of their own; "" if a file states none.
        definitions: by name, in the order of the table.
    """

    version: str
    definitions: Mapping[str, Definition]

    @property
    def root(self) -> str:
        """Return the type of a whole program; "" if the table has none."""
        return next((name for name in ROOTS if name in self.definitions), "")

    @property
    def has_ids(self) -> bool:
        """Return whether every field has its wire id."""
        return all(field.id is not None for each in self.definitions.values() for field in each.fields.values())


# A memo of a pure function over a file of the package, which never changes.
@functools.cache
def frozen_table(version: str) -> Table:
    """Return the table of a version as it was frozen; the same one on each call.

    Args:
        version: one of `NAMES` ("8.7", "draft").

    Raises:
        VersionError: there is no such version; the message lists the existing ones.

    Cost: 10 ms for the first, 1 ms for each other one.
    """
    if version not in NAMES:
        raise VersionError(f"schema version: expected one of {', '.join(NAMES)}, got {version!r}")
    return make_table(version, _frozen()[version], f"schema {version}", docs={}, since=_first_versions())


def frozen_tables() -> dict[str, dict[str, Any]]:
    """Return the frozen tables as plain data, by version; new objects on each call. Cost: milliseconds."""
    text = data_file("schema/history/tables.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = json.loads(text)
    return tables


_frozen = functools.cache(frozen_tables)


@functools.cache
def _first_versions() -> Mapping[tuple[str, str], str]:
    return MappingProxyType(first_versions(_frozen()))


def first_versions(tables: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the first logged version of each (type name, field or enum value), of plain tables by version."""
    first: dict[tuple[str, str], str] = {}
    for version in LOG:
        for name, row in tables.get(version.number, {}).items():
            for field in row["fields"]:
                first.setdefault((name, field), version.number)
    return first


def make_table(
    version: str, types: Mapping[str, Any], where: str, *, docs: Mapping[str, str], since: Mapping[tuple[str, str], str]
) -> Table:
    """Turn a plain table into a typed one.

    Args:
        version: the table's own name.
        types: type name -> {"kind": …, "fields": …}, as `schema.field_table()` returns it.
        where: its source, for messages.
        docs: type name -> a sentence about it; empty if there is none.
        since: (type name, field) -> the first version that has it; missing entries are the table's own version.

    Raises:
        SchemaError: the table is malformed, or a field's type is no type of the table.
    """
    definitions: dict[str, Definition] = {}
    for name, row in types.items():
        place = f"{where}: {name}"
        kind, rows = _kind_and_fields(row, place)
        fields: dict[str, Field] = {}
        members: dict[str, EnumValue] = {}
        for key, value in rows.items():
            first = since.get((name, key), version)
            if kind == "enum":
                members[key] = EnumValue(key, _enum_value(value, f"{place}.{key}"), first)
            else:
                fields[key] = _field(key, value, f"{place}.{key}", first)
        if len({type(value.value) for value in members.values()}) > 1:
            raise SchemaError(f"{place}: expected numbers for all values of the enum, or names for all, got both")
        definitions[name] = Definition(
            name, kind, MappingProxyType(fields), MappingProxyType(members), docs.get(name, "")
        )
    _check_references(definitions, where)
    return Table(version, MappingProxyType(definitions))


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
    kind = parse_type(row["type"], where)
    if default is None and "default" in row:  # YAML's null: torch writes it as text
        if not isinstance(kind, Nullable):
            raise SchemaError(f"{where}: expected the text of a default, got null, which only Optional may be")
        default = "None"
    if default is not None and not isinstance(default, str):
        raise SchemaError(f"{where}: expected the text of a default, got {_brief(default)}")
    return Field(name, kind, id, default, since)


def _brief(value: Any) -> str:
    """Return a value for a message, short whatever a file contains."""
    return repr(value)[:60] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


def _check_references(definitions: Mapping[str, Definition], where: str) -> None:
    for definition in definitions.values():
        for field in definition.fields.values():
            for name in references(field.type):
                if name not in definitions:
                    raise SchemaError(
                        f"{where}: {definition.name}.{field.name}: expected a type of the table, got {name}"
                    )


def default_value(field: Field) -> Any:
    """Return the value of an absent key of a field with a default, as a new tree.

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


def default_values(definition: Definition) -> dict[str, Any]:
    """Return the values of absent keys by field, as new trees, for the fields that have a default."""
    return {name: default_value(field) for name, field in definition.fields.items() if field.default is not None}
