"""Refuses calls of operators that trust an argument with memory, where nobody vouches for the argument (rule X10).

What vouches for what is found by `checks.provenance`, here with the operators of this process; the first call that is
not vouched for ends the load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.uninitialized import signature_of
from pt2kit.checks.provenance import is_concerned, unvouched_calls
from pt2kit.errors import OperatorError
from pt2kit.graph.traversal import Scope, node_label


def check_provenance(scopes: Sequence[Scope], operators: Mapping[str, Operator], trust: Set[str]) -> None:
    """Refuse a program with a call that trusts an argument which nobody vouches for.

    Args:
        scopes: its graphs, the root first.
        operators: target -> operator.
        trust: operators ("aten.max_pool2d_with_indices_backward") whose calls are taken as they are, or "X10".

    Raises:
        OperatorError: the first such call (X10).
    """
    if "X10" in trust or not is_concerned(node for scope in scopes for node in scope.graph.nodes):
        return
    for found in unvouched_calls(scopes[0], lambda target: signature_of(operators[target])):
        if found.operator not in trust:
            node = found.step.node
            where = f"{found.step.where}: node {node_label(node, found.step.number)} ({node.target})"
            raise OperatorError(
                f"{where}: {found.message}; if you trust the file, pass trust=({found.operator!r},)", rule="X10"
            )
