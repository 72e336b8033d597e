"""Refuses programs that let memory out which nothing was written to: what `empty` gives, read before it is filled.

What reads and returns such memory is found by `checks.uninitialised`, here with the operators of this process; the
first of them ends the load (rule X11).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pt2kit.bridge.operators import Operator
from pt2kit.checks import schemas
from pt2kit.checks.uninitialised import uninitialised_uses
from pt2kit.errors import OperatorError
from pt2kit.graph import Scope, node_label


def check_initialised(scope: Scope, operators: Mapping[str, Operator]) -> None:
    """Refuse a graph that reads or returns memory that nothing was written to.

    Args:
        scope: the graph.
        operators: target -> operator.

    Raises:
        OperatorError: the first node, or the output, that does (X11).
    """
    for use in uninitialised_uses(scope, lambda target: signature_of(operators[target])):
        said = f"{use.value}, whose memory nothing was written to (it comes from {use.origin})"
        if use.step is None:
            where = f"{scope.where}.outputs[{use.position}]"
            raise OperatorError(f"{where}: expected values that were computed, got {said}", rule="X11")
        node = use.step.node
        where = f"{use.step.where}: node {node_label(node, use.step.number)} ({node.target})"
        raise OperatorError(f"{where}: expected arguments that were computed, got {said}", rule="X11")


def signature_of(operator: Operator) -> schemas.Signature | None:
    """What torch says of an operator, as the table of a release says it; None for those without a schema."""
    if operator.kind != "operator":
        return None
    parameters = {}
    for name, parameter in operator.parameters.items():
        alias = operator.schema.arguments[parameter.index].alias_info
        written = alias is not None and bool(alias.is_write)
        parameters[name] = schemas.Parameter(
            name, parameter.type, parameter.keyword_only, name in operator.required, written
        )
    aliases = [value.alias_info for value in operator.schema.returns]
    is_view = any(alias is not None and not alias.is_write for alias in aliases)
    return schemas.Signature(MappingProxyType(parameters), operator.returns, is_view, is_open=False)
