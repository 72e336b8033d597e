"""A field table -> a Thrift definition: the same types, ids and optionality as torch's `export_schema.thrift`.

What Thrift lacks gets a type of its own: fixed-length arrays become structs, values of one of several types unions.
Its integers have 64 bits; a number beyond that is in JSON only.
"""

from __future__ import annotations

from pt2kit.errors import UnsupportedError
from pt2kit.idl.table import Definition, Field, Table, as_written
from pt2kit.idl.text import banner, comment, safe_name, since_note, version_suffix
from pt2kit.idl.typetext import AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type, inner_types
from pt2kit.idl.wrappers import all_types, arm_name, check_names, item_name, wrapper_name

_SCALARS = {"int": "i64", "float": "double", "str": "string", "bool": "bool", "bytes": "binary"}
_RESERVED = frozenset("bool byte i8 i16 i32 i64 u8 u16 u32 u64 double float string binary map list set void".split())


def emit(types: Table) -> str:
    """Write a table as one Thrift file."""
    table = as_written(types)
    lines = [f"// {line}" for line in banner(types, "thrift")]
    suffix = version_suffix(types.version)
    lines += ["", f"namespace py pt2.{suffix}", f"namespace cpp pt2.{suffix}", f"namespace java pt2.{suffix}"]
    wrapped = {wrapper_name(kind): kind for kind in all_types(table) if isinstance(kind, TupleOf | AnyOf)}
    check_names(iter(wrapped), table, "Thrift")
    for kind in wrapped.values():
        lines += _wrapper(kind)
    for definition in table.definitions:
        lines += ["", *comment("//", definition.doc), *_definition(definition, table)]
    return "\n".join(lines) + "\n"


def _definition(definition: Definition, table: Table) -> list[str]:
    if definition.kind == "enum":
        rows = [
            _noted(f"  {safe_name(value.name, _RESERVED)} = {_number(value.value, position)},", value.since, table)
            for position, value in enumerate(definition.values)
        ]
    else:
        rows = [
            _noted(f"  {field.id}: {_field(field, definition)};", field.since, table) for field in definition.fields
        ]
    return [f"{definition.kind} {definition.name} {{", *rows, "}"]


def _number(value: int | str, position: int) -> int:
    """The draft's enums have names only; a position stands in."""
    return value if isinstance(value, int) else position


def _noted(line: str, since: str, table: Table) -> str:
    note = since_note(since, table)
    return f"{line}  // {note}" if note else line


def _field(field: Field, definition: Definition) -> str:
    kind = field.type
    if isinstance(kind, Nullable):
        if definition.kind == "union":
            raise UnsupportedError(f"{definition.name}.{field.name}: Thrift: expected a union without null, got one")
        return f"optional {thrift_type(kind.inner)} {safe_name(field.name, _RESERVED)}"
    return f"{thrift_type(kind)} {safe_name(field.name, _RESERVED)}"


def thrift_type(kind: Type) -> str:
    """The Thrift spelling of a type.

    Raises:
        UnsupportedError: null inside a list, a dict, a tuple or a union, which Thrift cannot hold.
    """
    match kind:
        case Scalar(name):
            return _SCALARS[name]
        case Ref(name):
            return name
        case ListOf(item):
            return f"list<{thrift_type(item)}>"
        case DictOf(value):
            return f"map<string, {thrift_type(value)}>"
        case TupleOf() | AnyOf():
            return wrapper_name(kind)
        case Nullable():
            raise UnsupportedError("Thrift: expected null as a field of a struct only, got it inside another type")


def _wrapper(kind: TupleOf | AnyOf) -> list[str]:
    inners = inner_types(kind)
    if isinstance(kind, TupleOf):
        word, names = "struct", [item_name(position) for position in range(len(inners))]
    else:
        word, names = "union", [arm_name(inner) for inner in inners]
    rows = [
        f"  {id}: {thrift_type(inner)} {name};" for id, (inner, name) in enumerate(zip(inners, names, strict=True), 1)
    ]
    return ["", f"{word} {wrapper_name(kind)} {{", *rows, "}"]
