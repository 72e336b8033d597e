"""Module calls of drawn nodes, from their `nn_module_stack` or guessed from parameters; equal modules as one box.

A guess, for a file without stacks, puts a node that uses parameters into their module, and the nodes between two such
nodes into the module that contains both.

Equal modules in a row are grouped into one box that shows how many there are. Two modules are equal if their calls are,
one by one, whatever the values and parameters in them are called: the same operators, constants, types of results and
of parameters, and places in the modules below, connected alike. The order in which calls are stored counts only if one
of them writes, as in the normal form of a whole program (`canonical`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, takewhile
from typing import Final

from pt2kit.canonical.canonical_labeling import grouped
from pt2kit.canonical.form import Keep
from pt2kit.diffs.fingerprints import operation
from pt2kit.errors import Pt2Error
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Step
from pt2kit.node_metadata.modules import MAX_MODULE_DEPTH, module_fqn, stated_modules
from pt2kit.schema import Graph, Node
from pt2kit.viewing.columns import MODULE, OPERATION, REPEAT, Pairs, Picture, Texts

REPEATED_CALL: Final = re.compile(r"@\d+(?=\W*$)")

MIN_NODES: Final = 3
"""Calls in a module from which on two of them in a row are worth a box of their own; of smaller ones it takes four."""

MIN_SMALL: Final = 4


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module on the way from the root to a node.

    Args:
        name: its name in the caller, with the number of a repeated call: "relu@1".
        fqn: its dotted name from the root, without that number.
        type: qualified name of its class; "" if the file does not name it.
    """

    name: str
    fqn: str
    type: str


def module_calls(text: str) -> tuple[ModuleCall, ...] | None:
    """Return the module calls that a node's `nn_module_stack` names, outermost first; None if it names none at all.

    Containers between two calls (the `layers` of `layers.0`) are calls too, of no known type.
    """
    entries = stated_modules(text)
    if not entries:
        return None
    calls, before = list[ModuleCall](), ""
    for entry in entries:
        fqn = module_fqn(entry.path)
        if fqn in ("", before):
            continue
        inside = not before or fqn.startswith(f"{before}.")
        *outer, name = fqn.removeprefix(f"{before}.").split(".") if inside else [fqn]
        repeated = REPEATED_CALL.search(entry.key) or REPEATED_CALL.search(entry.path)
        calls += named_calls(outer, before)
        calls.append(ModuleCall(f"{name}{repeated.group() if repeated else ''}", fqn, entry.type))
        before = fqn
    return tuple(calls[:MAX_MODULE_DEPTH])


def root_type(text: str) -> str:
    """Return the class of the root module that a stack names; "" if it names none."""
    return next((entry.type for entry in stated_modules(text) if not module_fqn(entry.path)), "")


def named_calls(parts: Sequence[str], before: str = "") -> list[ModuleCall]:
    """Return a call for each part of a dotted name of which nothing else is known."""
    calls = list[ModuleCall]()
    for part in parts[:MAX_MODULE_DEPTH]:
        before = f"{before}.{part}" if before else part
        calls.append(ModuleCall(part, before, ""))
    return calls


def guessed_modules(graph: Graph, owners: Mapping[str, str]) -> list[str]:
    """Return a module for each node of a graph that names none.

    Args:
        graph: its nodes, in order.
        owners: value of a parameter or buffer -> the module that holds it.
    """
    anchors = [_anchor(node, owners) for node in graph.nodes]
    before, after = accumulate(anchors, _latest), [*accumulate(reversed(anchors), _latest)]
    return [
        common(one, other) if one is not None and other is not None else ""
        for one, other in zip(before, reversed(after), strict=True)
    ]


def _latest(before: str | None, anchor: str | None) -> str | None:
    return before if anchor is None else anchor


def _anchor(node: Node, owners: Mapping[str, str]) -> str | None:
    """Return the module that contains all parameters of a node; None if it uses none."""
    names = [owners[name] for named in node.inputs for name in arguments(named.arg) if name in owners]
    return None if not names else common(*names)


def common(*names: str) -> str:
    """Return the dotted name that several begin with."""
    parts = zip(*(name.split(".") for name in names), strict=False)
    return ".".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, parts))


def call_shape(step: Step, used: Sequence[str], weights: Container[str], keep: Keep) -> Hashable:
    """Return a call without the names in it, equal for calls that do the same.

    Args:
        step: the call.
        used: the values in its arguments, each as often as it is used.
        weights: the values that are tensors of the archive.
        keep: of the program; remembers its subgraphs.
    """
    first: dict[str, int] = {}
    connected = tuple(first.setdefault(name, -len(first) if name in weights else len(first)) for name in used)
    try:
        return operation(step.node, step.where, keep), connected
    except Pt2Error:
        return step.where  # equal to nothing else


def group_repeats(picture: Picture, shapes: Mapping[int, int], texts: Texts, writes: Callable[[int], bool]) -> None:
    """Move equal modules that follow one another in their parent into a box of kind `REPEAT`.

    Args:
        picture: the nodes in the order in which they run; its boxes are changed in place.
        shapes: drawn node -> number of what it is, as `call_shape` tells.
        texts: gets the names of the new boxes.
        writes: drawn node -> whether it may write, or carries a graph that does.

    Cost: linear in the nodes times the depth of the tree.
    """
    boxes = picture.boxes
    count = len(boxes.parent)
    inside = _nodes_inside(picture)
    modules = (box for box in range(1, count) if boxes.kind[box] == MODULE and inside[box])
    children = grouped(modules, boxes.parent.__getitem__)
    direct = Counter(picture.nodes.box)
    others = Counter(boxes.parent[box] for box in range(1, count))
    shape = _Boxes(picture, shapes, inside, writes).contents
    for parent, siblings in children.items():
        siblings.sort(key=lambda box: inside[box][0])
        for run in _runs(siblings, lambda box: (boxes.type[box], len(inside[box])), shape):
            if not _is_worth_it(run, inside):
                continue
            if len(run) == others[parent] and not direct[parent]:
                boxes.repeat[parent] = len(run)
            else:
                _put_together(run, picture, texts)


