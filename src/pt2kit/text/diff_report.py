"""Comparison of two files as readable text or HTML: a summary first, then each difference with its context.

    model.pt2 -> new.pt2: 2 differences
      nodes          1 modified, 1 added (of 2,678), in layers.5.mlp
    nodes
      @ layers.5.mlp: old 402 to 405 of 2,677, new 402 to 406 of 2,678
          %linear_37: f32[s77, 256] = aten.linear.default(input=%mul_36, …)
        ~ %silu_5: f32[s77, 256] = aten.relu.default(self=%linear_37)
            target: aten.silu.default -> aten.relu.default

Marks: `+` added, `-` removed, `~` modified, nothing for context. Similar changes are shown a few times and then
counted; so are nodes that do what they did, of whose results something else is known. Changes of nodes come with their
neighbors, in hunks as those of `diff -u`; `change_details.py` has what differs in one thing. `diff_html` returns the
same as one self-contained HTML page: no script, no font, no other file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, TypeAlias, get_args

from pt2kit import schema
from pt2kit.canonical.canonical_labeling import grouped
from pt2kit.diffs.changes import Area, Change, Diff, GraphPair, ModelPair, Row
from pt2kit.diffs.tensors import ValueDifference
from pt2kit.messages import count_text, printable
from pt2kit.text.change_details import (
    ALIKE,
    NAMED,
    SHOWN,
    Line,
    Texts,
    change_lines,
    differences_text,
    kind_of,
    left_out,
    value_differences_text,
)
from pt2kit.text.format import dotted
from pt2kit.text.program import node_line, target_text
from pt2kit.text.values import ValueTexts

TITLES: Final = {area: area if area in ("program", "metadata") else f"{area}s" for area in get_args(Area)}
"""Area -> its title, in the order of a report."""

MARKS: Final = {"added": "+", "removed": "-", "modified": "~"}  # Read only.
_DIGITS: Final = re.compile(r"\d+")

CLASSES: Final = {"+": "added", "-": "removed", "~": "modified", "@": "place", "": "around"}
OPEN: Final = 400
"""Lines up to which a section is open from the start."""

STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 100em; padding: 0 1em; }
table { border-collapse: collapse; margin: 0 0 1em 1em; }
td { padding: 0 1em 0 0; vertical-align: top; }
td:first-child { opacity: .7; white-space: nowrap; }
summary { cursor: pointer; font-weight: 600; }
pre { font: 13px/1.45 ui-monospace, monospace; margin: .5em 0 1em; overflow-x: auto; }
pre span { display: block; padding: 0 .5em; min-width: max-content; }
.added { background: #2da44e33; }
.removed { background: #cf222e33; }
.modified { background: #bf870033; }
.place { opacity: .7; margin-top: .8em; }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A title and the lines under it."""

    title: str
    lines: tuple[Line, ...]


def diff_lines(diff: Diff, *, full: bool = False) -> Iterator[str]:
    """Yield the differences as text, a line at a time.

    Args:
        diff: what was found.
        full: leave nothing out.
    """
    yield headline(diff)
    for model in models_of(diff):
        several = len(diff.models) > 1 and model
        if several:
            yield f"{printable(model)}"
        yield from (f"  {title:<15}{text}" for title, text in summary(diff, model))
    for model in models_of(diff):
        for section in sections(diff, model, full=full):
            yield f"{section.title} of {printable(model)}" if len(diff.models) > 1 and model else section.title
            yield from (f"  {line.mark:<2}{line.text}" for line in section.lines)


def headline(diff: Diff) -> str:
    """Return one line: which files, and how many differences."""
    count = count_text(len(diff.changes), "difference") if diff.changes else "no differences"
    note = "" if diff.tensors_compared else " (numbers of tensors not compared)"
    return f"{printable(diff.old)} -> {printable(diff.new)}: {count}{note}"


def models_of(diff: Diff) -> list[str]:
    """Return the models that have differences; "" for differences that belong to no model."""
    return list(dict.fromkeys(change.model for change in diff.changes))


def summary(diff: Diff, model: str) -> Iterator[tuple[str, str]]:
    """Yield (title, text) for each kind of difference in one program."""
    by_area = grouped((change for change in diff.changes if change.model == model), lambda change: change.area)
    for area, title in TITLES.items():
        if area == "node":
            yield from _nodes_summary(by_area["node"], diff.models.get(model))
        elif by_area[area]:
            total = _total(diff, model, area)
            yield title, f"{_counts_text(by_area[area])}{f' (of {total:,})' if total else ''}"


