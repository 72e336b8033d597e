"""Graph matching: corresponding nodes of two graphs, in linear time, by operators and neighbors, without search.

`Matching` has the pairs of nodes as they are found step by step. From certain to likely; each step looks only at nodes
that no earlier one has matched:

1. the same calculation: the node and all that leads to it are the same (`Side.up`), and only one node is so;
2. the same use: the node and all that it leads to are the same (`Side.down`), and only one node is so. Together these
   match everything but the nodes that were changed, and those between two changes. Here
   and in step 4, a node is matched across modules only if its own has no such node in the other graph: where the last
   layer is removed, the norm behind it computes what that layer's norm computed;
3. neighbors of matched nodes: the values at one position of the arguments of two matched nodes, and the one user of its
   kind that two matched nodes have; first those that do the same in the same module (and with them nodes that are alone
   in doing so), then with other constants, then in another module;
4. nodes that are several of their kind (steps 1 and 2), if both graphs have equally many, in order; and nodes that do
   the same with the same values, in order;
5. in each module, nodes that do the same and then those with one operator, in order;
6. one operator instead of another: same arguments, same users, or same arguments and module where nobody uses
   the results; then same arguments, same module, and results of the same types and sizes.

Where this leaves a difference between graphs of nodes that do the same, their normal forms decide: if they are equal,
nodes correspond by their place there (`exact`).

Nodes are matched in order by the longest common subsequence of two sequences (`common`), as `diff` finds it between two
texts: the shortest script of insertions and deletions, found greedily from the front (Myers 1986). This takes time and
memory for the square of the differences, not for the lengths. After `WINDOW` differences the way that came furthest is
taken and the search starts anew from its end, so that long sequences with little in common take linear time all the
same; the script then is a short one, not always the shortest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from pt2kit import codec
from pt2kit.canonical.canonical_labeling import grouped
from pt2kit.canonical.facts import NO_NODE, NO_VALUE
from pt2kit.canonical.form import encode_graph_value, normal_form
from pt2kit.diffs.fingerprints import Side
from pt2kit.diffs.input_roles import Pairs

UNMATCHED: Final = -1
"""Stands where a node corresponds to none."""

WINDOW: Final = 64
"""Differences up to which a script is the shortest."""

Alike = Callable[[Side, int], Hashable]
"""Properties that two nodes must share to be matched as neighbors of matched ones."""


class Matching:
    """Which nodes of an old and a new graph correspond.

    Args:
        old, new: the graphs.
        inputs: old value -> new value, of the graph inputs that correspond.

    Attributes:
        values: old value -> new value.
        to_new, to_old: node -> the node that corresponds to it, or `UNMATCHED`.
        is_mirrored: whether they were found from the new graph to the old one.
    """

    def __init__(self, old: Side, new: Side, inputs: Mapping[int, int]) -> None:
        self.old = old
        self.new = new
        self.values = dict(inputs)
        self.is_mirrored = False
        self.to_new = [UNMATCHED] * len(old.keys)
        self.to_old = [UNMATCHED] * len(new.keys)

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return (old index, new index) of the nodes that correspond, in the new order."""
        return tuple((node, number) for number, node in enumerate(self.to_old) if node != UNMATCHED)

    def match(self, old: int, new: int) -> None:
        """Record that two nodes correspond."""
        self.to_new[old], self.to_old[new] = new, old
        for before, after in zip(self.old.facts.results[old], self.new.facts.results[new], strict=False):
            self.values[before] = after

    def new_value(self, value: int) -> int | None:
        """Return the new value that an old one corresponds to; None if there is none."""
        return NO_VALUE if value == NO_VALUE else self.values.get(value)

    def used(self, side: Side, node: int) -> Sequence[int | None]:
        """Return the values that a node of either graph uses, as new ones; None for one that corresponds to none."""
        values = [value for _, slots in side.facts.inputs[node] for value in slots]
        return values if side is self.new else list(map(self.new_value, values))

    def mirrored(self, inputs: Mapping[int, int]) -> Matching:
        """Return the same matching, with the new graph as the old one; `inputs` are those of that direction."""
        matching = _paired(self.new, self.old, inputs, ((new, old) for old, new in self.pairs()))
        matching.is_mirrored = True
        return matching

    def unmatched(self) -> tuple[list[int], list[int]]:
        """Return the old and the new nodes that correspond to none."""
        return (
            [node for node, other in enumerate(self.to_new) if other == UNMATCHED],
            [node for node, other in enumerate(self.to_old) if other == UNMATCHED],
        )

    def groups(self, key: Alike) -> tuple[dict[Hashable, list[int]], dict[Hashable, list[int]]]:
        """Return the old and the new nodes that correspond to none, in order, by what they must have in common."""
        left, right = self.unmatched()
        return grouped(left, lambda node: key(self.old, node)), grouped(right, lambda node: key(self.new, node))

    def is_exact(self) -> bool:
        """Return whether all nodes correspond to one that uses values that correspond."""
        return UNMATCHED not in self.to_new and all(
            old != UNMATCHED and self.old.keys[old] == self.new.keys[new] and self.uses_same(old, new)
            for new, old in enumerate(self.to_old)
        )

    def uses_same(self, old: int, new: int) -> bool:
        """Return whether two nodes use values that correspond."""
        return self.used(self.old, old) == self.used(self.new, new)


