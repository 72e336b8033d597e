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
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pt2kit import codec
from pt2kit.canonical.form import Keep, normal_form
from pt2kit.errors import Pt2Error
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope
from pt2kit.node_metadata.frames import lenient
from pt2kit.node_metadata.modules import MAX_MODULE_DEPTH, NO_MODULE, module_fqn, parse_module_stack
from pt2kit.schema import Graph, Node
from pt2kit.viewing.columns import MODULE, OPERATION, REPEAT, Pairs, Picture, Texts

REPEATED_CALL: Final = re.compile(r"@\d+(?=\W*$)")

MIN_NODES: Final = 3
"""Calls in a module from which on two of them in a row are worth a box of their own; of smaller ones it takes four."""

MIN_SMALL: Final = 4
_NAMES: Final = re.compile(rb'"(as_)?name":"(?:[^"\\]|\\.)*"')

Shape = tuple[Any, ...]


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
    entries = lenient(parse_module_stack, text) if text else None
    if not entries or all(entry.path == NO_MODULE for entry in entries):
        return None
    calls, before = list[ModuleCall](), ""
    for entry in entries:
        fqn = module_fqn(entry.path)
        if entry.path == NO_MODULE or fqn in ("", before):
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
    entries = lenient(parse_module_stack, text) or ()
    return next((entry.type for entry in entries if entry.path != NO_MODULE and not module_fqn(entry.path)), "")


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
    following: list[str | None] = [None] * len(anchors)
    later: str | None = None
    for number in reversed(range(len(anchors))):
        following[number] = later
        later = anchors[number] if anchors[number] is not None else later
    modules, before = list[str](), None
    for anchor, after in zip(anchors, following, strict=True):
        if anchor is not None:
            before = anchor
            modules.append(anchor)
        else:
            modules.append(common(before, after) if before is not None and after is not None else "")
    return modules


def _anchor(node: Node, owners: Mapping[str, str]) -> str | None:
    """Return the module that contains all parameters of a node; None if it uses none."""
    names = [owners[name] for named in node.inputs for name in arguments(named.arg) if name in owners]
    return None if not names else common(*names)


def common(first: str, *others: str) -> str:
    """Return the dotted name that several begin with."""
    parts: Sequence[str] = first.split(".")
    for other in others:
        pairs = zip(parts, other.split("."), strict=False)
        parts = [a for a, b in _while_equal(pairs)]
    return ".".join(parts)


