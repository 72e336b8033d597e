"""Comparison of two graphs: added, removed and modified nodes, subgraphs included."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pt2kit import schema
from pt2kit.canonical.arguments import usual_graph
from pt2kit.canonical.effects import writes_inside
from pt2kit.canonical.reloading import Reloading
from pt2kit.diffs.changes import Area, Change, Detail, GraphPair
from pt2kit.diffs.correspond import correspond
from pt2kit.diffs.details import Names, argument_labels, known_pairs, node_details, value_details
from pt2kit.diffs.expressions import Symbols
from pt2kit.diffs.fingerprints import Interner, ModuleNames, Side, make_side
from pt2kit.diffs.input_roles import Pairs
from pt2kit.diffs.matching import Matching
from pt2kit.errors import LimitError
from pt2kit.graph.argument_values import graph_arguments
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, join, node_label
from pt2kit.graph.view import node_outputs

WHERE: Final = "$.graph_module.graph"


@dataclass(frozen=True, slots=True)
class Look:
    """Options of a comparison: the properties to compare.

    Args:
        metadata: node metadata.
        names: names of nodes, values and symbols.
        order: the order of nodes.
    """

    metadata: bool = True
    names: bool = False
    order: bool = False


@dataclass(slots=True)
class GraphDiff:
    """The changes of a model's nodes, as they are found.

    Args:
        model: whose nodes they are.
        old, new: the programs' modules.
        symbols: the symbols that correspond, learned on the way.
        look: what to look at.
        reloading: of the old and the new program; drops what a round trip through torch changes.
    """

    model: str
    old: ModuleNames
    new: ModuleNames
    symbols: Symbols
    look: Look
    reloading: tuple[Reloading, Reloading]
    changes: list[Change] = field(default_factory=list)
    graphs: list[GraphPair] = field(default_factory=list)
    _paths: dict[str, int] = field(default_factory=dict)

    def compare(
        self, old: schema.Graph, new: schema.Graph, inputs: Pairs, outputs: Pairs, path: str = "", depth: int = 0
    ) -> Matching:
        """Compare two graphs and the subgraphs of their nodes.

        Args:
            old, new: the graphs.
            inputs, outputs: (old position, new position) of those that correspond.
            path: the names that lead to the new graph.
            depth: 0 for the root.

        Raises:
            GraphError: a graph contradicts itself.
            LimitError: subgraphs nest too deep (G11).
        """
        if depth > MAX_SUBGRAPH_DEPTH:
            raise LimitError(f"{path}: expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep", rule="G11")
        path = self._own(path)
        intern = Interner()
        first, second = (side.graph(usual_graph(graph)) for side, graph in zip(self.reloading, (old, new), strict=True))
        before, after = self._sides(first, second, inputs, outputs, path, intern)
        values = _value_pairs(before, after, inputs)
        matching = correspond(before, after, values, (inputs, outputs))
        self.symbols.learn(known_pairs(matching))
        pairs = matching.pairs()
        modules = tuple(before.modules), tuple(after.modules)
        self.graphs.append(GraphPair(path, old, new, pairs, *modules))
        self._nodes(matching, path)
        for one, other in pairs:
            self._subgraphs(
                before.nodes[one], after.nodes[other], join(path, node_label(after.nodes[other], other)), depth
            )
        return matching

    def _own(self, path: str) -> str:
        """Return a path that no other graph has: two subgraphs of one node may have one name."""
        while (times := self._paths.get(path, 0)) > 0:
            self._paths[path] = times + 1
            path = f"{path}'{times}"
        self._paths[path] = 1
        return path

    def _sides(
        self, old: schema.Graph, new: schema.Graph, inputs: Pairs, outputs: Pairs, path: str, intern: Interner
    ) -> tuple[Side, Side]:
        where = f"{WHERE}: {path}" if path else WHERE
        return (
            make_side(old, f"old {where}", intern, *_roles(old, inputs, outputs, 0), self.old),
            make_side(new, f"new {where}", intern, *_roles(new, inputs, outputs, 1), self.new),
        )

    def _nodes(self, matching: Matching, path: str) -> None:
        """Add the changes of a pair of graphs, in the order of the new one, removed nodes before what followed them."""
        names = Names(matching, self.symbols)
        moved = _moved(matching) if self.look.order else frozenset()
        across = _across_writes(matching)
        removed, _ = matching.unmatched()
        waiting = iter([*removed, len(matching.to_new)])
        gone = next(waiting)
        for new, old in enumerate(matching.to_old):
            while old >= 0 and gone < old:
                self._one(matching, path, "removed", gone, None)
                gone = next(waiting)
            if old < 0:
                self._one(matching, path, "added", None, new)
                continue
            details = list(node_details(matching, old, new, names, metadata=self.look.metadata))
            details += self._labels(matching, old, new, new in moved)
            if new in across:
                details.append(Detail("write order", old, new))
            if details:
                self._one(matching, path, "modified", old, new, tuple(details))
        while gone < len(matching.to_new):
            self._one(matching, path, "removed", gone, None)
            gone = next(waiting)

    def _labels(self, matching: Matching, old: int, new: int, moved: bool) -> list[Detail]:
        """Return the differences in the name and the position of a node, as far as they are compared."""
        details = []
        if self.look.names:
            before, after = (
                (node.name, *node_outputs(node)) for node in (matching.old.nodes[old], matching.new.nodes[new])
            )
            if before != after:
                details.append(Detail("name", list(before), list(after)))
        if moved:
            details.append(Detail("place", old, new))
        return details

    def _one(
        self,
        matching: Matching,
        path: str,
        kind: str,
        old: int | None,
        new: int | None,
        details: tuple[Detail, ...] = (),
    ) -> None:
        side, number = (matching.new, new) if new is not None else (matching.old, old)
        assert number is not None  # One of the two is there; the caller knows which.
        name = join(path, display_label(side.nodes[number], number))
        module = side.modules[number]
        if kind == "added":
            self.changes.append(Change("added", "node", self.model, name, module, None, new, graph=path))
        elif kind == "removed":
            self.changes.append(Change("removed", "node", self.model, name, module, old, None, graph=path))
        else:
            self.changes.append(Change("modified", "node", self.model, name, module, old, new, details, path))

    def _subgraphs(self, old: schema.Node, new: schema.Node, path: str, depth: int) -> None:
        """Compare the subgraphs at the same positions of two nodes."""
        before = {
            (label, keys): subgraph
            for label, named in argument_labels(old.inputs).items()
            for keys, subgraph in graph_arguments(named.arg)
        }
        for label, named in argument_labels(new.inputs).items():
            for keys, subgraph in graph_arguments(named.arg):
                other = before.get((label, keys))
                if other is not None:
                    one, two = other.graph, subgraph.graph
                    inputs = [(place, place) for place in range(min(len(one.inputs), len(two.inputs)))]
                    outputs = [(place, place) for place in range(min(len(one.outputs), len(two.outputs)))]
                    inner = join(path, subgraph.name)
                    matching = self.compare(one, two, inputs, outputs, inner, depth + 1)
                    self._edges(matching, (inputs, outputs), inner)

    def _edges(self, matching: Matching, pairs: tuple[Pairs, Pairs], path: str) -> None:
        """Add the changes of the inputs and outputs of a subgraph."""
        old, new = matching.old.facts.graph, matching.new.facts.graph
        names = Names(matching, self.symbols)
        sides: tuple[tuple[Area, list[schema.Argument], list[schema.Argument], Pairs], ...] = (
            ("input", old.inputs, new.inputs, pairs[0]),
            ("output", old.outputs, new.outputs, pairs[1]),
        )
        for area, before, after, places in sides:
            if len(before) != len(after):
                self._edge(area, path, Detail(f"{area}s", len(before), len(after)))
            for one, other in places:
                details = list(value_details(old, new, before[one], after[other], names))
                if area == "output":  # Its node has reported the meta of its value.
                    details = [detail for detail in details if detail.what == "argument"]
                self._edge(area, join(path, str(other)), *details, old=one, new=other)
        if old.is_single_tensor_return != new.is_single_tensor_return:
            flags = old.is_single_tensor_return, new.is_single_tensor_return
            self._edge("output", path, Detail("single tensor return", *flags))

    def _edge(self, area: Area, name: str, *details: Detail, old: int | None = None, new: int | None = None) -> None:
        if details:
            self.changes.append(Change("modified", area, self.model, name, "", old, new, details))


def display_label(node: schema.Node, number: int) -> str:
    """Return the label of a node: its name, its first result's, or its position."""
    return node.name or next(iter(node_outputs(node)), None) or node_label(node, number)


