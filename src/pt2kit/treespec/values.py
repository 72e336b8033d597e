"""Flattening and unflattening of plain Python values by a spec, which alone decides what is a container; no torch, no
registry.

Containers that the spec names and Python has are used directly; named tuples are matched by field names or, where
the file has none, by position; every other type becomes a `Node`, a description with its children.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from pt2kit.errors import GraphError
from pt2kit.messages import printable
from pt2kit.treespec.fields import adapt_values, stand_in
from pt2kit.treespec.kinds import (
    DEFAULTDICT,
    DEQUE,
    MAPPINGS,
    NAMEDTUPLE,
    SEQUENCES,
    EnumKey,
    FieldTable,
    Key,
    child_keys,
    defaultdict_parts,
    mapping_keys,
    namedtuple_fields,
    namedtuple_name,
)
from pt2kit.treespec.spec import TreeSpec, fold, inner_context, leaf_count

Expand = Callable[[str, object], "Sequence[object] | None"]
"""(type name of the spec, value) -> the value's children in the spec's order, or None if it is not of that type."""

_FACTORIES = {f"builtins.{kind.__name__}": kind for kind in (bool, bytes, dict, float, int, list, set, str, tuple)}
_SEQUENCE_TYPES: dict[str, type] = {
    "builtins.tuple": tuple,
    "torch.Size": tuple,
    "builtins.list": list,
    "torch.fx.immutable_collections.immutable_list": list,
    DEQUE: deque,
}


@dataclass(frozen=True, slots=True)
class Node:
    """A container of a type that this process does not have, as data.

    Args:
        type: the type name of the spec; of a named tuple its own name.
        context: the context as JSON text.
        children: its children, in the spec's order.
    """

    type: str
    context: str
    children: tuple[object, ...]


_PYTHONS_OWN: Final = frozenset((*MAPPINGS, *SEQUENCES, NAMEDTUPLE))
"""Types whose containers are Python's; of others, a caller may not have the class."""


def flatten(
    value: object,
    spec: TreeSpec,
    where: str = "value",
    *,
    fields: FieldTable | None = None,
    expand: Expand | None = None,
) -> list[object]:
    """Return the leaves of a value in the order of a spec.

    Args:
        value: nested containers; dict keys may come in any order, a named tuple's fields too (its class may have more).
        spec: the structure.
        where: name of the value, for messages: "inputs", "args".
        fields: field names of named tuples, where the file has the table.
        expand: opens values of types that are not built in; without it only a `Node` stands for them.

    Raises:
        GraphError: the value has another structure; the message has the path.
        SchemaError: the spec contradicts itself.
    """
    leaves: list[object] = []
    stack: list[tuple[object, TreeSpec, str, Key | None]] = [(value, spec, where, None)]
    while stack:
        current, node, path, key = stack.pop()
        if node.is_leaf:
            leaves.append(current)
            continue
        if key is not None:
            path = f"{path}{key}"
        keys = child_keys(node, path, fields)
        children = _children(current, node, keys, path, fields, expand)
        for i in reversed(range(len(children))):
            stack.append((children[i], node.children[i], path, keys[i]))
    return leaves


def unflatten(
    leaves: Sequence[object], spec: TreeSpec, where: str = "value", *, fields: FieldTable | None = None
) -> object:
    """Return the value that a spec and its leaves describe, new containers around the same leaves.

    Named tuples with known fields become placeholder classes, one per type and call; types that Python does not have
    become a `Node`; a defaultdict whose factory is not a plain builtin gets none, because nothing is imported by a name
    from a file.

    Raises:
        GraphError: not as many leaves as the spec has.
        SchemaError: the spec contradicts itself.
    """
    count = leaf_count(spec)
    if len(leaves) != count:
        raise GraphError(f"{where}: expected {count} leaves, got {len(leaves)}")
    classes: dict[str, Callable[..., object]] = {}

    def build(node: TreeSpec, children: list[object]) -> object:
        child_keys(node, where, fields)
        if node.type == NAMEDTUPLE:
            return _named_tuple(node, children, where, fields, classes)
        return _container(node, children, where)

    return fold(spec, lambda i: leaves[i], build)


