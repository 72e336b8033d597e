"""Matching of the remaining nodes, by order and by position, after neighbors and calculations have matched theirs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from pt2kit import codec
from pt2kit.canonical.facts import NO_VALUE
from pt2kit.diffs.fingerprints import Side
from pt2kit.diffs.matching import UNMATCHED, Matching, grouped
from pt2kit.diffs.sequences import common
from pt2kit.graph.values import tables


def by_module(found: Matching) -> None:
    """Match, in order, the unmatched nodes of each module that have one operator."""
    left, right = found.unmatched()
    before = grouped(left, found.old.modules.__getitem__)
    after = grouped(right, found.new.modules.__getitem__)
    for module, nodes in before.items():
        for old, new in _aligned(found, nodes, after.get(module, [])):
            found.match(old, new)


def _aligned(found: Matching, old: list[int], new: list[int]) -> Iterable[tuple[int, int]]:
    """Pair nodes in order: those that do the same, and between them those with one operator."""
    keys = common([found.old.keys[node] for node in old], [found.new.keys[node] for node in new])
    start = other = 0
    for x, y in (*keys, (len(old), len(new))):
        before, after = old[start:x], new[other:y]
        targets = common(
            *([side.nodes[n].target for n in nodes] for side, nodes in ((found.old, before), (found.new, after)))
        )
        yield from ((before[one], after[two]) for one, two in targets)
        if x < len(old):
            yield old[x], new[y]
        start, other = x + 1, y + 1


def replaced(found: Matching) -> None:
    """Match nodes with different operators of which one took the place of the other."""
    old, new = _returned(found.old), _returned(found.new)
    _one_by_one(
        found,
        lambda node: _place(found.old, node, found.new_value, found.to_new.__getitem__, old),
        lambda node: _place(found.new, node, lambda value: value, lambda user: user, new),
    )
    _one_by_one(
        found,
        lambda node: _calculation(found.old, node, found.new_value),
        lambda node: _calculation(found.new, node, lambda value: value),
    )


def _one_by_one(found: Matching, old: Callable[[int], Hashable | None], new: Callable[[int], Hashable | None]) -> None:
    """Match the unmatched nodes, first ones first, of which only one new one has the key of an old one."""
    left, right = found.unmatched()
    if not left or not right:
        return
    places = grouped(right, new)
    for node in left:
        key = old(node)
        others = places.get(key, []) if key is not None else []
        if len(others) == 1 and found.to_old[others[0]] == UNMATCHED:
            found.match(node, others[0])


def _calculation(side: Side, node: int, value: Callable[[int], int | None]) -> Hashable | None:
    """Return the calculation of a node: operation, operands and type, in terms of the new graph. None if that is not
    known."""
    facts = side.facts
    used = tuple(value(one) for _, slots in facts.inputs[node] for one in slots if one != NO_VALUE)
    if not used or None in used or not facts.results[node]:
        return None
    known = tables(facts.graph)
    metas = [known[facts.kinds[result]][facts.names[result]] for result in facts.results[node]]
    return side.modules[node], used, codec.encode(metas)


def _returned(side: Side) -> Mapping[int, tuple[int, ...]]:
    """Return value -> the positions of the graph outputs that it is."""
    positions = grouped(range(len(side.facts.outputs)), side.facts.outputs.__getitem__)
    return {value: tuple(outputs) for value, outputs in positions.items() if isinstance(value, int)}


def _place(
    side: Side,
    node: int,
    value: Callable[[int], int | None],
    user: Callable[[int], int],
    returned: Mapping[int, tuple[int, ...]],
) -> Hashable | None:
    """Return the position of a node, in terms of the new graph: its operands and users. None if that is not known."""
    used = tuple(value(one) for _, slots in side.facts.inputs[node] for one in slots if one != NO_VALUE)
    users = tuple(
        (
            tuple(sorted((user(other), position, slot) for other, position, slot in side.users[result])),
            returned.get(result, ()),
        )
        for result in side.facts.results[node]
    )
    if None in used or any(other == UNMATCHED for uses, _ in users for other, _, _ in uses):
        return None
    if any(uses or positions for uses, positions in users):
        return used, users
    return (side.modules[node], used) if used else None  # It writes, or checks something: nobody uses its results.
