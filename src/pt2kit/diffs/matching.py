"""Two graphs -> which nodes correspond. Linear: by what nodes are and stand between, never by trying.

From certain to likely; each step looks only at nodes that no earlier one has matched:

1. the same calculation: the node and all that leads to it are the same (`Side.up`), and only one node is so;
2. the same use: the node and all that it leads to are the same (`Side.down`), and only one node is so. Together these
   match everything but the nodes that were changed, and those between two changes;
3. neighbours of matched nodes: what stands at one place of the arguments of two matched nodes, and the one user of its
   kind that two matched nodes have; first those that do the same in the same module, then with other constants, then
   in another module;
4. nodes that are several of their kind (steps 1 and 2), last ones first: what two matched nodes use at one place, and
   those whose users nothing is known of, in order; and nodes that do the same with the same values, in order;
5. in each module, nodes with one operator, in order;
6. one operator in the place of another: same arguments, same users.

Where this leaves a difference between graphs of nodes that do the same, their normal forms decide: if they are equal,
nodes correspond by their place there (`exact`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from difflib import SequenceMatcher
from typing import Final

from pt2kit.canonical import Keep, encode_graph_value, normal_form
from pt2kit.canonical.facts import NO_NODE, NO_VALUE
from pt2kit.diffs.roles import Pairs
from pt2kit.diffs.sides import Side

UNMATCHED: Final = -1
MAX_ALIGNED: Final = 100_000
"""Product of the lengths of two sequences that are aligned exactly; longer ones are paired in order."""


class Matching:
    """Which nodes of an old and a new graph correspond.

    Args:
        old, new: the graphs.
        inputs: old value -> new value, of the graph inputs that correspond.
    """

    def __init__(self, old: Side, new: Side, inputs: Mapping[int, int]) -> None:
        self.old = old
        self.new = new
        self.values = dict(inputs)
        self.to_new = [UNMATCHED] * len(old.keys)
        self.to_old = [UNMATCHED] * len(new.keys)

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(old number, new number) of the nodes that correspond, in the new order."""
        return tuple((node, number) for number, node in enumerate(self.to_old) if node != UNMATCHED)

    def match(self, old: int, new: int) -> None:
        """Say that two nodes correspond."""
        self.to_new[old], self.to_old[new] = new, old
        for before, after in zip(self.old.facts.results[old], self.new.facts.results[new], strict=False):
            self.values[before] = after

    def new_value(self, value: int) -> int | None:
        """The new value that an old one corresponds to; None where there is none."""
        return NO_VALUE if value == NO_VALUE else self.values.get(value)

    def unmatched(self) -> tuple[list[int], list[int]]:
        """The old and the new nodes that correspond to none."""
        return (
            [node for node, other in enumerate(self.to_new) if other == UNMATCHED],
            [node for node, other in enumerate(self.to_old) if other == UNMATCHED],
        )

    def is_exact(self) -> bool:
        """Whether all nodes correspond to one that uses values that correspond."""
        before, after = self.old.facts, self.new.facts
        return UNMATCHED not in self.to_new and all(
            old != UNMATCHED
            and self.old.keys[old] == self.new.keys[new]
            and [slots for _, slots in after.inputs[new]]
            == [tuple(map(self.new_value, slots)) for _, slots in before.inputs[old]]
            for new, old in enumerate(self.to_old)
        )


