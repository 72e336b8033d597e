"""Refuses graphs that open a region of gradients, autocast, vmap or jvp and do not close it, or the other way round.

Which those are is said by `checks.regions`; the first of them ends the load (rule X14).
"""

from __future__ import annotations

from pt2kit.bridge.read.refusals import refused
from pt2kit.checks.regions import RULE, unbalanced
from pt2kit.errors import OperatorError
from pt2kit.graph.traversal import Scope, node_label


def check_regions(scope: Scope) -> None:
    """Refuse a graph that would leave the process changed.

    Raises:
        OperatorError: the first node that opens or closes what is not closed or open (X14).
    """
    for step, message in unbalanced(scope):
        where = f"{step.where}: node {node_label(step.node, step.number)} ({step.node.target})"
        raise refused(OperatorError, f"{where}: {message}", RULE)