def _children(
    value: object, spec: TreeSpec, keys: Sequence[Key], path: str, fields: FieldTable | None, expand: Expand | None
) -> Sequence[object]:
    opened = expand(str(spec.type), value) if expand is not None else None
    if opened is not None:
        children = opened
    elif isinstance(value, Node) and value.type == _name(spec, path):
        children = value.children
    elif spec.type in MAPPINGS and isinstance(value, Mapping):
        return _mapping_children(value, keys, path)
    elif spec.type == NAMEDTUPLE and isinstance(value, tuple):
        return _named_children(value, spec, path, fields)
    elif spec.type in SEQUENCES and _is_sequence(value, str(spec.type)):
        children = list(value) if isinstance(value, deque) else value  # type: ignore[assignment]
    elif expand is not None and spec.type not in _PYTHONS_OWN and isinstance(value, Mapping):
        return _mapping_children(value, keys, path)  # a dict in place of a library's container, such as a KV cache
    else:
        raise GraphError(f"{path}: expected {printable(_name(spec, path))}, got {printable(type(value).__name__)}")
    if len(children) != len(keys):
        raise GraphError(f"{path}: expected {len(keys)} items of {printable(_name(spec, path))}, got {len(children)}")
    return children


def _is_sequence(value: object, name: str) -> bool:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return False  # a named tuple is a structure of its own
    return isinstance(value, _SEQUENCE_TYPES[name])


def _mapping_children(value: Mapping[object, object], keys: Sequence[Key], path: str) -> Sequence[object]:
    by_key = {_live_key(key): item for key, item in value.items()}
    wanted = [key.value for key in keys]
    if by_key.keys() != set(wanted):
        missing = [printable(repr(key), 60) for key in wanted if key not in by_key]
        extra = [printable(repr(key), 60) for key in by_key if key not in set(wanted)]
        raise GraphError(
            f"{path}: expected a mapping with {len(wanted)} keys, got one with {len(by_key)}: "
            f"missing {', '.join(missing) or 'none'}, unexpected {', '.join(extra) or 'none'}"
        )
    return [by_key[key] for key in wanted]


def _live_key(key: object) -> object:
    if isinstance(key, Enum):
        if isinstance(key, (int, float, str)):
            return key.value  # JSON knows these as plain numbers and strings, so the context has no member
        cls = type(key)
        return EnumKey(f"{cls.__module__}:{cls.__qualname__}", key.name)
    return key


def _named_children(
    value: tuple[object, ...], spec: TreeSpec, path: str, fields: FieldTable | None
) -> Sequence[object]:
    wanted = namedtuple_fields(spec, path, fields)
    own = getattr(value, "_fields", None)
    if wanted is not None and isinstance(own, tuple):
        return adapt_values(value, own, wanted, path)
    if len(value) != len(spec.children):
        raise GraphError(f"{path}: expected a named tuple of {len(spec.children)} values, got {len(value)}")
    return value


def _named_tuple(
    spec: TreeSpec,
    children: list[object],
    where: str,
    fields: FieldTable | None,
    classes: dict[str, Callable[..., object]],
) -> object:
    name = _name(spec, where)
    names = namedtuple_fields(spec, where, fields)
    if names is None:
        return Node(name, spec.context, tuple(children))
    key = f"{name}({','.join(names)})"
    if key not in classes:
        classes[key] = stand_in(name, names, where)
    return classes[key](*children)


def _container(spec: TreeSpec, children: list[object], where: str) -> object:
    if spec.type in ("builtins.tuple", "torch.Size"):
        return tuple(children)
    if spec.type == DEQUE:
        maxlen = inner_context(spec, where)
        return deque(children, maxlen=maxlen if isinstance(maxlen, int) else None)
    if spec.type in SEQUENCES:
        return list(children)
    if spec.type not in MAPPINGS:
        return Node(str(spec.type), spec.context, tuple(children))
    items = zip(mapping_keys(spec, where), children, strict=True)
    if spec.type == "collections.OrderedDict":
        return OrderedDict(items)
    if spec.type == DEFAULTDICT:
        return defaultdict(_FACTORIES.get(defaultdict_parts(spec, where)[0]), items)
    return dict(items)


def _name(spec: TreeSpec, where: str) -> str:
    return namedtuple_name(spec, where) or str(spec.type)
