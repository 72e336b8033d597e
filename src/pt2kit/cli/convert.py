"""`pt2 convert SRC DST --target T`: a file as another release of torch, or another version of the schema, has it."""

from __future__ import annotations

import sys
from typing import IO

import click

from pt2kit.cli.common import json_option, open_file, progress
from pt2kit.cli.output import print_json, print_lines
from pt2kit.errors import ConversionError

EPILOG = """\b
Examples:
  pt2 convert old.pt2 new.pt2 --target torch==2.13           up, from whatever release it is of
  pt2 convert new.pt2 old.pt2 --target torch==2.5 --report   down, and what changed on the way
  pt2 convert new.pt2 --target 5.3 --dry-run                 whether it can be
  pt2 convert new.pt2 old.pt2 --target torch==2.2 --allow persistent

\b
TARGET is a release (torch==2.1 to torch==2.15) or a version of the schema (1 to 8.20, 5.3-traces, draft).

\b
Exit codes: 0 converted, 1 the target cannot express it (nothing was written), 2 could not run.
"""


@click.command("convert", epilog=EPILOG, short_help="Another release's file of the same program.")
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST", required=False)
@click.option("--target", metavar="TARGET", required=True, help="The release or version to convert to.")
@click.option("--allow", metavar="NAME", multiple=True, help="Accept that something is lost, by its name.")
@click.option("--opset", metavar="NS=NUMBER", multiple=True, help="The operator set version to have (aten=10).")
@click.option(
    "--namedtuple",
    "namedtuples",
    metavar="CLASS=NAME",
    multiple=True,
    help="The name a named tuple is registered under, for files of torch 2.1 to 2.3, which do not have it.",
)
@click.option("--report", "wants_report", is_flag=True, help="Print everything that changed or was lost.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would be done.")
@json_option
def command(
    source: str,
    destination: str | None,
    target: str,
    allow: tuple[str, ...],
    opset: tuple[str, ...],
    namedtuples: tuple[str, ...],
    wants_report: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Write a .pt2 file as another release of torch writes it, up or down, losing nothing that was not allowed."""
    if (destination is None) is not dry_run:
        raise click.UsageError("expected DST, or --dry-run without it")
    if destination == "-" and (as_json or wants_report):
        raise click.UsageError("expected a path as DST with --json and --report, got -")
    from pt2kit.release.conversion import convert

    numbers = dict(map(_opset, opset))
    registered = dict(map(_namedtuple, namedtuples))
    with open_file(source, namedtuples=registered) as package:
        try:
            with progress(f"converting {package.name}") as bar:
                report = convert(
                    package, _file(destination), target=target, allow=allow, opset_version=numbers, progress=bar
                )
        except ConversionError as error:
            return _blocked(error, as_json)
    if destination == "-":
        return 0
    if as_json:
        print_json({"converted": True, **report.to_tree()})
        return 0
    from pt2kit.text.conversion import headline, report_lines

    print_lines(report_lines(report) if wants_report else [headline(report)])
    return 0


def _file(destination: str | None) -> str | IO[bytes] | None:
    return sys.stdout.buffer if destination == "-" else destination


def _opset(text: str) -> tuple[str, int]:
    namespace, _, number = text.partition("=")
    if not namespace or not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise click.UsageError(f"--opset: expected NAMESPACE=NUMBER, got {text!r}")
    return namespace, int(number)


def _namedtuple(text: str) -> tuple[str, str]:
    name, _, registered = text.partition("=")
    if not name or not registered:
        raise click.UsageError(f"--namedtuple: expected CLASS=NAME, got {text!r}")
    return name, registered


def _blocked(error: ConversionError, as_json: bool) -> int:
    """Print what stands in the way, a line for each."""
    first, *obstacles = str(error).splitlines()
    if as_json:
        print_json({"converted": False, "message": first, "obstacles": [line.strip() for line in obstacles]})
    else:
        print_lines([first, *obstacles])
    return 1