def _roles(
    graph: schema.Graph, inputs: Pairs, outputs: Pairs, side: int
) -> tuple[dict[int, Hashable], Sequence[Hashable]]:
    """Return roles of the inputs and outputs of one of two graphs: the new position of those that correspond."""
    roles: dict[int, Hashable] = {position: (side, position) for position in range(len(graph.inputs))}
    roles |= {pair[side]: pair[1] for pair in inputs}
    returned: dict[int, Hashable] = {position: (side, position) for position in range(len(graph.outputs))}
    returned |= {pair[side]: pair[1] for pair in outputs}
    return roles, [returned[position] for position in range(len(graph.outputs))]


def _value_pairs(old: Side, new: Side, inputs: Pairs) -> dict[int, int]:
    """Return old value -> new value, of the graph inputs that correspond and are values."""
    before, after = old.input_values(), new.input_values()
    return {before[one]: after[other] for one, other in inputs if one in before and other in after}


def _across_writes(matching: Matching) -> frozenset[int]:
    """Return the new indices of the nodes that have other possible writers before them than they had."""
    old, new = matching.old.nodes, matching.new.nodes
    pairs = matching.pairs()
    writers = [pair for pair in pairs if writes_inside(new[pair[1]]) or writes_inside(old[pair[0]])]
    if not writers:
        return frozenset()
    before, after = sorted(one for one, _ in writers), sorted(other for _, other in writers)
    return frozenset(
        other for one, other in pairs if bisect_left(before, one) != bisect_left(after, other)
    ) | _moved_among(writers, matching.is_mirrored)


def _moved(matching: Matching) -> frozenset[int]:
    """Return the new indices of the fewest nodes without which the old and the new order agree."""
    return _moved_among(matching.pairs(), matching.is_mirrored)


def _moved_among(pairs: Sequence[tuple[int, int]], is_mirrored: bool) -> frozenset[int]:
    """Return the moved nodes among some (old, new) pairs, as `_moved`; a choice is made in the given direction."""
    rows = sorted((old, new) if is_mirrored else (new, old) for old, new in pairs)
    tails: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for place, (_, other) in enumerate(rows):
        at = bisect_left(tails, other)
        tails[at : at + 1] = [other]
        last[at : at + 1] = [place]
        before.append(last[at - 1] if at else -1)
    kept = set()
    place = last[-1] if last else -1
    while place >= 0:
        kept.add(rows[place])
        place = before[place]
    return frozenset(row[1] if is_mirrored else row[0] for row in rows if row not in kept)
