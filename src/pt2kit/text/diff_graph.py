"""Changes of a graph's nodes as lines, each with its neighboring nodes, in hunks as those of `diff -u`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final, TypeAlias

from pt2kit import schema
from pt2kit.diffs.changes import Change, GraphPair
from pt2kit.text.change_details import ALIKE, NAMED, SHOWN, Line, change_lines, kind_of, left_out
from pt2kit.text.format import dotted
from pt2kit.text.program import node_line, target_text
from pt2kit.text.values import ValueTexts

CONTEXT: Final = 2
"""Unchanged nodes shown before and after a changed one."""

RUN: Final = 6
"""Nodes that were added one after another, or removed, of which each is shown."""

KINDS: Final = 10
"""Kinds of modified nodes left out that are listed."""

MAX_NODE: Final = 500
"""Characters of a node, unless everything is shown."""

Row: TypeAlias = tuple[int | None, int | None]
"""(old number, new number) of a node that is in both graphs, or in one."""

Texts: TypeAlias = tuple[ValueTexts, ValueTexts]


def graph_lines(graph: GraphPair, changes: list[Change], texts: Texts, full: bool) -> Iterator[Line]:
    """Yield the changes of a graph's nodes with their context.

    Args:
        graph: the two graphs.
        changes: the changes to show, of this graph.
        texts: of the old and the new program.
        full: leave nothing out.

    Cost: linear in the nodes of both graphs.
    """
    chosen = _chosen(graph, changes, texts, full)
    rows = _rows(graph)
    shown = set(chosen)
    last = -1
    for first, end in _hunks([place for place, row in enumerate(rows) if row in chosen], len(rows)):
        if first > last + 1 or last < 0:
            yield Line("@", _hunk_title(graph, rows[first:end], chosen))
        last = end - 1
        for row in rows[first:end]:
            yield from _row_lines(graph, row, chosen.get(row), texts, full)
        shown |= {row for row in rows[first:end] if None in row}
    yield from _rest(graph, [change for change in changes if (change.old, change.new) not in shown], texts)


def _chosen(graph: GraphPair, changes: list[Change], texts: Texts, full: bool) -> dict[Row, Change]:
    """Return the changes to show: all, or some of each kind and of each run."""
    seen: Counter[object] = Counter()
    chosen: dict[Row, Change] = {}
    run = 0
    last: Row = (None, None)
    for change in changes:
        row = change.old, change.new
        run = run + 1 if change.kind != "modified" and _follows(row, last) else 0
        last = row
        kind = _kind(graph, change, texts)
        seen[kind] += 1
        if full or (seen[kind] <= ALIKE and run < RUN and len(chosen) < SHOWN):
            chosen[row] = change
    return chosen


def _follows(row: Row, last: Row) -> bool:
    """Return whether a node directly follows another one that is in the same graph alone."""
    return any(one is not None and other is not None and one == other + 1 for one, other in zip(row, last, strict=True))


def _kind(graph: GraphPair, change: Change, texts: Texts) -> object:
    """Return the key by which nodes are grouped: the operator of an added or removed node, else its differences."""
    return change.kind, _target(graph, change) if change.kind != "modified" else kind_of(change, texts)


def _target(graph: GraphPair, change: Change) -> str:
    nodes, number = (graph.old.nodes, change.old) if change.new is None else (graph.new.nodes, change.new)
    return nodes[number].target if number is not None else ""


def _rest(graph: GraphPair, changes: list[Change], texts: Texts) -> Iterator[Line]:
    """Yield what was omitted: added and removed nodes by operator, and how many changes of each kind there are."""
    for kind in ("removed", "added"):
        if left := [change for change in changes if change.kind == kind]:
            yield Line("", f"… {len(left):,} more {kind}{_where(left)}: {_operators(graph, left)}")
    alike: dict[object, list[Change]] = defaultdict(list)
    for change in changes:
        if change.kind == "modified":
            alike[_kind(graph, change, texts)].append(change)
    groups = sorted(alike.values(), key=len, reverse=True)
    yield from map(left_out, groups[:KINDS])
    if rest := groups[KINDS:]:
        yield Line("", f"… {sum(map(len, rest)):,} more modified in {len(rest):,} other ways")


def _where(changes: list[Change]) -> str:
    modules = Counter(change.module for change in changes if change.module)
    named = ", ".join(dotted(module) for module, _ in modules.most_common(ALIKE))
    return f" in {named}{', …' * (len(modules) > ALIKE)}" if named else ""


def _operators(graph: GraphPair, changes: list[Change]) -> str:
    targets = Counter(target_text(_target(graph, change)) for change in changes)
    named = ", ".join(f"{count:,} {target}" for target, count in targets.most_common(NAMED))
    return f"{named}{', …' * (len(targets) > NAMED)}"


def _rows(graph: GraphPair) -> list[Row]:
    """Return all nodes of both graphs: the new ones in order, the removed ones before the node that followed them."""
    matched = dict(graph.pairs)
    olds = {new: old for old, new in graph.pairs}
    removed = iter([*(old for old in range(len(graph.old.nodes)) if old not in matched), len(graph.old.nodes)])
    rows: list[Row] = []
    gone = next(removed)
    for new in range(len(graph.new.nodes)):
        old = olds.get(new)
        while old is not None and gone < old:
            rows.append((gone, None))
            gone = next(removed)
        rows.append((old, new))
    while gone < len(graph.old.nodes):
        rows.append((gone, None))
        gone = next(removed)
    return rows


def _hunks(places: list[int], length: int) -> list[tuple[int, int]]:
    """Return the ranges of rows to show: those around the changes, joined if they meet."""
    hunks: list[tuple[int, int]] = []
    for place in places:
        first, end = max(0, place - CONTEXT), min(length, place + CONTEXT + 1)
        if hunks and first <= hunks[-1][1]:
            hunks[-1] = hunks[-1][0], end
        else:
            hunks.append((first, end))
    return hunks


def _hunk_title(graph: GraphPair, rows: list[Row], chosen: dict[Row, Change]) -> str:
    modules = list(dict.fromkeys(chosen[row].module for row in rows if row in chosen))
    named = [dotted(module) for module in modules if module]
    where = ", ".join(named[:NAMED]) + f" and {len(named) - NAMED:,} more modules" * (len(named) > NAMED)
    numbers = [
        f"{name} {min(positions):,} to {max(positions):,} of {len(side.nodes):,}"
        for name, side, place in (("old", graph.old, 0), ("new", graph.new, 1))
        if (positions := [number for row in rows if (number := row[place]) is not None])
    ]
    return f"{where or '(no module)'}: {', '.join(numbers)}"


def _row_lines(graph: GraphPair, row: Row, change: Change | None, texts: Texts, full: bool) -> Iterator[Line]:
    old, new = row
    if new is None and old is not None:
        yield Line("-", _node_text(graph.old, old, texts[0], full))
    elif new is not None:
        mark = "" if change is None and old is not None else "+" if old is None else "~"
        yield Line(mark, _node_text(graph.new, new, texts[1], full))
        if change is not None and change.kind == "modified":
            yield from (Line("", f"  {text}") for text in change_lines(change, texts, full=full))


def _node_text(graph: schema.Graph, number: int, texts: ValueTexts, full: bool) -> str:
    text = node_line(graph, graph.nodes[number], texts)
    return text if full or len(text) <= MAX_NODE else f"{text[:MAX_NODE]}…"
