"""Normal form of one graph, subgraphs included: nodes in order, values and subgraphs renamed, tables sorted.

Values become `_0`, `_1`, … in the order in which they are defined, graph inputs first, in each graph anew; the
subgraphs of a graph become `_g0`, `_g1`, … in the order of the nodes that carry them. Metadata and names of nodes are
removed, as are entries of the value tables that no value has.

Nodes come in topological order. Among those whose arguments are all defined, the least comes first by

1. the target, as text;
2. for each argument, as stored: its name, then the ranks of the values in its slots, -1 for a slot without one. A
   value's rank is how many values were defined before it, graph inputs first;
3. the node's *content*: `encoding.encode_value` of the node without node metadata and names of nodes and values, and of
   what is known of its results;
4. the node's number (`facts.labels`).

torch orders nodes by 1 and 2. Among nodes that are equal by these, it looks at the stored order; 3 and 4 do not. So a
graph in this order is not reordered by torch.

Arguments and results do not show whether a node writes into its arguments or acts on the world, so the stored order of
nodes with such effects is part of what the program does. What operators write is in the operator table
(`operators.aliasing`); a custom operator counts as writing.

`Reloading` removes the details that torch's own load and save changes: `torch.export.load` followed by
`torch.export.save` drops `storage_offset`, evaluates expressions, turns operators that it does not know into text, and
writes the addresses of another process.

Source: torch/_export/serde/serialize.py, torch 2.13, for the order.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.canonical.canonical_labeling import Search, grouped
from pt2kit.canonical.encoding import encode_value
from pt2kit.canonical.expressions import Normalizer, renamed_expression, with_expressions, words
from pt2kit.canonical.facts import (
    NO_NODE,
    NO_VALUE,
    Facts,
    Names,
    Tiebreakers,
    Uses,
    collect,
    labels,
    rename,
    usual_graph,
)
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.argument_values import LIMIT_RULE, graph_arguments
from pt2kit.graph.traversal import (
    MAX_SUBGRAPH_DEPTH,
    TOO_DEEP,
    argument_place,
    input_by_name,
    operator_name,
    operator_namespace,
    tables,
    walk,
)
from pt2kit.messages import quote
from pt2kit.node_metadata.redaction import without_addresses
from pt2kit.operators.aliasing import written
from pt2kit.operators.higher_order import WRITING
from pt2kit.schema import Argument, Graph, GraphArgument, Node
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import find_operator, known_releases

_NO_OFFSET = schema.SymInt(as_int=0)

Key = tuple[str, Uses, bytes, int, int]

KNOWN: Final = frozenset(
    ("aten", "prim", "prims", "_operator", "math", "torch", "export", "higher_order", "quantized_decomposed")
)
"""The namespaces whose operators write only what the operator table has."""

TRAINING: Final = ("training", "train", "use_input_stats")
"""Arguments with which a normalization updates its running statistics, which its schema does not declare."""

_NUMBERED: Final = re.compile(r"_(?:0|[1-9][0-9]{0,17})")

GRAPH_TAG: Final = b"pt2kit graph 1\0"
"""Prefix of the bytes of a graph when they are hashed."""


class Reloading:
    """Takes the graphs of one program to the form that a round trip through torch does not change.

    Args:
        expressions: brings expressions into normal form, and remembers the symbols that it has met.
    """

    def __init__(self) -> None:
        self.expressions = Normalizer()

    def graph(self, graph: schema.Graph) -> schema.Graph:
        """Return a graph in this form; its subgraphs are unchanged."""
        metas = graph.tensor_values.items()
        tensors = {name: replace(meta, storage_offset=_NO_OFFSET) for name, meta in metas}
        nodes = [_reloaded(node) for node in graph.nodes]
        return with_expressions(replace(graph, nodes=nodes, tensor_values=tensors), self.expressions.normal)

    def ranges(self, program: schema.ExportedProgram) -> dict[str, schema.RangeConstraint]:
        """Return the ranges of those symbols that are used; all graphs of the program have been passed before."""
        used = self.expressions.names.union(*map(words, program.guards_code))
        return {name: row for name, row in program.range_constraints.items() if words(name) & used}


def _reloaded(node: schema.Node) -> schema.Node:
    inputs = [_argument(named) for named in node.inputs]
    metadata = without_addresses(node.metadata)
    same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
    return node if same and metadata == node.metadata else replace(node, inputs=inputs, metadata=metadata)


def _argument(named: schema.NamedArgument) -> schema.NamedArgument:
    """Return an argument in which the text of an operator is that operator."""
    text = named.arg.as_string
    if text is UNSET or not text.startswith(OPS):
        return named
    return replace(named, arg=schema.Argument(as_operator=text))


def node_order(facts: Facts, ties: Tiebreakers) -> list[int]:
    """Return the nodes of a graph in normal order.

    Args:
        facts: the graph.
        ties: what decides between equal nodes.

    Raises:
        GraphError: a node uses what no earlier node can define (G1).

    Cost: the arguments, and the nodes times the logarithm of how many are ready together.
    """
    parts = ties.parts
    contents, numbers = _decided(facts, ties)
    waiting, users = _waiting(facts)
    ranks = {NO_VALUE: NO_VALUE} | {value: rank for rank, value in enumerate(_inputs(facts))}
    by_part = grouped(range(len(parts)), parts.__getitem__)

    def key(node: int) -> Key:
        inputs = tuple((name, tuple([ranks[value] for value in slots])) for name, slots in facts.inputs[node])
        return facts.graph.nodes[node].target, inputs, contents.get(node, b""), numbers.get(node, 0), node

    done: list[int] = []
    for part in sorted(by_part):
        ready = [key(node) for node in by_part[part] if waiting[node] == 0]
        heapq.heapify(ready)
        while ready:
            node = heapq.heappop(ready)[-1]
            done.append(node)
            for value in facts.results[node]:
                ranks[value] = len(ranks) - 1
            for user in users[node]:
                waiting[user] -= 1
                if waiting[user] == 0 and parts[user] == part:
                    heapq.heappush(ready, key(user))
        if any(waiting[node] for node in by_part[part]):
            raise _stuck(facts, by_part[part], waiting, frozenset(done))
    return done


def _inputs(facts: Facts) -> list[int]:
    """Return the values that are inputs of the graph."""
    return [value for value, definer in enumerate(facts.definers) if definer == NO_NODE]


def _decided(facts: Facts, ties: Tiebreakers) -> tuple[dict[int, bytes], dict[int, int]]:
    """Return the contents and numbers of the nodes that need them: those with one target and the same values in all
    slots."""
    numbers = range(len(facts.inputs))
    alike = grouped(numbers, lambda node: (ties.parts[node], facts.graph.nodes[node].target, facts.inputs[node]))
    groups = [group for group in alike.values() if len(group) > 1]
    contents = {node: ties.content(node) for group in groups for node in group}
    if all(len({contents[node] for node in group}) == len(group) for group in groups):
        return contents, {}
    return contents, labels(facts, ties)


def _waiting(facts: Facts) -> tuple[list[int], list[list[int]]]:
    """Return node -> how many of its uses are of undefined values, and node -> the users of its results, once per
    use."""
    waiting = [0] * len(facts.inputs)
    users: list[list[int]] = [[] for _ in facts.inputs]
    for node, inputs in enumerate(facts.inputs):
        for _, slots in inputs:
            for value in slots:
                if value != NO_VALUE and (definer := facts.definers[value]) != NO_NODE:
                    users[definer].append(node)
                    waiting[node] += 1
    return waiting, users


def _stuck(facts: Facts, part: list[int], waiting: list[int], done: frozenset[int]) -> GraphError:
    node = next(node for node in part if waiting[node])
    name, position = next(
        (facts.names[value], position)
        for position, (_, slots) in enumerate(facts.inputs[node])
        for value in slots
        if value != NO_VALUE and (definer := facts.definers[value]) != NO_NODE and definer not in done
    )
    expected = "expected the name of a graph input or of an earlier node's result"
    got = f"got {quote(name)}, which depends on this node or on a write after it"
    return GraphError(f"{argument_place(facts.where, 'inputs', node, position)}: {expected}, {got}", rule="G1")


def writes(node: schema.Node) -> bool:
    """Return whether a node may write, leaving aside the subgraphs that it carries."""
    if operator_namespace(node.target) not in KNOWN:
        return True
    name = operator_name(node.target)
    if name == "_operator.setitem" or name.removeprefix("higher_order.") in WRITING:
        return True
    always, sometimes = _written(name)
    trained = (input_by_name(node, argument) for argument in TRAINING)
    return always or (sometimes and any(argument is not None and argument.as_bool is True for argument in trained))


# A pure function of the tables of the package.
@lru_cache(maxsize=4096)
def _written(name: str) -> tuple[bool, bool]:
    """Return whether an overload always writes, as its schema declares, and whether it does so when it trains."""
    base = name.split(".")[1] if name.count(".") == 2 else ""
    if base.endswith("_") and not base.endswith("__"):
        return True, True
    for release in reversed(known_releases()):
        operator = find_operator(name, release)
        if operator is not None:
            changed = written(name, release)
            return any(operator.parameters[one].type.is_written for one in changed), bool(changed)
    return False, False


def writes_inside(node: schema.Node) -> bool:
    """Return whether a node may write, or carries a subgraph with a node that may.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    return writes(node) or any(
        writes(step.node)
        for named in node.inputs
        for _, subgraph in graph_arguments(named.arg)
        for step in walk(subgraph.graph)
    )


