"""Reflection of the current version's types: their field table, in the shape of the frozen ones in `history/`.

Generators and tests read this one reflection over the classes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, UNSET, UnsetType
from msgspec.structs import FieldInfo, fields

from pt2kit.schema import types
from pt2kit.schema.wire import Float, Union, Wire

TYPES: Final[tuple[type[Any], ...]] = tuple(
    value for value in vars(types).values() if isinstance(value, type) and value.__module__ == types.__name__
)
"""The class of every type of the current version, in the order of the field tables, in which `types` defines them."""

NAMES: Final = tuple(cls.__name__ for cls in TYPES)
"""Their names."""


# A memo of a pure function over classes, which never change.
@functools.cache
def field_classes(union: type[Union]) -> Mapping[str, type[Any]]:
    """Return field -> the class of its value, of a union that holds structs: "token" -> `InputTokenSpec`."""
    return MappingProxyType({name: get_args(hint)[0] for name, hint in get_type_hints(union).items()})


def field_table() -> dict[str, Any]:
    """Describe every type of the current version as plain data, like the YAML files of `history/`.

    Returns:
        type name -> {"kind": "enum" | "struct" | "union", "fields": …}; an enum's fields are name -> number, the others
        name -> {"type": text, "id": wire id, "default": text where there is one}. Cost: milliseconds, not cached.
    """
    return {cls.__name__: _describe(cls) for cls in TYPES}


def _describe(cls: type[Any]) -> dict[str, Any]:
    if issubclass(cls, IntEnum):
        return {"kind": "enum", "fields": {member.name: member.value for member in cls}}
    hints = get_type_hints(cls, include_extras=True)
    kind = "union" if issubclass(cls, Union) else "struct"
    return {"kind": kind, "fields": {info.name: _field(info, hints[info.name]) for info in fields(cls)}}


def _field(info: FieldInfo, annotation: Any) -> dict[str, Any]:
    inner, *extras = get_args(annotation)
    (wire,) = (extra for extra in extras if isinstance(extra, Wire))
    row = {"type": type_text(inner), "id": wire.id}
    default = _default(info)
    return row if default is None else {**row, "default": default}


def _default(info: FieldInfo) -> str | None:
    if info.default_factory is not NODEFAULT:
        return repr(info.default_factory())
    if info.default is NODEFAULT or info.default is UNSET:
        return None
    return info.default if isinstance(info.default, str) else repr(info.default)


def type_text(annotation: Any) -> str:
    """Return the schema's text for the type of a field: "dict[str, SymInt]", "int | None"."""
    if annotation == Float:
        return "float"
    if annotation is type(None):
        return "None"
    if (origin := get_origin(annotation)) is None:
        return str(annotation.__name__)
    if origin is UnionType or str(origin) == "typing.Union":
        return _union_text(get_args(annotation))
    return f"{origin.__name__}[{', '.join(type_text(arg) for arg in get_args(annotation))}]"


def _union_text(arms: tuple[Any, ...]) -> str:
    floats = set(get_args(Float))
    present = [arm for arm in arms if arm is not UnsetType]
    if floats <= set(present):
        present = [float, *(arm for arm in present if arm not in floats)]
    return " | ".join(type_text(arm) for arm in present)
