"""Drawing of a comparison of two packages: the new program with its changes marked, and removed nodes drawn next to it.

The differences are those of `pt2kit.diffs`; a node that is gone is drawn where its module is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pt2kit.diffs.changes import Change, Detail, Diff
from pt2kit.diffs.tensors import ValueDifference
from pt2kit.errors import Pt2Error
from pt2kit.messages import printable
from pt2kit.text.change_details import Texts as OldAndNew
from pt2kit.text.change_details import differences_text, value_differences_text
from pt2kit.text.values import ValueTexts
from pt2kit.viewing.columns import ADDED, INPUT, MAX_TEXT, MODIFIED, MODULE, OPERATION, OUTPUT, REMOVED, Picture, Texts
from pt2kit.viewing.draw import Drawing

STATUS: Final[Mapping[str, int]] = {"added": ADDED, "removed": REMOVED, "modified": MODIFIED}
MAX_CHANGES: Final = 20_000
MAX_LINES: Final = 40
METADATA: Final = ("metadata ", "name", "place")
"""Beginnings of the properties of a node that do not change what it computes."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change, in the list that a reader steps through.

    Args:
        kind: "added", "removed" or "modified".
        area: what kind of thing it is about; "node metadata" for a node that computes the same.
        name: its name.
        module: where a node stands.
        node: the drawn node; -1 for none.
        weight: the tensor; -1 for none.
        drift: of a tensor with other values, the norm of the difference relative to that of the old values.
        lines: (property, old value, new value), as text; of a distance between values, None and the distance.
    """

    kind: str
    area: str
    name: str
    module: str
    node: int
    weight: int
    drift: float | None
    lines: list[tuple[str, str | None, str]]


def mark_changes(drawing: Drawing, old: Drawing | None, found: Diff, model: str) -> list[ChangeRow]:
    """Mark in the drawing of a new program what differs from an old one; nodes that are gone are put in.

    Args:
        drawing: the new program, changed in place.
        old: the old one; None where there was none.
        found: the differences of both packages.
        model: which program.

    Cost: linear in both programs.
    """
    merge = _Merge(drawing, old, found, model)
    if old is not None:
        merge.put_in_removed(old)
    rows = [merge.row(change) for change in found.changes if change.model in (model, "")]
    return rows[:MAX_CHANGES]


class _Merge:
    """Numbers of nodes in both graphs -> drawn nodes of the one picture."""

    def __init__(self, drawing: Drawing, old: Drawing | None, found: Diff, model: str) -> None:
        self.drawing = drawing
        pair = found.models.get(model)
        self.graphs = {graphs.path: graphs for graphs in pair.graphs} if pair else {}
        self.new_nodes = _numbered(drawing)
        self.old_nodes = _numbered(old) if old else {}
        self.matched: dict[int, int] = {}  # drawn node of the old drawing -> of the new one
        self.texts = (ValueTexts(old.program), ValueTexts(drawing.program)) if old else None
        self.ends = _ends(drawing)
        self.weights = {entry.name: number for number, entry in enumerate(drawing.entries)}
        for graphs in self.graphs.values():
            for before, after in graphs.pairs:
                one, other = self.old_nodes.get((id(graphs.old), before)), self.new_nodes.get((id(graphs.new), after))
                if one is not None and other is not None:
                    self.matched[one] = other

    def put_in_removed(self, drawing: Drawing) -> None:
        """Draw the old program's nodes that no node of the new one corresponds to."""
        old, new = drawing.picture, self.drawing.picture
        texts = Texts(new.texts)
        boxes = {new.texts[path]: box for box, path in reversed(list(enumerate(new.boxes.path)))}
        for node in range(len(old.nodes.kind)):
            if node in self.matched:
                continue
            if (step := drawing.steps[node]) is None:
                end = self.ends.get((old.nodes.kind[node], old.texts[old.nodes.name[node]]))
                if end is not None:
                    self.matched[node] = end
                continue
            box = self._box(old, old.nodes.box[node], boxes, texts)
            columns = old.nodes.name, old.nodes.target, old.nodes.source, old.nodes.note
            name, target, source, note = (texts(old.texts[column[node]]) for column in columns)
            self.matched[node] = new.nodes.add(OPERATION, name, target, source, box, REMOVED, note)
            self.drawing.steps.append(step)
            self.drawing.scopes.append(drawing.scopes[node])
        self._connect(old, texts)

    def _box(self, picture: Picture, box: int, boxes: dict[str, int], texts: Texts) -> int:
        """Return the box in the new picture for a box of the old one; modules that are gone get one."""
        if box < 0:
            return 0
        old, new, column = picture.boxes, self.drawing.picture.boxes, picture.texts
        path = column[old.path[box]]
        if path not in boxes:
            above = self._box(picture, old.parent[box], boxes, texts)
            if old.kind[box] != MODULE:
                return above
            name, kind = texts(column[old.name[box]]), texts(column[old.type[box]])
            boxes[path] = new.add(above, name, kind, texts(path), MODULE, 0, -1)
        return boxes[path]

    def _connect(self, old: Picture, texts: Texts) -> None:
        """Add the edges of removed nodes."""
        new = self.drawing.picture
        values: dict[int, int] = {}
        first = {node: number for number, node in reversed(list(enumerate(new.values.node)))}
        for value, target in zip(old.edges.source, old.edges.target, strict=True):
            start, end = self.matched.get(old.values.node[value]), self.matched.get(target)
            if start is None or end is None:
                continue
            if REMOVED not in (new.nodes.status[start], new.nodes.status[end]):
                continue
            if value not in values:
                if start in first:
                    values[value] = first[start]
                else:
                    name, kind = (texts(old.texts[column[value]]) for column in (old.values.name, old.values.type))
                    values[value] = new.values.add(start, name, kind)
            new.edges.add(values[value], end)

    def row(self, change: Change) -> ChangeRow:
        """Return one change as a row, and mark the nodes that it concerns."""
        node, weight, area = -1, -1, str(change.area)
        nodes = self.drawing.picture.nodes
        if change.area == "node":
            node = self._node(change)
            if all(detail.what.startswith(METADATA) for detail in change.details) and change.details:
                area = "node metadata"
            elif node >= 0 and not (change.is_described_only and nodes.status[node]):
                nodes.status[node] = STATUS[change.kind]
        elif change.area in ("input", "output"):
            kind = INPUT if change.area == "input" else OUTPUT
            node = self.ends.get((kind, printable(change.name, MAX_TEXT)), -1)
            if node >= 0:
                nodes.status[node] = STATUS[change.kind]
        elif change.area in ("weight", "constant") and change.name in self.weights:
            weight = self.weights[change.name]
            self.drawing.picture.weights.status[weight] = STATUS[change.kind]
        drift = next((one.new.relative_norm for one in change.details if isinstance(one.new, ValueDifference)), None)
        lines = [_line(detail, self.texts) for detail in change.details[:MAX_LINES]]
        return ChangeRow(change.kind, area, change.name, change.module, node, weight, drift, lines)

    def _node(self, change: Change) -> int:
        graphs = self.graphs.get(change.graph)
        if graphs is not None and change.new is not None:
            return self.new_nodes.get((id(graphs.new), change.new), -1)
        if graphs is not None and change.old is not None:
            return self.matched.get(self.old_nodes.get((id(graphs.old), change.old), -1), -1)
        return -1


def _line(detail: Detail, texts: OldAndNew) -> tuple[str, str | None, str]:
    try:
        if isinstance(detail.new, ValueDifference):
            return detail.what, None, value_differences_text([detail.new])
        return detail.what, *differences_text(detail, texts)
    except Pt2Error as error:
        return detail.what, None, str(error)


def _ends(drawing: Drawing) -> dict[tuple[int, str], int]:
    """Return (kind, name) of an input or output -> drawn node."""
    picture = drawing.picture
    return {
        (picture.nodes.kind[number], picture.texts[picture.nodes.name[number]]): number
        for number, step in enumerate(drawing.steps)
        if step is None
    }


def _numbered(drawing: Drawing) -> dict[tuple[int, int], int]:
    """Return (id of a graph, number in it) -> drawn node."""
    return {(id(step.scope.graph), step.number): drawn for drawn, step in enumerate(drawing.steps) if step is not None}