def common(old: Sequence[Hashable], new: Sequence[Hashable]) -> Pairs:
    """Pair equal items of two sequences so that no two pairs cross.

    Args:
        old, new: the sequences.

    Returns:
        (old position, new position), ascending in both.

    Cost: the lengths, plus the square of the number of differences up to `WINDOW` and `WINDOW` times it beyond.
    """
    shared = set(old) & set(new)
    places = [place for place, item in enumerate(old) if item in shared]
    others = [place for place, item in enumerate(new) if item in shared]
    numbers = {item: number for number, item in enumerate(shared)}
    one, other = [numbers[old[place]] for place in places], [numbers[new[place]] for place in others]
    pairs: Pairs = []
    x = y = 0
    while x < len(one) and y < len(other):
        run, x, y = _window(one, other, x, y)
        part: Pairs = []
        while run is not None:
            first, second, count, run = run
            part += [(places[first + step], others[second + step]) for step in reversed(range(count))]
        pairs += reversed(part)
    return pairs


_Run: TypeAlias = "tuple[int, int, int, _Run | None]"
"""The first positions of equal items in two sequences, their count, and the run before them."""


def _window(old: list[int], new: list[int], x: int, y: int) -> tuple[_Run | None, int, int]:
    """Return the last run of equal items from (x, y) on up to the end or to `WINDOW` differences, and where they
    end."""
    rows = len(old) - x, len(new) - y
    # furthest[k]: how far old can be read on diagonal k, where old and new are k items apart, and the last run there.
    furthest: dict[int, tuple[int, _Run | None]] = {1: (0, None)}
    for edits in range(min(WINDOW, sum(rows)) + 1):
        for k in range(-edits, edits + 1, 2):
            if k == -edits or (k != edits and furthest[k - 1][0] < furthest[k + 1][0]):
                start, run = furthest[k + 1]
            else:
                start, run = furthest[k - 1]
                start += 1
            at = start
            while at < rows[0] and 0 <= at - k < rows[1] and old[x + at] == new[y + at - k]:
                at += 1
            furthest[k] = at, (x + start, y + start - k, at - start, run) if at > start else run
            if at >= rows[0] and at - k >= rows[1]:
                return furthest[k][1], len(old), len(new)
    ends = [(at, k) for k, (at, _) in furthest.items() if (k + WINDOW) % 2 == 0 and 0 <= at - k <= rows[1]]
    at, k = max(((min(at, rows[0]), k) for at, k in ends), key=lambda end: (2 * end[0] - end[1], -abs(end[1])))
    return furthest[k][1], x + at, y + at - k


