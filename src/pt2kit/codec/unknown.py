"""Unknown keys of a tree (of a newer minor version), kept with their place, and how types of the schema nest."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import fields

from pt2kit.codec.text import parse
from pt2kit.errors import SchemaError
from pt2kit.jsontext import Path, path_text


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
    """Return how values of a type nest; None for those that contain nothing."""
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


Found: TypeAlias = tuple[Path, Any]
"""The place of an unknown key, and its value as a plain tree."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Key that the schema does not have, and its value as JSON text: a tree of it could take fifty times the memory.

    Args:
        path: where the key is.
        text: its value as JSON.
    """

    path: Path
    text: bytes

    @property
    def value(self) -> Any:
        """Return the value as a plain tree."""
        return parse(self.text, str(self))

    def __str__(self) -> str:
        return path_text(self.path)


def take_out_outer(tree: Any, cls: Any, levels: int, path: Path = ()) -> list[Found]:
    """Remove from a tree, in place, the keys that its type does not have, on its outer levels alone.

    Args:
        tree: the plain tree; changed.
        cls: its type.
        levels: of objects below one another, the first of which is the tree.
        path: its location.
    """
    struct = shape(cls)
    if not levels or not isinstance(tree, dict) or not isinstance(struct, StructShape) or struct.is_union:
        return []
    own = [((*path, key), tree.pop(key)) for key in list(tree) if key not in struct.keys]
    below = (take_out_outer(tree[key], struct.keys[key], levels - 1, (*path, key)) for key in list(tree))
    return sorted((*own, *chain.from_iterable(below)), key=lambda item: item[0])


def take_out(tree: Any, known: Any) -> list[Found]:
    """Remove from a tree, in place, the keys that are not in the object made of it.

    Args:
        tree: the plain tree; changed.
        known: the plain tree of the object that it was converted to, which has all other keys.

    Cost: a comparison in C for each level, and Python only for differences.
    """
    removed: list[Found] = []
    stack: list[tuple[Any, Any, Path]] = [(tree, known, ())]
    while stack:
        node, kept, path = stack.pop()
        pairs: Any = ()
        if isinstance(node, dict):
            if node.keys() != kept.keys():
                removed += [((*path, key), node.pop(key)) for key in list(node) if key not in kept]
            pairs = ((key, child, kept[key]) for key, child in node.items())
        elif isinstance(node, list):
            pairs = zip(range(len(node)), node, kept, strict=True)
        stack += [(child, other, (*path, step)) for step, child, other in pairs if child != other]
    return sorted(removed, key=lambda item: item[0])


def put_back(tree: Any, unknown: Iterable[Unknown], *, as_text: bool = False) -> None:
    """Write unknown keys into a tree, in place, where they were.

    Args:
        tree: changed.
        unknown: the keys.
        as_text: put their text there, for the encoder, and not a tree.

    Raises:
        SchemaError: the object that held one of them is no longer there.
    """
    for item in unknown:
        holder = tree
        try:
            for step in item.path[:-1]:
                holder = holder[step]
            holder[item.path[-1]] = msgspec.Raw(item.text) if as_text else item.value
        except (KeyError, IndexError, TypeError):
            raise SchemaError(
                f"{path_text(item.path)}: expected the object that held this unknown key, got nothing there; "
                "the program was changed since it was read"
            ) from None
