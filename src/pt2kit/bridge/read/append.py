"""A call -> the last node of a live graph."""

from __future__ import annotations

from typing import Any

from torch import fx

from pt2kit.bridge.torch_names import immutable_dict, name_for, place_last


def append_call(
    graph: fx.Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, name: str | None = None
) -> fx.Node:
    """Append a `call_function` node.

    Args:
        graph: a graph without owner and hooks.
        target: what is called.
        args, kwargs: nodes of the same graph, constants, and containers of them.
        name: a name to begin with; the graph makes it its own and free. By default the target's.
    """
    own = name_for(graph, target if name is None else name)
    return place_last(graph, fx.Node(graph, own, "call_function", target, args, kwargs or immutable_dict()))
