"""Normal form of calls, and the facts of a graph that the normal order of its nodes depends on.

In the normal form, the arguments of a call are in the order of the operator's schema, without kinds, their values
renamed. Every release would write them this way. torch binds the arguments of an operator by name, whatever their order
is. `kind` says how a call in Python would pass them, and is missing before schema 8.6. So for an operator that some
release of torch registers, arguments come in the order of its schema, that of the oldest release that has all their
names; those of other operators stay as stored. A higher-order operator has no schema: its positional arguments have no
name, those passed by name come after them, sorted. All arguments of functions over numbers are positional.

`slots` lists the names of an argument's values in their order, which decides the order of nodes; `rename` renames the
values and subgraphs. Arms that name nothing are returned as they are.

The facts are numbered values, defining nodes, labels of nodes. Values are numbered: the graph's inputs first, in their
order, then the results of the nodes as stored. The nodes may be stored in any order. For each argument, the facts have
the value and the node that defines it.

A label is a number for each node that depends on neither names nor the stored order of nodes.

Nodes from which an output can be reached are numbered on a walk from the outputs back: outputs in order, for each value
the node that defines it, unless it has a number, then that node's arguments in order, and so on, depth first. Arguments
and outputs have an order, so this walk is the same for every way to write the program down: these numbers are exact.

The other nodes (checks, writes in place, nodes whose results are unused) come after them, in the order that
`canonical_labeling` finds for nodes whose color is: their part of the program, their content (`content`), and for each
slot of their arguments the graph input, the numbered node's result, or the place of a result of another such node.
Nodes that can be exchanged, so that their order changes only which of them has which metadata, come in the order of
their metadata.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.canonical.canonical_labeling import Edge, Search, order
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import (
    ARMS,
    FUNCTION_MODULES,
    Subgraphs,
    ValueKind,
    graph_arguments,
    leaves,
    plain,
    references,
    renamed,
)
from pt2kit.graph.traversal import HIGHER_ORDER, Meta, argument_place, operator_namespace, tables
from pt2kit.messages import quote
from pt2kit.schema import Argument, NamedArgument
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import find_operator, known_releases

Names = Mapping[str, str]
"""Old name -> new name; a name that is not a key stays."""

Slots = tuple[str | None, ...]

NOTHING: Final[Slots] = (None,)


def usual_graph(graph: schema.Graph) -> schema.Graph:
    """Return a graph in which every call is written the usual way; subgraphs are unchanged.

    Args:
        graph: the graph; shared where nothing is to be done.
    """
    nodes = [usual_call(node) for node in graph.nodes]
    changed = any(one is not other for one, other in zip(nodes, graph.nodes, strict=True))
    return replace(graph, nodes=nodes) if changed else graph


def usual_call(node: schema.Node) -> schema.Node:
    """Return a node with its arguments in the usual order, without kinds; the same node if it is so already."""
    inputs = _usual(node)
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def _usual(node: schema.Node) -> list[NamedArgument]:
    if node.target.startswith(FUNCTION_MODULES):
        return [NamedArgument("", named.arg) for named in node.inputs]
    # An operator with a schema: of the dispatcher, or of an extension.
    if node.target.startswith("#") or (node.target.startswith(OPS) and operator_namespace(node.target) != HIGHER_ORDER):
        order = _order(node.target, tuple(named.name for named in node.inputs))
        inputs = node.inputs if order is None else [node.inputs[place] for place in order]
        return [NamedArgument(named.name, named.arg) for named in inputs]
    placed = [named for named in node.inputs if named.is_placed]
    by_name = sorted((named for named in node.inputs if not named.is_placed), key=lambda named: named.name)
    return [
        *(NamedArgument("", named.arg) for named in placed),
        *(NamedArgument(named.name, named.arg) for named in by_name),
    ]


# A pure function of tables that never change; programs make the same few calls over and over.
@functools.lru_cache(maxsize=4096)
def _order(target: str, names: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the positions of arguments in the order of the operator's schema; None if no release has these names."""
    if len(set(names)) != len(names):
        return None
    name = target.removeprefix(OPS)
    for release in known_releases():
        operator = find_operator(name, release)
        if operator is not None and operator.parameters.keys() >= set(names):
            rank = {parameter: number for number, parameter in enumerate(operator.parameters)}
            return tuple(sorted(range(len(names)), key=lambda place: rank[names[place]]))
    return None


