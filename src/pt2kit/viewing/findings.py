"""Findings of `check` with the drawn node, value's node or tensor that each finding is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pt2kit.errors import Problem
from pt2kit.messages import printable
from pt2kit.package.open import Package
from pt2kit.viewing.columns import MAX_TEXT
from pt2kit.viewing.draw import Drawing

NODE: Final = re.compile(r"(?:.*)\.nodes\[\d+\]", re.DOTALL)
VALUE: Final = re.compile(r"_values(?:\.([\w$]+)|\[['\"](.+?)['\"]\])")
ROOT: Final = "$.graph_module.graph"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Args:
        kind: "error", "warning", "note" or "safety".
        rule: its id.
        place, message: as `pt2 check` prints them.
        node: the drawn node, -1 where it names none.
    """

    kind: str
    rule: str
    place: str
    message: str
    node: int


def findings(package: Package, model: str, drawing: Drawing, problems: Sequence[Problem]) -> list[Finding]:
    """Find the nodes that problems are about.

    Args:
        package: open.
        model: the drawn program; what is about other programs is left out.
        drawing: the program.
        problems: what `check` found in the package.
    """
    record = package.relative(package.layout.program_record(model))
    others = {
        package.relative(package.layout.program_record(other)) for other in package.layout.models if other != model
    } - {record}
    places = {step.where: number for number, step in enumerate(drawing.steps) if step is not None}
    values = _values(drawing)
    return [
        Finding(
            problem.kind,
            problem.rule,
            printable(problem.loc, MAX_TEXT),
            printable(problem.message, MAX_TEXT),
            _node(problem.loc, places, values),
        )
        for problem in problems
        if problem.loc.partition(": ")[0] not in others
    ]


def _values(drawing: Drawing) -> dict[str, int]:
    """Return name of a value of the root graph -> the node that defines it."""
    values, texts = drawing.picture.values, drawing.picture.texts
    node_by_name: dict[str, int] = {}
    for node, name in zip(values.node, values.name, strict=True):
        if drawing.scopes[node].depth == 0:
            node_by_name.setdefault(texts[name], node)
    return node_by_name


def _node(loc: str, places: dict[str, int], values: dict[str, int]) -> int:
    start = loc.find(ROOT)
    if start < 0:
        return -1
    path = loc[start:]
    while (match := NODE.match(path)) is not None:
        if match.group() in places:
            return places[match.group()]
        path = path[: match.end() - 1]
    value = VALUE.search(loc)
    return values.get(value.group(1) or value.group(2), -1) if value else -1
