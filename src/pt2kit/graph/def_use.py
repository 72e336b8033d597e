"""Def-use index of a graph: the definition and the uses of each value by name, or the first contradiction.

Each graph has names of its own, so a subgraph gets an index of its own (`indexes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn

from pt2kit import schema
from pt2kit.errors import GraphError, LimitError, Problem
from pt2kit.graph.argument_values import LIMIT_RULE
from pt2kit.graph.scan import Definition, Scan, Use
from pt2kit.graph.traversal import Scope, Source, graphs
from pt2kit.graph.values import Meta, tables


@dataclass(frozen=True, slots=True)
class GraphIndex:
    """Definitions and uses of the values of one graph. Read-only; does not contain subgraphs.

    Args:
        graph: the graph; shared, not copied.
        definitions: name -> definition, in the order of definition, graph inputs first.
        uses: name -> uses in execution order, graph outputs last; every defined name is a key.
        externals: names of custom objects that arguments use and nothing defines, because the archive's constants hold
            them; in the order of first use.
    """

    graph: schema.Graph
    definitions: Mapping[str, Definition]
    uses: Mapping[str, tuple[Use, ...]]
    externals: tuple[str, ...] = ()

    def meta(self, name: str) -> Meta:
        """Return a value's entry in the graph's value tables.

        Raises:
            KeyError: the graph defines no such value.
        """
        meta: Meta = tables(self.graph)[self.definitions[name].kind][name]
        return meta

    def users(self, name: str) -> tuple[int, ...]:
        """Return the indices of the nodes that use a value, each once, in order.

        Raises:
            KeyError: the graph defines no such value.
        """
        return tuple(dict.fromkeys(use.node for use in self.uses[name] if use.node is not None))


def index(graph: schema.Graph, where: str = "") -> GraphIndex:
    """Index one graph, and prove that it does not contradict itself (rules G1 to G12, the warning G5 aside).

    Args:
        graph: a graph; its subgraphs are not entered.
        where: the place of the graph, for messages ("models/model.json: $.graph_module.graph").

    Cost: linear in the arguments.

    Raises:
        GraphError: the first contradiction, with its place.
        LimitError: dicts of arguments nest too deep (G11).
    """
    scan = Scan(graph, where or "$")
    for problem in scan.run():
        if problem.kind == "error":
            raise_problem(problem)
    uses = {name: tuple(value_uses) for name, value_uses in scan.uses.items()}
    return GraphIndex(graph, MappingProxyType(scan.definitions), MappingProxyType(uses), tuple(scan.externals))


def indexes(source: Source, where: str = "") -> Iterator[tuple[Scope, GraphIndex]]:
    """Index the root graph and every subgraph, in the order of `graphs`.

    Raises:
        GraphError: the first contradiction, with its place.
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for scope in graphs(source, where):
        yield scope, index(scope.graph, scope.where)


def raise_problem(problem: Problem) -> NoReturn:
    """Turn a finding into its exception.

    Raises:
        LimitError: the finding is about a limit (G11).
        GraphError: any other finding.
    """
    error = LimitError if problem.rule == LIMIT_RULE else GraphError
    raise error(f"{problem.loc}: {problem.message}", rule=problem.rule)
