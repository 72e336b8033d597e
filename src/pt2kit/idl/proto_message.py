"""The JSON of a program -> messages of the generated Protocol Buffers definition, without loss.

Knows no protobuf library: callers pass the message class that their protoc made of `proto.emit`. What the messages
cannot hold (keys that the schema does not know, nesting beyond what protobuf parsers accept) is refused.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

from pt2kit.idl.proto_place import INT, MAX_BITS, ROOT, Place, Types, is_plain, known_type, make_types
from pt2kit.idl.wrappers import arm_name, item_name
from pt2kit.schema.fieldtable import Definition, Field, Table
from pt2kit.schema.fieldtypes import AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type, type_text

_WORDS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def to_message(tree: Any, cls: Any, table: Table) -> Any:
    """Turn a JSON tree into a message.

    Args:
        tree: as `codec.parse` gives it; not changed.
        cls: the message class, such as `ExportedProgram`; its name says which type the tree has.
        table: the table that the class was generated from.

    Raises:
        SchemaError: the tree does not fit the table, with the path of the first misfit.
        LimitError: it nests deeper than protobuf allows.
    """
    types = make_types(table)
    message = cls()
    _fill(types, message, Ref(known_type(types, cls.DESCRIPTOR.name)), tree, ROOT)
    return message


def _fill(types: Types, message: Any, kind: Type, value: Any, place: Place) -> None:
    """Fill the message that holds a value of a type that needs one."""
    place = place.deeper()
    match kind:
        case Ref(name):
            definition = types.definitions[name]
            fill = _fill_union if definition.kind == "union" else _fill_struct
            fill(types, message, definition, value, place)
        case ListOf(item):
            _put_items(types, message, "items", item, value, place)
        case DictOf(inner):
            _put_entries(types, message, "items", inner, value, place)
        case TupleOf(items):
            if not isinstance(value, list) or len(value) != len(items):
                place.refuse(f"a list of {len(items)}", value)
            for position, (item, one) in enumerate(zip(items, value, strict=True)):
                _put(types, message, item_name(position), item, one, place.at(position))
        case AnyOf(arms):
            arm = next((arm for arm in arms if _looks_like(types, arm, value)), arms[-1])
            _put(types, message, arm_name(arm), arm, value, place)


def _fill_struct(types: Types, message: Any, definition: Definition, value: Any, place: Place) -> None:
    if not isinstance(value, dict):
        place.refuse(f"an object ({definition.name})", value)
    seen = 0
    for field in definition.fields.values():
        if field.name not in value:
            if field.default is None:
                place.refuse(f"the key {field.name}", None)
            continue
        seen += 1
        _put_field(types, message, field, value[field.name], place.at(field.name))
    if seen != len(value):
        known = {field.name for field in definition.fields.values()}
        unknown = next(key for key in value if key not in known)
        place.refuse("only keys of this schema, because messages have no room for others", unknown)


def _put_field(types: Types, message: Any, field: Field, value: Any, place: Place) -> None:
    match field.type:
        case ListOf(item):
            _put_items(types, message, field.name, item, value, place)
        case DictOf(inner):
            _put_entries(types, message, field.name, inner, value, place)
        case Nullable(inner):
            if value is not None:
                _put(types, message, field.name, inner, value, place)
        case kind:
            _put(types, message, field.name, kind, value, place)


def _fill_union(types: Types, message: Any, definition: Definition, value: Any, place: Place) -> None:
    if not isinstance(value, dict):
        place.refuse(f"an object with one key ({definition.name})", value)
    arms = {key: content for key, content in value.items() if content is not None} if types.null_unions else value
    if len(arms) != 1:
        place.refuse("exactly one key", f"{len(arms)} ({', '.join(map(str, arms))})")
    ((name, content),) = arms.items()
    for field in definition.fields.values():
        if field.name == name:
            _put(types, message, name, field.type, content, place.at(name))
            return
    place.refuse(f"a key of {definition.name}", name)


def _put(types: Types, message: Any, name: str, kind: Type, value: Any, place: Place) -> None:
    """Set a field that is not repeated."""
    if kind == INT:
        fits = _fits(_checked(types, kind, value, place))
        setattr(message, name if fits else f"{name}_digits", value if fits else str(value))
    elif is_plain(types, kind):
        setattr(message, name, _checked(types, kind, value, place))
    else:
        submessage = getattr(message, name)
        # A message without fields of its own counts as absent until it is said to be there.
        submessage.SetInParent()
        _fill(types, submessage, kind, value, place)


def _put_items(types: Types, message: Any, name: str, item: Type, value: Any, place: Place) -> None:
    if not isinstance(value, list):
        place.refuse("a list", value)
    if is_plain(types, item):
        plain = [_checked(types, item, one, place.at(index)) for index, one in enumerate(value)]
        if item != INT or all(map(_fits, plain)):
            getattr(message, name).extend(plain)
        else:
            getattr(message, f"{name}_digits").extend(map(str, plain))
        return
    items = getattr(message, name)
    for index, one in enumerate(value):
        _fill(types, items.add(), item, one, place.at(index))


def _put_entries(types: Types, message: Any, name: str, inner: Type, value: Any, place: Place) -> None:
    if not isinstance(value, dict):
        place.refuse("an object", value)
    entries, place = getattr(message, name), place.deeper()
    for key, content in value.items():
        entry = entries.add()
        entry.key = _checked(types, Scalar("str"), key, place)
        _put(types, entry, "value", inner, content, place.at(key))


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _checked(types: Types, kind: Type, value: Any, place: Place) -> Any:
    """The value of a scalar or an enum as a message holds it."""
    match kind, value:
        case (Scalar("bool"), bool()) | (Scalar("float"), float()):
            return value
        case Scalar("int"), int() if not isinstance(value, bool) and value.bit_length() <= MAX_BITS:
            return value
        case Scalar("float"), int() if not isinstance(value, bool) and abs(value) <= 2**53:
            return float(value)
        case Scalar("float"), str() if value in _WORDS:
            return _WORDS[value]
        case Scalar("str"), str() if not any("\ud800" <= char <= "\udfff" for char in value):
            return value
        case Scalar("bytes"), str():
            return _from_base64(value, place)
        case Ref(name), int() | str() if not isinstance(value, bool) and value in types.enums[name]:
            return types.enums[name][value]
    return place.refuse(f"a value of type {type_text(kind)}", value)


def _from_base64(value: str, place: Place) -> bytes:
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        place.refuse("base64", value)
    if base64.b64encode(data).decode() != value:
        place.refuse("base64 with padding and no stray bits", value)
    return data


def _looks_like(types: Types, kind: Type, value: Any) -> bool:
    """Whether a value can be one of a type, as far as its outermost shape tells."""
    match kind:
        case Scalar("int"):
            return isinstance(value, int) and not isinstance(value, bool)
        case Scalar("bool"):
            return isinstance(value, bool)
        case Scalar("float"):
            return isinstance(value, float) or (isinstance(value, str) and value in _WORDS)
        case Ref(name) if isinstance(value, dict):
            fields = types.definitions[name].fields.values()
            required = {field.name for field in fields if field.default is None}
            return required <= value.keys() <= {field.name for field in fields}
    return False
