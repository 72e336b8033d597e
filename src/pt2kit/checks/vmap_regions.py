"""Check of values from a vmap region that are used outside of it, with their batch dimension (rule G18).

Between `_vmap_increment_nesting` and `_vmap_decrement_nesting`, `_add_batch_dim` hides a dimension of a tensor, which
all that is computed from it lacks until `_remove_batch_dim` gives it back. Behind the region torch fails on it, or
takes it for a batch of a later region.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pt2kit.checks.findings import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope, graphs
from pt2kit.messages import quote
from pt2kit.operators.higher_order import CLOSES, HIDES, OPENS, SHOWS

RULE: Final = "G18"


def escape_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield, for each graph, the first use of a value outside of its region of vmap.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).

    Cost: linear in the nodes.
    """
    for scope in graphs(context.program, context.graph_place):
        if any(node.target == OPENS for node in scope.graph.nodes):
            yield from _escaped_from(scope)


def _escaped_from(scope: Scope) -> Iterator[Problem]:
    opened: list[int] = []
    regions_of: dict[str, set[int]] = {}
    for number, node in enumerate(scope.graph.nodes):
        regions: set[int] = set()
        for named in node.inputs:
            for name in arguments(named.arg):
                regions |= regions_of.get(name, set())
                if not regions <= {*opened}:
                    yield Problem(f"{scope.where}.nodes[{number}]", RULE, _message(name))
                    return
        if node.target == OPENS:
            opened.append(number)
        elif node.target == CLOSES and opened:
            opened.pop()
        elif node.target == HIDES:
            regions.update(opened[-1:])
        elif node.target == SHOWS:
            regions.difference_update(opened[-1:])
        if regions:
            regions_of.update((name, regions) for output in node.outputs for name in arguments(output))
    for position, output in enumerate(scope.graph.outputs):
        for name in arguments(output):
            if name in regions_of:
                yield Problem(f"{scope.where}.outputs[{position}]", RULE, _message(name))


def _message(name: str) -> str:
    return f"expected a value that is not of a region of vmap which is closed already, got {quote(name)}"
