"""Traversal of a program's graphs and nodes, subgraphs included, with the path of each.

A subgraph is an argument of a node and has its own names. Two texts say where a graph is: its *path*, made of names,
for people ("" for the root, "cond/true_graph_0" below the node `cond`), and its *place*, the JSON path in the record,
which is unique ("$.graph_module.graph.nodes[4].inputs[1].arg.as_graph.graph"). Nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import LimitError
from pt2kit.graph.argument_values import LIMIT_RULE, graph_arguments
from pt2kit.jsontext import path_text
from pt2kit.messages import kind_of

MAX_SUBGRAPH_DEPTH: Final = 32
"""Levels of subgraphs inside subgraphs. The corpus has one; nobody nests control flow by dozens."""

TOO_DEEP: Final = f"expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more"

Source = schema.ExportedProgram | schema.GraphModule | schema.Graph


@dataclass(frozen=True, slots=True)
class Scope:
    """A graph and its location in the program.

    Args:
        graph: the graph; shared, not copied.
        path: names that lead to it from the root, "" for the root itself.
        where: its place, for messages: record and JSON path, as far as the caller knew them.
        depth: 0 for the root.
    """

    graph: schema.Graph
    path: str
    where: str
    depth: int = 0


class Step(NamedTuple):
    """A node and its location: its graph, and its number in it from 0."""

    scope: Scope
    number: int
    node: schema.Node

    @property
    def where(self) -> str:
        """Return the location of the node, for messages."""
        return f"{self.scope.where}.nodes[{self.number}]"

    @property
    def path(self) -> str:
        """Return the names that lead to the node from the root."""
        return join(self.scope.path, node_label(self.node, self.number))


def root(source: Source, where: str = "") -> Scope:
    """Return the root graph of a program, of a graph module, or a graph itself, as a scope.

    Args:
        source: the program or a part of it.
        where: the place of the *graph*, for messages; by default its JSON path inside what was passed.

    Raises:
        TypeError: anything else, for example a package.
    """
    match source:
        case schema.ExportedProgram():
            return Scope(source.graph_module.graph, "", where or "$.graph_module.graph")
        case schema.GraphModule():
            return Scope(source.graph, "", where or "$.graph")
        case schema.Graph():
            pass
        case _:
            raise TypeError(f"source: expected a program, such as package.programs['model'], got {kind_of(source)}")
    return Scope(source, "", where or "$")


def graphs(source: Source, where: str = "") -> Iterator[Scope]:
    """Yield the root graph and every subgraph, each before the ones inside it, in execution order.

    Raises:
        LimitError: subgraphs nest deeper than `MAX_SUBGRAPH_DEPTH`, or dicts of arguments too deep (G11).
    """
    scope = root(source, where)
    yield scope
    stack = [_below(scope)]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
            continue
        yield inner
        stack.append(_below(inner))


def subgraphs(source: Source, where: str = "") -> Iterator[Scope]:
    """Yield every subgraph, at any depth, without the root graph.

    Raises:
        LimitError: subgraphs nest deeper than `MAX_SUBGRAPH_DEPTH`, or dicts of arguments too deep (G11).
    """
    scopes = graphs(source, where)
    next(scopes)
    return scopes


def walk(source: Source, where: str = "") -> Iterator[Step]:
    """Yield every node of every graph: a node, then the nodes of the subgraphs that it carries, then the next node.

    Raises:
        LimitError: subgraphs nest deeper than `MAX_SUBGRAPH_DEPTH`, or dicts of arguments too deep (G11).
    """
    stack = [_steps(root(source, where))]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        yield step
        stack += [_steps(check_depth(inner)) for inner in reversed(list(carried(step)))]


def carried(step: Step) -> Iterator[Scope]:
    """Yield the subgraphs of one node, but not those inside them.

    Raises:
        LimitError: dicts of arguments nest too deep (G11).
    """
    scope, _, node = step
    for position, named in enumerate(node.inputs):
        for keys, subgraph in graph_arguments(named.arg):
            place = f"{step.where}.inputs[{position}].arg{_keys_text(keys)}.as_graph.graph"
            yield Scope(subgraph.graph, join(step.path, subgraph.name), place, scope.depth + 1)


def check_depth(scope: Scope) -> Scope:
    """Return a graph if its depth is within `MAX_SUBGRAPH_DEPTH`.

    Raises:
        LimitError: it stands deeper (G11).
    """
    if scope.depth > MAX_SUBGRAPH_DEPTH:
        raise LimitError(f"{scope.where}: {TOO_DEEP}", rule=LIMIT_RULE)
    return scope


def node_label(node: schema.Node, number: int) -> str:
    """Return the label of a node: its name, or its index in the list of nodes if it has none (before torch 2.11)."""
    return node.name or f"nodes[{number}]"


def join(path: str, name: str) -> str:
    """Return the path of an item of the graph whose path is `path`."""
    return f"{path}/{name}" if path else name


def _below(scope: Scope) -> Iterator[Scope]:
    for step in _steps(scope):
        for named in step.node.inputs:  # most nodes carry none: this is asked fast
            if named.arg.as_graph is not UNSET or named.arg.as_string_to_argument is not UNSET:
                yield from map(check_depth, carried(step))
                break


def _steps(scope: Scope) -> Iterator[Step]:
    return (Step(scope, number, node) for number, node in enumerate(scope.graph.nodes))


def _keys_text(keys: tuple[str, ...]) -> str:
    return "".join(f".as_string_to_argument{path_text((key,))[1:]}" for key in keys)
