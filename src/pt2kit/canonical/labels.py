"""Labels of nodes: a number for each node that depends on neither names nor the stored order of nodes.

Nodes from which an output can be reached are numbered on a walk from the outputs back: outputs in order, for each value
the node that defines it, unless it has a number, then that node's arguments in order, and so on, depth first. Arguments
and outputs have an order, so this walk is the same for every way to write the program down: these numbers are exact.

The other nodes (checks, writes in place, what nobody uses) come after them, in the order that `canonical_labeling`
finds for nodes whose colour is: their part of the program, their content (`content`), and for each slot of
their arguments the graph input, the numbered node's result, or the place of a result of another such node. Those that
can be exchanged, so that their order changes nothing but which metadata stands where, come in the order of their
metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pt2kit.canonical.canonical_labeling import Edge, Search, order
from pt2kit.canonical.facts import NO_NODE, NO_VALUE, Facts

Colour = tuple[int, bytes, tuple[tuple[int, int, int], ...]]


def labels(
    facts: Facts,
    content: Callable[[int], bytes],
    parts: Sequence[int],
    metadata: Callable[[int], bytes],
    search: Search,
) -> list[int]:
    """Number the nodes of a graph.

    Args:
        facts: the graph.
        content: node -> its content, without names; asked for nodes that lead to no output.
        parts: node -> its part of the program, where the order of parts is fixed.
        metadata: node -> the bytes of its metadata, which decide between nodes that can be exchanged.
        search: what searches may cost.

    Returns:
        node -> its number; no two are equal.

    Cost: linear where every node leads to an output; see `canonical_labeling` for others.
    """
    numbered = _from_outputs(facts)
    numbers = [-1] * len(facts.results)
    for number, node in enumerate(numbered):
        numbers[node] = number
    if len(numbered) < len(numbers):
        for number, node in enumerate(_others(facts, content, parts, metadata, numbers, search), len(numbered)):
            numbers[node] = number
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


def _others(
    facts: Facts,
    content: Callable[[int], bytes],
    parts: Sequence[int],
    metadata: Callable[[int], bytes],
    numbers: Sequence[int],
    search: Search,
) -> list[int]:
    """Return the nodes without a number, in an order of their own."""
    results = {value: place for values in facts.results for place, value in enumerate(values)}
    left = sorted((node for node, number in enumerate(numbers) if number < 0), key=metadata)
    things = {node: thing for thing, node in enumerate(left)}
    colours: dict[int, Colour] = {}
    edges: list[Edge] = []
    for node, thing in things.items():
        seen: list[tuple[int, int, int]] = []
        for slot, value in enumerate(value for _, slots in facts.inputs[node] for value in slots):
            definer = NO_NODE if value == NO_VALUE else facts.definers[value]
            if value == NO_VALUE:
                seen.append((0, 0, 0))
            elif definer == NO_NODE:
                seen.append((1, value, 0))
            elif numbers[definer] >= 0:
                seen.append((2, numbers[definer], results[value]))
            else:
                seen.append((3, 0, results[value]))
                edges.append((thing, slot, things[definer], results[value]))
        colours[thing] = (parts[node], content(node), tuple(seen))
    return [left[thing] for thing in order(colours, edges, search)]
