"""Thrift definition of a field table: the same types, ids and optionality as torch's `export_schema.thrift`.

What Thrift lacks gets a type of its own: fixed-length arrays become structs, values of one of several types unions.
Its integers have 64 bits; a number beyond that is in JSON only.
"""

from __future__ import annotations

from typing import Final

from pt2kit.errors import UnsupportedError
from pt2kit.idl.text import (
    all_types,
    banner,
    check_names,
    comment,
    enum_rows,
    members,
    noted,
    safe_name,
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
    Ref,
    Scalar,
    Table,
    TupleOf,
    Type,
)
from pt2kit.schema.wire import as_written

_SCALARS = {"int": "i64", "float": "double", "str": "string", "bool": "bool", "bytes": "binary"}
# The language's own words, and those of the languages it generates, which it refuses as names.
_WORDS: Final = """
BEGIN END abstract alias and args as assert begin binary bool break byte case catch class clone const continue
cpp_include declare def default del delete do double dynamic elif else elseif elsif end enddeclare endfor endforeach
endif endswitch endwhile ensure enum except exception exec extends finally float for foreach from function global goto
i16 i32 i64 i8 if implements import in include inline instanceof interface is lambda list map module namespace native
new next nil not oneway optional or pass print private protected public raise redo register required rescue retry
return self service set sizeof static string struct super switch synchronized then this throw throws transient try
typedef u16 u32 u64 u8 undef union unless unsigned until use var virtual void volatile when while with xor yield
"""
_RESERVED: Final = frozenset(_WORDS.split())


def emit(types: Table) -> str:
    """Write a table as one Thrift file."""
    table = as_written(types)
    lines = [f"// {line}" for line in banner(types, "thrift")]
    suffix = version_suffix(types.version)
    lines += ["", f"namespace py pt2.{suffix}", f"namespace cpp pt2.{suffix}", f"namespace java pt2.{suffix}"]
    wrapped = {wrapper_name(kind): kind for kind in all_types(table) if isinstance(kind, TupleOf | AnyOf)}
    check_names(wrapped, table, "Thrift")
    for kind in wrapped.values():
        lines += _wrapper(kind)
    for definition in table.definitions.values():
        lines += ["", *comment("//", definition.doc), *_definition(definition)]
    return "\n".join(lines) + "\n"


def _definition(definition: Definition) -> list[str]:
    rows = enum_rows(definition, _RESERVED)
    rows += [noted(f"  {field.id}: {_field(field, definition)};", field.since) for field in definition.fields.values()]
    return [f"{definition.kind} {definition.name} {{", *rows, "}"]


def _field(field: Field, definition: Definition) -> str:
    kind = field.type
    if isinstance(kind, Nullable):
        if definition.kind == "union":
            raise UnsupportedError(f"{definition.name}.{field.name}: Thrift: expected a union without null, got one")
        return f"optional {thrift_type(kind.inner)} {safe_name(field.name, _RESERVED)}"
    return f"{thrift_type(kind)} {safe_name(field.name, _RESERVED)}"


def thrift_type(kind: Type) -> str:
    """Return the Thrift spelling of a type.

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
    rows = [f"  {id}: {thrift_type(inner)} {name};" for id, (name, inner) in enumerate(members(kind), 1)]
    return ["", f"{'struct' if isinstance(kind, TupleOf) else 'union'} {wrapper_name(kind)} {{", *rows, "}"]
