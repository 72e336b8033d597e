"""The differences of two files -> readable text: a summary first, then what differs, with what stands around it.

    model.pt2 -> new.pt2: 2 differences
      nodes          1 modified, 1 added (of 2,678), in layers.5.mlp
    nodes
      @ layers.5.mlp: old 402 to 405 of 2,677, new 402 to 406 of 2,678
          %linear_37: f32[s77, 256] = aten.linear.default(input=%mul_36, …)
        ~ %silu_5: f32[s77, 256] = aten.relu.default(self=%linear_37)
            target: aten.silu.default -> aten.relu.default

Marks: `+` added, `-` removed, `~` modified, nothing for what only stands around. What is alike is shown a few times and
then counted; so are nodes that do what they did, of whose results something else is known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pt2kit.diffs import Change, Diff, GraphPair, ModelPair
from pt2kit.text.change_details import change_lines, differences_text, kind_of
from pt2kit.text.names import dotted, printable
from pt2kit.text.program import node_line
from pt2kit.text.quantities import count_text
from pt2kit.text.values import ValueTexts

CONTEXT: Final = 2
"""Unchanged nodes shown before and after a changed one."""

ALIKE: Final = 3
"""Changes of one kind that are shown; the rest of them is counted."""

SHOWN: Final = 200
"""Changes of one section that are shown."""

NAMED: Final = 5
"""Names in a list of what was left out."""

AREAS: Final = (
    *(("model", "models"), ("program", "program"), ("input", "inputs"), ("output", "outputs"), ("node", "nodes")),
    *(("module call", "module calls"), ("constraint", "constraints"), ("guard", "guards"), ("weight", "weights")),
    *(("constant", "constants"), ("metadata", "metadata"), ("record", "records")),
)
"""Area -> its title."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a section.

    Args:
        mark: "+", "-", "~", "@" for where a piece of a graph begins, or "" for what stands around and for details.
        text: what to print; printable.
    """

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A title and the lines under it."""

    title: str
    lines: tuple[Line, ...]