def _nodes_summary(changes: list[Change], pair: ModelPair | None) -> Iterator[tuple[str, str]]:
    """Yield counts of nodes that compute something else, of nodes with other result metas, and of changed metadata."""
    nodes = [change for change in changes if not change.is_described_only]
    if nodes:
        total = sum(len(graph.new.nodes) for graph in pair.graphs) if pair else 0
        yield "nodes", f"{_counts_text(nodes)} (of {total:,}){_modules_text(nodes)}"
    described = [change for change in changes if change.is_described_only]
    for prefix, title in (
        ("result", "described"),
        ("metadata", "node metadata"),
        ("name", "names"),
        ("place", "order"),
    ):
        kinds = Counter(
            detail.what for change in described for detail in change.details if detail.what.startswith(prefix)
        )
        if kinds:
            texts = (f"{what.removeprefix('metadata ')} of {count:,}" for what, count in kinds.most_common(NAMED))
            yield title, f"{', '.join(map(printable, texts))}{', …' if len(kinds) > NAMED else ''}"


def _total(diff: Diff, model: str, area: str) -> int:
    pair = diff.models.get(model)
    if pair is None:
        return 0
    graph = pair.new.graph_module.graph
    return {"input": len(graph.inputs), "output": len(graph.outputs)}.get(area, 0)


def _counts_text(changes: Iterable[Change]) -> str:
    counts = Counter(change.kind for change in changes)
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in ("modified", "added", "removed") if counts[kind])


def _modules_text(changes: list[Change]) -> str:
    """Return the modules that most of some changes are in."""
    modules = Counter(change.module for change in changes if change.module)
    return f", in {_named_modules([module for module, _ in modules.most_common()])}" if modules else ""


def _named_modules(modules: Sequence[str]) -> str:
    more = f" and {len(modules) - NAMED:,} more modules" if len(modules) > NAMED else ""
    return ", ".join(map(dotted, modules[:NAMED])) + more


def sections(diff: Diff, model: str, *, full: bool = False) -> Iterator[Section]:
    """Yield the differences of one model, section by section."""
    pair = diff.models.get(model)
    for area, title in TITLES.items():
        changes = [change for change in diff.changes if change.model == model and change.area == area]
        if area == "node":
            if pair is not None:
                yield from _node_sections(changes, pair, full)
        elif changes:
            yield Section(title, tuple(_listed(changes, pair, full)))


def _node_sections(changes: list[Change], pair: ModelPair, full: bool) -> Iterator[Section]:
    """Yield the changes of nodes, graph by graph: each with its neighbors."""
    texts = ValueTexts(pair.old), ValueTexts(pair.new)
    shown = (change for change in changes if full or not change.is_described_only)
    by_graph = grouped(shown, lambda change: change.graph)
    for graph in pair.graphs:
        if graph.path in by_graph:
            title = f"nodes of {printable(graph.path)}" if graph.path else "nodes"
            yield Section(title, tuple(graph_lines(graph, by_graph[graph.path], texts, full)))


def _listed(changes: list[Change], pair: ModelPair | None, full: bool) -> Iterator[Line]:
    """Yield changes one after another; similar ones, whose names differ in numbers alone, are folded."""
    texts = (ValueTexts(pair.old), ValueTexts(pair.new)) if pair is not None else None
    if full:
        left = [[change] for change in changes]
    else:
        left = list(grouped(changes, lambda one: (kind_of(one, texts), _DIGITS.sub("*", one.name))).values())
    shown = 0
    while left and (full or shown < SHOWN):
        group = left.pop(0)
        lines = list(_group_lines(group, texts))
        shown += len(lines)
        yield from lines
    if left:
        rest = [change for group in left for change in group]
        yield Line("", f"… {len(rest):,} more: {_counts_text(rest)}")


def _group_lines(group: list[Change], texts: Texts) -> Iterator[Line]:
    first = group[0]
    values = [change.details[0].new for change in group if len(change.details) == 1]
    are_values = len(values) == len(group) and all(isinstance(value, ValueDifference) for value in values)
    if len(group) > ALIKE and (are_values or first.kind != "modified"):
        pattern = printable(_DIGITS.sub("…", first.name))
        yield Line(MARKS[first.kind], f"{pattern}{_short(first, texts)}  ({len(group):,} of these)")
        if are_values:
            yield Line("", f"  {printable(first.details[0].what)}: {value_differences_text(values)}")
        return
    for change in group[:ALIKE]:
        yield Line(MARKS[change.kind], name_text(change) + _short(change, texts))
        if change.kind == "modified" or len(change.details) > 1:
            yield from (Line("", f"  {text}") for text in change_lines(change, texts))
    if len(group) > ALIKE:
        yield left_out(group[ALIKE:])


