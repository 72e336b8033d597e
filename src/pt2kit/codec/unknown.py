"""Keys that the schema does not know (a newer minor version): taken out of a tree, kept with their place, put back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pt2kit.codec.shape import DictShape, ListShape, StructShape, shape
from pt2kit.codec.text import Path, children, path_text
from pt2kit.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Unknown:
    """A key that the schema does not know, and its value as a plain tree."""

    path: Path
    value: Any

    def __str__(self) -> str:
        return path_text(self.path)


def take_out(tree: Any, annotation: Any) -> tuple[Unknown, ...]:
    """Remove from a tree, in place, the keys that the type does not know; unknown arms of unions stay.

    Args:
        tree: the plain tree; changed.
        annotation: the type it should have. Where the tree does not fit it, nothing is removed.
    """
    found: list[Unknown] = []
    stack: list[tuple[Any, Any, Path]] = [(tree, annotation, ())]
    while stack:
        node, kind, path = stack.pop()
        match shape(kind), node:
            case StructShape(_, keys, is_union), dict():
                if not is_union:
                    found += [Unknown((*path, key), node.pop(key)) for key in list(node) if key not in keys]
                stack += [(node[key], keys[key], (*path, key)) for key in node if key in keys]
            case (ListShape(inner), list()) | (DictShape(inner), dict()):
                stack += [(child, inner, (*path, key)) for key, child in children(node)]
    return tuple(sorted(found, key=lambda item: path_text(item.path)))


def put_back(tree: Any, unknown: Iterable[Unknown]) -> None:
    """Write unknown keys into a tree, in place, where they were.

    Raises:
        SchemaError: the object that held one of them is no longer there.
    """
    for item in unknown:
        holder = tree
        try:
            for step in item.path[:-1]:
                holder = holder[step]
            holder[item.path[-1]] = item.value
        except (KeyError, IndexError, TypeError):
            raise SchemaError(
                f"{path_text(item.path)}: expected the object that held this unknown key, got nothing there; "
                "the program was changed since it was read"
            ) from None
