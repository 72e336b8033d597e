"""The tables of the report: labels, numbers and lengths of bars, for terminals and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pt2kit.fleet.figures import Figures
from pt2kit.fleet.tables import OUTCOMES
from pt2kit.rules import RULES
from pt2kit.text.format import bytes_text

SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: its label, the number of its bar, and further cells."""

    label: str
    number: int
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the report.

    Args:
        title: what it is about.
        label: the heading of the labels.
        unit: what the numbers count; "bytes" are shown as such.
        heads: the headings of the other columns.
        rows: in order.
        left_out: rows beyond those that are shown.
    """

    title: str
    label: str
    unit: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int = 0

    def shown(self, number: int) -> str:
        """Return a number as it is printed."""
        return bytes_text(number) if self.unit == "bytes" else f"{number:,}"


def headline(figures: Figures) -> str:
    """Return a summary in one line."""
    options = ", ".join(f"{key} {value}" for key, value in figures.options.items() if value)
    return (
        f"{figures.work}{f' ({options})' if options else ''}: {figures.files:,} files, {bytes_text(figures.bytes)}, "
        f"{figures.nodes:,} nodes, {figures.parameters:,} parameters, {figures.seconds:,.1f} s of reading"
    )


def tables_of(figures: Figures) -> Iterator[Table]:
    """Return the tables of a report that have rows."""
    for table in _all(figures):
        if table.rows:
            yield table


def report_tree(figures: Figures) -> dict[str, Any]:
    """Return the report as data for JSON."""
    tree: dict[str, Any] = {
        "work": figures.work,
        "options": dict(figures.options),
        "files": figures.files,
        "bytes": figures.bytes,
        "nodes": figures.nodes,
        "parameters": figures.parameters,
        "seconds": round(figures.seconds, 3),
        "damaged": list(figures.damaged),
        "tables": [
            {
                "title": table.title,
                "columns": [table.label, table.unit, *table.heads],
                "rows": [[row.label, row.number, *row.more] for row in table.rows],
                "left_out": table.left_out,
            }
            for table in tables_of(figures)
        ],
    }
    return tree


def _all(figures: Figures) -> Iterator[Table]:
    yield _table("outcomes", "outcome", "files", figures.outcomes, ("meaning",), lambda name: (OUTCOMES.get(name, ""),))
    yield _table("releases", "written by", "files", figures.releases)
    yield _table("schema versions", "version", "files", figures.schemas)
    yield _table(
        "findings by rule",
        "rule",
        "problems",
        figures.rules,
        ("severity", "files", "asks for"),
        lambda key: (key[1], f"{figures.rule_files[key]:,}", RULES[key[0]].text if key[0] in RULES else ""),
        lambda key: key[0] or "none",
    )
    yield _table(
        "operators",
        "operator",
        "calls",
        figures.operators,
        ("files",),
        lambda name: (f"{figures.operator_files[name]:,}",),
        lambda name: str(name).removeprefix("torch.ops."),
    )
    yield Table("sizes", "below", "files", (), tuple(_sizes(figures)))
    yield _table("bytes of tensors", "type", "bytes", figures.dtypes)
    groups = tuple(
        Row(group.digest[:23], group.files, (bytes_text(group.bytes), ", ".join(group.examples)))
        for group in figures.groups[:SHOWN]
    )
    yield Table("equal programs, by digest", "program", "files", ("together", "such as"), groups)
    yield _table(
        "failures by cause",
        "outcome",
        "files",
        figures.causes,
        ("rule", "cause", "such as"),
        lambda cause: (cause[1], cause[2], ", ".join(figures.examples[cause])),
        lambda cause: cause[0],
    )


def _table(
    title: str,
    label: str,
    unit: str,
    counts: Counter[Any],
    heads: tuple[str, ...] = (),
    more: Callable[[Any], tuple[str, ...]] = lambda key: (),
    shown: Callable[[Any], str] = str,
) -> Table:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = tuple(Row(shown(key), number, more(key)) for key, number in ordered[:SHOWN])
    return Table(title, label, unit, heads, rows, max(0, len(ordered) - SHOWN))


def _sizes(figures: Figures) -> Iterator[Row]:
    bounds = sorted(bound for bound in figures.sizes if bound)
    for bound in [*bounds, *([0] if 0 in figures.sizes else [])]:
        yield Row(bytes_text(bound) if bound else "larger", figures.sizes[bound])
