"""Refuses texts to print that could do more than be read: control characters, formats that look inside, huge widths.

What is wrong with a text is said by `checks.formats`; here it ends the load (rule X12).
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.read.refusals import refused
from pt2kit.checks.formats import format_problem, text_problem
from pt2kit.checks.known_targets import HIGHER_ORDER, plain_target
from pt2kit.errors import OperatorError
from pt2kit.graph.argument_values import leaves
from pt2kit.graph.traversal import Scope, node_label

RULE: Final = "X12"
_PRINT: Final = "torch.ops.aten._print.default"
_FORMAT: Final = f"{HIGHER_ORDER}print"


def check_printing(scope: Scope) -> None:
    """Refuse a graph that prints what may not be printed.

    Raises:
        OperatorError: the first node that does (X12).
    """
    for number, node in enumerate(scope.graph.nodes):
        target = plain_target(node.target)
        if target == _PRINT or target.startswith(HIGHER_ORDER):
            _check(node, f"{scope.where}.nodes[{number}]: node {node_label(node, number)} ({node.target})")


def _check(node: schema.Node, where: str) -> None:
    arguments = [leaf for named in node.inputs for _, leaf in leaves(named.arg)]
    operators = [leaf.as_operator for leaf in arguments if leaf.as_operator is not UNSET]
    called = {plain_target(target) for target in (node.target, *operators)}
    if not called & {_PRINT, _FORMAT}:
        return
    for leaf in arguments:
        if leaf.as_string is UNSET:
            continue
        problem = format_problem(leaf.as_string) if _FORMAT in called else text_problem(leaf.as_string)
        if problem is not None:
            raise refused(OperatorError, f"{where}: {problem}, got {leaf.as_string[:80]!a}", RULE)
