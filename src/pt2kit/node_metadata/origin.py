"""Origins of nodes: the metadata texts `from_node` and `custom`, JSON inside a JSON string, parsed and printed.

`from_node` (torch 2.11 and later) is a list of the nodes that a node was made from, each with its own origins:

    {"name": "add", "target": "aten.add.Tensor", "graph_id": 1396..., "pass_name": "...", "action": "create",
    "from_node": []}

`graph_id` was the address of a graph object: it tells graphs apart within one file and means nothing outside it.
`custom` is any JSON value that the user put on the node.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pt2kit.errors import LimitError, SchemaError
from pt2kit.jsontext import load_json

MAX_ORIGINS = 100  # nodes that come from nodes; each pass over a graph adds one
MAX_CUSTOM_DEPTH = 400  # levels of JSON


@dataclass(frozen=True, slots=True)
class NodeSource:
    """One origin of a node.

    Args:
        name, target: of the older node; "" where torch knew none.
        graph_id: identifies its graph within this file; -1 where torch knew none.
        pass_name: the pass that made the newer node.
        action: "create", "replace", or both joined by "+".
        from_node: the older node's own origins.
    """

    name: str = ""
    target: str = ""
    graph_id: int = -1
    pass_name: str = ""
    action: str = ""
    from_node: tuple[NodeSource, ...] = ()


_TEXT_KEYS = ("name", "target", "pass_name", "action")
_KEYS = ("name", "target", "graph_id", "pass_name", "action", "from_node")


def parse_from_node(text: str, where: str = "from_node") -> tuple[NodeSource, ...] | None:
    """Return the origins of a node; None for the text "null". Missing keys take their defaults.

    Raises:
        JsonError, SchemaError: not a list of origins.
        LimitError: more than `MAX_ORIGINS` origins in a chain.

    Source: `NodeSource._from_dict` in torch/fx/traceback.py (2.13).
    """
    value = load_json(text, where, 2 * MAX_ORIGINS + 10)
    if value is None:
        return None
    return tuple(_source(item, f"{where}[{i}]", 1) for i, item in enumerate(_list(value, where)))


def dump_from_node(sources: Sequence[NodeSource] | None) -> str:
    """Return the text torch writes for these origins.

    Raises:
        LimitError: more than `MAX_ORIGINS` origins in a chain.
    """
    return json.dumps(None if sources is None else _plain(sources, 1))


def parse_custom(text: str, where: str = "custom") -> object:
    """Return the value of `custom` metadata.

    Raises:
        JsonError: not JSON.
        LimitError: nested deeper than `MAX_CUSTOM_DEPTH`.
    """
    return load_json(text, where, MAX_CUSTOM_DEPTH)


def dump_custom(value: object, where: str = "custom") -> str:
    """Return the text of `custom` metadata.

    Raises:
        SchemaError: the value is not JSON (the message names the type that is not).
    """
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"{where}: expected a value that JSON can hold, got one it can't: {error}") from error


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise SchemaError(f"{where}: expected a list of origins, got {type(value).__name__}")
    return value


def _source(value: object, where: str, depth: int) -> NodeSource:
    if depth > MAX_ORIGINS:
        raise LimitError(f"{where}: expected at most {MAX_ORIGINS} origins in a chain, got more")
    if not isinstance(value, dict) or not value.keys() <= set(_KEYS):
        got = ", ".join(map(ascii, value)) if isinstance(value, dict) else type(value).__name__
        raise SchemaError(f"{where}: expected an object with the keys {', '.join(_KEYS)}, got {got[:80]}")
    texts = {key: value.get(key, "") for key in _TEXT_KEYS}
    wrong = [key for key, item in texts.items() if not isinstance(item, str)]
    if wrong:
        raise SchemaError(f"{where}.{wrong[0]}: expected text, got {type(texts[wrong[0]]).__name__}")
    graph_id = value.get("graph_id", -1)
    if type(graph_id) is not int:
        raise SchemaError(f"{where}.graph_id: expected an integer, got {type(graph_id).__name__}")
    older = value.get("from_node")
    origins = []
    for i, item in enumerate([] if older is None else _list(older, f"{where}.from_node")):
        origins.append(_source(item, f"{where}.from_node[{i}]", depth + 1))
    return NodeSource(**texts, graph_id=graph_id, from_node=tuple(origins))


def _plain(sources: Sequence[NodeSource], depth: int) -> list[dict[str, object]]:
    if depth > MAX_ORIGINS + 1:  # the level below the last origin is its empty list
        raise LimitError(f"from_node: expected at most {MAX_ORIGINS} origins in a chain, got more")
    return [
        {
            "name": source.name,
            "target": source.target,
            "graph_id": source.graph_id,
            "pass_name": source.pass_name,
            "action": source.action,
            "from_node": _plain(source.from_node, depth + 1),
        }
        for source in sources
    ]
