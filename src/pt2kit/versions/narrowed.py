"""The tables of two versions -> what of a tree of the first must be looked at to know that it is of the second.

Versions on the line differ little, so most types of one take every value of the other. What is left are the values of
types that were narrowed: unions that lost an arm, enums that lost a member, structs that gained or lost a field; and
what holds them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from pt2kit.schema.tables import Shape, Type, table
from pt2kit.versions.predicates import Predicate, predicate, required_fields, shape_of

Known = Mapping[str, Predicate | None]


# Pure functions of two frozen tables, for the neighbours on the line of versions.
@functools.cache
def accepted(version: str, before: str) -> frozenset[str]:
    """The types of which every value that fits the table of `before` exactly, fits that of `version` exactly."""
    new, old = table(version), table(before)
    found = {name for name in new if _is_common(name, version, before)}
    while True:
        kept = {name for name in found if _takes(name, new[name], old[name], found)}
        if kept == found:
            return frozenset(found)
        found = kept


def _takes(name: str, new: Type, old: Type, types: AbstractSet[str]) -> bool:
    if new.kind == "enum":
        return set(old.members.values()) <= set(new.members.values())
    if new.kind == "struct" and not required_fields(new) <= required_fields(old):
        return False
    return all(
        key in new.fields and _takes_shape(shape_of(name, new.fields[key]), shape_of(name, field), types)
        for key, field in old.fields.items()
    )


def _takes_shape(new: Shape, old: Shape, types: AbstractSet[str]) -> bool:
    if new.kind == "optional" and old.kind != "optional":
        return _takes_shape(new.inner[0], old, types)
    if (new.kind, new.name, len(new.inner)) != (old.kind, old.name, len(old.inner)) or new.kind == "either":
        return False
    if new.kind == "type":
        return new.name in types
    return all(_takes_shape(mine, theirs, types) for mine, theirs in zip(new.inner, old.inner, strict=True))


@functools.cache
def narrowed(version: str, before: str) -> Mapping[str, Predicate | None]:
    """Type name -> whether a value that fits the table of `before` exactly fits that of `version` exactly.

    Returns:
        all types of both versions that are of one kind; None for those of which every value does.
    """
    new, old, types = table(version), table(before), accepted(version, before)
    found: dict[str, Predicate | None] = {}
    for name, row in new.items():
        if name in types:
            found[name] = None
        elif _is_common(name, version, before):
            found[name] = _narrowed_type(name, row, old[name], version, before, found)
    return MappingProxyType(found)


def narrowed_shape(shape: Shape, theirs: Shape, version: str, before: str) -> Predicate | None:
    """The same for a value of the shape `theirs`: whether it is of `shape`, or None if it is anyway."""
    return _shape(shape, theirs, version, before, narrowed(version, before))


def _shape(shape: Shape, theirs: Shape, version: str, before: str, known: Known) -> Predicate | None:
    if _takes_shape(shape, theirs, accepted(version, before)):
        return None
    if shape.kind == "optional":
        inner = _shape(shape.inner[0], theirs.inner[0] if theirs.kind == "optional" else theirs, version, before, known)
        return inner and (lambda value: value is None or inner(value))
    if shape.kind == theirs.kind == "list":
        entry = _shape(shape.inner[0], theirs.inner[0], version, before, known)
        return None if entry is None else _every(entry)
    if shape.kind == theirs.kind == "dict":
        entry = _shape(shape.inner[0], theirs.inner[0], version, before, known)
        return None if entry is None else _every_value(entry)
    name = shape.name
    if shape.kind != "type" or shape != theirs or not _is_common(name, version, before):
        return predicate(shape, version)
    return known[name] if name in known else lambda value: (fits := known[name]) is None or fits(value)


def _every(entry: Predicate) -> Predicate:
    return lambda value: all(map(entry, value))


def _every_value(entry: Predicate) -> Predicate:
    return lambda value: all(map(entry, value.values()))


def _is_common(name: str, version: str, before: str) -> bool:
    new, old = table(version), table(before)
    return name in new and name in old and new[name].kind == old[name].kind


def _narrowed_type(name: str, new: Type, old: Type, version: str, before: str, known: Known) -> Predicate:
    if new.kind == "enum":
        return predicate(Shape("type", name), version)
    fields = {
        key: _shape(shape_of(name, new.fields[key]), shape_of(name, theirs), version, before, known)
        for key, theirs in old.fields.items()
        if key in new.fields
    }
    return _union(fields) if new.kind == "union" else _struct(fields, required_fields(new))


def _struct(fields: Mapping[str, Predicate | None], required: frozenset[str]) -> Predicate:
    checks = tuple((key, fits) for key, fits in fields.items() if fits is not None)
    known = frozenset(fields)
    if len(checks) == 1:
        return _struct_of_one(*checks[0], required, known)

    def struct(value: dict[str, Any]) -> bool:
        keys = value.keys()
        if not (required <= keys and keys <= known):
            return False
        return all(fits(value[key]) for key, fits in checks if key in value)

    return struct


def _struct_of_one(key: str, fits: Predicate, required: AbstractSet[str], known: AbstractSet[str]) -> Predicate:
    """The same where only one field must be looked at, as for most structs."""

    def struct(value: dict[str, Any]) -> bool:
        keys = value.keys()
        return required <= keys and keys <= known and (key not in value or fits(value[key]))

    return struct


def _union(fields: Mapping[str, Predicate | None]) -> Predicate:
    def union(value: dict[str, Any]) -> bool:
        [arm] = value
        if arm not in fields:
            return False
        fits = fields[arm]
        return fits is None or fits(value[arm])

    return union
