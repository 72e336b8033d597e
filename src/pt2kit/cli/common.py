"""Shared parts of the subcommands: arguments and options, opening FILE, progress."""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import click

from pt2kit.cli.output import print_lines
from pt2kit.messages import printable
from pt2kit.package.open import Package, open_package
from pt2kit.zip.end_record import LOCAL_SIGNATURE

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

Callback: TypeAlias = Callable[[click.Context, click.Parameter, Any], Any]
"""Function of click that parses the value of an option.

Raises:
    UsageError: the value is not as expected.
"""

PATIENCE: Final = 0.4
"""Seconds after which a progress bar appears."""

SECONDS: Final = click.FloatRange(0)
FILE: Final = click.Path(readable=False)
"""A path, a URL, or "-": as it is. The type is for shells, which complete names of files."""


def one_output(argument: str | None, option: str | None, name: str = "OUT") -> str:
    """Return where to write: what the argument or `--output` names.

    Raises:
        UsageError: neither of them does, or both.
    """
    if argument is None and option is None:
        raise click.UsageError(f"expected {name}, or --output {name}, got neither")
    if argument is not None and option is not None:
        raise click.UsageError(f"expected {name} or --output, got both")
    return str(option if argument is None else argument)


class Refusal(click.ClickException):
    """Error of a command that cannot answer; printed in one line, exit code 2."""


def standard_input() -> BinaryIO:
    """Return the file that `-` means.

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


def write_result(
    package: Package, target: str, *, external: str | None = None, skeleton: bool = False, done: str | None = None
) -> None:
    """Write a package to a path, a URL, or - for standard output; as `write_package`.

    Args:
        package: what to write.
        target: where.
        external: as in `write_package`.
        skeleton: as in `write_package`.
        done: the line to print after the name of the target; not printed if the target is standard output.

    Raises:
        OSError, Pt2Error: it cannot be written.
    """
    from pt2kit.package.write import write_package

    write_package(package, sys.stdout.buffer if target == "-" else target, external=external, skeleton=skeleton)
    if done is not None and target != "-":
        print_lines([f"{target}: {done}"])


def check_page(page: str | Path | None, force: bool) -> None:
    """Refuse to replace a model by a page, if there is one, without `--force`: `--html in.pt2` is a typing error.

    Raises:
        Refusal: the path is an existing `.pt2` file or another zip archive.
    """
    if page is None or force or not (path := Path(page)).is_file():
        return
    with path.open("rb") as file:
        is_archive = file.read(4) == LOCAL_SIGNATURE
    if is_archive or path.suffix.lower() == ".pt2":
        raise Refusal(f"--html: expected the name of a page, got the archive {path}; pass --force to replace it")


def amount(unit: str, base: int, expected: str) -> Callback:
    """Return the callback of an option whose value is a number with a unit, as an integer; None without a value.

    Args:
        unit: a pattern of what may follow the digits; its group is one of K, M, G, T and P, or empty.
        base: the factor from one unit to the next.
        expected: what the message says was expected, for a text that is no such number or less than 1.
    """

    def parse(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
        if text is None:
            return None
        match = re.fullmatch(rf"(\d+(?:\.\d+)?(?:e\d\d?)?){unit}", text.strip(), re.IGNORECASE)
        number = int(float(match[1]) * float(base) ** " KMGTP".index(match[2].upper() or " ")) if match else 0
        if not number:
            raise click.UsageError(f"{parameter.opts[0]}: expected {expected}, got {text!r}")
        return number

    return parse


bytes_amount: Final = amount(r"\s*([KMGT]?)i?B?", 1024, "a size such as 500M or 4G")
rate_amount: Final = amount("([KMGTP]?)", 1000, "a number such as 900G or 19.5T")


def choose_model(package: Package, model: str | None) -> str:
    """Return the program of the option `--model`, which may be a digest; or the only one, or "model".

    Raises:
        Refusal: there is none of that digest, or there are several.
        ArchiveError: there is no such program; the message lists those that are there.
    """
    models = package.layout.models
    if models and model is not None and model not in models and model.startswith("sha256:"):
        return _with_digest(package, model)
    return package.choose(model)


def chosen_models(package: Package, model: str | None) -> list[str]:
    """Return the program of the option `--model`, or all.

    Raises:
        ArchiveError: there is no such program; the message lists those that are there.
    """
    if model is None and package.layout.models:
        return list(package.layout.models)
    return [choose_model(package, model)]


def only_model(package: Package, model: str | None) -> Package:
    """Return a package with one program of a file, or the file's own if it has no other or none is asked for.

    Raises:
        Refusal: there is no such program.
    """
    if model is None:
        return package
    chosen = choose_model(package, model)
    if len(package.layout.models) == 1:
        return package
    from pt2kit.editing.packing import only

    return only(package, chosen)


def _with_digest(package: Package, digest: str) -> str:
    """Return the program whose digest begins with the one passed.

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


@contextmanager
def progress(what: str, *, wanted: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error while a long task runs; silent if that is no terminal.

    Yield a function to call with (done, total) bytes. Print nothing once it was called.
    """
    if not wanted or sys.stderr is None or not sys.stderr.isatty() or multiprocessing.parent_process() is not None:
        yield lambda done, total: None
        return
    bar: Progress | None = None
    begun = monotonic()

    def report(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and monotonic() - begun >= PATIENCE:
            from rich.progress import DownloadColumn, TransferSpeedColumn

            bar = bar_of(DownloadColumn(), TransferSpeedColumn())
            bar.add_task(printable(what), total=None)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done, total=total)

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


def bar_of(*columns: ProgressColumn) -> Progress:
    """Return a progress bar on standard error: the name of the task, the bar, and further columns."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    named = (TextColumn("{task.description}", markup=False), BarColumn(), *columns)
    # Standard output may be a file: nothing may be sent to the terminal in its place.
    return Progress(*named, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)


def is_count(text: str) -> bool:
    """Return whether a text is a whole number from 0 on that fits 64 bits, in ASCII digits."""
    return text.isascii() and text.isdecimal() and len(text) <= 18
