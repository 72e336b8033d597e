"""The frozen table of a version -> a predicate per type: whether a tree conforms to it; the quick side of `check`.

A predicate does not say why not: `check.misfits` walks again for that. Both take trees in canonical form (see
`encoding`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.schema.tables import Field, Shape, Type, parse_shape, table

Predicate = Callable[[Any], bool]

SPELLED_FLOATS: Final = frozenset({"Infinity", "-Infinity", "NaN"})
"""Floats that JSON has no number for, as trees hold them."""

_OPEN_ENDED: Final = parse_shape("int | None")
_KINDS: Final[Mapping[str, type]] = MappingProxyType(
    {"str": str, "int": int, "float": float, "bool": bool, "bytes": str, "None": type(None)}
)


def shape_of(type_name: str, row: Field) -> Shape:
    """The shape of a field in a canonical tree: the table's, but for the ends of a range."""
    return _OPEN_ENDED if type_name == "RangeConstraint" else row.shape


# One set of predicates per version; they are pure functions of a frozen table.
@functools.cache
def predicates(version: str, *, exact: bool = True) -> Mapping[str, Predicate]:
    """Type name -> whether a value is of that type.

    Args:
        version: the name of the table.
        exact: refuse the keys of structs that the table does not know.
    """
    found: dict[str, Predicate] = {}
    for name, row in table(version).items():
        found[name] = _type_predicate(name, row, version, found, exact)
    return MappingProxyType(found)


def predicate(shape: Shape, version: str, *, exact: bool = True) -> Predicate:
    """Whether a value is of a shape, in a version."""
    return _predicate(shape, version, predicates(version, exact=exact))


def _predicate(shape: Shape, version: str, known: Mapping[str, Predicate]) -> Predicate:
    if shape.kind == "leaf":
        return LEAVES[shape.name]
    if shape.kind == "type":
        name = shape.name
        return known[name] if name in known else lambda value: known[name](value)
    if shape.kind == "either":
        # An alternative is one only without keys that it does not know.
        exactly = tuple(_exactly(part, version) for part in shape.inner)
        return lambda value: any(fits(value) for fits in exactly)
    inner = tuple(_predicate(part, version, known) for part in shape.inner)
    match shape.kind:
        case "list":
            return _all_of(shape.inner[0], inner[0])
        case "dict":
            values = _values(shape.inner[0], inner[0])
            return lambda value: type(value) is dict and values(value)
        case "optional":
            (entry,) = inner
            return lambda value: value is None or entry(value)
    return lambda value: (
        type(value) is list
        and len(value) == len(inner)
        and all(fits(entry) for fits, entry in zip(inner, value, strict=True))
    )


def _exactly(shape: Shape, version: str) -> Predicate:
    """A predicate that is looked up when it is used: its table may be half made."""
    return lambda value: predicate(shape, version)(value)


def _all_of(shape: Shape, entry: Predicate) -> Predicate:
    if (kind := plain_kind(shape)) is None:
        return lambda value: type(value) is list and all(map(entry, value))
    only = frozenset((kind,))
    return lambda value: type(value) is list and (set(map(type, value)) <= only or all(map(entry, value)))


def _values(shape: Shape, entry: Predicate) -> Predicate:
    if (kind := plain_kind(shape)) is None:
        return lambda value: all(map(entry, value.values()))
    only = frozenset((kind,))
    return lambda value: set(map(type, value.values())) <= only or all(map(entry, value.values()))


def plain_kind(shape: Shape) -> type | None:
    """A Python type whose every value is of the shape; None where there is none."""
    if shape.kind == "optional":
        return plain_kind(shape.inner[0])
    return _KINDS[shape.name] if shape.kind == "leaf" else None


def plain_kinds(name: str, row: Type) -> dict[str, type]:
    """Field -> such a type, for the fields that have one."""
    found = {key: plain_kind(shape_of(name, field)) for key, field in row.fields.items()}
    return {key: kind for key, kind in found.items() if kind is not None}


def required_fields(row: Type) -> frozenset[str]:
    """The fields that a canonical tree must have."""
    return frozenset(key for key, field in row.fields.items() if not field.has_default)


def _type_predicate(name: str, row: Type, version: str, known: Mapping[str, Predicate], exact: bool) -> Predicate:
    if row.kind == "enum":
        members = frozenset(row.members.values())
        return lambda value: type(value) in (int, str) and value in members
    fields = {key: _predicate(shape_of(name, field), version, known) for key, field in row.fields.items()}
    kinds = plain_kinds(name, row)
    return _union(fields, kinds) if row.kind == "union" else _struct(fields, kinds, required_fields(row), exact)


def _struct(
    fields: Mapping[str, Predicate], kinds: Mapping[str, type], required: frozenset[str], exact: bool
) -> Predicate:
    def struct(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        for key, entry in value.items():
            if type(entry) is kinds.get(key):
                continue
            fits = fields.get(key)
            if fits is None:
                if exact:
                    return False
            elif not fits(entry):
                return False
        return True

    return struct


def _union(fields: Mapping[str, Predicate], kinds: Mapping[str, type]) -> Predicate:
    def union(value: Any) -> bool:
        if type(value) is not dict or len(value) != 1:
            return False
        [(arm, held)] = value.items()
        if type(held) is kinds.get(arm):
            return True
        fits = fields.get(arm)
        return fits is not None and fits(held)

    return union


def _is_float(value: Any) -> bool:
    kind = type(value)
    return kind is float or kind is int or (kind is str and value in SPELLED_FLOATS)


LEAVES: Final[Mapping[str, Predicate]] = MappingProxyType(
    {
        "str": lambda value: type(value) is str,
        "int": lambda value: type(value) is int,
        "float": _is_float,
        "bool": lambda value: type(value) is bool,
        "bytes": lambda value: type(value) is str,
        "None": lambda value: value is None,
    }
)
"""Leaf -> whether a value is one."""
