"""Comparison of two files as one self-contained HTML page: no script, no font, no other file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from pt2kit.diffs.changes import Diff
from pt2kit.messages import printable
from pt2kit.text.changes import Section, headline, models_of, sections, summary
from pt2kit.text.changes_line import Line

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
    yield f"<summary>{escape(section.title)} ({len(section.lines):,} lines)</summary>\n<pre>"
    yield "".join(map(_line, section.lines))
    yield "</pre>\n</details>"


def _line(line: Line) -> str:
    return f'<span class="{CLASSES[line.mark]}">{escape(f"{line.mark:<2}{line.text}")}</span>'
