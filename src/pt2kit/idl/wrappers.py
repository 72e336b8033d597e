"""Wrapper messages for types that a language cannot spell in place (tuples, lists in lists, …), and their names."""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit.errors import UnsupportedError
from pt2kit.idl.text import upper_snake
from pt2kit.schema.fieldtable import Table
from pt2kit.schema.fieldtypes import AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type, inner_types

_SCALARS = {"int": "Int", "float": "Float", "str": "String", "bool": "Bool", "bytes": "Bytes"}


def wrapper_name(kind: Type) -> str:
    """Return the name of a type that holds another: "IntListList", "ArgumentDict", "BufferOrExternalBuffer"."""
    match kind:
        case Scalar(name):
            return _SCALARS[name]
        case Ref(name):
            return name
        case ListOf(item):
            return f"{wrapper_name(item)}List"
        case DictOf(value):
            return f"{wrapper_name(value)}Dict"
        case Nullable(inner):
            return f"Optional{wrapper_name(inner)}"
        case TupleOf(items):
            return f"{''.join(map(wrapper_name, items)) or 'Empty'}Tuple"
        case AnyOf(arms):
            return "Or".join(map(wrapper_name, arms))


def entry_name(value: Type) -> str:
    """Return the name of a type that holds a key and its value."""
    return f"{wrapper_name(value)}Entry"


def arm_name(kind: Type) -> str:
    """Return the name of one of several types inside the one that holds them: "as_external_buffer"."""
    return f"as_{upper_snake(wrapper_name(kind)).lower()}"


def item_name(position: int) -> str:
    """Return the name of an item of a tuple, from 0."""
    return f"item{position}"


def all_types(table: Table) -> Iterator[Type]:
    """Yield every type of every field and every type inside those, inner ones first, in the order of the table."""
    for definition in table.definitions.values():
        for field in definition.fields.values():
            yield from nested(field.type)


def nested(kind: Type) -> Iterator[Type]:
    """Yield the types inside a type, inner ones first, and then the type itself."""
    for inner in inner_types(kind):
        yield from nested(inner)
    yield kind


def check_names(names: Iterator[str], table: Table, language: str) -> None:
    """Refuse a table that gives a type a name which the generated file needs for something of its own.

    Raises:
        UnsupportedError: it does.
    """
    for name in names:
        if name in table.definitions:
            raise UnsupportedError(f"{language}: expected no type named {name}, which the file itself needs, got one")
