"""Figures of a dataset -> tables with bars on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pt2kit.messages import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pt2kit.fleet.figures import Figures
    from pt2kit.fleet.tabulated import Table

BAR: Final = 24
WIDTH: Final = 140
"""Characters of a line where nobody looks at a terminal."""
_CELL: Final = 120


def print_report(figures: Figures) -> None:
    """Print all tables of a report."""
    from rich.console import Console

    from pt2kit.fleet.tabulated import headline, tables_of

    width = None if sys.stdout.isatty() else WIDTH
    console = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)
    console.print(printable(headline(figures), 500), soft_wrap=True)
    if figures.damaged:
        console.print(f"{len(figures.damaged):,} damaged parts are left out; --resume does their files again")
    for table in tables_of(figures):
        _print_table(console, table)


def _print_table(console: Console, table: Table) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=table.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    grid.add_column(table.label, overflow="fold", min_width=10)
    grid.add_column(table.unit, justify="right", no_wrap=True)
    grid.add_column("", no_wrap=True, width=BAR)
    for head in table.heads:
        grid.add_column(head, overflow="fold")
    most = max(row.number for row in table.rows) or 1
    for row in table.rows:
        cells = (Text(printable(cell, _CELL)) for cell in row.more)
        grid.add_row(
            Text(printable(row.label, _CELL)), table.shown(row.number), Text(bar(row.number, most), "cyan"), *cells
        )
    console.print()
    console.print(grid)
    if table.left_out:
        console.print(f"… and {table.left_out:,} more")


def bar(number: int, most: int) -> str:
    """A bar of eighths of characters; what is more than nothing shows."""
    eighths = max(round(8 * BAR * number / most), 1 if number else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (chr(ord("█") + 8 - rest) if rest else "")
