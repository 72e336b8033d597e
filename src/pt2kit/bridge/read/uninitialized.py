"""Refuses programs that let memory out which nothing was written to: what `empty` gives, used before it is filled.

What lets such memory out is found by `checks.uninitialized`, here with the operators of this process; the first use
ends the load (rule X11). What a program that is sound only with the sizes that the file declares depends on is for
`assumed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.refusals import refused
from pt2kit.checks.memory_findings import Assumed
from pt2kit.checks.reading_table import is_source
from pt2kit.checks.stored_numbers import StoredInputs
from pt2kit.checks.uninitialized import find_uses
from pt2kit.errors import OperatorError
from pt2kit.graph.traversal import Scope, node_label
from pt2kit.schema import operator_text

RULE: Final = "X11"


def check_initialised(
    scope: Scope, operators: Mapping[str, Operator], stored: Callable[[], StoredInputs]
) -> Mapping[int, Assumed]:
    """Refuse a program that lets memory out that nothing was written to.

    Args:
        scope: the root graph.
        operators: target -> operator.
        stored: gives the inputs that the file fills.

    Returns:
        id of a graph -> what that depends on, for `check_assumed`.

    Raises:
        OperatorError: the first node, or the output, that does (X11).
    """
    if not any(map(is_source, operators)):  # in most programs: they need not be walked for it
        return MappingProxyType({})
    findings = find_uses(scope, lambda target: signature_of(operators.get(target)), stored)
    for use in findings.uses:
        said = f"{use.value}, whose memory nothing was written to (it comes from {use.origin})"
        if use.step is None:
            where = f"{scope.where}.outputs[{use.position}]"
            raise refused(OperatorError, f"{where}: expected values that were computed, got {said}", RULE)
        node = use.step.node
        where = f"{use.step.where}: node {node_label(node, use.step.number)} ({node.target})"
        raise refused(OperatorError, f"{where}: expected arguments that were computed, got {said}", RULE)
    return MappingProxyType(findings.assumed)


def signature_of(operator: Operator | None) -> operator_text.Operator | None:
    """What torch says of an operator, as the table of a release says it; None for those without a schema."""
    if operator is None or operator.kind != "operator":
        return None
    return operator_text.parse_operator(str(operator.schema))
