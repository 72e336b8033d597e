"""Placeholders for containers among inputs and outputs whose classes are not registered with torch's pytree.

A named tuple gets a class with the stored fields, which notes its names in a tree spec and in a pickle. Any other
container becomes a `Placeholder`, a mapping. Saving writes the library's names again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pt2kit import treespec
from pt2kit.bridge.torch_names import pytree, walk_specs
from pt2kit.treespec.spec import TreeSpec

STAND_IN_NAME: Final = "__pt2kit_type_name__"
"""Attribute of a placeholder class that holds the registered type name it represents."""

PICKLED_NAME: Final = "__pt2kit_pickled_name__"
"""The attribute that holds "module.Class", the name of the class in pickled sample inputs; only on some."""


def stand_in_name(kind: Any) -> str | None:
    """Return the type name that a placeholder class represents; None for any other class."""
    name = vars(kind).get(STAND_IN_NAME) if isinstance(kind, type) else None
    return name if isinstance(name, str) else None


def pickled_name(kind: Any) -> str | None:
    """Return the name of a placeholder class in a pickle, "module.Class"; None for any other class."""
    name = stand_in_name(kind)
    if name is None:
        return None
    path = vars(kind).get(PICKLED_NAME)
    return path if isinstance(path, str) else name


@dataclass(frozen=True, slots=True)
class Kind:
    """Class that a placeholder represents, as a file describes it.

    Args:
        type: the name in tree specs.
        context: the context there, as JSON text.
        has_fields: its children are reached by attributes, and not by keys.
        none_fields: names of fields that are None; a dataclass has no children for them.
    """

    type: str
    context: str
    has_fields: bool = False
    none_fields: tuple[str, ...] = ()


class Placeholder(dict[Any, Any]):
    """A container whose class is not registered in this process: a mapping whose text keys are attributes, too.

    This one class is registered with torch's pytree. The class it represents is part of its context, and none is
    registered under a name that a file chooses.

    Args:
        kind: the class that it represents.
        values: its children by their keys.
    """

    def __init__(self, kind: Kind, values: Iterable[tuple[Any, Any]] = ()) -> None:
        super().__init__(values)
        self.__dict__["__pt2kit_kind__"] = kind

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        kind = self.__dict__["__pt2kit_kind__"]
        if name in kind.none_fields:
            return None
        keys = ", ".join(map(str, self))
        raise AttributeError(f"placeholder of {kind.type}: expected one of the keys {keys}, got {name}")

    def __repr__(self) -> str:
        return f"<placeholder of {self.__dict__['__pt2kit_kind__'].type}: {dict(self)}>"

    def __reduce__(self) -> Any:
        return Placeholder, (self.__dict__["__pt2kit_kind__"], list(self.items()))


def placeholder_context(node: TreeSpec, where: str) -> tuple[Kind, tuple[Any, ...]]:
    """Return the context that a placeholder has in a live spec: its kind and its keys."""
    keys = treespec.child_keys(node, where)
    has_fields = any(key.kind == "field" for key in keys)
    context: Any = treespec.inner_context(node, where) if has_fields else None
    kind = Kind(str(node.type), node.context, has_fields, tuple(context[1]) if has_fields else ())
    return kind, tuple(key.value for key in keys)


def placeholders_in(spec: pytree.TreeSpec) -> set[str]:
    """Return the names of the classes that placeholders in a live spec represent."""
    return {node.context[0].type for node in walk_specs(spec) if node.type is Placeholder}


def _flatten(value: Placeholder) -> tuple[list[Any], Any]:
    return list(value.values()), (value.__dict__["__pt2kit_kind__"], tuple(value))


def _flatten_with_keys(value: Placeholder) -> tuple[list[tuple[Any, Any]], Any]:
    children, context = _flatten(value)
    make = pytree.GetAttrKey if context[0].has_fields else pytree.MappingKey
    return [(make(key), child) for key, child in zip(context[1], children, strict=True)], context


def _unflatten(children: Iterable[Any], context: Any) -> Placeholder:
    return Placeholder(context[0], zip(context[1], children, strict=True))


# Without a serialized_type_name: torch.export.save reports that it is missing; `pt2kit.save` writes the library's.
pytree.register_pytree_node(Placeholder, _flatten, _unflatten, flatten_with_keys_fn=_flatten_with_keys)
