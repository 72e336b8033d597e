"""Editable trees (pytrees) of a call's inputs or outputs, whose leaves are the inputs or outputs themselves.

What can be taken out or put in is an item of a tuple, a list or a dict. Other containers have a shape of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from pt2kit import treespec
from pt2kit.errors import GraphError
from pt2kit.messages import quote
from pt2kit.treespec.spec import LEAF, TreeSpec

SEQUENCES: Final = ("builtins.tuple", "builtins.list", "torch.fx.immutable_collections.immutable_list")
MAPPINGS: Final = (
    "builtins.dict",
    "collections.OrderedDict",
    "torch.fx.immutable_collections.immutable_dict",
)


class Branch:
    """A container in a tree: its type, its context as text, and its children in order."""

    __slots__ = ("children", "context", "type")

    def __init__(self, type: str, context: str, children: list[Tree]) -> None:
        self.type = type
        self.context = context
        self.children = children

    @property
    def keys(self) -> list[Any] | None:
        """Return the keys of a dict; None for any other container."""
        if self.type not in MAPPINGS:
            return None
        keys = treespec.inner_context(TreeSpec(self.type, self.context))
        return keys if isinstance(keys, list) else None

    @keys.setter
    def keys(self, keys: Sequence[Any]) -> None:
        self.context = treespec.context_text(list(keys))

    @property
    def is_open(self) -> bool:
        """Return whether children can be added and removed."""
        return self.type in SEQUENCES or self.keys is not None

    def insert(self, position: int, child: Tree, key: str | None, edit: str) -> None:
        """Insert a child.

        Raises:
            GraphError: a container of a shape of its own, or a dict without a new key.
        """
        keys = self.keys
        if not self.is_open:
            raise GraphError(f"{edit}: expected a tuple, list or dict, got a {self.type}, which has its own shape")
        if keys is not None:
            if key is None or key in keys:
                got = "none" if key is None else f"{quote(key)}, which is there"
                raise GraphError(f"{edit}: expected a new key for the dict ({', '.join(map(str, keys))}), got {got}")
            keys.insert(position, key)
            self.keys = keys
        self.children.insert(position, child)

    def remove(self, child: Tree, edit: str) -> None:
        """Remove a child.

        Raises:
            GraphError: a container of a shape of its own.
        """
        if not self.is_open:
            raise GraphError(f"{edit}: expected an item of a tuple, list or dict, got one of a {self.type}")
        position = next(i for i, one in enumerate(self.children) if one is child)
        keys = self.keys
        if keys is not None:
            del keys[position]
            self.keys = keys
        del self.children[position]


Tree: TypeAlias = "Branch | Any"
"""A container or a leaf."""


def tuple_of(children: Sequence[Tree]) -> Branch:
    """Return a tuple."""
    return Branch("builtins.tuple", '"null"', list(children))


def grow(spec: TreeSpec, leaves: Sequence[Any]) -> Tree:
    """Return the tree of a spec with the given items at its leaves, as many as it has."""
    rest = iter(leaves)
    return treespec.fold(
        spec, lambda _: next(rest), lambda node, children: Branch(str(node.type), node.context, children)
    )


def spec_of(tree: Tree) -> TreeSpec:
    """Return the spec of a tree."""
    if not isinstance(tree, Branch):
        return LEAF
    return TreeSpec(tree.type, tree.context, tuple(map(spec_of, tree.children)))


def leaves_of(tree: Tree) -> Iterator[Any]:
    """Yield the items at the leaves, left to right."""
    if not isinstance(tree, Branch):
        yield tree
        return
    for child in tree.children:
        yield from leaves_of(child)


def parent_of(tree: Tree, wanted: Tree) -> Branch | None:
    """Return the container of an item; None for the root, and for an item that is not in the tree."""
    stack = [tree]
    while stack:
        branch = stack.pop()
        if isinstance(branch, Branch):
            if any(child is wanted for child in branch.children):
                return branch
            stack += branch.children
    return None
