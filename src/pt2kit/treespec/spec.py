"""Pytree specs: `TreeSpec`, a tree of types, contexts and children, read from and written to JSON text.

The text (protocol 1) is a list of the protocol number and the root node. A node is an object of three keys:

    {"type": null, "context": null, "children_spec": []}                           a leaf
    {"type": "builtins.tuple", "context": "null", "children_spec": [...]}          a container

`context` is any JSON value. Builtin containers write a *string* that holds JSON again (the keys of a dict, the maxlen
of a deque, "null" where there is nothing to say); named tuples up to torch 2.3 write an object `{class_name,
fields}`, later the registered type name; a defaultdict writes an object. Types are names: nothing here imports or
resolves them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from pt2kit.errors import LimitError, SchemaError, VersionError, attempt
from pt2kit.jsontext import load_json
from pt2kit.messages import count_text, kind_of, quote

PROTOCOL = 1
MAX_DEPTH = 200  # containers inside containers; torch's own recursive writer gives up at about this depth
_MAX_CONTEXT_DEPTH = 32  # JSON levels a context may have of its own; torch's contexts have at most two
MAX_LEVELS = 2 * MAX_DEPTH + 1 + _MAX_CONTEXT_DEPTH  # JSON levels of a whole text
_NODE_KEYS = ("type", "context", "children_spec")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """One node of a pytree spec.

    Args:
        type: the serialized name of the container type ("builtins.dict"), None for a leaf.
        context: the context as JSON text, in the style torch writes (`'"null"'`, `'"[\\"a\\"]"'`).
        children: the specs of the children, in flattening order; empty for a leaf.
    """

    type: str | None
    context: str = "null"
    children: tuple[TreeSpec, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Return whether this node is a leaf (a value), not a container."""
        return self.type is None


LEAF = TreeSpec(None)
_NOTHING = '"null"'
"""The context of most containers, which is not worth parsing: a hostile spec has hundreds of thousands."""


def parse(text: str, where: str = "treespec") -> TreeSpec:
    """Read the text of a tree spec.

    Args:
        text: the content of `in_spec` or `out_spec`.
        where: place of the text, for messages.

    Returns:
        The root. Contexts are kept as data; `validate` says whether they fit their type.

    Raises:
        JsonError: the text is not JSON.
        VersionError: another protocol than 1.
        SchemaError: JSON of another shape.
        LimitError: more than `MAX_DEPTH` containers inside each other.

    Source: `treespec_loads` in torch/utils/_pytree.py (2.13), which accepts the same texts for registered types.
    """
    return attempt(_kept, text) or _read(text, where)  # Fails again, with the place.


@lru_cache(maxsize=16)
def _kept(text: str) -> TreeSpec:
    """Read a text once for all that asks for it: a check and a drawing of one program read its specs eleven times."""
    return _read(text, "")


def _read(text: str, where: str) -> TreeSpec:
    value = load_json(text, where, MAX_LEVELS)
    if not isinstance(value, list) or len(value) != 2:
        raise SchemaError(f"{where}: expected a list [protocol, node], got {kind_of(value)}")
    protocol, root = value
    if type(protocol) is not int or protocol != PROTOCOL:
        raise VersionError(f"{where}: expected tree spec protocol {PROTOCOL}, got {quote(protocol)}")
    return _build(root, f"{where}: $[1]")


def _build(root: object, where: str) -> TreeSpec:
    """Return the spec of a JSON node, children first; an explicit stack, because the caller's own depth is unknown."""
    built: list[TreeSpec] = []
    stack: list[tuple[object, str, int | None, int, bool]] = [(root, where, None, 1, False)]
    while stack:
        value, place, index, level, children_done = stack.pop()
        if index is not None:  # the place is made here and not when pushed: a wide node would hold a text per child
            place = f"{place}.children_spec[{index}]"
        name, context, children = _members(value, place)
        if name is None:
            built.append(LEAF)
        elif children_done:
            first = len(built) - len(children)
            built[first:] = [TreeSpec(name, json.dumps(context), tuple(built[first:]))]
        elif level > MAX_DEPTH:
            raise LimitError(f"{place}: expected at most {MAX_DEPTH} containers inside each other, got more")
        else:
            stack.append((value, place, None, level, True))
            stack.extend((children[i], place, i, level + 1, False) for i in reversed(range(len(children))))
    return built[0]