def name_text(change: Change) -> str:
    """Return the name of a changed item; records and numbered items as they are, modules and tensors as dotted
    names."""
    if change.area == "module call" and not change.name:
        return "(the program itself)"
    return printable(change.name) if change.area in ("record", "output", "guard") else dotted(change.name)


def _short(change: Change, texts: Texts) -> str:
    """Return the one known detail of an added or removed item."""
    if change.kind == "modified" or len(change.details) != 1:
        return ""
    old, new = differences_text(change.details[0], texts)
    return f": {new if change.kind == 'added' else old}"


def diff_html(diff: Diff) -> str:
    """Return the differences as a page; every text from the files is escaped."""
    return "\n".join(_page(diff)) + "\n"


def _page(diff: Diff) -> Iterator[str]:
    title = escape(headline(diff))
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>'
    yield f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>"
    for model in models_of(diff):
        if model:
            yield f"<h2>{escape(printable(model))}</h2>"
        yield "<table>"
        yield from (f"<tr><td>{escape(one)}</td><td>{escape(text)}</td></tr>" for one, text in summary(diff, model))
        yield "</table>"
        for section in sections(diff, model, full=True):
            yield from _section(section)
    yield "</body>\n</html>"


def _section(section: Section) -> Iterator[str]:
    yield f"<details{' open' if len(section.lines) <= OPEN else ''}>"
    yield f"<summary>{escape(section.title)} ({count_text(len(section.lines), 'line')})</summary>\n<pre>"
    yield "".join(map(_line, section.lines))
    yield "</pre>\n</details>"


def _line(line: Line) -> str:
    return f'<span class="{CLASSES[line.mark]}">{escape(f"{line.mark:<2}{line.text}")}</span>'


CONTEXT: Final = 2
"""Unchanged nodes shown before and after a changed one."""

RUN: Final = 6
"""Nodes that were added one after another, or removed, of which each is shown."""

KINDS: Final = 10
"""Kinds of modified nodes left out that are listed."""

MAX_NODE: Final = 500
"""Characters of a node, unless everything is shown."""

TextPair: TypeAlias = tuple[ValueTexts, ValueTexts]


def graph_lines(graph: GraphPair, changes: list[Change], texts: TextPair, full: bool) -> Iterator[Line]:
    """Yield the changes of a graph's nodes with their context.

    Args:
        graph: the two graphs.
        changes: the changes to show, of this graph.
        texts: of the old and the new program.
        full: leave nothing out.

    Cost: linear in the nodes of both graphs.
    """
    chosen = _chosen(graph, changes, texts, full)
    rows = list(graph.rows())
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


def _chosen(graph: GraphPair, changes: list[Change], texts: TextPair, full: bool) -> dict[Row, Change]:
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


def _kind(graph: GraphPair, change: Change, texts: TextPair) -> object:
    """Return the key by which nodes are grouped: the operator of an added or removed node, else its differences."""
    return change.kind, _target(graph, change) if change.kind != "modified" else kind_of(change, texts)


def _target(graph: GraphPair, change: Change) -> str:
    nodes, number = (graph.old.nodes, change.old) if change.new is None else (graph.new.nodes, change.new)
    return nodes[number].target if number is not None else ""


def _rest(graph: GraphPair, changes: list[Change], texts: TextPair) -> Iterator[Line]:
    """Yield what was omitted: added and removed nodes by operator, and how many changes of each kind there are."""
    for kind in ("removed", "added"):
        if left := [change for change in changes if change.kind == kind]:
            yield Line("", f"… {len(left):,} more {kind}{_where(left)}: {_operators(graph, left)}")
    modified = (change for change in changes if change.kind == "modified")
    alike = grouped(modified, lambda change: _kind(graph, change, texts))
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
    modules = dict.fromkeys(chosen[row].module for row in rows if row in chosen)
    where = _named_modules(list(filter(None, modules)))
    numbers = [
        f"{name} {min(positions):,} to {max(positions):,} of {len(side.nodes):,}"
        for name, side, place in (("old", graph.old, 0), ("new", graph.new, 1))
        if (positions := [number for row in rows if (number := row[place]) is not None])
    ]
    return f"{where or '(no module)'}: {', '.join(numbers)}"


def _row_lines(graph: GraphPair, row: Row, change: Change | None, texts: TextPair, full: bool) -> Iterator[Line]:
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
