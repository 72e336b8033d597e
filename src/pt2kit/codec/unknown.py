"""Keys that the schema does not know (a newer minor version): taken out of a tree, kept with their place, put back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pt2kit.codec.shape import StructShape, shape
from pt2kit.errors import SchemaError
from pt2kit.jsontext import Path, path_text


@dataclass(frozen=True, slots=True)
class Unknown:
    """A key that the schema does not know, and its value as a plain tree."""

    path: Path
    value: Any

    def __str__(self) -> str:
        return path_text(self.path)


def take_out_outer(tree: Any, cls: Any, levels: int, path: Path = ()) -> tuple[Unknown, ...]:
    """Remove from a tree, in place, the keys that its type does not have, on its outer levels alone.

    Args:
        tree: the plain tree; changed.
        cls: its type.
        levels: of objects below one another, the first of which is the tree.
        path: where it stands.
    """
    struct = shape(cls)
    if not levels or not isinstance(tree, dict) or not isinstance(struct, StructShape) or struct.is_union:
        return ()
    own = [Unknown((*path, key), tree.pop(key)) for key in list(tree) if key not in struct.keys]
    below = (take_out_outer(tree[key], struct.keys[key], levels - 1, (*path, key)) for key in list(tree))
    return tuple(sorted((*own, *chain.from_iterable(below)), key=lambda item: item.path))


def take_out(tree: Any, known: Any) -> tuple[Unknown, ...]:
    """Remove from a tree, in place, the keys that are not in what was made of it.

    Args:
        tree: the plain tree; changed.
        known: the plain tree of the object that it was converted to, which has all other keys.

    Cost: a comparison in C for each level, and Python only for what differs.
    """
    removed: list[Unknown] = []
    stack: list[tuple[Any, Any, Path]] = [(tree, known, ())]
    while stack:
        node, kept, path = stack.pop()
        pairs: Any = ()
        if isinstance(node, dict):
            if node.keys() != kept.keys():
                removed += [Unknown((*path, key), node.pop(key)) for key in list(node) if key not in kept]
            pairs = ((key, child, kept[key]) for key, child in node.items())
        elif isinstance(node, list):
            pairs = zip(range(len(node)), node, kept, strict=True)
        stack += [(child, other, (*path, step)) for step, child, other in pairs if child != other]
    return tuple(sorted(removed, key=lambda item: item.path))


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
