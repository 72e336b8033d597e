"""Check of uninitialized memory that a program returns: results of `empty` and similar operators, never written to
(rule X11).

A simple rule: a result of such an operator, or a view of it, is an output of the root graph, and no call writes to it
or to a view of it. `pt2kit.load_module` fills such memory with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit import schema
from pt2kit.checks import schemas
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import root
from pt2kit.messages import quote
from pt2kit.operators.requirements import UNINITIALIZED, name_of


def uninitialized_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate the outputs of a program that may be uninitialized memory.

    Args:
        context: the program.
    """
    scope = root(context.program, context.graph_place)
    if not any(name_of(node.target) in UNINITIALIZED for node in scope.graph.nodes):
        return
    source = _sources(scope.graph, context.release)
    for position, output in enumerate(scope.graph.outputs):
        for name in arguments(output):
            if name in source:
                of = "" if source[name] == name else f", a view of {quote(source[name])}"
                message = f"returns {quote(name)}{of}, which may be uninitialized memory: nothing is written to it"
                yield Problem(f"{scope.where}.outputs[{position}]", "X11", message, "warning")


def _sources(graph: schema.Graph, release: str) -> dict[str, str]:
    """Return the values of uninitialized memory that nothing is written to -> the value that it comes from."""
    source: dict[str, str] = {}
    written: set[str] = set()
    for node in graph.nodes:
        results = [name for output in node.outputs for name in arguments(output)]
        if name_of(node.target) in UNINITIALIZED:
            source.update((name, name) for name in results)
            continue
        operator = schemas.find(node.target, release) if node.target.startswith("torch.ops.") else None
        for named in node.inputs:
            known = [name for name in arguments(named.arg) if name in source]
            parameter = None if operator is None else operator.parameters.get(named.name)
            if parameter is None or parameter.type.is_written:
                written.update(source[name] for name in known)
            elif parameter.type.alias and known:
                source.update((name, source[known[0]]) for name in results)
    return {name: origin for name, origin in source.items() if origin not in written}
