"""Comparison of two files as readable text or HTML: a summary first, then each difference with its context.

    model.pt2 -> new.pt2: 2 differences
      nodes          1 modified, 1 added (of 2,678), in layers.5.mlp
    nodes
      @ layers.5.mlp: old 402 to 405 of 2,677, new 402 to 406 of 2,678
          %linear_37: f32[s77, 256] = aten.linear.default(input=%mul_36, …)
        ~ %silu_5: f32[s77, 256] = aten.relu.default(self=%linear_37)
            target: aten.silu.default -> aten.relu.default

Marks: `+` added, `-` removed, `~` modified, nothing for context. Similar changes are shown a few times and then
counted; so are nodes that do what they did, of whose results something else is known. `changes_graph.py` has the nodes,
`change_details.py` what differs in one thing. `diff_html` returns the same as one self-contained HTML page: no script,
no font, no other file.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from pt2kit.diffs.changes import Change, Diff, ModelPair
from pt2kit.diffs.tensors import ValueDifference
from pt2kit.messages import count_text, printable
from pt2kit.text.change_details import (
    ALIKE,
    NAMED,
    SHOWN,
    Line,
    change_lines,
    differences_text,
    kind_of,
    left_out,
    value_differences_text,
)
from pt2kit.text.diff_graph import graph_lines
from pt2kit.text.format import dotted
from pt2kit.text.values import ValueTexts

AREAS: Final = (
    *(("model", "models"), ("program", "program"), ("input", "inputs"), ("output", "outputs"), ("node", "nodes")),
    *(("module call", "module calls"), ("constraint", "constraints"), ("guard", "guards"), ("weight", "weights")),
    *(("constant", "constants"), ("metadata", "metadata"), ("record", "records")),
)
"""Area -> its title."""

MARKS: Final = {"added": "+", "removed": "-", "modified": "~"}  # Read only.
_DIGITS: Final = re.compile(r"\d+")

Texts = tuple[ValueTexts, ValueTexts] | None

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
    by_area: dict[str, list[Change]] = defaultdict(list)
    for change in diff.changes:
        if change.model == model:
            by_area[change.area].append(change)
    for area, title in AREAS:
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
    if not modules:
        return ""
    shown = ", ".join(dotted(module) for module, _ in modules.most_common(NAMED))
    return f", in {shown}{f' and {len(modules) - NAMED:,} more modules' if len(modules) > NAMED else ''}"


def sections(diff: Diff, model: str, *, full: bool = False) -> Iterator[Section]:
    """Yield the differences of one model, section by section."""
    pair = diff.models.get(model)
    for area, title in AREAS:
        changes = [change for change in diff.changes if change.model == model and change.area == area]
        if area == "node":
            if pair is not None:
                yield from _node_sections(changes, pair, full)
        elif changes:
            yield Section(title, tuple(_listed(changes, pair, full)))


def _node_sections(changes: list[Change], pair: ModelPair, full: bool) -> Iterator[Section]:
    """Yield the changes of nodes, graph by graph: each with its neighbors."""
    texts = ValueTexts(pair.old), ValueTexts(pair.new)
    by_graph: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if full or not change.is_described_only:
            by_graph[change.graph].append(change)
    for graph in pair.graphs:
        if graph.path in by_graph:
            title = f"nodes of {printable(graph.path)}" if graph.path else "nodes"
            yield Section(title, tuple(graph_lines(graph, by_graph[graph.path], texts, full)))


def _listed(changes: list[Change], pair: ModelPair | None, full: bool) -> Iterator[Line]:
    """Yield changes one after another; similar ones, whose names differ in numbers alone, are folded."""
    texts = (ValueTexts(pair.old), ValueTexts(pair.new)) if pair is not None else None
    groups: dict[object, list[Change]] = defaultdict(list)
    for number, change in enumerate(changes):
        kind = kind_of(change, texts), _DIGITS.sub("*", change.name)
        groups[number if full else kind].append(change)
    left = list(groups.values())
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
