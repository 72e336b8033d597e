"""`pt2 fleet WORK TARGETS… --out DIR`: one work on thousands of files; `pt2 fleet report DIR`: what came of it."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pt2kit.cli.common import json_option, model_option
from pt2kit.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from pt2kit.fleet.running import Progress

_Function = TypeVar("_Function", bound=Callable[..., Any])

EPILOG = """\b
Examples:
  pt2 fleet check 'models/**/*.pt2' --out checked        all cores of this machine
  pt2 fleet show s3://bucket/models/ --out s3://bucket/shown --scheduler tcp://10.0.0.1:8786
  pt2 fleet convert names.txt --target torch==2.13 --out converted
  pt2 fleet check 'models/**/*.pt2' --out checked --resume
  pt2 fleet report checked --html report.html

TARGETS are patterns of any file system that fsspec knows, folders (their .pt2 files), files, files that list
these, one per line, and - for a list on standard input. Put patterns in quotes.

Exit codes: 0 done, all fine; 1 done, and some files have problems or were not read; 2 could not run; 130 interrupted.
"""


class Works(click.Group):
    """Lists each work with all that its first line says."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the works; click would cut the lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (work.help or "").partition("\n")[0]) for name, work in self.commands.items()])


@click.group("fleet", cls=Works, epilog=EPILOG, short_help="Thousands of files at once.")
def command() -> None:
    """Do a work on many files, on this machine or a Dask cluster, and write what is found as a dataset (Parquet)."""


def _memory(context: click.Context, parameter: click.Parameter, value: str) -> int:
    """Bytes, with a unit."""
    text = value.strip().lower().removesuffix("b").removesuffix("i")
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    digits, shift = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 0)
    try:
        amount = int(float(digits) * (1 << shift))
    except (ValueError, OverflowError):
        amount = 0
    if amount <= 0:
        raise click.UsageError(f"--memory: expected an amount such as 4G or 500M, got {value!r}")
    return amount


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for value, (key, mark, _) in zip(values, pairs, strict=True):
        if not key or not mark:
            raise click.UsageError(f"{parameter.opts[0]}: expected NAME=VALUE, got {value!r}")
    return {key: value for key, _, value in pairs}


_OPTIONS: Final = (
    click.argument("targets", metavar="TARGETS...", nargs=-1, required=True),
    click.option("--out", metavar="DIR", required=True, help="Folder for the dataset and for written files; or a URL."),
    click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler; without it, processes on this machine."),
    click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes on this machine; as many as cores."),
    click.option("--resume", is_flag=True, help="Go on with the dataset in DIR; what has a row is left out."),
    click.option("--again", multiple=True, metavar="OUTCOME", help="With --resume: do files of this outcome again."),
    click.option("--timeout", type=float, default=600.0, metavar="SECONDS", help="What one file may take (600)."),
    click.option("--memory", default="4G", metavar="BYTES", callback=_memory, help="What one file may take (4G)."),
    click.option(
        "--storage", multiple=True, metavar="NAME=VALUE", callback=_pairs, help="An option of the file system (fsspec)."
    ),
    json_option,
)


def _shared(function: _Function) -> _Function:
    """The arguments and options that all works have."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def _run(work: str, given: Mapping[str, Any], **options: Any) -> int:
    """Run a work, with a bar on a terminal, and print how it ended."""
    from pt2kit.fleet.running import run

    if given["scheduler"] and given["workers"]:
        raise click.UsageError("expected one of --scheduler and --workers, got both")
    try:
        with _bar(work) as bar:
            done = run(
                work,
                given["targets"],
                out=given["out"],
                scheduler=given["scheduler"],
                workers=given["workers"],
                resume=given["resume"],
                again=given["again"],
                seconds=given["timeout"],
                memory=given["memory"],
                storage_options=given["storage"],
                progress=bar,
                **options,
            )
    except KeyboardInterrupt:
        click.echo(f"interrupted; go on with: --out {given['out']} --resume", err=True)
        _leave(130)
    except TypeError as error:
        raise click.UsageError(str(error)) from error
    if given["as_json"]:
        print_json({"out": given["out"], **_tree(done)})
    else:
        print_lines(_ending(work, done, given["out"]))
    return int(done.files != done.outcomes["ok"])


def _leave(code: int) -> None:
    """End at once: the dataset is written, and taking all of Dask and Arrow down in order takes a second or two."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def _tree(done: Progress) -> dict[str, Any]:
    return {
        "files": done.files,
        "bytes": done.bytes,
        "outcomes": dict(done.outcomes),
        "skipped": done.skipped,
    }