def exact(old: Side, new: Side, inputs: Mapping[int, int], edges: tuple[Pairs, Pairs]) -> Matching | None:
    """The nodes that correspond by their places in the normal forms of two graphs; None where these differ.

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
        if any(len(pairs) != len(held) for pairs, held in zip(edges, (graph.inputs, graph.outputs), strict=True)):
            return None
        taken, returned = (
            [held[pair[which]] for pair in pairs]
            for pairs, held in zip(edges, (graph.inputs, graph.outputs), strict=True)
        )
        forms.append(normal_form(graph, taken, returned, side.facts.where, Keep()))
    if len({encode_graph_value(form.graph.nodes) for form in forms}) > 1:
        return None
    found = Matching(old, new, inputs)
    for one, other in zip(forms[0].order, forms[1].order, strict=True):
        found.match(one, other)
    return found


def match(old: Side, new: Side, inputs: Mapping[int, int]) -> Matching:
    """Find the nodes that correspond.

    Args:
        old, new: two graphs, numbered by one interner.
        inputs: old value -> new value, of the graph inputs that correspond.

    Cost: linear; in step 5 quadratic in how many nodes of one module are left, up to `MAX_ALIGNED`.
    """
    found = Matching(old, new, inputs)
    _unique(found, old.up, new.up)
    _unique(found, old.down, new.down)
    for alike in (_same, _same_operator_and_module):
        _neighbours(found, alike)
    _several(found, lambda side, node: (side.up[node], side.down[node]))
    _several(found, lambda side, node: (True, side.up[node]))
    _by_arguments(found)
    _several(found, lambda side, node: (False, side.down[node]))
    _neighbours(found, _same_operator_and_module)
    _by_module(found)
    _neighbours(found, _same_operator)
    _replaced(found)
    return found


def _unique(found: Matching, old: list[int], new: list[int]) -> None:
    """Match the unmatched nodes that have a number for themselves in both graphs."""
    left, right = found.unmatched()
    before, after = _grouped(left, old.__getitem__), _grouped(right, new.__getitem__)
    for number, nodes in before.items():
        others = after.get(number, ())
        if len(nodes) == len(others) == 1:
            found.match(nodes[0], others[0])


def _several(found: Matching, key: Callable[[Side, int], Hashable]) -> None:
    """Match the unmatched nodes of which both graphs have equally many with one key."""
    left, right = found.unmatched()
    before = _grouped(left, lambda node: key(found.old, node))
    after = _grouped(right, lambda node: key(found.new, node))
    kinds = {number for number, nodes in before.items() if len(nodes) == len(after.get(number, ()))}
    free = {number: [node for node in before[number] if not _has_matched_users(found.old, node, found.to_new)]
            for number in kinds}  # fmt: skip
    # Users come after what they use: when a node's turn has come, all its users had theirs.
    for node in reversed(right):
        number = key(found.new, node)
        if number not in kinds:
            continue
        other = _from_users(found, node)
        if other is not None and found.to_new[other] == UNMATCHED and key(found.old, other) == number:
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


def _by_arguments(found: Matching) -> None:
    """Match, in order, the unmatched nodes that do the same with values that correspond; users come after them."""
    left, right = found.unmatched()
    places = _grouped(reversed(right), lambda node: (found.new.keys[node], _used(found.new, node, lambda value: value)))
    for node in left:
        others = places.get((found.old.keys[node], _used(found.old, node, found.new_value)))
        if others:
            found.match(node, others.pop())


def _used(side: Side, node: int, value: Callable[[int], int | None]) -> tuple[int | None, ...]:
    return tuple(value(one) for _, slots in side.facts.inputs[node] for one in slots)


def _has_matched_users(side: Side, node: int, matched: list[int]) -> bool:
    return any(matched[user] != UNMATCHED for value in side.facts.results[node] for user, _, _ in side.users[value])


def _from_users(found: Matching, node: int) -> int | None:
    """The old node that stands where a new one stands among the arguments of a matched node."""
    for value in found.new.facts.results[node]:
        for user, position, slot in found.new.users[value]:
            old = found.to_old[user]
            if old == UNMATCHED:
                continue
            inputs = found.old.facts.inputs[old]
            used = inputs[position][1] if position < len(inputs) else ()
            owner = found.old.owner(used[slot]) if slot < len(used) else NO_NODE
            return None if owner == NO_NODE else owner
    return None


def _grouped(nodes: Iterable[int], key: Callable[[int], Hashable]) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for node in nodes:
        groups[key(node)].append(node)
    return groups


Alike = Callable[[Side, int], Hashable]
"""What two nodes must have in common to be matched as neighbours of matched ones."""


def _same(side: Side, node: int) -> Hashable:
    return side.keys[node], side.modules[node]


def _same_operator_and_module(side: Side, node: int) -> Hashable:
    return side.nodes[node].target, side.modules[node]


def _same_operator(side: Side, node: int) -> Hashable:
    return side.nodes[node].target


def _neighbours(found: Matching, alike: Alike) -> None:
    """Match what stands around matched nodes, and around what that matches, until nothing more does."""
    if not all(found.unmatched()):
        return
    stack = [*found.pairs(), *_outputs(found, alike)]
    for before, after in list(found.values.items()):
        if found.old.owner(before) == NO_NODE:
            stack += _value_users(found, before, after, alike)
    while stack:
        old, new = stack.pop()
        stack += _arguments(found, old, new, alike)
        stack += _users(found, old, new, alike)


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


def _by_module(found: Matching) -> None:
    """Match, in order, the unmatched nodes of each module that have one operator."""
    left, right = found.unmatched()
    before = _grouped(left, found.old.modules.__getitem__)
    after = _grouped(right, found.new.modules.__getitem__)
    for module, nodes in before.items():
        for old, new in _aligned(found, nodes, after.get(module, [])):
            found.match(old, new)


def _aligned(found: Matching, old: list[int], new: list[int]) -> Iterable[tuple[int, int]]:
    before = [found.old.nodes[node].target for node in old]
    after = [found.new.nodes[node].target for node in new]
    if len(old) * len(new) <= MAX_ALIGNED:
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        return [(old[one + i], new[other + i]) for one, other, length in blocks for i in range(length)]
    groups = _grouped(range(len(new)), after.__getitem__)
    waiting = {target: iter(places) for target, places in groups.items()}
    paired = ((node, next(waiting.get(target, iter(())), None)) for node, target in zip(old, before, strict=True))
    return [(node, new[place]) for node, place in paired if place is not None]


def _replaced(found: Matching) -> None:
    """Match nodes with different operators of which one took the place of the other."""
    left, right = found.unmatched()
    if not left or not right:
        return
    returned = _returned(found.new)
    places: dict[Hashable, list[int]] = defaultdict(list)
    for node in right:
        if place := _place(found.new, node, lambda value: value, lambda user: user, returned):
            places[place].append(node)
    returned = _returned(found.old)
    for node in left:
        place = _place(found.old, node, found.new_value, found.to_new.__getitem__, returned)
        others = places.get(place, []) if place else []
        if len(others) == 1 and found.to_old[others[0]] == UNMATCHED:
            found.match(node, others[0])


def _returned(side: Side) -> Mapping[int, tuple[int, ...]]:
    """Value -> the positions of the graph outputs that it is."""
    positions = _grouped(range(len(side.facts.outputs)), side.facts.outputs.__getitem__)
    return {value: tuple(found) for value, found in positions.items() if isinstance(value, int)}


def _place(
    side: Side,
    node: int,
    value: Callable[[int], int | None],
    user: Callable[[int], int],
    returned: Mapping[int, tuple[int, ...]],
) -> Hashable | None:
    """Where a node stands, in terms of the new graph: what it uses and what uses it. None where that is not known."""
    used = tuple(value(one) for _, slots in side.facts.inputs[node] for one in slots if one != NO_VALUE)
    users = tuple(
        (
            tuple(sorted((user(other), position, slot) for other, position, slot in side.users[result])),
            returned.get(result, ()),
        )
        for result in side.facts.results[node]
    )
    unknown = any(other == UNMATCHED for uses, _ in users for other, _, _ in uses)
    if None in used or unknown or not any(uses or positions for uses, positions in users):
        return None
    return used, users
