"""What the subcommands share: their arguments and options, opening FILE, progress."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from pt2kit.messages import printable
from pt2kit.package.open import Package, open_package

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE: Final = 0.4
"""Seconds after which something takes long."""

FILE: Final = click.Path(readable=False)
"""A path, a URL, or "-": as it is. The type is for shells, which complete names of files."""

file_argument = click.argument("file", metavar="FILE", type=FILE)
model_option = click.option(
    "--model",
    metavar="NAME",
    help="Which program, by its name or digest (sha256:…); by default all, where that can be.",
)
one_model_option = click.option(
    "--model",
    metavar="NAME",
    help="Which program, by its name or digest (sha256:…); by default the only one, or `model`.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


external_option = click.option(
    "--external", metavar="NAME", help="Write weights to this .safetensors file beside OUT; large ones in shards."
)
skeleton_option = click.option("--skeleton", is_flag=True, help="Leave the numbers of weights out.")


class Refusal(click.ClickException):
    """A question that cannot be answered; printed in one line, exit code 2."""


def standard_input() -> BinaryIO:
    """What `-` stands for.

    Raises:
        Refusal: it is closed.
    """
    if sys.stdin is None:
        raise Refusal("-: expected a file on standard input, got a closed one")
    return sys.stdin.buffer


def open_file(file: str, *, namedtuples: Mapping[str, str] | None = None) -> Package:
    """Open FILE: a path, a URL, or - for standard input.

    Args:
        file: as the user gave it.
        namedtuples: as in `open_package`.

    Raises:
        OSError, Pt2Error: as `open_package`.
    """
    context = click.get_current_context(silent=True)
    root = context.find_root().params.get("weights_root") if context else None
    return open_package(standard_input() if file == "-" else file, namedtuples=namedtuples, weights_root=root)


def write_result(package: Package, target: str, *, external: str | None = None, skeleton: bool = False) -> None:
    """Write a package to a path, a URL, or - for standard output; as `write_package`.

    Raises:
        OSError, Pt2Error: it cannot be written.
    """
    from pt2kit.package.write import write_package

    write_package(package, sys.stdout.buffer if target == "-" else target, external=external, skeleton=skeleton)


def pairs(values: Iterable[str], option: str, form: str = "OLD=NEW") -> list[tuple[str, str]]:
    """What stands on both sides of "=" in the values of an option.

    Raises:
        UsageError: a value without "=".
    """
    sides = []
    for value in values:
        left, sign, right = value.partition("=")
        if not left or not sign or not right:
            raise click.UsageError(f"{option}: expected {form}, got {value!r}")
        sides.append((left, right))
    return sides


def choose_model(package: Package, model: str | None) -> str:
    """The model asked for, or the only one, or "model".

    Raises:
        Refusal: there is no such model, or there are several; the message lists those that are there.
    """
    models = package.layout.models
    if not models:
        raise Refusal(package.without_program())
    if model is not None and model not in models and model.startswith("sha256:"):
        return _with_digest(package, model)
    chosen = package.layout.choose(model)
    if chosen is None:
        choices = ", ".join(map(printable, models[:20])) + (", …" if len(models) > 20 else "")
        raise Refusal(
            f"{package.name}: expected --model with one of {choices}, got {printable(model or 'none')}"
            + suggestion(model or "", models)
        )
    return chosen


def chosen_models(package: Package, model: str | None) -> list[str]:
    """The program asked for, or all.

    Raises:
        Refusal: there is no such program; the message lists those that are there.
    """
    if model is None and package.layout.models:
        return list(package.layout.models)
    return [choose_model(package, model)]


def _with_digest(package: Package, digest: str) -> str:
    """The program whose digest begins so.

    Raises:
        Refusal: none has, or several have.
        Pt2Error: a program cannot be digested.
    """
    from pt2kit.digests.compute import digest_parts

    with progress(f"digesting {package.name}") as report:
        digests = {
            model: digest_parts(package, ("program",), model, progress=report)["program"]
            for model in package.layout.models
        }
    same = [model for model, one in digests.items() if one.startswith(digest)]
    if len(same) != 1:
        there = ", ".join(f"{printable(model)} {one[:19]}…" for model, one in list(digests.items())[:20])
        got = f"{len(same)}: {', '.join(map(printable, same))}" if same else "none"
        raise Refusal(f"{package.name}: expected one program with digest {printable(digest)}, got {got} ({there})")
    return same[0]


def suggestion(name: str, names: Iterable[str]) -> str:
    """The names that are close to one that does not exist, as the end of a message; "" where none is."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(names)[:20_000], n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(map(printable, close))}?" if close else ""


@contextmanager
def progress(what: str, *, wanted: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error while something runs that takes long; silent where that is no terminal.

    Gives a function to call with (done, total) bytes. Print nothing once it was called.
    """
    if not wanted or sys.stderr is None or not sys.stderr.isatty() or multiprocessing.parent_process() is not None:
        yield lambda done, total: None
        return
    bars: list[tuple[Progress, TaskID]] = []
    begun = monotonic()

    def report(done: int, total: int) -> None:
        if not bars and monotonic() - begun < PATIENCE:
            return
        if not bars:
            bars.append(_begin_bar(what))
        bar, task = bars[0]
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        for bar, _ in bars:
            bar.stop()


def _begin_bar(what: str) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    # Standard output may be a file: nothing may be sent to the terminal in its place.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.start()
    return bar, bar.add_task(printable(what), total=None)