@dataclass(frozen=True, slots=True)
class Keep:
    """Options of a normal form: details to keep that torch's normal form drops.

    Args:
        metadata: the metadata of nodes. It decides only where nodes that can be exchanged come.
        write_order: the stored order around nodes that may write (`writes`, or a subgraph with such a node):
            no node moves from one side of them to the other.
        symbols: old name -> new name, of symbols that get another one.
        reloading: if given, what a round trip through torch changes is dropped by it.
        search: what searches may still cost, in all graphs together.
        forms: the subgraphs that have been converted, by their identity, each with its normal form.
        digests: the digests of these forms, by the identity of their graphs.
    """

    metadata: bool = False
    write_order: bool = False
    symbols: Mapping[str, str] = field(default_factory=dict)
    reloading: Reloading | None = None
    search: Search = field(default_factory=Search)
    forms: dict[int, tuple[Graph, Form]] = field(default_factory=dict)
    digests: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Form:
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

    Cost: see `node_order`.
    """
    graph = usual_graph(graph)
    if keep.reloading is not None:
        graph = keep.reloading.graph(graph)
    if keep.symbols:
        graph = with_expressions(graph, functools.cache(lambda text: renamed_expression(text, keep.symbols)))
    inner = [_subgraphs(node, f"{where}.nodes[{n}]", keep, depth) for n, node in enumerate(graph.nodes)]
    facts = collect(graph, inputs, outputs, where)
    writing = [
        writes(node) or any(form.writes for form in forms) for node, forms in zip(graph.nodes, inner, strict=True)
    ]
    parts = _parts(writing) if keep.write_order else [0] * len(writing)
    contents = _contents(facts, inner, keep.digests)
    metadata = (lambda n: encode_value(graph.nodes[n].metadata)) if keep.metadata else (lambda n: b"")
    order = node_order(facts, Tiebreakers(contents, parts, metadata, keep.search))
    values = [*_inputs(facts), *(value for node in order for value in facts.results[node])]
    names = {facts.names[value]: f"_{number}" for number, value in enumerate(values)}
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
    """Check that unchanged names are not among the new ones.

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
                raise LimitError(f"{place}: {TOO_DEEP}", rule=LIMIT_RULE)
            forms.append(_inner_form(subgraph.graph, place, keep, depth + 1))
    return forms


