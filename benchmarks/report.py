"""Outcomes -> one table (with colors on a terminal) or JSON."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from typing import Any, TextIO

from benchmarks.harness import Outcome, Settings, TimesBetter, quantity

HEADERS = ("name", "what is compared", "ours", "reference", "ratio", "bar", "reached")
WIDTH = 150
"""Columns of the table in a pipe."""
DISTURBED = 0.05
"""The share of all processors that other work may take without being mentioned."""


def row(outcome: Outcome) -> tuple[str, ...]:
    """The cells of one outcome, in the order of HEADERS."""
    bench, measured = outcome.bench, outcome.measured
    bar = str(bench.bar) if bench.bar else "-"
    if measured is None:
        return bench.name, bench.subject, "-", "-", "-", bar, "did not run"
    reference = quantity(measured.reference, measured.unit) if measured.reference is not None else "-"
    verdict = {True: "yes", False: "NO", None: "-"}[outcome.reached]
    ours = quantity(measured.ours, measured.unit)
    return bench.name, bench.subject, ours, reference, _ratio(outcome), bar, verdict


def _ratio(outcome: Outcome) -> str:
    measured = outcome.measured
    if measured is None or not measured.reference or not measured.ours:
        return "-"
    if isinstance(outcome.bench.bar, TimesBetter):
        return f"{measured.reference / measured.ours:.3g}x better"
    return f"{measured.ours / measured.reference:.3g}x"


def line(outcome: Outcome) -> str:
    """An outcome in one line, as soon as it is there."""
    name, _, ours, reference, ratio, bar, verdict = row(outcome)
    more = notes([outcome])
    return f"{name}: {ours} : {reference}, {ratio} (bar {bar}: {verdict}){''.join(f'; {note}' for note in more)}"


def notes(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each outcome that has more to say, that did not run, or that other work disturbed."""
    lines = []
    for outcome in outcomes:
        if outcome.error:
            lines.append(f"{outcome.bench.name}: did not run: {outcome.error}")
        elif outcome.measured and outcome.measured.note:
            lines.append(f"{outcome.bench.name}: {outcome.measured.note}")
        if outcome.others is not None and outcome.others > DISTURBED:
            lines.append(
                f"{outcome.bench.name}: disturbed: other work took {outcome.others:.0%} of the processors meanwhile"
            )
    return lines


def show(outcomes: Sequence[Outcome], out: TextIO) -> None:
    """Print the table and the notes below it, as wide as the terminal, or in `WIDTH` columns elsewhere."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(file=out, width=None if out.isatty() else WIDTH)
    table = Table(*HEADERS, box=None, pad_edge=False)
    for header, column in zip(HEADERS, table.columns, strict=True):
        column.no_wrap = header != "what is compared"
        column.justify = "right" if header in ("ours", "reference", "ratio") else "left"
    styles = {True: "green", False: "bold red", None: ""}
    for outcome in outcomes:
        style = "yellow" if outcome.error else styles[outcome.reached]
        *cells, verdict = (escape(cell) for cell in row(outcome))
        table.add_row(*cells, f"[{style}]{verdict}[/]" if style else verdict)
    console.print(table)
    for line in notes(outcomes):
        console.print(f"  {escape(line)}", style="dim", highlight=False, soft_wrap=True)


def as_json(outcomes: Sequence[Outcome], settings: Settings) -> str:
    """The outcomes and the machine they were measured on, as a JSON document."""
    document = {
        "machine": {"platform": platform.platform(), "python": platform.python_version()},
        "quick": settings.quick,
        "benchmarks": [_entry(outcome) for outcome in outcomes],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _entry(outcome: Outcome) -> dict[str, Any]:
    bench, measured = outcome.bench, outcome.measured
    return {
        "name": bench.name,
        "subject": bench.subject,
        "ours": measured and measured.ours,
        "reference": measured and measured.reference,
        "unit": measured and measured.unit,
        "value": bench.bar.value(measured) if bench.bar and measured else None,
        "bar": str(bench.bar) if bench.bar else None,
        "reached": outcome.reached,
        "note": measured.note if measured else "",
        "error": outcome.error,
        "took_s": round(outcome.took_s, 3),
        "others": None if outcome.others is None else round(outcome.others, 3),
    }
