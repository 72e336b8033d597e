"""Flattening and unflattening of plain Python values by a tree spec, and named tuples by their field names; no torch.

The spec alone decides what is a container; no registry. Containers that the spec names and Python has are used
directly; named tuples are matched by field names or, where the file has none, by position; every other type becomes a
`Node`, a mapping of its children.

A file lists the fields that a named tuple had when it was saved (the file's table). A class that cannot be imported is
replaced by a placeholder class with these fields. A class may since have gained, lost or reordered fields; values are
then matched by name: fields that the other side does not know are dropped, fields that it needs must be there.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from pt2kit.errors import GraphError, SchemaError
from pt2kit.messages import count_text, printable
from pt2kit.treespec.containers import (
    DEFAULTDICT,
    DEQUE,
    FACTORIES,
    MAPPINGS,
    NAMEDTUPLE,
    PYTHONS_OWN,
    SEQUENCES,
    EnumKey,
    FieldTable,
    Key,
    child_keys,
    defaultdict_parts,
    listed_keys,
    mapping_keys,
    namedtuple_fields,
    namedtuple_name,
)
from pt2kit.treespec.spec import LEAF, TreeSpec, fold, inner_context, leaf_count

T = TypeVar("T")

Expand = Callable[[str, object], "Sequence[object] | None"]
"""(type name of the spec, value) -> the value's children in the spec's order, or None if it is not of that type."""


def stand_in(name: str, names: Sequence[str], where: str = "treespec") -> type[tuple[object, ...]]:
    """Return a new named tuple class as a placeholder for one that cannot be imported.

    Args:
        name: the registered type name; the class is called by its last part.
        names: its fields.
        where: place, for messages.

    Raises:
        SchemaError: a field that is not a plain identifier. `collections.namedtuple` pastes the names into source, so
            they are checked here first.
    """
    for field in names:
        if not field.isidentifier() or keyword.iskeyword(field) or field.startswith("_"):
            raise SchemaError(
                f"{where}: expected field names of {printable(name)} that are identifiers without a leading "
                f"underscore, got {field!a}"
            )
    plain = [unicodedata.normalize("NFKC", field) for field in names]  # what Python's own parser makes of them
    if len(set(plain)) < len(plain):
        raise SchemaError(f"{where}: expected distinct field names of {printable(name)}, got {_listed(names)}")
    last = name.rpartition(".")[2]
    class_name = last if last.isidentifier() and not keyword.iskeyword(last) else "NamedTuple"
    return namedtuple(class_name, plain, module="pt2kit.treespec.stand_in")


def adapt_values(
    values: Sequence[T],
    source: Sequence[str],
    target: Sequence[str],
    where: str,
    defaults: Mapping[str, T] | None = None,
) -> tuple[T, ...]:
    """Return the values of one named tuple in the order of another version of its class.

    Args:
        values: one value per name of `source`.
        source: the fields that the values have (of the class today for inputs, of the file for outputs).
        target: the fields that are wanted (of the file for inputs, of the class today for outputs).
        where: place of the value, for messages.
        defaults: values for wanted fields that are missing.

    Raises:
        GraphError: wanted fields that are neither there nor have a default; all are listed.
    """
    if len(values) != len(source):
        raise GraphError(f"{where}: expected a value for each of the fields {_listed(source)}, got {len(values)}")
    by_name = {**(defaults or {}), **dict(zip(source, values, strict=True))}
    missing = [name for name in target if name not in by_name]
    if missing:
        raise GraphError(
            f"{where}: expected a named tuple with the fields {_listed(target)}, "
            f"got one with {_listed(source)}: missing {_listed(missing)}; pass a value that has them"
        )
    return tuple(by_name[name] for name in target)


def _listed(names: Sequence[object]) -> str:
    shown = ", ".join(printable(name if isinstance(name, str) else repr(name), 40) for name in names[:12])
    return f"({shown}, ... {len(names)} in all)" if len(names) > 12 else f"({shown})"


@dataclass(frozen=True, slots=True, repr=False)
class Node(Mapping[Any, Any]):
    """A container of a type that this process does not have, as data: a mapping whose text keys are attributes, too.

    Keys are those that the context lists, such as the fields of an output class of a library; otherwise indices.

    Args:
        type: the type name of the spec; of a named tuple its own name.
        context: the context as JSON text.
        children: its children, in the spec's order.
    """

    type: str
    context: str
    children: tuple[object, ...]

    def __getitem__(self, key: Any) -> Any:
        return dict(zip(self, self.children, strict=True))[key]

    def __iter__(self) -> Iterator[Any]:
        spec = TreeSpec(self.type, self.context, (LEAF,) * len(self.children))
        return iter([key.value for key in listed_keys(spec)])

    def __len__(self) -> int:
        return len(self.children)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self:
            raise AttributeError(f"{self.type[:80]}: expected one of {', '.join(map(str, self))[:200]}, got {name}")
        return self[name]

    def __repr__(self) -> str:
        return f"<placeholder of {printable(self.type)}: {dict(self)}>"


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
        expand: opens values of types that are not built in; without it only a `Node` stands for them, and a tuple for
            a named one.

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
        raise GraphError(f"{where}: expected {count_text(count, 'leaf', 'leaves')}, got {len(leaves)}")
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
    elif spec.type == NAMEDTUPLE and isinstance(value, tuple) and (expand is None or hasattr(value, "_fields")):
        return _named_children(value, spec, path, fields)
    elif spec.type in SEQUENCES and _is_sequence(value, str(spec.type)):
        children = list(value) if isinstance(value, deque) else value  # type: ignore[assignment]
    elif expand is not None and spec.type not in PYTHONS_OWN and isinstance(value, Mapping):
        return _mapping_children(value, keys, path)  # a dict in place of a library's container, such as a KV cache
    else:
        raise GraphError(f"{path}: expected {printable(_name(spec, path))}, got {printable(type(value).__name__)}")
    if len(children) != len(keys):
        raise GraphError(f"{path}: expected {printable(_name(spec, path))} of length {len(keys)}, got {len(children)}")
    return children


def _is_sequence(value: object, name: str) -> bool:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return False  # a named tuple is a structure of its own
    return isinstance(value, SEQUENCES[name])


def _mapping_children(value: Mapping[object, object], keys: Sequence[Key], path: str) -> Sequence[object]:
    by_key = {_live_key(key): item for key, item in value.items()}
    wanted = [key.value for key in keys]
    if by_key.keys() != set(wanted):
        missing = [printable(repr(key), 60) for key in wanted if key not in by_key]
        extra = [printable(repr(key), 60) for key in by_key if key not in set(wanted)]
        raise GraphError(
            f"{path}: expected a mapping with {count_text(len(wanted), 'key')}, got one with {len(by_key)}: "
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
        raise GraphError(f"{path}: expected a named tuple of length {len(spec.children)}, got {len(value)}")
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
    name = str(spec.type)
    if name == DEQUE:
        maxlen = inner_context(spec, where)
        return deque(children, maxlen=maxlen if isinstance(maxlen, int) else None)
    if name in SEQUENCES:
        return SEQUENCES[name](children)
    if name not in MAPPINGS:
        return Node(name, spec.context, tuple(children))
    items = zip(mapping_keys(spec, where), children, strict=True)
    if name == DEFAULTDICT:
        return defaultdict(FACTORIES.get(defaultdict_parts(spec, where)[0]), items)
    return MAPPINGS[name](items)


def _name(spec: TreeSpec, where: str) -> str:
    return namedtuple_name(spec, where) or str(spec.type)