def _inner_form(graph: Graph, where: str, keep: Keep, depth: int) -> Form:
    """Return the normal form of a subgraph; it is converted once, at whatever level a comparison meets it again."""
    if id(graph) not in keep.forms:
        keep.forms[id(graph)] = graph, normal_form(graph, graph.inputs, graph.outputs, where, keep, depth)
    return keep.forms[id(graph)][1]


def _parts(writing: list[bool]) -> list[int]:
    """Return node -> its part of the program: each node that may write is a part of its own."""
    writers_before = accumulate(writing, initial=0)
    return [2 * count + is_writing for count, is_writing in zip(writers_before, writing, strict=False)]


def _contents(facts: Facts, inner: list[list[Form]], digests: dict[int, bytes]) -> Callable[[int], bytes]:
    """Return a function from a node to its content: all of it and of its results except names and node metadata."""
    nameless = dict.fromkeys(facts.names, "")
    replaced = _replaced(digests)

    @functools.cache
    def content(n: int) -> bytes:
        subgraphs = iter([GraphArgument("", form.graph) for form in inner[n]])
        node = _node(facts.graph.nodes[n], nameless, subgraphs, keep_metadata=False)
        results = [_without_name(facts.metas[value], nameless) for value in facts.results[n]]
        return encode_value([node, results], replaced)

    return content