def by_module(found: Matching) -> None:
    """Match, in order, the unmatched nodes of each module that have one operator."""
    before, after = found.groups(lambda side, node: side.modules[node])
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
    _one_by_one(found, lambda side, node: _place(found, side, node, old if side is found.old else new))
    _one_by_one(found, lambda side, node: _calculation(found, side, node))


def _one_by_one(found: Matching, alike: Alike) -> None:
    """Match the unmatched nodes, first ones first, of which only one new one has the key of an old one, if not None."""
    left, right = found.unmatched()
    if not left or not right:
        return
    places = grouped(right, lambda node: alike(found.new, node))
    for node in left:
        key = alike(found.old, node)
        others = places.get(key, []) if key is not None else []
        if len(others) == 1 and found.to_old[others[0]] == UNMATCHED:
            found.match(node, others[0])


def _calculation(found: Matching, side: Side, node: int) -> Hashable | None:
    """Return the calculation of a node: operation, operands and type, in terms of the new graph. None if that is not
    known."""
    facts = side.facts
    used = tuple(value for value in found.used(side, node) if value != NO_VALUE)
    if not used or None in used or not facts.results[node]:
        return None
    return side.modules[node], used, codec.encode([facts.metas[result] for result in facts.results[node]])


def _returned(side: Side) -> Mapping[int, tuple[int, ...]]:
    """Return value -> the positions of the graph outputs that it is."""
    positions = grouped(range(len(side.facts.outputs)), side.facts.outputs.__getitem__)
    return {value: tuple(outputs) for value, outputs in positions.items() if isinstance(value, int)}


def _place(found: Matching, side: Side, node: int, returned: Mapping[int, tuple[int, ...]]) -> Hashable | None:
    """Return the position of a node, in terms of the new graph: its operands and users. None if that is not known."""
    used = tuple(value for value in found.used(side, node) if value != NO_VALUE)
    to_new = found.to_new if side is found.old else range(len(side.nodes))
    users = tuple(
        (
            tuple(sorted((to_new[other], position, slot) for other, position, slot in side.users[result])),
            returned.get(result, ()),
        )
        for result in side.facts.results[node]
    )
    if None in used or any(other == UNMATCHED for uses, _ in users for other, _, _ in uses):
        return None
    if any(uses or positions for uses, positions in users):
        return used, users
    return (side.modules[node], used) if used else None  # It writes, or checks something: nobody uses its results.


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
    before, after = found.old.facts.outputs, found.new.facts.outputs
    stack += _owners(found, zip(before, after, strict=True) if len(before) == len(after) else (), alike)
    for value in sorted(values & found.values.keys()):
        stack += _value_users(found, value, found.values[value], alike)
    while stack:
        old, new = stack.pop()
        stack += _owners(found, _arguments(found, old, new), alike)
        for one, other in zip(found.old.facts.results[old], found.new.facts.results[new], strict=False):
            stack += _value_users(found, one, other, alike)


def _near(side: Side, nodes: list[int]) -> tuple[set[int], set[int]]:
    """Return the nodes that some nodes use or that use them, and the graph inputs that they use."""
    used = {value for node in nodes for _, slots in side.facts.inputs[node] for value in slots if value != NO_VALUE}
    users = {user for node in nodes for value in side.facts.results[node] for user, _, _ in side.users[value]}
    owners = {side.owner(value) for value in used} - {NO_NODE}
    return owners | users, {value for value in used if side.owner(value) == NO_NODE}


def _owners(found: Matching, values: Iterable[tuple[int, int]], alike: Alike) -> Pairs:
    """Match the nodes that define two values, if they may be matched."""
    pairs: Pairs = []
    for before, after in values:
        old, new = found.old.owner(before), found.new.owner(after)
        if (
            NO_NODE not in (old, new)
            and found.to_new[old] == found.to_old[new] == UNMATCHED
            and alike(found.old, old) == alike(found.new, new)
        ):
            found.match(old, new)
            pairs.append((old, new))
    return pairs


