"""Page of the viewer: served, standalone with all of its data inside, in a notebook, or as a picture.

`page/index.html` is built from `viewer/` (`make viewer`): one script and one style sheet inside the page, nothing else.
A policy (Content-Security-Policy) lets exactly these run, by their hash, and nothing of what a file holds.

A notebook shows a package, a program or a diff as text, or as a page in a frame that runs its own script alone.
Pictures (SVG, PNG, PDF) are drawn by a headless Chromium on this machine.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pt2kit.data_files import data_file
from pt2kit.diffs.changes import Diff
from pt2kit.errors import UnsupportedError
from pt2kit.package.open import Package
from pt2kit.schema import ExportedProgram
from pt2kit.text.diff_report import diff_html
from pt2kit.text.program import program_lines
from pt2kit.viewing.answers import Answers
from pt2kit.viewing.draw import Data, checked_data
from pt2kit.zip.listing import FileLike

if TYPE_CHECKING:
    from pt2kit.comparing.runs import RunComparison

MARK: Final = "<!-- data -->"
"""The position of the answers in a standalone page."""

_SCRIPT: Final = re.compile(r"<script type=\"module\">(.*?)</script>", re.DOTALL)

_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def built_page() -> str:
    """Return the page as it was built."""
    return data_file("viewing/page/index.html").read_text(encoding="utf-8")


def policy(page: str, *, connect: str) -> str:
    """Return the content security policy of a page.

    Args:
        page: the built page.
        connect: where it may ask for answers: "'self'" or "'none'".
    """
    scripts, styles = (" ".join(map(_hash, pattern.findall(page))) for pattern in (_SCRIPT, _STYLE))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; worker-src blob:; img-src data: blob:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def alone(answers: Answers, *, tensors: bool = False) -> str:
    """Return a page that contains all answers and needs no network.

    Args:
        answers: about the files to show.
        tensors: work out the statistics of all tensors, too; reads all their bytes.

    Cost: the page has about 100 bytes for each node in addition to its own 100 kB.
    """
    page = built_page()
    parts = ['<meta name="pt2-answers" content="inline">']
    for request in answers.all_requests(tensors=tensors):
        # Only the 64 letters of base64 and digits and slashes get into the page: no text of the file does.
        packed = base64.b64encode(zlib.compress(answers.answer(request), 6)).decode("ascii")
        parts.append(f'<script type="application/octet-stream" data-request="{request}">{packed}</script>')
    allowed = policy(page, connect="'none'")
    head = f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'
    return page.replace("<head>", f"<head>{head}", 1).replace(MARK, "\n".join(parts), 1)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


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


BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
FLAGS: Final = ("--headless", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-background-networking")
TIMEOUT_S: Final = 120
SUFFIXES: Final = (".svg", ".png", ".pdf")
_FIGURE: Final = re.compile(r'<pre id="figure"[^>]*>(.*?)</pre>', re.DOTALL)
_SIZE: Final = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')


def write_figure(answers: Answers, path: Path, width: int) -> None:
    """Draw the first picture of a program and write it to a file.

    Args:
        answers: the file to show.
        path: ends in .svg, .png or .pdf.
        width: of a .png, in pixels.

    Raises:
        UnsupportedError: another suffix, no browser, or a program that cannot be drawn.
    """
    kind = path.suffix.lower()
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if kind not in SUFFIXES:
        raise UnsupportedError(f"--export: expected a file that ends in {', '.join(SUFFIXES)}, got {path.name!r}")
    if browser is None:
        raise UnsupportedError("--export: expected Chromium or Chrome on PATH, got none: export from the page instead")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(alone(answers), "utf-8")
        printed = _run(browser, folder, "--dump-dom", "--virtual-time-budget=60000", f"{page.as_uri()}#export")
        match = _FIGURE.search(printed)
        svg = html.unescape(match.group(1)) if match else ""
        size = _SIZE.search(svg)
        if size is None:
            reason = answers.index().error or "no figure; the program may be too large"
            raise UnsupportedError(f"--export: expected a figure from the browser, got {reason}")
        if kind == ".svg":
            path.write_text(svg, "utf-8")
            return
        wide, high = (int(number) for number in size.groups())
        scale = width / wide if kind == ".png" else 1
        style = f"@page{{size:{wide}px {high}px;margin:0}}html,body{{margin:0}}"
        style += f"svg{{display:block;width:{wide * scale}px;height:auto}}"
        page.write_text(f'<!doctype html><meta charset="utf-8"><style>{style}</style>{svg}', "utf-8")
        out = Path(folder, f"figure{kind}")
        option = f"--screenshot={out}" if kind == ".png" else f"--print-to-pdf={out}"
        window = f"--window-size={round(wide * scale)},{round(high * scale)}"
        _run(browser, folder, option, "--no-pdf-header-footer", "--hide-scrollbars", window, page.as_uri())
        if not out.exists():
            raise UnsupportedError("--export: expected a figure from the browser, got none; it may be too large")
        shutil.copyfile(out, path)


def _run(browser: str, folder: str, *arguments: str) -> str:
    """Run the browser with a profile of its own, and return what it prints."""
    import subprocess  # not on every system, and only here

    # Chromium cannot use its sandbox as root, as in containers.
    sandbox = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    command = [browser, *FLAGS, *sandbox, f"--user-data-dir={folder}/profile", *arguments]
    try:
        run = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired as error:
        raise UnsupportedError(f"--export: expected a figure within {TIMEOUT_S} seconds, got none") from error
    return run.stdout