def encode_graph_value(value: Any, digests: dict[int, bytes] | None = None) -> bytes:
    """Return the bytes of a value as `encode_value`, without node metadata, and with the `graph_digest` of each
    subgraph.

    Args:
        value: as of `encode_value`.
        digests: of graphs that live on, by their identity; those that are missing are added.
    """
    return encode_value(value, _replaced({} if digests is None else digests))


def graph_digest(graph: Graph) -> bytes:
    """Return the SHA-256 of a graph in normal form; see `encode_graph_value`.

    Cost: linear; a graph that is used in several places is hashed in each.
    """
    return _digest(graph, {})


def subgraph_digest(graph: Graph, where: str, keep: Keep) -> bytes:
    """Return the SHA-256 of the normal form of a graph whose inputs and outputs have their order, as those of subgraphs
    do.

    Args:
        graph: any graph.
        where: its place, for messages.
        keep: options; remembers the subgraphs that it has met.

    Raises:
        GraphError, LimitError: as `normal_form`.
    """
    return _digest(_inner_form(graph, where, keep, 0).graph, keep.digests)


def _digest(graph: Graph, known: dict[int, bytes]) -> bytes:
    """Return the digest of a graph; known ones are those of graphs that live on, by their identity."""
    if id(graph) not in known:
        known[id(graph)] = hashlib.sha256(GRAPH_TAG + encode_value(graph, _replaced(known))).digest()
    return known[id(graph)]


def _replaced(known: dict[int, bytes]) -> Mapping[type, Callable[[Any], Any]]:
    return {
        GraphArgument: lambda subgraph: {"graph": _digest(subgraph.graph, known), "name": subgraph.name},
        Node: lambda node: msgspec.structs.replace(node, metadata={}) if node.metadata else node,
    }


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
    new: dict[str, dict[str, Any]] = {kind: {} for kind in tables(facts.graph)}
    rows = zip(map(names.__getitem__, facts.names), facts.kinds, facts.metas, strict=True)
    for name, kind, meta in sorted(rows, key=itemgetter(0)):
        new[kind][name] = _without_name(meta, names)
    return {f"{kind}_values": table for kind, table in new.items()}


def _without_name(meta: Any, names: Mapping[str, str]) -> Any:
    """Return the meta of a value without its name, which that of a custom object repeats."""
    if isinstance(meta, schema.CustomObjArgument):
        return schema.CustomObjArgument(names.get(meta.name, meta.name), meta.class_fqn)
    return meta