def _put_together(run: list[int], picture: Picture, texts: Texts) -> None:
    boxes = picture.boxes
    first, last = (texts.list[boxes.name[box]] for box in (run[0], run[-1]))
    path = texts(f"{texts.list[boxes.path[run[0]]]}…{last}")
    name = texts(f"{first} … {last}")
    group = boxes.add(boxes.parent[run[0]], name, boxes.type[run[0]], path, REPEAT, len(run), -1)
    for box in run:
        boxes.parent[box] = group


def _nodes_inside(picture: Picture) -> list[list[int]]:
    """Return for each box the operations inside it, at any depth, in their order."""
    boxes, nodes = picture.boxes, picture.nodes
    inside: list[list[int]] = [[] for _ in boxes.parent]
    for node, box in enumerate(nodes.box):
        if nodes.kind[node] != OPERATION:
            continue
        while box >= 0:
            inside[box].append(node)
            box = boxes.parent[box]
    return inside


def _runs(siblings: list[int], *keys: Callable[[int], object]) -> Iterator[list[int]]:
    """Yield runs of two or more neighbors with equal keys; the first key is cheaper than the second."""
    for _, equal in groupby(siblings, keys[0]):
        run = [*equal]
        if len(run) > 1:
            yield from _runs(run, *keys[1:]) if keys[1:] else [run]


def _is_worth_it(run: list[int], inside: list[list[int]]) -> bool:
    return len(run) >= MIN_SMALL or len(inside[run[0]]) >= MIN_NODES


@dataclass(slots=True)
class _Boxes:
    """Contents of boxes, equal for boxes that hold the same; the last one is kept, as stored and in normal order."""

    picture: Picture
    shapes: Mapping[int, int]
    inside: list[list[int]]
    writes: Callable[[int], bool]
    last: tuple[object, object] = (None, None)

    def contents(self, box: int) -> object:
        """Return the contents of a box in normal order; neighbors that torch wrote are equal as they are stored."""
        stored = self._read(box, self.inside[box])
        if stored != self.last[0]:
            self.last = stored, self._read(box, self._normal_order(box))
        return self.last[1]

    def _read(self, box: int, order: Sequence[int]) -> tuple[object, ...]:
        """Return the contents of a box, with values and parameters numbered as they come up."""
        picture, shapes = self.picture, self.shapes
        values: dict[int, int] = {}
        weights: dict[int, int] = {}
        places: dict[int, tuple[int, ...]] = {box: ()}
        shape: list[object] = [picture.boxes.type[box]]
        for node in order:
            used_weights, results = _of(picture.chips, node), self._results(node)
            shape += (
                shapes[node],
                self._place(picture.nodes.box[node], places),
                *[values.setdefault(value, len(values)) for value in _of(picture.edges, node)],
                *[(weights.setdefault(weight, len(weights)), picture.weights.type[weight]) for weight in used_weights],
                *[picture.values.type[value] for value in results],
            )
            for value in results:
                values.setdefault(value, len(values))
        return tuple(shape)

    def _results(self, node: int) -> range:
        """Return the values that a node defines."""
        definers = self.picture.values.node
        return range(bisect_left(definers, node), bisect_right(definers, node))

    def _place(self, box: int, known: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the names of the boxes from the one in question down to another; boxes of operators go by position."""
        if box not in known:
            boxes = self.picture.boxes
            name = boxes.name[box] if boxes.kind[box] == MODULE else -boxes.kind[box]
            known[box] = (*self._place(boxes.parent[box], known), name)
        return known[box]

    def _normal_order(self, box: int) -> list[int]:
        """Return the calls in a box in an order that does not depend on how they are stored: each after those it
        depends on.

        Nodes that nothing in the box uses are sorted by content; the rest as a walk from there back through the
        arguments meets it. No call moves from one side of another that writes to the other.
        """
        stored, shapes = self.inside[box], self.shapes
        definers = self.picture.values.node
        here = frozenset(stored)
        needs = {
            node: [definers[value] for value in _of(self.picture.edges, node) if definers[value] in here]
            for node in stored
        }
        used = {need for needed in needs.values() for need in needed}
        last = sorted((node for node in stored if node not in used), key=shapes.__getitem__)
        positions: dict[int, int] = {}
        for node in last:
            _walk_back(node, needs, positions)
        counts = [0, *accumulate(map(self.writes, stored))]  # of calls that write
        parts = {node: before + after for node, before, after in zip(stored, counts, counts[1:], strict=False)}
        return sorted(stored, key=lambda node: (parts[node], positions[node]))


def _walk_back(start: int, needs: Mapping[int, Sequence[int]], found: dict[int, int]) -> None:
    """Number the nodes that a node depends on and then itself, depth first."""
    stack = [(start, iter(needs[start]))]
    while stack:
        node, left = stack[-1]
        following = next((need for need in left if need not in found), None)
        if following is None:
            found.setdefault(node, len(found))
            stack.pop()
        else:
            stack.append((following, iter(needs[following])))


def _of(pairs: Pairs, node: int) -> Sequence[int]:
    """Return the sources of the edges to a node; pairs are sorted by target."""
    return pairs.source[bisect_left(pairs.target, node) : bisect_right(pairs.target, node)]