def _ending(work: str, done: Progress, out: str) -> Iterator[str]:
    from pt2kit.text.format import bytes_text

    skipped = f"; {done.skipped:,} left out, which have a row" if done.skipped else ""
    yield f"{work}: {done.files:,} files, {bytes_text(done.bytes)}{skipped}"
    for outcome, count in done.outcomes.most_common():
        yield f"  {outcome:<11} {count:,}"
    yield f"dataset in {out}; see: pt2 fleet report {out}"


@contextmanager
def _bar(work: str) -> Iterator[Callable[[Progress], None] | None]:
    """A bar on standard error with files, bytes, rate, time left and failures; none where that is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from pt2kit.cli.fleet_bar import fleet_bar

    with fleet_bar(work) as bar:
        yield bar


@command.command("show")
@_shared
@click.option("--oldest", is_flag=True, help="Also find the oldest release that could read each, once converted.")
@model_option
def show(model: str | None, oldest: bool, **given: Any) -> int:
    """What is in each file: who wrote it, its operators and tensors."""
    return _run("show", given, model=model, oldest=oldest)


@command.command("check")
@_shared
@click.option("--payloads", is_flag=True, help="Read all records: compare checksums, look for NaN in the weights.")
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
def check(payloads: bool, strict: bool, **given: Any) -> int:
    """What is wrong with each file, and what torch would run on loading it."""
    return _run("check", given, payloads=payloads, strict=strict)


@command.command("digest")
@_shared
@click.option("--only", multiple=True, metavar="PART", help="Take only some parts: program, graph, signature, …")
@model_option
def digest(only: tuple[str, ...], model: str | None, **given: Any) -> int:
    """What each program is, as SHA-256; which are the same."""
    return _run("digest", given, only=only, model=model)


@command.command("convert")
@_shared
@click.option("--target", metavar="TARGET", required=True, help="The release or version to convert to.")
@click.option("--allow", metavar="NAME", multiple=True, help="Accept that something is lost, by its name.")
@click.option(
    "--opset", metavar="NS=NUMBER", multiple=True, callback=_pairs, help="The operator set version to have (aten=10)."
)
@click.option(
    "--namedtuple",
    "namedtuples",
    metavar="CLASS=NAME",
    multiple=True,
    callback=_pairs,
    help="The name a named tuple is registered under, for files of torch 2.1 to 2.3.",
)
def convert(
    target: str, allow: tuple[str, ...], opset: dict[str, str], namedtuples: dict[str, str], **given: Any
) -> int:
    """Write each file as another release writes it, below DIR by its relative path."""
    for namespace, number in opset.items():
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise click.UsageError(f"--opset: expected NAMESPACE=NUMBER, got {f'{namespace}={number}'!r}")
    numbers = {namespace: int(number) for namespace, number in opset.items()}
    return _run("convert", given, target=target, allow=allow, opset=numbers, namedtuples=namedtuples)


@command.command("sanitize")
@_shared
@click.option("--drop", metavar="WHAT", multiple=True, help="Leave out compiled, sample-inputs, extra, unused, …")
@click.option("--strip", metavar="WHAT", multiple=True, help="Leave out traces, provenance, or metadata (all).")
@click.option("--scrub-paths", is_flag=True, help="Take what is particular to a machine out of paths in metadata.")
def sanitize(drop: tuple[str, ...], strip: tuple[str, ...], scrub_paths: bool, **given: Any) -> int:
    """Write each file without pickles and code, below DIR by its relative path."""
    return _run("sanitize", given, drop=drop, strip=strip, scrub_paths=scrub_paths)


@command.command("report")
@click.argument("folder", metavar="DIR")
@click.option("--html", metavar="FILE", help="Write one page with plots instead, which needs nothing from elsewhere.")
@click.option(
    "--storage", multiple=True, metavar="NAME=VALUE", callback=_pairs, help="An option of the file system (fsspec)."
)
@json_option
def report(folder: str, html: str | None, storage: dict[str, str], as_json: bool) -> int:
    """Print what a dataset says: releases, operators, findings by rule, sizes, equal programs, failures by cause."""
    from pt2kit.fleet.cluster import need_packages
    from pt2kit.fleet.figures import figures_of

    if html is not None and as_json:
        raise click.UsageError("expected one of --html and --json, got both")
    need_packages()
    figures = figures_of(folder, storage)
    if html is not None:
        from pt2kit.fleet.page import page_of
        from pt2kit.zip.replacement import replacing

        page = page_of(figures).encode("utf-8", "backslashreplace")
        with replacing(html) as file:
            file.write(page)
        print_lines([html])
    elif as_json:
        from pt2kit.fleet.tabulated import report_tree

        print_json(report_tree(figures))
    else:
        from pt2kit.cli.fleet_report import print_report

        print_report(figures)
    return 0
