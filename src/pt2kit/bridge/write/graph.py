"""An fx GraphModule -> `Graph`: its nodes in order, and what is known of every value."""

from __future__ import annotations

from typing import Any

from pt2kit.bridge.write.nodes import write_node
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.schema import Graph


def write_graph(module: Any, shared: Shared, depth: int = 0) -> Graph:
    """Write a graph and the graphs inside it.

    Args:
        module: an fx GraphModule.
        shared: what the program's graphs share.
        depth: how many graphs this one is inside of.

    Raises:
        Pt2Error: what the format cannot hold, with its place.
    """
    return write_scope(module, shared, depth).graph()


def write_scope(module: Any, shared: Shared, depth: int = 0) -> Scope:
    """The same, with what was found out on the way."""
    scope = Scope(module, shared, depth)
    for node in module.graph.nodes:
        write_node(node, scope)
    return scope
