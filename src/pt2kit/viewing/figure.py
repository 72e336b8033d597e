"""Export of a picture to SVG, PNG or PDF, drawn by a headless Chromium on this machine."""

from __future__ import annotations

import html
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

from pt2kit.errors import UnsupportedError
from pt2kit.viewing.answers import Answers
from pt2kit.viewing.page import alone

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

    sandbox = () if _may_sandbox() else ("--no-sandbox",)
    command = [browser, *FLAGS, *sandbox, f"--user-data-dir={folder}/profile", *arguments]
    try:
        run = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired as error:
        raise UnsupportedError(f"--export: expected a figure within {TIMEOUT_S} seconds, got none") from error
    return run.stdout


def _may_sandbox() -> bool:
    """Return whether Chromium can use its sandbox: not as root, as in containers."""
    import os

    return not hasattr(os, "geteuid") or os.geteuid() != 0
