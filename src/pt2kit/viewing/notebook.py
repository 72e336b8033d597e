"""Notebook display of a package, a program or a diff: text, or a page in a frame that runs its own script alone."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pt2kit.diffs.changes import Diff
from pt2kit.package.open import Package
from pt2kit.schema import ExportedProgram
from pt2kit.text.diff_report import diff_html
from pt2kit.text.program import program_lines
from pt2kit.viewing.answers import Answers
from pt2kit.viewing.draw import Data, checked_data
from pt2kit.viewing.page import alone
from pt2kit.zip.listing import FileLike

if TYPE_CHECKING:
    from pt2kit.comparing.runs import RunComparison

MAX_PAGE: Final = 24 << 20
"""Characters of a page that a notebook takes in; of a larger program it shows how to see it."""

MAX_LINES: Final = 500
"""Lines of a program that a notebook shows."""


@dataclass(frozen=True, slots=True)
class View:
    """A page in one file, without a server.

    Args:
        page: the page.
        name: what it shows.
        height: of its frame in a notebook, in pixels.
    """

    page: str
    name: str
    height: int = 640

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        if len(self.page) > MAX_PAGE:
            return f"<p>{html.escape(self.name)} is too large for a notebook: use <code>pt2 view</code>.</p>"
        title = html.escape(self.name, quote=True)
        style = f"width:100%;height:{self.height}px;border:1px solid #8884;border-radius:6px"
        source = html.escape(self.page, quote=True)
        return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{source}"></iframe>'

    def __repr__(self) -> str:
        return f"<View of {self.name!r}>"


def diff_view(diff: Diff, height: int = 480) -> View:
    """Return the differences of two files, in a frame like that of a view."""
    return View(diff_html(diff), f"{diff.old} -> {diff.new}", height)


def program_html(program: ExportedProgram) -> str:
    """Return a program as text, a line for each node, in a part of the page that scrolls; a long one is cut, with a
    note."""
    lines = list(program_lines(program))
    shown = "\n".join(
        [*lines[:MAX_LINES], *([f"… {len(lines) - MAX_LINES:,} more lines"] if len(lines) > MAX_LINES else [])]
    )
    return f'<pre style="max-height:480px;overflow:auto;line-height:1.4">{html.escape(shown)}</pre>'


def view(
    file: FileLike | Package,
    old: FileLike | Package | None = None,
    *,
    tensors: bool = False,
    height: int = 640,
    data: Data | Mapping[str, float] | RunComparison | None = None,
) -> View:
    """Show a file in a notebook: the page of `pt2 view`, with everything it shows in it.

    Args:
        file: a path, a URL, bytes, a file object, or an open package, which stays open.
        old: what to compare it with.
        tensors: work out the statistics of tensors, too; reads all their bytes.
        height: of the frame, in pixels.
        data: numbers to show on nodes, by the name of a node, or by the name of a column and of a node; or the result
            of `compare_runs(old, file)`.

    Returns:
        The notebook display; `.page` is the page itself. A file that cannot be read results in a page with the reason.

    Cost: as drawing and checking the program; 2,400 nodes take half a second.
    """
    numbers = checked_data(data, "data") if data is not None else None
    answers = Answers(file, old, live=False, data=numbers)
    try:
        return View(alone(answers, tensors=tensors), answers.index().file, height)
    finally:
        answers.close()
