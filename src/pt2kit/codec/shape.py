"""A type of the schema -> how a tree of it nests: what each key, entry or value holds."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import UNSET, Struct
from msgspec.structs import fields


@dataclass(frozen=True, slots=True)
class StructShape:
    """An object with known keys; `is_union` where exactly one of them may be there."""

    cls: type[Struct]
    keys: Mapping[str, Any]
    is_union: bool


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list whose entries all have the type `inner`."""

    inner: Any


@dataclass(frozen=True, slots=True)
class DictShape:
    """An object with free keys whose values all have the type `inner`."""

    inner: Any


def shape(annotation: Any) -> StructShape | ListShape | DictShape | None:
    """Describe how values of a type nest; None for those that hold nothing."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return _struct_shape(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list:
        return ListShape(args[0])
    if origin is dict:
        return DictShape(args[1])
    nested = [inner for arg in args if (inner := shape(arg)) is not None]
    return nested[0] if nested else None


# A memo of a pure function over classes, which never change.
@functools.cache
def _struct_shape(cls: type[Struct]) -> StructShape:
    infos = fields(cls)
    is_union = bool(infos) and all(info.default is UNSET for info in infos)
    return StructShape(cls, get_type_hints(cls), is_union)
