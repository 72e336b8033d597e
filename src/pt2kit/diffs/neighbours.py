"""Graph matching by neighbors of matched nodes: arguments at one position, and the only users of their kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable

from pt2kit.canonical.facts import NO_NODE, NO_VALUE
from pt2kit.diffs.fingerprints import Side
from pt2kit.diffs.matching import UNMATCHED, Matching

Alike = Callable[[Side, int], Hashable]
"""Properties that two nodes must share to be matched as neighbors of matched ones."""


def same(side: Side, node: int) -> Hashable:
    """Return the operation of a node, and its module."""
    return side.keys[node], side.modules[node]


def same_operator_and_module(side: Side, node: int) -> Hashable:
    """Return the operator of a node, and its module."""
    return side.nodes[node].target, side.modules[node]


def same_operator(side: Side, node: int) -> Hashable:
    """Return the operator of a node."""
    return side.nodes[node].target


def neighbours(found: Matching, alike: Alike) -> None:
    """Match the neighbors of matched nodes, and the neighbors of those, until nothing more matches.

    Args:
        found: what is matched so far; changed in place.
        alike: what nodes must have in common.

    Cost: linear.
    """
    left, right = found.unmatched()
    if not left or not right:
        return
    near, values = _near(found.old, left)
    stack = sorted(
        ((old, found.to_new[old]) for old in near if found.to_new[old] != UNMATCHED), key=lambda pair: pair[1]
    )
    stack += _outputs(found, alike)
    for value in sorted(values & found.values.keys()):
        stack += _value_users(found, value, found.values[value], alike)
    while stack:
        old, new = stack.pop()
        stack += _arguments(found, old, new, alike)
        stack += _users(found, old, new, alike)


def _near(side: Side, nodes: list[int]) -> tuple[set[int], set[int]]:
    """Return the nodes that some nodes use or that use them, and the graph inputs that they use."""
    used = {value for node in nodes for _, slots in side.facts.inputs[node] for value in slots if value != NO_VALUE}
    users = {user for node in nodes for value in side.facts.results[node] for user, _, _ in side.users[value]}
    owners = {side.owner(value) for value in used} - {NO_NODE}
    return owners | users, {value for value in used if side.owner(value) == NO_NODE}


def _try(found: Matching, before: int, after: int, alike: Alike) -> list[tuple[int, int]]:
    """Match the nodes that define two values, if they may be matched."""
    old, new = found.old.owner(before), found.new.owner(after)
    if (
        NO_NODE in (old, new)
        or found.to_new[old] != UNMATCHED
        or found.to_old[new] != UNMATCHED
        or alike(found.old, old) != alike(found.new, new)
    ):
        return []
    found.match(old, new)
    return [(old, new)]


def _outputs(found: Matching, alike: Alike) -> list[tuple[int, int]]:
    before, after = found.old.facts.outputs, found.new.facts.outputs
    if len(before) != len(after):
        return []
    return [pair for one, other in zip(before, after, strict=True) for pair in _try(found, one, other, alike)]


def _arguments(found: Matching, old: int, new: int, alike: Alike) -> list[tuple[int, int]]:
    before, after = found.old.facts.inputs[old], found.new.facts.inputs[new]
    if [name for name, _ in before] == [name for name, _ in after]:
        paired = [(slots, others) for (_, slots), (_, others) in zip(before, after, strict=True)]
    else:
        by_name = dict(reversed(after))
        paired = [(slots, by_name[name]) for name, slots in before if name and name in by_name]
    return [
        pair
        for slots, others in paired
        if len(slots) == len(others)
        for one, other in zip(slots, others, strict=True)
        for pair in _try(found, one, other, alike)
    ]


def _users(found: Matching, old: int, new: int, alike: Alike) -> list[tuple[int, int]]:
    before, after = found.old.facts.results[old], found.new.facts.results[new]
    return [pair for one, other in zip(before, after, strict=False) for pair in _value_users(found, one, other, alike)]


def _value_users(found: Matching, before: int, after: int, alike: Alike) -> list[tuple[int, int]]:
    """Match the users of two values that are the only unmatched ones of their kind there."""
    left = _unmatched_users(found.old, before, found.to_new, alike)
    if not left:
        return []
    right = _unmatched_users(found.new, after, found.to_old, alike)
    pairs = []
    for kind, nodes in left.items():
        others = right.get(kind, ())
        if len(nodes) == len(others) == 1 and found.to_new[nodes[0]] == found.to_old[others[0]] == UNMATCHED:
            found.match(nodes[0], others[0])
            pairs.append((nodes[0], others[0]))
    return pairs


def _unmatched_users(side: Side, value: int, matched: list[int], alike: Alike) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for node, position, slot in side.users[value]:
        if matched[node] == UNMATCHED:
            groups[alike(side, node), position, slot].append(node)
    return groups
