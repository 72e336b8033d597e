"""The report as a self-contained HTML page with tables and plots."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.fleet.figures import Figures, Table, headline, tables_of
from pt2kit.messages import printable

_CELL: Final = 400
_LABEL: Final = 40
# The page contains names from untrusted files: it may run its own scripts, and reach nothing.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:"
)
_STYLE: Final = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin-top: .6rem; } th, td { padding: .15rem .8rem .15rem 0; text-align: left;
vertical-align: top; overflow-wrap: anywhere; } th { border-bottom: 1px solid #bbb; font-weight: 600; }
td.number { text-align: right; white-space: nowrap; } details { margin-top: .4rem; } p.note { color: #666; }
"""


def page_of(figures: Figures) -> str:
    """Return the page as HTML.

    Raises:
        UnsupportedError: the plotting library is missing.
    """
    try:
        from bokeh.embed import components
        from bokeh.resources import INLINE
    except ImportError as error:
        raise UnsupportedError("report: expected bokeh for the plots, got none; install pt2kit[fleet]") from error
    tables = list(tables_of(figures))
    script, plots = components([_plot(table) for table in tables]) if tables else ("", ())
    sections = "\n".join(_section(table, plot) for table, plot in zip(tables, plots, strict=True))
    damaged = (
        f'<p class="note">{len(figures.damaged):,} damaged parts are left out; --resume does their files again.</p>'
        if figures.damaged
        else ""
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        f"<title>pt2 fleet {_text(figures.work)}</title>\n<style>{_STYLE}</style>\n"
        f"{INLINE.render_js()}\n</head>\n<body>\n<h1>pt2 fleet {_text(headline(figures))}</h1>\n{damaged}\n"
        f"{sections}\n{script}\n</body>\n</html>\n"
    )


def _plot(table: Table) -> Any:
    """Return a bar plot of a table, the first row on top."""
    from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter
    from bokeh.plotting import figure

    # A place for each row, as two labels may be cut to the same.
    places = [f"{number + 1}. {printable(row.label, _LABEL)}" for number, row in enumerate(table.rows)]
    source = ColumnDataSource(
        {
            "place": places,
            "number": [row.number for row in table.rows],
            "label": [printable(row.label, _CELL) for row in table.rows],
            "shown": [table.shown(row.number) for row in table.rows],
        }
    )
    plot = figure(
        y_range=places[::-1],
        height=70 + 24 * len(places),
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        x_axis_label=table.unit,
    )
    plot.hbar(y="place", right="number", height=0.7, source=source, color="#3b6ea5")
    plot.add_tools(HoverTool(tooltips=[(table.label, "@label"), (table.unit, "@shown")]))
    plot.x_range.start = 0
    plot.ygrid.visible = False
    plot.xaxis.formatter = NumeralTickFormatter(format="0.0 b" if table.unit == "bytes" else "0,0")
    return plot


def _section(table: Table, plot: str) -> str:
    heads = "".join(f"<th>{_text(head)}</th>" for head in (table.label, table.unit, *table.heads))
    rows = "\n".join(
        f'<tr><td>{_text(row.label)}</td><td class="number">{_text(table.shown(row.number))}</td>'
        f"{''.join(f'<td>{_text(cell)}</td>' for cell in row.more)}</tr>"
        for row in table.rows
    )
    more = f'<p class="note">… and {table.left_out:,} more</p>' if table.left_out else ""
    return (
        f"<section><h2>{_text(table.title)}</h2>\n{plot}\n<details open><summary>table</summary>\n<table><thead><tr>"
        f"{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>{more}</details></section>"
    )


def _text(text: str) -> str:
    return escape(printable(text, _CELL))
