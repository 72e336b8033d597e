"""Graph matching: pairs the nodes of two graphs that correspond, in linear time, by operators and neighbors, without
search.

From certain to likely; each step looks only at nodes that no earlier one has matched:

1. the same calculation: the node and all that leads to it are the same (`Side.up`), and only one node is so;
2. the same use: the node and all that it leads to are the same (`Side.down`), and only one node is so. Together these
   match everything but the nodes that were changed, and those between two changes;
3. neighbors of matched nodes: the values at one position of the arguments of two matched nodes, and the one user of its
   kind that two matched nodes have; first those that do the same in the same module (and with them nodes that are alone
   in doing so), then with other constants, then in another module;
4. nodes that are several of their kind (steps 1 and 2), last ones first: what two matched nodes use at one place, and
   those whose users nothing is known of, in order; and nodes that do the same with the same values, in order;
5. in each module, nodes that do the same and then those with one operator, in order;
6. one operator instead of another: same arguments, same users, or same arguments and module where nobody uses
   the results; then same arguments, same module, and results of the same types and sizes.

Where this leaves a difference between graphs of nodes that do the same, their normal forms decide: if they are equal,
nodes correspond by their place there (`exact`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

from pt2kit import codec
from pt2kit.canonical.facts import NO_NODE
from pt2kit.canonical.form import Keep, encode_graph_value, normal_form
from pt2kit.diffs.fingerprints import Side
from pt2kit.diffs.input_roles import Pairs
from pt2kit.diffs.matching import UNMATCHED, Matching, grouped
from pt2kit.diffs.neighbours import neighbours, same, same_operator, same_operator_and_module
from pt2kit.diffs.unmatched import by_module, replaced


def correspond(old: Side, new: Side, inputs: Mapping[int, int], edges: tuple[Pairs, Pairs]) -> Matching:
    """Find the nodes of two graphs that correspond; the other way round, the same nodes do.

    Args:
        old, new: two graphs, numbered by one interner.
        inputs: old value -> new value, of the graph inputs that correspond.
        edges: (old position, new position) of the inputs and of the outputs that correspond.

    Raises:
        GraphError, LimitError: a graph has no normal form.

    Cost: that of `match`, and where that leaves something open among nodes that do the same, that of two normal forms.
    """
    if _is_after(old, new):  # Steps that have a choice go from the smaller graph to the larger one.
        matching = match(new, old, {other: one for one, other in inputs.items()}).mirrored(inputs)
    elif all(one == other for pairs in (inputs.items(), *edges) for one, other in pairs) and _is_equal(old, new):
        return _identity(old, new, inputs)
    else:
        matching = match(old, new, inputs)
    return matching if matching.is_exact() else exact(old, new, inputs, edges) or matching


def _is_after(old: Side, new: Side) -> bool:
    """Return whether an old graph is the larger one: by nodes, then by operators, then by all its metadata."""
    first, second = ([len(side.nodes), *(node.target for node in side.nodes)] for side in (old, new))
    return first > second or (first == second and _text(old) > _text(new))


def _is_equal(old: Side, new: Side) -> bool:
    return len(old.nodes) == len(new.nodes) and _text(old) == _text(new)


def _text(side: Side) -> bytes:
    return codec.encode(side.facts.graph)


def _identity(old: Side, new: Side, inputs: Mapping[int, int]) -> Matching:
    matching = Matching(old, new, inputs)
    for node in range(len(old.keys)):
        matching.match(node, node)
    return matching


def exact(old: Side, new: Side, inputs: Mapping[int, int], edges: tuple[Pairs, Pairs]) -> Matching | None:
    """Return the nodes that correspond by their positions in the normal forms of two graphs; None if these differ.

    Args:
        old, new: two graphs, numbered by one interner.
        inputs: old value -> new value, of the graph inputs that correspond.
        edges: (old position, new position) of all inputs and all outputs.

    Raises:
        GraphError, LimitError: a graph has no normal form.
    """
    if Counter(old.keys) != Counter(new.keys):
        return None
    forms = []
    for side, which in ((old, 0), (new, 1)):
        graph = side.facts.graph
        if any(
            len(pairs) != len(arguments) for pairs, arguments in zip(edges, (graph.inputs, graph.outputs), strict=True)
        ):
            return None
        taken, returned = (
            [arguments[pair[which]] for pair in pairs]
            for pairs, arguments in zip(edges, (graph.inputs, graph.outputs), strict=True)
        )
        forms.append(normal_form(graph, taken, returned, side.facts.where, Keep()))
    if len({encode_graph_value(form.graph.nodes) for form in forms}) > 1:
        return None
    matching = Matching(old, new, inputs)
    for one, other in zip(forms[0].order, forms[1].order, strict=True):
        matching.match(one, other)
    return matching


def match(old: Side, new: Side, inputs: Mapping[int, int]) -> Matching:
    """Find the nodes that correspond.

    Args:
        old, new: two graphs, numbered by one interner.
        inputs: old value -> new value, of the graph inputs that correspond.

    Cost: linear.
    """
    matching = Matching(old, new, inputs)
    _unique(matching, old.up, new.up)
    _unique(matching, old.down, new.down)
    neighbours(matching, same)
    _unique(matching, *([*zip(side.keys, side.modules, strict=True)] for side in (old, new)))
    for alike in (same, same_operator_and_module):
        neighbours(matching, alike)
    _several(matching, lambda side, node: (side.up[node], side.down[node]))
    _several(matching, lambda side, node: (True, side.up[node]))
    _by_arguments(matching)
    _several(matching, lambda side, node: (False, side.down[node]))
    neighbours(matching, same_operator_and_module)
    by_module(matching)
    neighbours(matching, same_operator)
    replaced(matching)
    return matching


def _unique(found: Matching, old: Sequence[Hashable], new: Sequence[Hashable]) -> None:
    """Match the unmatched nodes that have a key for themselves in both graphs."""
    left, right = found.unmatched()
    before, after = grouped(left, old.__getitem__), grouped(right, new.__getitem__)
    for number, nodes in before.items():
        others = after.get(number, ())
        if len(nodes) == len(others) == 1:
            found.match(nodes[0], others[0])


def _several(found: Matching, key: Callable[[Side, int], Hashable]) -> None:
    """Match the unmatched nodes of which both graphs have equally many with one key."""
    left, right = found.unmatched()
    before = grouped(left, lambda node: key(found.old, node))
    after = grouped(right, lambda node: key(found.new, node))
    kinds = {number for number, nodes in before.items() if len(nodes) == len(after.get(number, ()))}
    free = {
        number: [node for node in before[number] if not _has_matched_users(found.old, node, found.to_new)]
        for number in kinds
    }
    # Users come after what they use: when a node's turn has come, all its users had theirs.
    for node in reversed(right):
        number = key(found.new, node)
        if number not in kinds:
            continue
        other = _from_users(found, node, lambda old, number=number: _is_free(found, old, key, number))  # type: ignore[misc]
        if other is not None:
            found.match(other, node)
        elif not _has_matched_users(found.new, node, found.to_old):
            while free[number]:
                other = free[number].pop()
                if found.to_new[other] == UNMATCHED and not _has_matched_users(found.old, other, found.to_new):
                    found.match(other, node)
                    break
    for number in kinds:
        nodes = [node for node in before[number] if found.to_new[node] == UNMATCHED]
        others = [node for node in after[number] if found.to_old[node] == UNMATCHED]
        for one, two in zip(nodes, others, strict=True):
            found.match(one, two)


def _is_free(found: Matching, old: int, key: Callable[[Side, int], Hashable], number: Hashable) -> bool:
    """Return whether an old node is unmatched and has a key."""
    return found.to_new[old] == UNMATCHED and key(found.old, old) == number


def _by_arguments(found: Matching) -> None:
    """Match, in order, the unmatched nodes that do the same with values that correspond; users come after them."""
    left, right = found.unmatched()
    places = grouped(reversed(right), lambda node: (found.new.keys[node], _used(found.new, node, lambda value: value)))
    for node in left:
        others = places.get((found.old.keys[node], _used(found.old, node, found.new_value)))
        if others:
            found.match(node, others.pop())


def _used(side: Side, node: int, value: Callable[[int], int | None]) -> tuple[int | None, ...]:
    return tuple(value(one) for _, slots in side.facts.inputs[node] for one in slots)


def _has_matched_users(side: Side, node: int, matched: list[int]) -> bool:
    return any(matched[user] != UNMATCHED for value in side.facts.results[node] for user, _, _ in side.users[value])


def _from_users(found: Matching, node: int, is_fit: Callable[[int], bool]) -> int | None:
    """Return the old node that most often has the position of a new one among the arguments of matched nodes."""
    votes: Counter[int] = Counter()
    for value in found.new.facts.results[node]:
        for user, position, slot in found.new.users[value]:
            old = found.to_old[user]
            if old == UNMATCHED:
                continue
            inputs = found.old.facts.inputs[old]
            used = inputs[position][1] if position < len(inputs) else ()
            owner = found.old.owner(used[slot]) if slot < len(used) else NO_NODE
            if owner != NO_NODE and is_fit(owner):
                votes[owner] += 1
    return max(votes, key=lambda owner: (votes[owner], -owner), default=None)
