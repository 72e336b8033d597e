"""Columns of a drawing: texts once in a table, everything else numbers that point into it.

A program of 100,000 nodes is some lists of numbers here, which JSON, Python and a browser all handle fast. Every text
has been made harmless (`messages.printable`) and cut before it gets in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pt2kit.messages import printable

MAX_TEXT: Final = 2000
"""Characters of one text; the page shows far fewer of a name, and all of these when asked."""

MODULE, REPEAT, SUBGRAPH, CALL = range(4)
"""Kinds of boxes: a module; equal modules in a row; a graph that an operator carries; the operator with its graphs."""

OPERATION, INPUT, OUTPUT = range(3)
"""Kinds of nodes."""

ADDED, REMOVED, MODIFIED = 1, 2, 3
"""Status of nodes and weights in a comparison."""


class Texts:
    """Texts -> their numbers, in the order in which they came.

    Args:
        known: the table of a picture; it grows.
    """

    def __init__(self, known: list[str]) -> None:
        self.list = known
        self._numbers = {text: number for number, text in enumerate(self.list)}

    def __call__(self, text: str) -> int:
        """Return the number of a text, which is escaped and cut."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.list)
            self.list.append(printable(text, MAX_TEXT))
        return number


@dataclass(slots=True)
class Columns:
    """Columns of numbers, of one length each."""

    def add(self, *row: int) -> int:
        """Add a row, a number for each column in their order; return the number of the row."""
        names: tuple[str, ...] = self.__slots__
        for name, number in zip(names, row, strict=True):
            column: list[int] = getattr(self, name)
            column.append(number)
        return len(column) - 1


@dataclass(slots=True)
class Boxes(Columns):
    """Columns of boxes; 0 is the root.

    Args:
        parent: number of the box around it; -1 for the root.
        name, type, path: texts: its name there, its class, its address from the root.
        kind: `MODULE`, …
        repeat: how many equal modules a box of kind `REPEAT` holds, or a module all of whose children are; 0 otherwise.
        node: of a `CALL` and the graphs in it the node, of others -1.
    """

    parent: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    type: list[int] = field(default_factory=list)
    path: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    repeat: list[int] = field(default_factory=list)
    node: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Nodes(Columns):
    """Columns of nodes: calls, inputs that the caller passes, outputs.

    Args:
        kind: `OPERATION`, …
        name, target, source: texts: its path through subgraphs, its operator or role, "file:line" of its model's code.
        box: the box that contains it.
        status: of a comparison: 0 same, 1 added, 2 removed, 3 modified.
        note: a text: important arguments of an operator, the name by which callers know an input or output.
    """

    kind: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    source: list[int] = field(default_factory=list)
    box: list[int] = field(default_factory=list)
    status: list[int] = field(default_factory=list)
    note: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Values(Columns):
    """Columns of values: the node that defines it, its name and its type as texts."""

    node: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    type: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Weights(Columns):
    """Columns of tensors that the archive holds, in its order.

    Args:
        name, kind, type: texts.
        bytes, elements: how much there is.
        box: the module that holds it.
        first: the number of the first tensor with the same record; its own where it is alone.
    """

    name: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    type: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    box: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    status: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Pairs(Columns):
    """Two columns: the start and the end of each connection."""

    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Picture:
    """One program as columns, which grow while it is drawn.

    Args:
        texts: the table that the numbers of texts point into; number 0 is the empty one.
        boxes, nodes, values, weights: what there is.
        edges: value -> node that uses it.
        carries: node -> input of a subgraph that it carries.
        chips: weight -> node that uses it.
        guessed: whether modules are guessed from names of parameters, because the file does not tell them.
    """

    texts: list[str] = field(default_factory=lambda: [""])
    boxes: Boxes = field(default_factory=Boxes)
    nodes: Nodes = field(default_factory=Nodes)
    values: Values = field(default_factory=Values)
    weights: Weights = field(default_factory=Weights)
    edges: Pairs = field(default_factory=Pairs)
    carries: Pairs = field(default_factory=Pairs)
    chips: Pairs = field(default_factory=Pairs)
    guessed: bool = False