def diff_lines(diff: Diff, *, full: bool = False) -> Iterator[str]:
    """The differences as text, a line at a time.

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
    """One line: which files, and how many differences."""
    count = count_text(len(diff.changes), "difference") if diff.changes else "no differences"
    note = "" if diff.tensors_compared else " (numbers of tensors not compared)"
    return f"{printable(diff.old)} -> {printable(diff.new)}: {count}{note}"


def models_of(diff: Diff) -> list[str]:
    """The models of which something differs; "" for what belongs to none."""
    return list(dict.fromkeys(change.model for change in diff.changes))


def summary(diff: Diff, model: str) -> Iterator[tuple[str, str]]:
    """(title, text) of each kind of thing of which something differs in one model."""
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
    """Nodes that do something else, then nodes of whose results something else is known, then their metadata."""
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
    """The modules that most of some changes are in."""
    modules = Counter(change.module for change in changes if change.module)
    if not modules:
        return ""
    shown = ", ".join(dotted(module) for module, _ in modules.most_common(NAMED))
    return f", in {shown}{f' and {len(modules) - NAMED:,} more modules' if len(modules) > NAMED else ''}"


def sections(diff: Diff, model: str, *, full: bool = False) -> Iterator[Section]:
    """What differs in one model, section by section."""
    pair = diff.models.get(model)
    for area, title in AREAS:
        changes = [change for change in diff.changes if change.model == model and change.area == area]
        if area == "node":
            if pair is not None:
                yield from _node_sections(changes, pair, full)
        elif changes:
            yield Section(title, tuple(_listed(changes, pair, full)))


def _listed(changes: list[Change], pair: ModelPair | None, full: bool) -> Iterator[Line]:
    """Changes one after another, those that are alike folded."""
    texts = _texts(pair)
    seen: Counter[object] = Counter()
    left: dict[object, list[Change]] = defaultdict(list)
    for number, change in enumerate(changes):
        kind = kind_of(change, texts)
        seen[kind] += 1
        if not full and (seen[kind] > ALIKE or number >= SHOWN):
            left[kind].append(change)
            continue
        mark = {"added": "+", "removed": "-", "modified": "~"}[change.kind]
        yield Line(mark, dotted(change.name) + _short(change, texts))
        if change.kind == "modified" or len(change.details) > 1:
            yield from (Line("", f"  {text}") for text in change_lines(change, texts))
    yield from (_left_out(rest) for rest in left.values())


def _short(change: Change, texts: tuple[ValueTexts, ValueTexts] | None) -> str:
    """The one thing that is known of what was added or removed."""
    if change.kind == "modified" or len(change.details) != 1:
        return ""
    old, new = differences_text(change.details[0], texts)
    return f": {new if change.kind == 'added' else old}"


def _left_out(changes: list[Change]) -> Line:
    names = ", ".join(dotted(change.name) for change in changes[:NAMED])
    return Line("", f"… {len(changes):,} more {changes[0].kind} like these: {names}{', …' * (len(changes) > NAMED)}")


def _texts(pair: ModelPair | None) -> tuple[ValueTexts, ValueTexts] | None:
    return (ValueTexts(pair.old), ValueTexts(pair.new)) if pair is not None else None


def _node_sections(changes: list[Change], pair: ModelPair, full: bool) -> Iterator[Section]:
    """The changes of nodes, graph by graph: each with its neighbours."""
    texts = ValueTexts(pair.old), ValueTexts(pair.new)
    shown = [change for change in changes if full or not change.is_described_only]
    by_graph: dict[str, list[Change]] = defaultdict(list)
    for change in shown:
        by_graph[change.graph].append(change)
    for graph in pair.graphs:
        if graph.path in by_graph:
            title = f"nodes of {printable(graph.path)}" if graph.path else "nodes"
            yield Section(title, tuple(_graph_lines(graph, by_graph[graph.path], texts, full)))


def _graph_lines(
    graph: GraphPair, changes: list[Change], texts: tuple[ValueTexts, ValueTexts], full: bool
) -> Iterator[Line]:
    seen: Counter[object] = Counter()
    left: dict[object, list[Change]] = defaultdict(list)
    chosen: dict[tuple[int | None, int | None], Change] = {}
    for change in changes:
        kind = kind_of(change, texts)
        seen[kind] += 1
        if full or (seen[kind] <= ALIKE and len(chosen) < SHOWN):
            chosen[change.old, change.new] = change
        else:
            left[kind].append(change)
    rows = _rows(graph)
    places = [place for place, row in enumerate(rows) if row in chosen]
    last = -1
    for first, end in _hunks(places, len(rows)):
        if first > last + 1 or last < 0:
            yield Line("@", _hunk_title(graph, rows[first:end], chosen))
        last = end - 1
        for row in rows[first:end]:
            yield from _row_lines(graph, row, chosen.get(row), texts)
    yield from (_left_out(rest) for rest in left.values())


Row = tuple[int | None, int | None]
"""(old number, new number) of a node that is in both graphs, or in one."""


def _rows(graph: GraphPair) -> list[Row]:
    """All nodes of both graphs: the new ones in order, the removed ones before the node that followed them."""
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
    """The stretches of rows to show: those around the places, joined where they meet."""
    found: list[tuple[int, int]] = []
    for place in places:
        first, end = max(0, place - CONTEXT), min(length, place + CONTEXT + 1)
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            found.append((first, end))
    return found


def _hunk_title(graph: GraphPair, rows: list[Row], chosen: dict[Row, Change]) -> str:
    modules = list(dict.fromkeys(chosen[row].module for row in rows if row in chosen))
    where = ", ".join(dotted(module) for module in modules[:NAMED] if module) or "(no module)"
    numbers = [
        f"{name} {min(found):,} to {max(found):,} of {len(held.nodes):,}"
        for name, held, place in (("old", graph.old, 0), ("new", graph.new, 1))
        if (found := [number for row in rows if (number := row[place]) is not None])
    ]
    return f"{where}: {', '.join(numbers)}"


def _row_lines(
    graph: GraphPair, row: Row, change: Change | None, texts: tuple[ValueTexts, ValueTexts]
) -> Iterator[Line]:
    old, new = row
    if new is None and old is not None:
        yield Line("-", node_line(graph.old, graph.old.nodes[old], texts[0]))
    elif new is not None:
        mark = "" if change is None and old is not None else "+" if old is None else "~"
        yield Line(mark, node_line(graph.new, graph.new.nodes[new], texts[1]))
        if change is not None and change.kind == "modified":
            yield from (Line("", f"  {text}") for text in change_lines(change, texts))
