"""Refuses programs whose value tables contradict the calls, or need more memory than there is (rules T8 and T9).

What is wrong with a call is said by `checks.sizes`; here it ends the load.
"""

from __future__ import annotations

from typing import Final

from pt2kit import schema
from pt2kit.bridge.read.refusals import refused
from pt2kit.checks.sizes import size_problem, spanned_bytes
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.traversal import Scope, node_label

MAX_STATIC_BYTES: Final = 1 << 40
"""What any one value without symbols may need: more than the memory of any one device."""


def check_sizes(scope: Scope, *, unbounded: bool = False) -> None:
    """Hold every call against the sizes that the graph declares.

    Args:
        scope: the graph.
        unbounded: let calls create as much as they say.

    Raises:
        GraphError: a call and the declared sizes contradict each other (T8).
        LimitError: a call creates too much out of numbers (T9).
    """
    for number, node in enumerate(scope.graph.nodes):
        if (found := size_problem(node, scope.graph.tensor_values)) is None:
            continue
        rule, wrong = found
        where = f"{scope.where}.nodes[{number}]: node {node_label(node, number)} ({node.target})"
        if rule != "T9":
            raise GraphError(f"{where}: {wrong}", rule=rule)
        if not unbounded:
            raise refused(LimitError, f"{where}: {wrong}", rule)


def check_extent(meta: schema.TensorMeta, where: str) -> None:
    """Refuse a value that no device could hold.

    Raises:
        LimitError: it has no symbols, and needs more than `MAX_STATIC_BYTES`.
    """
    needed = spanned_bytes(meta)
    if needed > MAX_STATIC_BYTES:
        raise LimitError(f"{where}: expected at most {MAX_STATIC_BYTES} bytes, got {needed}")
