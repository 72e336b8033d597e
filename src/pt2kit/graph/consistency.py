"""Consistency checks of graphs, as data: every error that `index` refuses, and those that it accepts.

`index` stops at the first error of one graph. Here all graphs are gone through, and warnings and safety findings join.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pt2kit.errors import LimitError, Problem
from pt2kit.graph.argument_values import LIMIT_RULE, ONE_CONSTANT, ONE_VALUE, graph_arguments
from pt2kit.graph.module_attributes import MODULE_ATTRIBUTES
from pt2kit.graph.scan import Scan
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, TOO_DEEP, Scope, Source, Step, carried, root
from pt2kit.messages import quote
from pt2kit.schema.names import is_variable


def problems(source: Source, where: str = "") -> Iterator[Problem]:
    """Yield everything that is wrong with a program's graphs, subgraphs included (rules G1 to G15). Raises nothing.

    Args:
        source: a program, a graph module or a graph.
        where: the place of the root graph, for messages ("models/model.json: $.graph_module.graph").

    Cost: linear in the arguments.
    """
    stack = [iter([root(source, where)])]
    while stack:
        scope = next(stack[-1], None)
        if scope is None:
            stack.pop()
        elif scope.depth > MAX_SUBGRAPH_DEPTH:
            yield Problem(scope.where, LIMIT_RULE, TOO_DEEP)
        else:
            inner: list[Scope] = []
            yield from _graph_problems(scope, inner)
            stack.append(iter(inner))


def _graph_problems(scope: Scope, inner: list[Scope]) -> Iterator[Problem]:
    """Yield the errors of one graph; the subgraphs that its nodes carry are added to `inner`."""
    scan = Scan(scope.graph, scope.where)
    yield from scan.run()
    if scope.depth:  # Of the root's outputs the signature has its own rule.
        for position, output in enumerate(scope.graph.outputs):
            if output.type not in ONE_VALUE | ONE_CONSTANT:
                message = f"expected one value or constant, got {output.type}"
                yield Problem(f"{scope.where}.outputs[{position}]", "G9", message)
    taken: dict[str, int] = {}
    for number, node in enumerate(scope.graph.nodes):
        step = Step(scope, number, node)
        yield from _label_problems(step, scan, taken)
        # Nesting that is too deep is among the scan's findings already.
        with suppress(LimitError):
            yield from _pasted_names(step)
            inner += carried(step)


def _label_problems(step: Step, scan: Scan, taken: dict[str, int]) -> Iterator[Problem]:
    """Yield names of nodes that are taken (G14): torch renames such a node when it loads the program."""
    if not (name := step.node.name):
        return
    definition = scan.definitions.get(name)
    if name in taken:
        owner = f"nodes[{taken[name]}] has"
    elif definition and definition.node != step.number:
        owner = f"{'a graph input' if definition.node is None else f'a result of nodes[{definition.node}]'} has"
    else:
        taken[name] = step.number
        return
    yield Problem(
        f"{step.where}.name", "G14", f"expected a name of its own, got {quote(name)}, which {owner}", "warning"
    )


def _pasted_names(step: Step) -> Iterator[Problem]:
    """Yield names that torch writes into the source of a generated function, unescaped (G15)."""
    node = step.node
    if node.name and not node.name.isidentifier():
        yield Problem(f"{step.where}.name", "G15", f"expected an identifier, got {quote(node.name)}", "safety")
    for position, named in enumerate(node.inputs):
        place = f"{step.where}.inputs[{position}]"
        if named.name and not named.name.isidentifier():
            yield Problem(f"{place}.name", "G15", f"expected an identifier, got {quote(named.name)}", "safety")
        for _, subgraph in graph_arguments(named.arg):
            if not all(part.isidentifier() or part.isdecimal() for part in subgraph.name.split(".")):
                message = (
                    f"expected identifiers with dots between them as the name of a subgraph, got {quote(subgraph.name)}"
                )
                yield Problem(place, "G15", message, "safety" if subgraph.name else "error")
            elif not is_variable(subgraph.name):
                message = (
                    f"expected an identifier that is no keyword as the name of a subgraph, got {quote(subgraph.name)}"
                )
                yield Problem(place, "G15", message)
            elif subgraph.name in MODULE_ATTRIBUTES:
                message = (
                    f"expected a free name for a subgraph, got {quote(subgraph.name)}, which modules of torch have"
                )
                yield Problem(place, "G15", message)
