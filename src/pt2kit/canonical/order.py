"""Order of a graph's nodes in the format's normal form.

Nodes come in topological order. Among those whose arguments are all defined, the least comes first by

1. the target, as text;
2. for each argument, as stored: its name, then the ranks of the values in its slots, -1 where there is none. A value's
   rank is how many values were defined before it, graph inputs first;
3. the node's *content*: `encoding.encode_value` of the node without node metadata and names of nodes and values, and of
   what is known of its results;
4. the node's number (`labels`).

1 and 2 are torch's. Where they are equal torch looks at the stored order; 3 and 4 do not. So torch, given a graph in
this order, leaves it as it is.

Source: torch/_export/serde/serialize.py, torch 2.13.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence

from pt2kit.canonical.canonical_labeling import Search
from pt2kit.canonical.facts import NO_NODE, NO_VALUE, Facts, Slots, place
from pt2kit.canonical.labels import labels
from pt2kit.errors import GraphError
from pt2kit.messages import quote

Key = tuple[str, tuple[tuple[str, Slots], ...], bytes, int, int]


def node_order(
    facts: Facts,
    content: Callable[[int], bytes],
    parts: Sequence[int],
    metadata: Callable[[int], bytes],
    search: Search,
) -> list[int]:
    """Return the nodes of a graph in normal order.

    Args:
        facts: the graph.
        content: node -> its content, without names; requested only for nodes that nothing cheaper distinguishes.
        parts: node -> its part of the program; parts come one after another, each in order by itself.
        metadata: node -> the bytes of its metadata, which decide between nodes that can be exchanged.
        search: what searches for an order among nodes that lead to no output may cost.

    Raises:
        GraphError: a node uses what no earlier node can define (G1).

    Cost: the arguments, and the nodes times the logarithm of how many are ready together.
    """
    contents, numbers = _ties(facts, content, parts, metadata, search)
    waiting, users = _waiting(facts)
    ranks = _Ranks(facts)
    by_part: dict[int, list[int]] = defaultdict(list)
    for node, part in enumerate(parts):
        by_part[part].append(node)
    done: list[int] = []
    for part in sorted(by_part):
        ready = [ranks.key(node, contents, numbers) for node in by_part[part] if waiting[node] == 0]
        heapq.heapify(ready)
        while ready:
            node = heapq.heappop(ready)[-1]
            done.append(node)
            ranks.define(node)
            for user in users[node]:
                waiting[user] -= 1
                if waiting[user] == 0 and parts[user] == part:
                    heapq.heappush(ready, ranks.key(user, contents, numbers))
        if any(waiting[node] for node in by_part[part]):
            raise _stuck(facts, by_part[part], waiting, frozenset(done))
    return done


class _Ranks:
    """The ranks of values as nodes are put in order."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._ranks = [NO_VALUE] * len(facts.names)
        self._next = 0
        for value, definer in enumerate(facts.definers):
            if definer == NO_NODE:
                self._define(value)

    def define(self, node: int) -> None:
        for value in self._facts.results[node]:
            self._define(value)

    def _define(self, value: int) -> None:
        self._ranks[value] = self._next
        self._next += 1

    def key(self, node: int, contents: dict[int, bytes], numbers: Sequence[int]) -> Key:
        ranks = self._ranks
        inputs = tuple(
            (name, tuple([NO_VALUE if value == NO_VALUE else ranks[value] for value in slots]))
            for name, slots in self._facts.inputs[node]
        )
        number = numbers[node] if numbers else 0
        return self._facts.graph.nodes[node].target, inputs, contents.get(node, b""), number, node


def _ties(
    facts: Facts,
    content: Callable[[int], bytes],
    parts: Sequence[int],
    metadata: Callable[[int], bytes],
    search: Search,
) -> tuple[dict[int, bytes], list[int]]:
    """Return the contents and numbers of the nodes that need them: those with one target and the same values in all
    slots."""
    alike: dict[tuple[int, str, tuple[tuple[str, Slots], ...]], list[int]] = defaultdict(list)
    for node, inputs in enumerate(facts.inputs):
        alike[parts[node], facts.graph.nodes[node].target, inputs].append(node)
    groups = [group for group in alike.values() if len(group) > 1]
    contents = {node: content(node) for group in groups for node in group}
    if all(len({contents[node] for node in group}) == len(group) for group in groups):
        return contents, []
    return contents, labels(facts, lambda node: contents.get(node) or content(node), parts, metadata, search)


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
    return GraphError(
        f"{place(facts.where, 'inputs', node, position)}: expected the name of a graph input or of an earlier node's "
        f"result, got {quote(name)}, which depends on this node or on a write after it",
        rule="G1",
    )
