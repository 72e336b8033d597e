"""Comparison of two graphs, subgraphs included: added, removed and modified nodes, and the properties that differ.

Properties of two matched nodes, inputs or values are compared without regard to the names of values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import asdict

from pt2kit import codec, schema
from pt2kit.canonical.form import writes_inside
from pt2kit.diffs.changes import Area, Change, Detail, GraphPair, Kind, differing
from pt2kit.diffs.correspond import Matching, correspond
from pt2kit.diffs.fingerprints import Interner, ProgramSide, Side, Symbols, encoded, input_values, make_side
from pt2kit.diffs.input_roles import GONE, Pairs
from pt2kit.errors import LimitError
from pt2kit.graph.argument_values import arguments, graph_arguments
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, join, node_label, node_outputs, tables
from pt2kit.node_metadata.redaction import without_addresses

WHERE: Final = "$.graph_module.graph"


class Names:
    """Old names -> new names, of values and symbols.

    Args:
        matching: the nodes that correspond.
        symbols: the symbols that do.
    """

    def __init__(self, matching: Matching, symbols: Symbols) -> None:
        self.symbols = symbols
        old, new = matching.old.facts, matching.new.facts
        self.values = dict.fromkeys(old.names, GONE)
        self.values |= {old.names[one]: new.names[other] for one, other in matching.values.items()}

    def same_argument(self, old: schema.Argument, new: schema.Argument) -> bool:
        """Return whether two arguments are the same: values by correspondence, subgraphs ignored."""
        return encoded(old, lambda name: self.values.get(name, name)) == encoded(new, str)


def known_pairs(matching: Matching) -> Iterator[tuple[Any, Any]]:
    """Return the descriptions of values of two graphs that correspond."""
    before, after = matching.old.facts.metas, matching.new.facts.metas
    return ((before[one], after[other]) for one, other in matching.values.items())


def node_details(matching: Matching, old: int, new: int, names: Names, *, metadata: bool) -> Iterator[Detail]:
    """Yield the properties in which two corresponding nodes differ; subgraphs are not compared."""
    before, after = matching.old.nodes[old], matching.new.nodes[new]
    if before.target != after.target:
        yield Detail("target", before.target, after.target)
    yield from _arguments(matching, old, new, names)
    if before.is_hop_single_tensor_return != after.is_hop_single_tensor_return:
        yield Detail("single tensor return", before.is_hop_single_tensor_return, after.is_hop_single_tensor_return)
    if [output.type for output in before.outputs] != [output.type for output in after.outputs] or len(
        matching.old.facts.results[old]
    ) != len(matching.new.facts.results[new]):
        yield Detail("results", before.outputs, after.outputs)
    yield from _results(matching, old, new, names)
    if metadata:
        one, other = without_addresses(before.metadata), without_addresses(after.metadata)
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                yield Detail(f"metadata {key}", before.metadata.get(key), after.metadata.get(key))


def _arguments(matching: Matching, old: int, new: int, names: Names) -> Iterator[Detail]:
    before, after = matching.old.nodes[old].inputs, matching.new.nodes[new].inputs
    has_same = matching.old.keys[old] == matching.new.keys[new] and matching.uses_same(old, new)
    # Values from outside of the graphs are no part of that.
    if has_same and all(named.arg.as_custom_obj is UNSET for named in before):
        return
    labels_old, labels_new = argument_labels(before), argument_labels(after)
    for label in dict.fromkeys((*labels_new, *labels_old)):
        first, second = labels_old.get(label), labels_new.get(label)
        if first is None or second is None or not names.same_argument(first.arg, second.arg):
            yield Detail(f"argument {label}", first and first.arg, second and second.arg)
    order_old, order_new = list(labels_old), list(labels_new)
    if order_old != order_new and sorted(order_old) == sorted(order_new):
        yield Detail("order of arguments", order_old, order_new)


def argument_labels(inputs: list[schema.NamedArgument]) -> dict[str, schema.NamedArgument]:
    """Return labels of arguments: their name, or their position if they have none or share it."""
    by_label: dict[str, schema.NamedArgument] = {}
    for position, named in enumerate(inputs):
        by_label[named.name if named.name and named.name not in by_label else str(position)] = named
    return by_label


def _results(matching: Matching, old: int, new: int, names: Names) -> Iterator[Detail]:
    before, after = matching.old.facts, matching.new.facts
    pairs = list(zip(before.results[old], after.results[new], strict=False))
    for place, (one, other) in enumerate(pairs):
        label = "result" if len(pairs) == 1 else f"result {place}"
        yield from meta_details(label, before.metas[one], after.metas[other], names)


def value_details(
    old_graph: schema.Graph, new_graph: schema.Graph, old: schema.Argument, new: schema.Argument, names: Names
) -> Iterator[Detail]:
    """Yield the differences of two inputs or outputs of graphs: the argument, and the descriptions of its values."""
    if not names.same_argument(old, new):
        yield Detail("argument", old, new)
    for one, other in zip(arguments(old), arguments(new), strict=False):
        yield from meta_details("value", _meta(old_graph, one), _meta(new_graph, other), names)


def _meta(graph: schema.Graph, name: str) -> Any:
    return next((table[name] for table in tables(graph).values() if name in table), None)


def meta_details(label: str, old: Any, new: Any, names: Names) -> Iterator[Detail]:
    """Yield the differences of the descriptions of two values: by field for tensors, else as a whole.

    The values that symbols had in the example that was exported come last, and only if nothing else differs.
    """
    if old == new and not names.symbols.renamed:
        return
    if isinstance(old, schema.TensorMeta) and isinstance(new, schema.TensorMeta):
        fields = zip(asdict(old).items(), asdict(new).values(), strict=True)
        facts = [Detail(f"{label} {field}", one, other) for (field, one), other in fields]
    elif isinstance(old, schema.CustomObjArgument) and isinstance(new, schema.CustomObjArgument):
        facts = [Detail(f"{label} class", old.class_fqn, new.class_fqn)]
    else:
        facts = [Detail(label, old, new)]
    details = [fact for fact in facts if _differ(fact.old, fact.new, names)]
    is_object = isinstance(old, schema.CustomObjArgument)
    if not details and not is_object and _differ(old, new, names, hints=True):
        details = [Detail(f"{label} hints", old, new)]
    yield from details


def _differ(old: Any, new: Any, names: Names, *, hints: bool = False) -> bool:
    """Return whether two descriptions differ under the new names of symbols."""
    one = _with_expressions(codec.to_tree(old), names.symbols.old_form, hints)
    return bool(one != _with_expressions(codec.to_tree(new), str, hints))


def _with_expressions(tree: Any, change: Callable[[str], str], hints: bool) -> Any:
    if isinstance(tree, list):
        return [_with_expressions(item, change, hints) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "expr_str" in tree:
        return {"expr_str": change(tree["expr_str"]), "hint": tree.get("hint") if hints else None}
    return {key: _with_expressions(item, change, hints) for key, item in tree.items()}


@dataclass(frozen=True, slots=True)
class DiffOptions:
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
        programs: the old and the new program.
        symbols: the symbols that correspond, learned on the way.
        options: what is compared.
    """

    model: str
    programs: tuple[ProgramSide, ProgramSide]
    symbols: Symbols
    options: DiffOptions
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
        where, intern = f"{WHERE}: {path}" if path else WHERE, Interner()
        before, after = (
            make_side(program, graph, where, intern, _roles(graph.inputs, inputs, n), _roles(graph.outputs, outputs, n))
            for n, (program, graph) in enumerate(zip(self.programs, (old, new), strict=True))
        )
        values = _value_pairs(before, after, inputs)
        matching = correspond(before, after, values, (inputs, outputs))
        self.symbols.learn(known_pairs(matching))
        pairs = matching.pairs()
        pair = GraphPair(path, old, new, pairs, tuple(after.modules))
        self.graphs.append(pair)
        self._nodes(matching, pair)
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

    def _nodes(self, matching: Matching, pair: GraphPair) -> None:
        """Add the changes of a pair of graphs."""
        names = Names(matching, self.symbols)
        moved = _moved(matching.pairs(), matching.is_mirrored) if self.options.order else frozenset()
        across = _across_writes(matching)
        for old, new in pair.rows():
            if old is None or new is None:
                self._one(matching, pair.path, old, new)
                continue
            details = list(node_details(matching, old, new, names, metadata=self.options.metadata))
            details += self._labels(matching, old, new, new in moved)
            if new in across:
                details.append(Detail("write order", old, new))
            if details:
                self._one(matching, pair.path, old, new, tuple(details))

    def _labels(self, matching: Matching, old: int, new: int, moved: bool) -> list[Detail]:
        """Return the differences in the name and the position of a node, as far as they are compared."""
        details: list[Detail] = []
        if self.options.names:
            nodes = matching.old.nodes[old], matching.new.nodes[new]
            details += differing("name", *([node.name, *node_outputs(node)] for node in nodes))
        if moved:
            details.append(Detail("place", old, new))
        return details

    def _one(
        self, matching: Matching, path: str, old: int | None, new: int | None, details: tuple[Detail, ...] = ()
    ) -> None:
        """Add the change of a node that one or both graphs have."""
        kind: Kind = "added" if old is None else "removed" if new is None else "modified"
        side, number = (matching.new, new) if new is not None else (matching.old, old)
        assert number is not None  # One of the two is there; the caller knows which.
        name = join(path, display_label(side.nodes[number], number))
        self.changes.append(Change(kind, "node", self.model, name, side.modules[number], old, new, details, path))

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
            self._edge(area, path, *differing(f"{area}s", len(before), len(after)))
            for one, other in places:
                details = list(value_details(old, new, before[one], after[other], names))
                if area == "output":  # Its node has reported the meta of its value.
                    details = [detail for detail in details if detail.what == "argument"]
                self._edge(area, join(path, str(other)), *details, old=one, new=other)
        flags = old.is_single_tensor_return, new.is_single_tensor_return
        self._edge("output", path, *differing("single tensor return", *flags))

    def _edge(self, area: Area, name: str, *details: Detail, old: int | None = None, new: int | None = None) -> None:
        if details:
            self.changes.append(Change("modified", area, self.model, name, "", old, new, details))


