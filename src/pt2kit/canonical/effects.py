"""Effects of nodes: whether a node writes into its arguments or acts on the world.

Arguments and results do not show such an effect, so the stored order of such nodes is part of what the program
does. What operators write is in the operator table (`operators.aliasing`); a custom operator counts as writing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pt2kit import schema
from pt2kit.graph.argument_values import graph_arguments
from pt2kit.graph.traversal import walk
from pt2kit.graph.view import input_by_name, operator_name, operator_namespace
from pt2kit.operators.aliasing import written
from pt2kit.operators.higher_order import WRITING
from pt2kit.schema.operators import find_operator, known_releases

KNOWN: Final = frozenset(
    ("aten", "prim", "prims", "_operator", "math", "torch", "export", "higher_order", "quantized_decomposed")
)
"""The namespaces whose operators write only what the operator table has."""

_SETITEM: Final = "_operator.setitem"

_VIEWS: Final = frozenset(("prims.as_strided.default",))
"""Operators whose schema declares a write although they return a view."""

TRAINING: Final = ("training", "train", "use_input_stats")
"""Arguments with which a normalization updates its running statistics, which its schema does not declare."""


def writes(node: schema.Node) -> bool:
    """Return whether a node may write, leaving aside the subgraphs that it carries."""
    if operator_namespace(node.target) not in KNOWN:
        return True
    name = operator_name(node.target)
    if name == _SETITEM or name.removeprefix("higher_order.") in WRITING:
        return True
    always, sometimes = _written(name)
    return always or (sometimes and _trains(node))


# A pure function of the tables of the package.
@lru_cache(maxsize=4096)
def _written(name: str) -> tuple[bool, bool]:
    """Return whether an overload always writes, as its schema declares, and whether it does so when it trains."""
    base = name.split(".")[1] if name.count(".") == 2 else ""
    if base.endswith("_") and not base.endswith("__"):
        return True, True
    for release in reversed(known_releases()):
        operator = find_operator(name, release)
        if operator is not None and name not in _VIEWS:
            is_declared = any(parameter.type.is_written for parameter in operator.parameters.values())
            return is_declared, bool(written(name, release))
    return False, False


def writes_inside(node: schema.Node) -> bool:
    """Return whether a node may write, or carries a subgraph with a node that may.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    return writes(node) or any(
        writes(step.node)
        for named in node.inputs
        for _, subgraph in graph_arguments(named.arg)
        for step in walk(subgraph.graph)
    )


def _trains(node: schema.Node) -> bool:
    return any((argument := input_by_name(node, name)) is not None and argument.as_bool is True for name in TRAINING)
