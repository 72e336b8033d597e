"""Messages of the generated Protocol Buffers definition -> the JSON of a program, without loss.

The reverse of `proto_message`: what went in comes back equal, the order of keys too; a key that was left out comes back
with its default.
"""

from __future__ import annotations

import base64
import math
from typing import Any

from pt2kit.errors import SchemaError
from pt2kit.idl.proto_place import INT, MAX_DIGITS, ROOT, Place, Types, is_plain, known_type, make_types
from pt2kit.idl.wrappers import arm_name, item_name
from pt2kit.schema.fieldtable import Definition, Field, Table, default_value
from pt2kit.schema.fieldtypes import AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type


def to_tree(message: Any, table: Table) -> Any:
    """Turn a message into the JSON tree it stands for, all keys written, in the order of the table.

    Args:
        message: of a class generated from `table`; not changed. Fields that its class does not know are not seen.

    Raises:
        SchemaError: a union is empty, or an integer's digits are none.
        LimitError: it nests deeper than `MAX_DEPTH`.
    """
    types = make_types(table)
    return _read(types, message, Ref(known_type(types, message.DESCRIPTOR.name)), ROOT)


def _read(types: Types, message: Any, kind: Type, place: Place) -> Any:
    """The value of a type that is held by a message."""
    place = place.deeper()
    match kind:
        case Ref(name):
            definition = types.definitions[name]
            if definition.kind == "union":
                return _read_union(types, message, definition, place)
            return {
                field.name: _read_field(types, message, field, place.at(field.name))
                for field in definition.fields.values()
            }
        case ListOf(item):
            return _read_items(types, message, "items", item, place)
        case DictOf(inner):
            return _read_entries(types, message, "items", inner, place)
        case TupleOf(items):
            return [_get(types, message, item_name(i), item, place.at(i)) for i, item in enumerate(items)]
        case AnyOf(arms):
            name = _arm(message, place)
            arm = next(arm for arm in arms if arm_name(arm) == name)
            return _get(types, message, name, arm, place)
    raise SchemaError(f"{place}: expected a type that a message holds, got {kind}")


def _read_field(types: Types, message: Any, field: Field, place: Place) -> Any:
    match field.type:
        case ListOf(item):
            return _read_items(types, message, field.name, item, place)
        case DictOf(inner):
            return _read_entries(types, message, field.name, inner, place)
        case Nullable(inner):
            return _get(types, message, field.name, inner, place) if _is_set(message, field.name, inner) else None
        case kind:
            if field.default is not None and not _is_set(message, field.name, kind):
                return default_value(field)
            return _get(types, message, field.name, kind, place)


def _is_set(message: Any, name: str, kind: Type) -> bool:
    return bool(message.HasField(name)) or (kind == INT and bool(getattr(message, f"{name}_digits")))


def _read_union(types: Types, message: Any, definition: Definition, place: Place) -> dict[str, Any]:
    name = _arm(message, place)
    field = next(field for field in definition.fields.values() if field.name == name)
    content = _get(types, message, name, field.type, place.at(name))
    if not types.null_unions:
        return {name: content}
    return {field.name: content if field.name == name else None for field in definition.fields.values()}


def _arm(message: Any, place: Place) -> str:
    """The arm that is set; that of the number where its digits are."""
    name = message.WhichOneof("arm")
    if name is None:
        place.refuse("one field of the union set", None)
    known = message.DESCRIPTOR.fields_by_name
    base = str(name).removesuffix("_digits")
    return base if base in known else str(name)


def _get(types: Types, message: Any, name: str, kind: Type, place: Place) -> Any:
    """The value of a field that is not repeated."""
    if kind == INT and (digits := getattr(message, f"{name}_digits")):
        return _from_digits(digits, place)
    value = getattr(message, name)
    return _plain(types, kind, value, place) if is_plain(types, kind) else _read(types, value, kind, place)


def _read_items(types: Types, message: Any, name: str, item: Type, place: Place) -> list[Any]:
    if item == INT and (digits := getattr(message, f"{name}_digits")):
        return [_from_digits(one, place.at(index)) for index, one in enumerate(digits)]
    if is_plain(types, item):
        return [_plain(types, item, one, place) for one in getattr(message, name)]
    return [_read(types, one, item, place.at(index)) for index, one in enumerate(getattr(message, name))]


def _read_entries(types: Types, message: Any, name: str, inner: Type, place: Place) -> dict[str, Any]:
    by_key: dict[str, Any] = {}
    place = place.deeper()
    for entry in getattr(message, name):
        if entry.key in by_key:
            place.refuse("each key once", f"{entry.key} twice")
        by_key[entry.key] = _get(types, entry, "value", inner, place.at(entry.key))
    return by_key


def _plain(types: Types, kind: Type, value: Any, place: Place) -> Any:
    match kind:
        case Scalar("float") if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Scalar("bytes"):
            return base64.b64encode(value).decode()
        case Ref(name):
            for member, number in types.enums[name].items():
                if number == value:
                    return member
            place.refuse(f"a number of {name}", str(value))
    return value


def _from_digits(text: str, place: Place) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS):
        place.refuse(f"an integer in at most {MAX_DIGITS} decimal digits", text)
    return int(text)
