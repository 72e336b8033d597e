"""Normal form of one graph, subgraphs included: nodes in order, values and subgraphs renamed, tables sorted.

Values become `_0`, `_1`, … in the order in which they are defined, graph inputs first, in each graph anew; the
subgraphs of a graph become `_g0`, `_g1`, … in the order of the nodes that carry them. Metadata and names of nodes go,
as do entries of the value tables that no value has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from pt2kit import schema
from pt2kit.canonical.arguments import usual_graph
from pt2kit.canonical.canonical_labeling import Search
from pt2kit.canonical.effects import writes
from pt2kit.canonical.encoding import encode_value
from pt2kit.canonical.facts import Facts, collect
from pt2kit.canonical.order import node_order
from pt2kit.canonical.reloading import Reloading
from pt2kit.canonical.symbol_names import renamed_tables
from pt2kit.canonical.values import Names, rename
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.argument_values import graph_arguments
from pt2kit.graph.rules import LIMIT_RULE
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH
from pt2kit.graph.values import tables
from pt2kit.messages import quote
from pt2kit.schema import Argument, Graph, GraphArgument, Node

_NUMBERED: Final = re.compile(r"_(?:0|[1-9][0-9]{0,17})")

GRAPH_TAG: Final = b"pt2kit graph 1\0"
"""Prefix of the bytes of a graph when they are hashed."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Options of a normal form: details to keep that torch's normal form drops.

    Args:
        metadata: the metadata of nodes. It decides only where nodes that can be exchanged come.
        write_order: the stored order around nodes that may write (`effects.writes`, or a subgraph with such a node):
            no node moves from one side of them to the other.
        symbols: old name -> new name, of symbols that get another one.
        reloading: if given, what a round trip through torch changes is dropped by it.
        search: what searches may still cost, in all graphs together.
    """

    metadata: bool = False
    write_order: bool = False
    symbols: Mapping[str, str] = field(default_factory=dict)
    reloading: Reloading | None = None
    search: Search = field(default_factory=Search)


class Form(NamedTuple):
    """A graph in normal form, and how it came about.

    Args:
        graph: the graph; what is known of values is shared with the original.
        names: old name -> new name, of the graph's own values.
        order: the stored numbers of its nodes, in normal order.
        writes: whether a node in it may write.
    """

    graph: Graph
    names: Names
    order: tuple[int, ...]
    writes: bool


def normal_form(
    graph: Graph, inputs: Sequence[Argument], outputs: Sequence[Argument], where: str, keep: Keep, depth: int = 0
) -> Form:
    """Convert a graph to normal form.

    Args:
        graph: the graph; not changed.
        inputs, outputs: its inputs and outputs, in the order that they are to have.
        where: its place, for messages.
        keep: what to keep besides what it means.
        depth: 0 for the root.

    Raises:
        GraphError: the graph contradicts itself.
        LimitError: subgraphs or dicts of arguments nest too deep (G11).

    Cost: see `order.node_order`.
    """
    graph = usual_graph(graph)
    if keep.reloading is not None:
        graph = keep.reloading.graph(graph)
    graph = renamed_tables(graph, keep.symbols)
    inner = [_subgraphs(node, f"{where}.nodes[{n}]", keep, depth) for n, node in enumerate(graph.nodes)]
    facts = collect(graph, inputs, outputs, where)
    writing = [
        writes(node) or any(form.writes for form in forms) for node, forms in zip(graph.nodes, inner, strict=True)
    ]
    parts = _parts(writing) if keep.write_order else [0] * len(writing)
    order = node_order(facts, _contents(facts, inner), parts, _metadata(graph, keep), keep.search)
    names = _names(facts, order)
    check_free(facts.externals, names, f"{where}: custom object")
    numbers = iter(range(len(inner) + sum(map(len, inner))))
    nodes = []
    for n in order:
        subgraphs = iter([GraphArgument(f"_g{next(numbers)}", form.graph) for form in inner[n]])
        nodes.append(_node(graph.nodes[n], names, subgraphs, keep_metadata=keep.metadata))
    form = Graph(
        inputs=[rename(argument, names, iter(())) for argument in inputs],
        outputs=[rename(argument, names, iter(())) for argument in outputs],
        nodes=nodes,
        is_single_tensor_return=graph.is_single_tensor_return,
        **_tables(facts, names),
    )
    return Form(form, names, tuple(order), any(writing))


def check_free(found: frozenset[str], names: Names, what: str) -> None:
    """Check that names which stay are not among the new ones.

    Args:
        found: names that stay.
        names: old name -> new name; the new ones are `_0`, `_1`, … without a gap.
        what: whose names they are, for messages.

    Raises:
        GraphError: one of them is, so that it would come to mean a value (G2).

    Cost: linear in `found`.
    """
    if taken := [new for new in found if _NUMBERED.fullmatch(new) and int(new[1:]) < len(names)]:
        raise GraphError(
            f"{what}: expected a name other than _0, _1, …, which values have in normal form, got {quote(min(taken))}",
            rule="G2",
        )


def _subgraphs(node: Node, where: str, keep: Keep, depth: int) -> list[Form]:
    """Return the normal forms of the subgraphs that a node carries, in the order in which `rename` meets them."""
    forms = []
    for position, named in enumerate(node.inputs):
        for _, subgraph in sorted(graph_arguments(named.arg), key=lambda entry: entry[0]):
            place = f"{where}.inputs[{position}].arg.as_graph.graph"
            if depth == MAX_SUBGRAPH_DEPTH:
                message = f"expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more"
                raise LimitError(f"{place}: {message}", rule=LIMIT_RULE)
            forms.append(
                normal_form(subgraph.graph, subgraph.graph.inputs, subgraph.graph.outputs, place, keep, depth + 1)
            )
    return forms


def _parts(writing: list[bool]) -> list[int]:
    """Return node -> its part of the program: each node that may write is a part of its own."""
    parts, part = [], 0
    for one in writing:
        part += one
        parts.append(part)
        part += one
    return parts


def _contents(facts: Facts, inner: list[list[Form]]) -> Callable[[int], bytes]:
    """Return a function from a node to its content: all of it and of its results except names and node metadata."""
    nameless = dict.fromkeys(facts.names, "")
    memo: dict[bytes, bytes] = {}
    metas = tables(facts.graph)

    def content(n: int) -> bytes:
        subgraphs = iter([GraphArgument("", form.graph) for form in inner[n]])
        node = _node(facts.graph.nodes[n], nameless, subgraphs, keep_metadata=False)
        results = [metas[facts.kinds[value]][facts.names[value]] for value in facts.results[n]]
        return encode_graph_value([node, [_without_name(meta, nameless) for meta in results]], memo)

    return content


def _metadata(graph: Graph, keep: Keep) -> Callable[[int], bytes]:
    """Return a function from a node to the bytes of its metadata, if kept; else to a constant, so that it does not
    count."""
    return (lambda n: encode_value(graph.nodes[n].metadata)) if keep.metadata else (lambda n: b"")


def encode_graph_value(value: Any, memo: dict[bytes, bytes] | None = None) -> bytes:
    """Return the bytes of a value as `encode_value`, without node metadata, and with the `graph_digest` of each
    subgraph."""
    return encode_value(value, _REPLACE, memo)


def graph_digest(graph: Graph) -> bytes:
    """Return the SHA-256 of a graph in normal form; see `encode_graph_value`.

    Cost: linear; a graph that is used in several places is hashed in each.
    """
    return hashlib.sha256(GRAPH_TAG + encode_graph_value(graph)).digest()


def subgraph_digest(graph: Graph, where: str) -> bytes:
    """Return the SHA-256 of the normal form of a graph whose inputs and outputs have their order, as those of subgraphs
    do.

    Args:
        graph: any graph.
        where: its place, for messages.

    Raises:
        GraphError, LimitError: as `normal_form`.
    """
    return graph_digest(normal_form(graph, graph.inputs, graph.outputs, where, Keep()).graph)


_REPLACE: Final[Mapping[type, Callable[[Any], Any]]] = MappingProxyType(
    {
        GraphArgument: lambda subgraph: {"graph": graph_digest(subgraph.graph), "name": subgraph.name},
        Node: lambda node: msgspec.structs.replace(node, metadata={}) if node.metadata else node,
    }
)


def _names(facts: Facts, order: Sequence[int]) -> dict[str, str]:
    inputs = [value for value, definer in enumerate(facts.definers) if definer < 0]
    values = [*inputs, *(value for node in order for value in facts.results[node])]
    return {facts.names[value]: f"_{number}" for number, value in enumerate(values)}


def _node(node: Node, names: Names, subgraphs: Iterator[GraphArgument], *, keep_metadata: bool) -> Node:
    return Node(
        target=node.target,
        inputs=[
            schema.NamedArgument(named.name, rename(named.arg, names, subgraphs), named.kind) for named in node.inputs
        ],
        outputs=[rename(output, names, subgraphs) for output in node.outputs],
        metadata=dict(sorted(node.metadata.items())) if keep_metadata else {},
        is_hop_single_tensor_return=node.is_hop_single_tensor_return,
    )


def _tables(facts: Facts, names: Names) -> dict[str, dict[str, Any]]:
    """Return the value tables under the new names, sorted by name."""
    old = tables(facts.graph)
    new: dict[str, dict[str, Any]] = {kind: {} for kind in old}
    for name, kind in sorted(zip(facts.names, facts.kinds, strict=True), key=lambda entry: names[entry[0]]):
        new[kind][names[name]] = _without_name(old[kind][name], names)
    return {f"{kind}_values": table for kind, table in new.items()}


def _without_name(meta: Any, names: Mapping[str, str]) -> Any:
    """Return the meta of a value without its name, which that of a custom object repeats."""
    if isinstance(meta, schema.CustomObjArgument):
        return schema.CustomObjArgument(names.get(meta.name, meta.name), meta.class_fqn)
    return meta