def slots(argument: Argument) -> Slots:
    """List the names of the values that an argument uses, with None for a constant instead of a value.

    An argument that has no place for a value is one None. A dict of arguments is read in the order of its keys.

    Raises:
        LimitError: dicts nest too deep (G11).

    Source: torch/_export/serde/serialize.py, torch 2.13, which puts nodes in order by the ranks of these values.
    """
    if (tensor := argument.as_tensor) is not UNSET:
        return (tensor.name,)
    if argument.as_string_to_argument is not UNSET:
        inner = sorted((keys, [reference.name for reference in references(leaf)]) for keys, leaf in leaves(argument))
        return tuple(name for _, names in inner for name in names) or NOTHING
    if ARMS[argument.type].renamed is None:
        return NOTHING
    return tuple(_names_in(plain(argument, str)))


def _names_in(held: Any) -> Iterator[str | None]:
    """Yield the names in a plain value, and None for each constant."""
    if isinstance(held, tuple):
        for one in held:
            yield from _names_in(one)
    else:
        yield held if isinstance(held, str) else None


def rename(argument: Argument, names: Names, subgraphs: Subgraphs) -> Argument:
    """Rename the values that an argument names.

    Args:
        argument: any argument, with dicts of at most `graph.MAX_ARGUMENT_DEPTH` levels, as `slots` has proved.
        names: old name -> new name.
        subgraphs: the replacement of each subgraph, dicts read in the order of their keys.

    Returns:
        a new argument, dicts in the order of their keys; or the same one where there is nothing to rename.
    """
    return renamed(argument, lambda name: names.get(name, name), subgraphs, by_key=True)


NO_VALUE: Final = -1
"""Stands where an argument holds a constant, or a custom object that the archive's constants hold."""

NO_NODE: Final = -1
"""Stands where a value comes from outside: a graph input."""

Positions = tuple[int, ...]

Uses = tuple[tuple[str, Positions], ...]
"""The arguments of a node: name, and the values in its slots."""

Colour = tuple[int, bytes, tuple[tuple[int, int, int], ...]]


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about one graph's values.

    Args:
        graph: the graph; shared, not copied.
        where: its place, for messages.
        names: value -> its name.
        kinds: value -> its kind.
        metas: value -> what the value tables have of it.
        definers: value -> the number of the node that defines it; `NO_NODE` for a graph input.
        inputs: node -> its arguments, with `NO_VALUE` for a slot without a value.
        results: node -> the values it defines.
        outputs: the values that the graph returns.
        externals: names of custom objects that nothing in the graph defines.
    """

    graph: schema.Graph
    where: str
    names: list[str]
    kinds: list[ValueKind]
    metas: list[Meta]
    definers: list[int]
    inputs: list[Uses]
    results: list[Positions]
    outputs: Positions
    externals: frozenset[str]


def collect(
    graph: schema.Graph, inputs: Sequence[schema.Argument], outputs: Sequence[schema.Argument], where: str
) -> Facts:
    """Assign numbers to the values of a graph.

    Args:
        graph: a graph; its subgraphs are not entered.
        inputs, outputs: its inputs and outputs, in the order that they are to have.
        where: its place, for messages.

    Raises:
        GraphError: a value is defined twice (G2), has no entry in the value tables (G3), or is not defined at all (G1);
            two subgraphs have one name (G16).
        LimitError: dicts of arguments nest too deep (G11).

    Cost: linear in the arguments.
    """
    _check_subgraphs(graph, where)
    described = tables(graph)
    numbers: dict[str, int] = {}
    kinds: list[ValueKind] = []
    metas: list[Meta] = []
    definers: list[int] = []
    externals: set[str] = set()

    def define(argument: schema.Argument, node: int | None, position: int) -> Positions:
        place = argument_place(where, "outputs" if node is not None else "inputs", node, position)
        refuse_subgraph(argument, place)
        first = len(numbers)
        for name, kind, _ in references(argument):
            if name in numbers:
                raise GraphError(f"{place}: expected a name that is not taken, got {quote(name)} again", rule="G2")
            if name not in described[kind]:
                message = f"expected an entry for {quote(name)} in {kind}_values, got none"
                raise GraphError(f"{place}: {message}", rule="G3")
            numbers[name] = len(numbers)
            kinds.append(kind)
            metas.append(described[kind][name])
            definers.append(NO_NODE if node is None else node)
        return tuple(range(first, len(numbers)))

    def use(argument: schema.Argument, node: int | None, position: int) -> Positions:
        used = slots(argument)
        if unknown := {name for name in used if name is not None and name not in numbers}:
            place = argument_place(where, "outputs" if node is None else "inputs", node, position)
            externals.update(_external(argument, unknown, place))
        return tuple([NO_VALUE if name is None else numbers.get(name, NO_VALUE) for name in used])

    for position, argument in enumerate(inputs):
        define(argument, None, position)
    for position, argument in enumerate(outputs):
        refuse_subgraph(argument, argument_place(where, "outputs", None, position))
    results = [
        tuple(value for position, output in enumerate(node.outputs) for value in define(output, n, position))
        for n, node in enumerate(graph.nodes)
    ]
    used = [
        tuple((named.name, use(named.arg, n, position)) for position, named in enumerate(node.inputs))
        for n, node in enumerate(graph.nodes)
    ]
    returned = tuple(value for position, output in enumerate(outputs) for value in use(output, None, position))
    values = list(numbers), kinds, metas, definers
    return Facts(graph, where, *values, used, results, returned, frozenset(externals))


def _external(argument: schema.Argument, unknown: Set[str], where: str) -> Set[str]:
    """Return names that nothing defines: custom objects may be among the archive's constants."""
    held = {reference.name for reference in references(argument) if reference.kind == "custom_obj"}
    if missing := [name for name in slots(argument) if name in unknown and name not in held]:
        expected = "expected the name of a graph input or of a node's result"
        raise GraphError(f"{where}: {expected}, got {quote(missing[0])}, which nothing defines", rule="G1")
    return unknown