def _members(value: object, place: str) -> tuple[str | None, object, list[object]]:
    """Return the type, context and children of one JSON node, checked."""
    if not isinstance(value, dict) or set(value) != set(_NODE_KEYS):
        raise SchemaError(f"{place}: expected an object with the keys {', '.join(_NODE_KEYS)}, got {kind_of(value)}")
    name, context, children = (value[key] for key in _NODE_KEYS)
    if not isinstance(children, list):
        raise SchemaError(f"{place}.children_spec: expected a list, got {kind_of(children)}")
    if name is not None and not isinstance(name, str):
        raise SchemaError(f"{place}.type: expected a type name or null, got {kind_of(name)}")
    if name is None and (context is not None or children):
        raise SchemaError(
            f"{place}: expected a leaf (type null) without context and children, "
            f"got context {quote(context)} and {count_text(len(children), 'child', 'children')}"
        )
    return name, context, children


def dump(spec: TreeSpec) -> str:
    """Write a tree spec as torch does: `dump(parse(text)) == text` for every text that torch wrote.

    Raises:
        LimitError: deeper than `parse` reads back.

    Source: `treespec_dumps` in torch/utils/_pytree.py (2.13).
    """
    deepest = depth(spec)
    if deepest > MAX_DEPTH:
        raise LimitError(f"treespec: expected at most {MAX_DEPTH} containers inside each other, got {deepest}")

    def write(node: TreeSpec, children: list[str]) -> str:
        head = f'{{"type": {json.dumps(node.type)}, "context": {node.context}'
        return f'{head}, "children_spec": [{", ".join(children)}]}}'

    leaf = write(LEAF, [])
    return f"[{PROTOCOL}, {fold(spec, lambda _: leaf, write)}]"


def fold(spec: TreeSpec, on_leaf: Callable[[int], T], on_node: Callable[[TreeSpec, list[T]], T]) -> T:
    """Compute a value bottom-up over a spec, without recursion.

    Args:
        spec: the tree.
        on_leaf: called with the index of each leaf, left to right.
        on_node: called with each container and the results of its children, after them.
    """
    results: list[T] = []
    stack = [(spec, False)]
    leaves = 0
    while stack:
        node, children_done = stack.pop()
        if node.is_leaf:
            results.append(on_leaf(leaves))
            leaves += 1
        elif children_done:
            first = len(results) - len(node.children)
            results[first:] = [on_node(node, results[first:])]
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return results[0]


def walk(spec: TreeSpec) -> Iterator[TreeSpec]:
    """Yield every node, parents before children, left to right."""
    stack = [spec]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def map_nodes(spec: TreeSpec, change: Callable[[TreeSpec], TreeSpec]) -> TreeSpec:
    """Return a spec in which every container was replaced by `change(container)`, children first; leaves are kept.

    This is how a converter rewrites contexts, for example named tuples between torch 2.3 and 2.4.
    """
    return fold(spec, lambda _: LEAF, lambda node, children: change(TreeSpec(node.type, node.context, tuple(children))))


def depth(spec: TreeSpec) -> int:
    """Return the nesting depth of containers: 0 for a leaf."""
    return fold(spec, lambda _: 0, lambda _, children: 1 + max(children, default=0))


def leaf_count(spec: TreeSpec) -> int:
    """Return how many values a tree of this shape flattens to."""
    return sum(1 for node in walk(spec) if node.is_leaf)


def context_value(spec: TreeSpec, where: str = "treespec") -> object:
    """Return the context as a JSON value; a string that holds JSON stays a string.

    Raises:
        JsonError: a context that was put in by hand and is not JSON.
    """
    return load_json(spec.context, where, _MAX_CONTEXT_DEPTH)


def inner_context(spec: TreeSpec, where: str = "treespec") -> object:
    """Return the value that a context string holds (the keys of a dict, the maxlen of a deque).

    Raises:
        SchemaError: the context is not a string.
        JsonError: the string does not hold JSON.
    """
    if spec.context == _NOTHING:
        return None
    text = context_value(spec, where)
    if not isinstance(text, str):
        raise SchemaError(f"{where}: expected a context string that holds JSON, got {kind_of(text)}")
    return load_json(text, f"{where}: context", _MAX_CONTEXT_DEPTH)


def context_text(value: object) -> str:
    """Return the context text of a builtin container whose inner value is `value`: JSON inside a JSON string."""
    return json.dumps(json.dumps(value))