def _while_equal(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for a, b in pairs:
        if a != b:
            return
        yield a, b


class Calls:
    """Calls without the names in them, kept while a program is drawn."""

    def __init__(self) -> None:
        self.shapes: dict[int, int] = {}  # drawn node -> number of what it is
        self._numbers: dict[Shape, int] = {}

    def add(self, drawn: int, node: Node, used: Sequence[str], weights: Container[str], inner: Sequence[Scope]) -> None:
        """Keep one call.

        Args:
            drawn: its number in the picture.
            node: the call.
            used: the values in its arguments, each as often as it is used.
            weights: the values that are tensors of the archive.
            inner: the graphs that it carries.
        """
        first: dict[str, int] = {}
        connected = tuple(first.setdefault(name, -len(first) if name in weights else len(first)) for name in used)
        shape = (node.target, connected, *_shapes(node), *(_graph_shape(scope) for scope in inner))
        self.shapes[drawn] = self._numbers.setdefault(shape, len(self._numbers))


def _shapes(node: Node) -> Iterator[bytes]:
    for named in node.inputs:
        if named.arg.type == "as_tensor":  # most are
            yield named.name.encode("utf-8", "replace")
        elif named.arg.type != "as_graph":
            yield named.name.encode("utf-8", "replace") + _NAMES.sub(b"%", _encoded(named.arg))


def _encoded(value: Any) -> bytes:
    try:
        return codec.encode(value)
    except Pt2Error:
        return repr(value).encode("utf-8", "replace")


def _graph_shape(scope: Scope) -> bytes:
    """Return a subgraph in normal form, which has no names of its own."""
    graph = scope.graph
    try:
        return codec.encode(normal_form(graph, graph.inputs, graph.outputs, scope.where, Keep(), scope.depth).graph)
    except Pt2Error:
        return scope.where.encode("utf-8", "replace")  # equal to nothing else


def group_repeats(picture: Picture, calls: Calls, texts: Texts, writes: Callable[[int], bool]) -> None:
    """Move equal modules that follow one another in their parent into a box of kind `REPEAT`.

    Args:
        picture: the nodes in the order in which they run; its boxes are changed in place.
        calls: what they are.
        texts: gets the names of the new boxes.
        writes: drawn node -> whether it may write, or carries a graph that does.

    Cost: linear in the nodes times the depth of the tree.
    """
    boxes = picture.boxes
    count = len(boxes.parent)
    inside = _nodes_inside(picture)
    children: dict[int, list[int]] = defaultdict(list)
    for box in range(1, count):
        if boxes.kind[box] == MODULE and inside[box]:
            children[boxes.parent[box]].append(box)
    direct = Counter(picture.nodes.box)
    others = Counter(boxes.parent[box] for box in range(1, count))
    same = _Comparison(picture, calls, inside, writes).same
    for parent, siblings in children.items():
        siblings.sort(key=lambda box: inside[box][0])
        for run in _runs(siblings, same):
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


def _runs(siblings: Sequence[int], same: Callable[[int, int], bool]) -> Iterator[list[int]]:
    """Yield maximal runs of equal neighbors."""
    run: list[int] = []
    for box in siblings:
        if run and not same(run[-1], box):
            yield run
            run = []
        run.append(box)
    yield run


def _is_worth_it(run: list[int], inside: list[list[int]]) -> bool:
    return len(run) >= MIN_SMALL or (len(run) >= 2 and len(inside[run[0]]) >= MIN_NODES)


class _Comparison:
    """Comparison of two boxes, with a cache of the last few results, as each is asked for twice."""

    def __init__(self, picture: Picture, calls: Calls, inside: list[list[int]], writes: Callable[[int], bool]) -> None:
        self._picture = picture
        self._calls = calls
        self._inside = inside
        self._writes = writes
        self._stored_shape = lru_cache(4)(lambda box: self._shape(box, inside[box]))
        self._normal_shape = lru_cache(4)(lambda box: self._shape(box, self._normal_order(box)))

    def same(self, one: int, other: int) -> bool:
        """Return whether two boxes hold the same; neighbors that torch wrote are equal as they are stored."""
        types, inside = self._picture.boxes.type, self._inside
        if types[one] != types[other] or len(inside[one]) != len(inside[other]):
            return False
        if self._stored_shape(one) == self._stored_shape(other):
            return True
        return self._kinds(one) == self._kinds(other) and self._normal_shape(one) == self._normal_shape(other)

    def _kinds(self, box: int) -> Counter[int]:
        return Counter(self._calls.shapes[node] for node in self._inside[box])

    def _shape(self, box: int, order: Sequence[int]) -> Shape:
        """Return the contents of a box, with values and parameters numbered as they come up."""
        picture, shapes = self._picture, self._calls.shapes
        values: dict[int, int] = {}
        weights: dict[int, int] = {}
        places: dict[int, tuple[int, ...]] = {box: ()}
        shape: list[Any] = [picture.boxes.type[box]]
        for node in order:
            used_weights = _of(picture.chips, node)
            shape += (
                shapes[node],
                self._place(picture.nodes.box[node], places),
                *[values.setdefault(value, len(values)) for value in _of(picture.edges, node)],
                *[(weights.setdefault(weight, len(weights)), picture.weights.type[weight]) for weight in used_weights],
                *[picture.values.type[value] for value in self._results(node)],
            )
            for value in self._results(node):
                values.setdefault(value, len(values))
        return tuple(shape)

    def _results(self, node: int) -> range:
        """Return the values that a node defines."""
        definers = self._picture.values.node
        return range(bisect_left(definers, node), bisect_right(definers, node))

    def _place(self, box: int, known: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the names of the boxes from the one in question down to another; boxes of operators go by position."""
        if box not in known:
            boxes = self._picture.boxes
            name = boxes.name[box] if boxes.kind[box] == MODULE else -boxes.kind[box]
            known[box] = (*self._place(boxes.parent[box], known), name)
        return known[box]

    def _normal_order(self, box: int) -> list[int]:
        """Return the calls in a box in an order that does not depend on how they are stored: each after those it
        depends on.

        Nodes that nothing in the box uses are sorted by content; the rest as a walk from there back through the
        arguments meets it. No call moves from one side of another that writes to the other.
        """
        stored, shapes = self._inside[box], self._calls.shapes
        definers = self._picture.values.node
        here = frozenset(stored)
        needs = {
            node: [definers[value] for value in _of(self._picture.edges, node) if definers[value] in here]
            for node in stored
        }
        used = {need for needed in needs.values() for need in needed}
        last = sorted((node for node in stored if node not in used), key=shapes.__getitem__)
        positions: dict[int, int] = {}
        for node in last:
            _walk_back(node, needs, positions)
        part, parts = 0, {}
        for node in stored:
            writing = self._writes(node)
            part += writing
            parts[node] = part
            part += writing
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
