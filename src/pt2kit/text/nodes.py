"""Search for nodes and graph inputs by name, with everything that the file has about them.

A node is found by its name, by that of a value it defines, by its place (`nodes[3]`), and by a path through subgraphs
(`cond/true_graph_0/add`). Names repeat between graphs, so there may be several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope, Source, graphs, join, node_label
from pt2kit.graph.values import node_outputs
from pt2kit.messages import printable
from pt2kit.node_metadata.frames import lenient
from pt2kit.node_metadata.modules import parse_module_stack
from pt2kit.schema import ExportedProgram, Graph, Node
from pt2kit.text.format import dotted, value_name
from pt2kit.text.program import results_text
from pt2kit.text.values import ValueTexts, argument_text, named_text
from pt2kit.treespec.callsig import show_name


@dataclass(frozen=True, slots=True)
class Found:
    """A node, or a graph input, and its location.

    Args:
        path: names that lead to it from the root.
        scope: its graph.
        node: the node; None for a graph input.
        values: the names of the values it defines.
    """

    path: str
    scope: Scope
    node: Node | None
    values: tuple[str, ...]


def entries(source: Source) -> Iterator[Found]:
    """Yield every graph input and every node of a program, subgraphs included.

    Raises:
        GraphError, LimitError: a graph that cannot be walked.
    """
    for scope in graphs(source):
        for argument in scope.graph.inputs:
            yield from (Found(join(scope.path, name), scope, None, (name,)) for name in arguments(argument))
        for number, node in enumerate(scope.graph.nodes):
            yield Found(join(scope.path, node_label(node, number)), scope, node, node_outputs(node))


def find(program: ExportedProgram, name: str) -> list[Found]:
    """Find the node or input of a path, or every node and input of a name."""
    matches = [
        entry
        for entry in entries(program)
        if name in entry.values or name in (entry.path, entry.path.rpartition("/")[2])
    ]
    return [entry for entry in matches if entry.path == name] or matches


def found_lines(found: Found, texts: ValueTexts) -> Iterator[str]:
    """Yield everything about one node or graph input: arguments, results, users, metadata."""
    graph, node = found.scope.graph, found.node
    if node is None:
        name = found.values[0]
        yield f"{value_name(name)}: {texts.named(graph, name) or '?'}, an input of {_graph_text(found.scope)}"
    else:
        label = value_name(node.name) if node.name else results_text(node) or found.path.rpartition("/")[2]
        yield f"{label}: {printable(node.target)}, in {_graph_text(found.scope)}"
        yield from _argument_lines(graph, node, texts)
    users = list(users_of(graph, found.values))
    yield "used by"
    yield from (f"  {printable(user)}" for user in users)
    if not users:
        yield "  nothing"
    for key, text in node.metadata.items() if node else ():
        yield f"metadata {show_name(key)}"
        yield from (f"  {printable(line, 2000)}" for line in _metadata_lines(key, text))


def users_of(graph: Graph, values: tuple[str, ...]) -> Iterator[str]:
    """Yield label and operator of the nodes that use one of some values, and the graph's output if it uses one."""
    wanted = frozenset(values)
    for number, node in enumerate(graph.nodes):
        if any(not wanted.isdisjoint(arguments(named.arg)) for named in node.inputs):
            yield f"{node_label(node, number)}  {node.target.removeprefix('torch.ops.')}"
    if any(not wanted.isdisjoint(arguments(argument)) for argument in graph.outputs):
        yield "the graph's outputs"


def _graph_text(scope: Scope) -> str:
    return f"the subgraph {dotted(scope.path.replace('/', '.'))}" if scope.path else "the graph"


def _argument_lines(graph: Graph, node: Node, texts: ValueTexts) -> Iterator[str]:
    yield "inputs"
    for named in node.inputs:
        types = ", ".join(text for name in arguments(named.arg) if (text := texts.named(graph, name)))
        yield f"  {named_text(named)}{f'  : {types}' if types else ''}"
    yield "outputs"
    for output in node.outputs:
        types = ", ".join(text for name in arguments(output) if (text := texts.named(graph, name)))
        yield f"  {argument_text(output)}{f'  : {types}' if types else ''}"


def _metadata_lines(key: str, text: str) -> list[str]:
    if key == "nn_module_stack" and (stack := lenient(parse_module_stack, text)):
        return [f"{entry.path}  {entry.type or ''}".rstrip() for entry in stack]
    return text.splitlines() or [""]
