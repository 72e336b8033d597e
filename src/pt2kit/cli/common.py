"""What the subcommands share: their arguments and options, opening FILE, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import click

from pt2kit.messages import printable
from pt2kit.package.open import Package, open_package

file_argument = click.argument("file", metavar="FILE")
model_option = click.option("--model", metavar="NAME", help="Which program, where the file holds several.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


class Refusal(click.ClickException):
    """A question that cannot be answered; printed in one line, exit code 2."""


def open_file(file: str, *, namedtuples: Mapping[str, str] | None = None) -> Package:
    """Open FILE: a path, a URL, or - for standard input.

    Args:
        file: as the user gave it.
        namedtuples: as in `open_package`.

    Raises:
        OSError, Pt2Error: as `open_package`.
    """
    return open_package(sys.stdin.buffer if file == "-" else file, namedtuples=namedtuples)


def write_result(package: Package, target: str) -> None:
    """Write a package to a path, a URL, or - for standard output.

    Raises:
        OSError, Pt2Error: it cannot be written.
    """
    from pt2kit.package.write import write_package

    if target == "-":
        write_package(package, sys.stdout.buffer)
    elif "://" in target:
        from pt2kit.zip.remote import create_url

        with create_url(target) as file:
            write_package(package, file)
    else:
        write_package(package, target)


def pairs(values: Iterable[str], option: str) -> list[tuple[str, str]]:
    """What stands on both sides of "=" in the values of an option.

    Raises:
        UsageError: a value without "=".
    """
    found = []
    for value in values:
        left, sign, right = value.partition("=")
        if not left or not sign or not right:
            raise click.UsageError(f"{option}: expected OLD=NEW, got {value!r}")
        found.append((left, right))
    return found


def choose_model(package: Package, model: str | None) -> str:
    """The model asked for, or the only one, or "model".

    Raises:
        Refusal: there is no such model, or there are several; the message lists those that are there.
    """
    models = package.layout.models
    chosen = model or ("model" if "model" in models or not models else models[0])
    if chosen not in models or (model is None and len(models) > 1 and "model" not in models):
        given = ", ".join(map(printable, models[:20])) + (", …" if len(models) > 20 else "")
        raise Refusal(f"{package.name}: expected --model with one of {given or 'no models'}, got {model or 'none'}")
    return chosen


def suggestion(name: str, names: Iterable[str]) -> str:
    """The names that are close to one that does not exist, as the end of a message; "" where none is."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(names)[:20_000], n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(map(printable, close))}?" if close else ""


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error while something long runs; silent where that is no terminal.

    Gives a function to call with (done, total) bytes. Print nothing meanwhile.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    # Standard output may be a file: nothing may be sent to the terminal in its place.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task(printable(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
