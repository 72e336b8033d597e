"""`pt2 check FILE`: what is wrong with a file, and what torch would run on loading it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

import click

from pt2kit.cli.colours import colour, wants_colour
from pt2kit.cli.common import file_argument, json_option
from pt2kit.cli.output import OutputClosed, exit_code, print_json, print_lines
from pt2kit.errors import Problem

STYLES: Final = {
    "errors": "red",
    "what torch would run on loading this": "yellow",
    "warnings": "yellow",
    "notes": "cyan",
}
"""The heading of a group -> the colour of its rules."""

EPILOG = """\b
Examples:
  pt2 check model.pt2                   structure, signature, operators, what would be run
  pt2 check model.pt2 --payloads        reads the weights as well: checksums, NaN
  pt2 check model.pt2 --strict --sarif > check.sarif
  curl -s https://host/model.pt2 | pt2 check -

\b
Exit codes: 0 sound (with --strict: no warnings either), 1 a problem was found, 2 could not run.
"""


@click.command("check", epilog=EPILOG, short_help="What is wrong with a file.")
@file_argument
@click.option("--payloads", is_flag=True, help="Read all records: compare checksums, look for NaN in the weights.")
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@click.option("--full", is_flag=True, help="List every problem, not only the first few of each rule.")
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for code hosts and editors.")
@json_option
def command(file: str, payloads: bool, strict: bool, full: bool, sarif: bool, as_json: bool) -> int:
    """Check a .pt2 file without running anything of it: archive, JSON, graph, signature, operators, weights."""
    if sarif and as_json:
        raise click.UsageError("expected one of --json and --sarif, got both")
    from pt2kit.checks.run import check

    found = check(sys.stdin.buffer if file == "-" else file, payloads=payloads)
    code = int(not found.ok or (strict and bool(found.warnings)))
    with exit_code(code):
        _print("stdin" if file == "-" else file, found, full, sarif, as_json)
    return code


def _print(file: str, found: Sequence[Problem], full: bool, sarif: bool, as_json: bool) -> None:
    if sarif:
        from importlib.metadata import version

        from pt2kit.text.sarif import sarif_tree

        print_json(sarif_tree(file, found, version("pt2kit")))
        return
    from pt2kit.text.problems import problem_lines, problems_tree

    if as_json:
        print_json(problems_tree(file, found))
    elif wants_colour(sys.stdout):
        _print_coloured(problem_lines(file, found, full=full))
    else:
        print_lines(problem_lines(file, found, full=full))


def _print_coloured(lines: Iterable[str]) -> None:
    """Print lines, which are printable: headings bold, rules in the colour of their group, hints dim."""
    style = ""
    try:
        for line in lines:
            style = STYLES.get(line, style)
            if line.startswith("      -> "):
                click.echo(click.style(line, dim=True))
            elif line.startswith("  ") and not line.startswith("   "):
                click.echo(click.style(line, fg=style))
            else:
                click.echo(line if line.startswith(" ") else colour(line))
    except BrokenPipeError:
        raise OutputClosed from None