def _check_subgraphs(graph: schema.Graph, where: str) -> None:
    """Check that subgraphs of one name are one: with two, the graph would mean whichever a reader takes (G16)."""
    known: dict[str, schema.Graph] = {}
    for n, node in enumerate(graph.nodes):
        for position, named in enumerate(node.inputs):
            for _, subgraph in graph_arguments(named.arg):
                first = known.setdefault(subgraph.name, subgraph.graph)
                if first is not subgraph.graph and first != subgraph.graph:
                    message = (
                        f"expected a name of its own for a subgraph, got {quote(subgraph.name)}, which another one has"
                    )
                    raise GraphError(f"{argument_place(where, 'inputs', n, position)}: {message}", rule="G16")


def refuse_subgraph(argument: schema.Argument, where: str) -> None:
    """Check that an argument carries no subgraph where only values and constants may be.

    Raises:
        GraphError: it does (G10).
        LimitError: dicts of arguments nest too deep (G11).
    """
    if graph_arguments(argument):
        raise GraphError(f"{where}: expected values or constants, got a subgraph", rule="G10")


@dataclass(frozen=True, slots=True)
class Tiebreakers:
    """The properties that decide between nodes of a graph with one target and the same arguments.

    Args:
        content: node -> its content, without names; requested only for nodes that nothing cheaper distinguishes.
        parts: node -> its part of the program; parts come one after another, each in order by itself.
        metadata: node -> the bytes of its metadata, which decide between nodes that can be exchanged.
        search: what searches for an order among nodes that lead to no output may cost.
    """

    content: Callable[[int], bytes]
    parts: Sequence[int]
    metadata: Callable[[int], bytes]
    search: Search


def labels(facts: Facts, ties: Tiebreakers) -> dict[int, int]:
    """Number the nodes of a graph.

    Args:
        facts: the graph.
        ties: what decides between equal nodes.

    Returns:
        node -> its number; no two are equal.

    Cost: linear where every node leads to an output; see `canonical_labeling` for others.
    """
    numbers = {node: number for number, node in enumerate(_from_outputs(facts))}
    for node in _others(facts, ties, numbers):
        numbers[node] = len(numbers)
    return numbers


def _from_outputs(facts: Facts) -> list[int]:
    """Return the nodes that lead to an output, in the order of the walk."""
    nodes: dict[int, None] = {}
    stack = list(reversed(facts.outputs))
    while stack:
        value = stack.pop()
        node = NO_NODE if value == NO_VALUE else facts.definers[value]
        if node != NO_NODE and node not in nodes:
            nodes[node] = None
            stack += [used for _, slots in reversed(facts.inputs[node]) for used in reversed(slots)]
    return list(nodes)


def _others(facts: Facts, ties: Tiebreakers, numbers: Mapping[int, int]) -> list[int]:
    """Return the nodes without a number, in an order of their own."""
    results = {value: place for values in facts.results for place, value in enumerate(values)}
    left = sorted((node for node in range(len(facts.results)) if node not in numbers), key=ties.metadata)
    things = {node: thing for thing, node in enumerate(left)}
    colours: dict[int, Colour] = {}
    edges: list[Edge] = []
    for node, thing in things.items():
        seen: list[tuple[int, int, int]] = []
        for slot, value in enumerate(value for _, values in facts.inputs[node] for value in values):
            definer = NO_NODE if value == NO_VALUE else facts.definers[value]
            if value == NO_VALUE:
                seen.append((0, 0, 0))
            elif definer == NO_NODE:
                seen.append((1, value, 0))
            elif definer in numbers:
                seen.append((2, numbers[definer], results[value]))
            else:
                seen.append((3, 0, results[value]))
                edges.append((thing, slot, things[definer], results[value]))
        colours[thing] = (ties.parts[node], ties.content(node), tuple(seen))
    return [left[thing] for thing in order(colours, edges, ties.search)]