def display_label(node: schema.Node, number: int) -> str:
    """Return the label of a node: its name, its first result's, or its position."""
    return node.name or next(iter(node_outputs(node)), None) or node_label(node, number)


def _roles(edges: Sequence[schema.Argument], pairs: Pairs, side: int) -> list[Hashable]:
    """Return the roles of the inputs or outputs of one of two graphs: the new position of those that correspond."""
    roles: dict[int, Hashable] = {position: (side, position) for position in range(len(edges))}
    return list((roles | {pair[side]: pair[1] for pair in pairs}).values())


def _value_pairs(old: Side, new: Side, inputs: Pairs) -> dict[int, int]:
    """Return old value -> new value, of the graph inputs that correspond and are values."""
    before, after = input_values(old.facts.graph), input_values(new.facts.graph)
    return {before[one]: after[other] for one, other in inputs if one in before and other in after}


def _across_writes(matching: Matching) -> frozenset[int]:
    """Return the new indices of the nodes that have other possible writers before them than they had."""
    old, new = matching.old.nodes, matching.new.nodes
    pairs = matching.pairs()
    writers = [pair for pair in pairs if writes_inside(new[pair[1]]) or writes_inside(old[pair[0]])]
    before, after = sorted(one for one, _ in writers), sorted(other for _, other in writers)
    across = {other for one, other in pairs if bisect_left(before, one) != bisect_left(after, other)}
    return _moved(writers, matching.is_mirrored) | across


def _moved(pairs: Sequence[tuple[int, int]], is_mirrored: bool) -> frozenset[int]:
    """Return the new indices of the fewest nodes of some (old, new) pairs without which both orders agree.

    Where several choices are as good, one is made in the direction in which the nodes were matched.
    """
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
