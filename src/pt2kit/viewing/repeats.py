"""Boxes of modules -> those in a row that are equal, put into one box that says how many there are.

Two modules are equal where their calls are, one by one, whatever the values and parameters in them are called: the same
operators, constants, types of results and places in the modules below, connected alike. Programs in which only the
order of calls differs are told apart by this and equal in normal form (`canonical`); torch writes equal layers in
one order.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pt2kit import codec
from pt2kit.canonical.form import Keep, normal_form
from pt2kit.errors import Pt2Error
from pt2kit.graph.traversal import Scope
from pt2kit.schema import Node
from pt2kit.viewing.columns import MODULE, OPERATION, REPEAT, Boxes, Nodes, Texts

MIN_NODES: Final = 3
"""Calls in a module from which on two of them in a row are worth a box of their own; of smaller ones it takes four."""

MIN_SMALL: Final = 4
_NAMES: Final = re.compile(rb'"(as_)?name":"(?:[^"\\]|\\.)*"')

Shape = tuple[Any, ...]


class Calls:
    """What calls are without the names in them, kept while a program is drawn."""

    def __init__(self) -> None:
        self.shapes: dict[int, int] = {}  # drawn node -> number of what it is
        self.used: dict[int, list[int]] = {}  # drawn node -> the values it uses, -1 for a tensor of the archive
        self.results: dict[int, list[int]] = {}  # drawn node -> texts of the types of its results
        self._numbers: dict[Shape, int] = {}

    def add(self, drawn: int, node: Node, used: list[int], results: list[int], inner: Sequence[Scope]) -> None:
        """Keep one call."""
        shape = (node.target, *_shapes(node), *(_graph_shape(scope) for scope in inner))
        self.shapes[drawn] = self._numbers.setdefault(shape, len(self._numbers))
        self.used[drawn] = used
        self.results[drawn] = results


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
    """A subgraph in normal form, which has no names of its own."""
    graph = scope.graph
    try:
        return codec.encode(normal_form(graph, graph.inputs, graph.outputs, scope.where, Keep(), scope.depth).graph)
    except Pt2Error:
        return scope.where.encode("utf-8", "replace")  # equal to nothing else


def group_repeats(boxes: Boxes, nodes: Nodes, calls: Calls, texts: Texts) -> None:
    """Put equal modules that follow one another in their parent into a box of kind `REPEAT`.

    Args:
        boxes: changed in place.
        nodes: drawn, in the order in which they run.
        calls: what they are.
        texts: gets the names of the new boxes.

    Cost: linear in the nodes times the depth of the tree.
    """
    count = len(boxes.parent)
    inside = _nodes_inside(boxes, nodes)
    children: dict[int, list[int]] = defaultdict(list)
    for box in range(1, count):
        if boxes.kind[box] == MODULE and inside[box]:
            children[boxes.parent[box]].append(box)
    direct = Counter(nodes.box)
    others = Counter(boxes.parent[box] for box in range(1, count))
    for parent, siblings in children.items():
        siblings.sort(key=lambda box: inside[box][0])
        for run in _runs(siblings, boxes, inside, nodes, calls):
            if len(run) == others[parent] and not direct[parent]:
                boxes.repeat[parent] = len(run)
            else:
                _put_together(run, boxes, texts)


def _put_together(run: list[int], boxes: Boxes, texts: Texts) -> None:
    first, last = (texts.list[boxes.name[box]] for box in (run[0], run[-1]))
    path = texts(f"{texts.list[boxes.path[run[0]]]}…{last}")
    group = boxes.add(boxes.parent[run[0]], texts(f"{first} … {last}"), boxes.type[run[0]], path, REPEAT)
    boxes.repeat[group] = len(run)
    for box in run:
        boxes.parent[box] = group


def _nodes_inside(boxes: Boxes, nodes: Nodes) -> list[list[int]]:
    """For each box the operations inside it, at any depth, in their order."""
    inside: list[list[int]] = [[] for _ in boxes.parent]
    for node, box in enumerate(nodes.box):
        if nodes.kind[node] != OPERATION:
            continue
        while box >= 0:
            inside[box].append(node)
            box = boxes.parent[box]
    return inside


def _runs(
    siblings: list[int], boxes: Boxes, inside: list[list[int]], nodes: Nodes, calls: Calls
) -> Iterator[list[int]]:
    """Maximal runs of equal neighbours that are long enough."""
    alike = Counter((boxes.type[box], len(inside[box])) for box in siblings)
    run: list[int] = []
    last: Shape | None = None
    for box in siblings:
        shape = None
        if alike[boxes.type[box], len(inside[box])] > 1:
            shape = _shape(box, boxes, inside[box], nodes, calls)
        if shape is None or shape != last:
            if _is_worth_it(run, inside):
                yield run
            run = []
        run.append(box)
        last = shape
    if _is_worth_it(run, inside):
        yield run


def _is_worth_it(run: list[int], inside: list[list[int]]) -> bool:
    return len(run) >= MIN_SMALL or (len(run) >= 2 and len(inside[run[0]]) >= MIN_NODES)


def _shape(box: int, boxes: Boxes, inside: list[int], nodes: Nodes, calls: Calls) -> Shape:
    """What is inside a box, with values numbered as they come up."""
    numbers: dict[int, int] = {-1: -1}
    places: dict[int, tuple[int, ...]] = {box: ()}
    found: list[Any] = [boxes.type[box]]
    for node in inside:
        found.append(calls.shapes[node])
        found.append(_place(nodes.box[node], boxes, places))
        found.append(tuple(numbers.setdefault(value, len(numbers)) for value in calls.used[node]))
        found.append(tuple(calls.results[node]))
    return tuple(found)


def _place(box: int, boxes: Boxes, known: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """The names of the boxes from the one in question down to another; boxes of operators go by position."""
    if box not in known:
        name = boxes.name[box] if boxes.kind[box] == MODULE else -boxes.kind[box]
        known[box] = (*_place(boxes.parent[box], boxes, known), name)
    return known[box]
