"""What the subcommands share: opening FILE, printing text and JSON, progress."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from pt2kit import codec
from pt2kit.package import Package, open_package

if TYPE_CHECKING:
    from rich.text import Text

file_argument = click.argument("file", metavar="FILE")
model_option = click.option("--model", metavar="NAME", help="Which program, where the file holds several.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def open_file(file: str) -> Package:
    """Open FILE: a path, a URL, or - for standard input.

    Raises:
        OSError, Pt2Error: as `open_package`.
    """
    return open_package(sys.stdin.buffer if file == "-" else file)


def choose_model(package: Package, model: str | None) -> str:
    """The model asked for, or the only one, or "model".

    Raises:
        ClickException: there is no such model; the message lists those that are there.
    """
    models = package.layout.models
    chosen = model or ("model" if "model" in models or not models else models[0])
    if chosen not in models or (model is None and len(models) > 1 and "model" not in models):
        raise click.ClickException(f"{package.name}: expected --model with one of {', '.join(models) or 'no models'}")
    return chosen


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    sys.stdout.buffer.write(codec.encode_indented(value) + b"\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines: in colour on a terminal, plain in a pipe."""
    if not sys.stdout.isatty():
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(colour(line))


_STYLES = (
    (re.compile(r"^\S.*"), "bold"),
    (re.compile(r"^  (?:written by|where|guards|dialect|parameters|buffers|constants|types|stored) "), "cyan"),
    (re.compile(r"^  (?:operators|mutates|lifted|modules|inputs|outputs) "), "cyan"),
    (re.compile(r"^  (?:unknown keys|problems) .*"), "yellow"),
    (re.compile(r"^  X\d+ .*"), "yellow"),
    (re.compile(r"%(?:\w+|\"[^\"]*\")"), "green"),
    (re.compile(r"\b(?:f|i|u|c|b|bf)\d+\w*\[[^\]]*\]"), "blue"),
    (re.compile(r"\(custom\)"), "magenta"),
    (re.compile(r"  # .*$"), "dim"),
)


def colour(line: str) -> Text:
    """A line with the styles that its parts have on a terminal."""
    from rich.text import Text

    text = Text(line)
    for pattern, style in _STYLES:
        text.highlight_regex(pattern, style)
    return text


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error while something long runs; silent where that is no terminal.

    Gives a function to call with (done, total) bytes.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