def _arguments(found: Matching, old: int, new: int) -> Iterator[tuple[int, int]]:
    """Yield the values at one position of the arguments of two nodes."""
    before, after = found.old.facts.inputs[old], found.new.facts.inputs[new]
    if [name for name, _ in before] == [name for name, _ in after]:
        paired = [(slots, others) for (_, slots), (_, others) in zip(before, after, strict=True)]
    else:
        by_name = dict(reversed(after))
        paired = [(slots, by_name[name]) for name, slots in before if name and name in by_name]
    return (pair for slots, others in paired if len(slots) == len(others) for pair in zip(slots, others, strict=True))


def _value_users(found: Matching, before: int, after: int, alike: Alike) -> Pairs:
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


def correspond(old: Side, new: Side, inputs: Mapping[int, int], edges: tuple[Pairs, Pairs]) -> Matching:
    """Find the nodes of two graphs that correspond; the result is the same with the graphs exchanged.

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
        return _paired(old, new, inputs, ((node, node) for node in range(len(old.keys))))
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


def _paired(old: Side, new: Side, inputs: Mapping[int, int], pairs: Iterable[tuple[int, int]]) -> Matching:
    matching = Matching(old, new, inputs)
    for one, other in pairs:
        matching.match(one, other)
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
    for which, side in enumerate((old, new)):
        graph = side.facts.graph
        ends = (graph.inputs, edges[0]), (graph.outputs, edges[1])
        if any(len(arguments) != len(pairs) for arguments, pairs in ends):
            return None
        taken, returned = ([arguments[pair[which]] for pair in pairs] for arguments, pairs in ends)
        form = normal_form(graph, taken, returned, side.facts.where, side.keep)
        forms.append((encode_graph_value(form.graph.nodes, side.keep.digests), form.order))
    (before, old_order), (after, new_order) = forms
    return _paired(old, new, inputs, zip(old_order, new_order, strict=True)) if before == after else None


def match(old: Side, new: Side, inputs: Mapping[int, int]) -> Matching:
    """Find the nodes that correspond.

    Args:
        old, new: two graphs, numbered by one interner.
        inputs: old value -> new value, of the graph inputs that correspond.

    Cost: linear.
    """
    matching = Matching(old, new, inputs)
    for _ in range(2):  # Once more for the nodes that the first round leaves alone in their modules.
        _equal(matching, _at_home(matching, lambda side, node: side.up[node]), alone=True)
        _equal(matching, _at_home(matching, lambda side, node: side.down[node]), alone=True)
    neighbours(matching, same)
    _equal(matching, same, alone=True)
    for alike in (same, same_operator_and_module):
        neighbours(matching, alike)
    _equal(matching, _at_home(matching, lambda side, node: (side.up[node], side.down[node])), alone=False)
    _equal(matching, _at_home(matching, lambda side, node: side.up[node]), alone=False)
    _by_arguments(matching)
    _equal(matching, _at_home(matching, lambda side, node: side.down[node]), alone=False)
    neighbours(matching, same_operator_and_module)
    by_module(matching)
    neighbours(matching, same_operator)
    replaced(matching)
    return matching


def _at_home(found: Matching, key: Alike) -> Alike:
    """Return a key that keeps an unmatched node in its module, if the other graph has one there that does the same."""
    before, after = found.groups(same)
    both = before.keys() & after.keys()
    return lambda side, node: (key(side, node), same(side, node) in both and side.modules[node])


def _equal(found: Matching, key: Alike, *, alone: bool) -> None:
    """Match, in order, the unmatched nodes of which both graphs have equally many with one key, or one each."""
    before, after = found.groups(key)
    for number, nodes in before.items():
        others = after.get(number, ())
        if len(nodes) == len(others) and (len(nodes) == 1 or not alone):
            for one, other in zip(nodes, others, strict=True):
                found.match(one, other)


def _by_arguments(found: Matching) -> None:
    """Match, in order, the unmatched nodes that do the same with values that correspond; users come after them."""
    left, right = found.unmatched()
    key = _at_home(found, lambda side, node: (side.keys[node], *found.used(side, node)))
    places = grouped(reversed(right), lambda node: key(found.new, node))
    for node in left:
        others = places.get(key(found.old, node))
        if others:
            found.match(node, others.pop())
