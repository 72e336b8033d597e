"""Normal form of calls: arguments in the order of the operator's schema, without argument kinds, as every release would
write them.

torch binds the arguments of an operator by name, whatever their order is. `kind` says how a call in Python would pass
them, and is missing before schema 8.6. So for an operator that some release of torch registers, arguments come in the
order of its schema, that of the oldest release that has all their names; those of other operators stay as stored. A
higher-order operator has no schema: what it gets by place has no name, what it gets by name comes behind, sorted.
Functions over numbers get all by place.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from msgspec.structs import replace

from pt2kit import schema
from pt2kit.graph.view import HIGHER_ORDER, operator_namespace
from pt2kit.schema import ArgumentKind, NamedArgument
from pt2kit.schema.operators import find_operator, known_releases

_DISPATCHER = "torch.ops."
_FUNCTIONS = ("_operator.", "math.", "builtins.", "torch.sym_", "torch._sym_")
"""Prefixes of the targets of functions over numbers."""


def usual_graph(graph: schema.Graph) -> schema.Graph:
    """Return a graph in which every call is written the usual way; subgraphs are unchanged.

    Args:
        graph: the graph; shared where nothing is to be done.
    """
    nodes = [usual_call(node) for node in graph.nodes]
    changed = any(one is not other for one, other in zip(nodes, graph.nodes, strict=True))
    return replace(graph, nodes=nodes) if changed else graph


def usual_call(node: schema.Node) -> schema.Node:
    """Return a node with its arguments in the usual order, without kinds; the same node if it is so already."""
    inputs = _usual(node)
    same = len(inputs) == len(node.inputs) and all(map(_is_same, inputs, node.inputs))
    return node if same else replace(node, inputs=inputs)


def _usual(node: schema.Node) -> list[NamedArgument]:
    if node.target.startswith(_FUNCTIONS):
        return [NamedArgument("", named.arg) for named in node.inputs]
    if _is_bound_by_name(node.target):
        order = _order(node.target, _names(node.inputs))
        inputs = node.inputs if order is None else [node.inputs[place] for place in order]
        return [NamedArgument(named.name, named.arg) for named in inputs]
    placed = [named for named in node.inputs if not named.name or named.kind is ArgumentKind.POSITIONAL]
    others = [named for named in node.inputs if named.name and named.kind is not ArgumentKind.POSITIONAL]
    by_name = sorted(others, key=lambda named: named.name)
    return [
        *(NamedArgument("", named.arg) for named in placed),
        *(NamedArgument(named.name, named.arg) for named in by_name),
    ]


def _is_bound_by_name(target: str) -> bool:
    """Return whether a target is an operator with a schema: of the dispatcher, or of an extension."""
    return target.startswith("#") or (target.startswith(_DISPATCHER) and operator_namespace(target) != HIGHER_ORDER)


def _is_same(one: NamedArgument, other: NamedArgument) -> bool:
    return one.arg is other.arg and one.name == other.name and one.kind is other.kind


def _names(inputs: Sequence[NamedArgument]) -> tuple[str, ...]:
    return tuple(named.name for named in inputs)


# A pure function of tables that never change; programs make the same few calls over and over.
@functools.lru_cache(maxsize=4096)
def _order(target: str, names: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the positions of arguments in the order of the operator's schema; None if no release has these names."""
    if len(set(names)) != len(names):
        return None
    name = target.removeprefix(_DISPATCHER)
    for release in known_releases():
        operator = find_operator(name, release)
        if operator is not None and operator.parameters.keys() >= set(names):
            rank = {parameter: number for number, parameter in enumerate(operator.parameters)}
            return tuple(sorted(range(len(names)), key=lambda place: rank[names[place]]))
    return None
