"""Predicates of a version's types: whether a tree conforms to the frozen table; the fast part of `check`.

A predicate does not say why not: `check.misfits` walks again for that. Both take trees in canonical form (see
`encoding`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.schema.fieldtable import Definition, Field, frozen_table
from pt2kit.schema.fieldtypes import AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type
from pt2kit.schema.spelling import SPELLED_FLOATS

Predicate = Callable[[Any], bool]

_OPEN_ENDED: Final = Nullable(Scalar("int"))
_KINDS: Final[Mapping[str, type]] = MappingProxyType(
    {"str": str, "int": int, "float": float, "bool": bool, "bytes": str}
)


def canonical_type(type_name: str, field: Field) -> Type:
    """Return the type of a field in a canonical tree: the table's, except for the ends of a range."""
    return _OPEN_ENDED if type_name == "RangeConstraint" else field.type


# One set of predicates per version; they are pure functions of a frozen table.
@functools.cache
def predicates(version: str, *, exact: bool = True) -> Mapping[str, Predicate]:
    """Return a predicate for each type, by name: whether a value is of that type.

    Args:
        version: the name of the table.
        exact: refuse the keys of structs that the table does not know.
    """
    by_name: dict[str, Predicate] = {}
    for name, definition in frozen_table(version).definitions.items():
        by_name[name] = _type_predicate(definition, version, by_name, exact)
    return MappingProxyType(by_name)


def predicate(kind: Type, version: str, *, exact: bool = True) -> Predicate:
    """Return a predicate: whether a value is of a type, in a version."""
    return _predicate(kind, version, predicates(version, exact=exact))


def _predicate(kind: Type, version: str, known: Mapping[str, Predicate]) -> Predicate:
    match kind:
        case Scalar(name):
            return SCALARS[name]
        case Ref(name):
            return known[name] if name in known else lambda value: known[name](value)
        case ListOf(item):
            return _all_of(item, _predicate(item, version, known))
        case DictOf(item):
            values = _values(item, _predicate(item, version, known))
            return lambda value: type(value) is dict and values(value)
        case Nullable(inner):
            entry = _predicate(inner, version, known)
            return lambda value: value is None or entry(value)
        case TupleOf(items):
            entries = tuple(_predicate(item, version, known) for item in items)
            return lambda value: (
                type(value) is list
                and len(value) == len(entries)
                and all(fits(item) for fits, item in zip(entries, value, strict=True))
            )
        case AnyOf(arms):
            # An alternative is one only without keys that it does not know.
            exactly = tuple(_exactly(arm, version) for arm in arms)
            return lambda value: any(fits(value) for fits in exactly)


def _exactly(kind: Type, version: str) -> Predicate:
    """Return a predicate that is looked up when it is used: its table may be incomplete until then."""
    return lambda value: predicate(kind, version)(value)


def _all_of(item: Type, entry: Predicate) -> Predicate:
    if (plain := plain_kind(item)) is None:
        return lambda value: type(value) is list and all(map(entry, value))
    only = frozenset((plain,))
    return lambda value: type(value) is list and (set(map(type, value)) <= only or all(map(entry, value)))


def _values(item: Type, entry: Predicate) -> Predicate:
    if (plain := plain_kind(item)) is None:
        return lambda value: all(map(entry, value.values()))
    only = frozenset((plain,))
    return lambda value: set(map(type, value.values())) <= only or all(map(entry, value.values()))


def plain_kind(kind: Type) -> type | None:
    """Return a Python type whose every value is of a type of the table; None if there is none."""
    match kind:
        case Nullable(inner):
            return plain_kind(inner)
        case Scalar(name):
            return _KINDS[name]
        case _:
            return None


def _type_predicate(definition: Definition, version: str, known: Mapping[str, Predicate], exact: bool) -> Predicate:
    if definition.kind == "enum":
        members = frozenset(member.value for member in definition.members.values())
        return lambda value: type(value) in (int, str) and value in members
    types = {key: canonical_type(definition.name, field) for key, field in definition.fields.items()}
    fields = {key: _predicate(kind, version, known) for key, kind in types.items()}
    kinds = {key: plain for key, kind in types.items() if (plain := plain_kind(kind)) is not None}
    if definition.kind == "union":
        return _union(fields, kinds)
    required = frozenset(key for key, field in definition.fields.items() if field.default is None)
    return _struct(fields, kinds, required, exact)


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
        [(arm, content)] = value.items()
        if type(content) is kinds.get(arm):
            return True
        fits = fields.get(arm)
        return fits is not None and fits(content)

    return union


def _is_float(value: Any) -> bool:
    kind = type(value)
    return kind is float or kind is int or (kind is str and value in SPELLED_FLOATS)


SCALARS: Final[Mapping[str, Predicate]] = MappingProxyType(
    {
        "str": lambda value: type(value) is str,
        "int": lambda value: type(value) is int,
        "float": _is_float,
        "bool": lambda value: type(value) is bool,
        "bytes": lambda value: type(value) is str,
    }
)
"""Scalar type -> whether a value is one."""
