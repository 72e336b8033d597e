"""`pt2 diff OLD NEW`: what differs between two files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pt2kit.cli.colours import colour, wants_colour
from pt2kit.cli.common import json_option, open_file, progress
from pt2kit.cli.output import OutputClosed, print_json, print_lines

if TYPE_CHECKING:
    from pt2kit.diffs import Diff

STYLES: Final = {"+ ": "green", "- ": "red", "~ ": "yellow", "@ ": "cyan"}
"""The mark of a line -> its colour."""

EPILOG = """\b
Examples:
  pt2 diff old.pt2 new.pt2                   summary first, then what differs
  pt2 diff old.pt2 new.pt2 --no-tensors      programs only: no weights are read
  pt2 diff old.pt2 new.pt2 --html diff.html  one page with everything
  git config diff.pt2.textconv 'pt2 diff --textconv'   and "*.pt2 diff=pt2" in .gitattributes

\b
Exit codes: 0 no difference, 1 a difference, 2 could not be read.
"""


@click.command("diff", epilog=EPILOG, short_help="What differs between two files.")
@click.argument("files", metavar="OLD NEW", nargs=-1, required=True)
@click.option("--no-tensors", is_flag=True, help="Don't compare the numbers of weights and constants.")
@click.option("--no-metadata", is_flag=True, help="Don't compare stack traces and the like.")
@click.option("--names", is_flag=True, help="Compare the names of nodes and values, too.")
@click.option("--order", is_flag=True, help="Compare the order of nodes, too.")
@click.option("--full", is_flag=True, help="Leave nothing out.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with everything.")
@click.option("--textconv", is_flag=True, help="Print one file as text that git can compare.")
@json_option
def command(
    files: tuple[str, ...],
    no_tensors: bool,
    no_metadata: bool,
    names: bool,
    order: bool,
    full: bool,
    html: Path | None,
    textconv: bool,
    as_json: bool,
) -> int:
    """Compare two .pt2 files by what they do: names of values and the order of nodes make no difference."""
    if len(files) != (1 if textconv else 2):
        expected = "one file with --textconv" if textconv else "two files"
        raise click.UsageError(f"expected {expected}, got {len(files)}")
    if files.count("-") > 1:
        raise click.UsageError("expected standard input once, got it twice")
    if textconv:
        return _print_whole(files[0])
    from pt2kit.diffs import diff

    with ExitStack() as stack:
        old, new = (stack.enter_context(open_file(file)) for file in files)
        with progress("comparing tensors") as report:
            found = diff(
                old, new, tensors=not no_tensors, metadata=not no_metadata, names=names, order=order, progress=report
            )
        _show(found, full, html, as_json)
    return int(not found.same)


def _print_whole(file: str) -> int:
    from pt2kit.text.whole import whole_lines

    with open_file(file) as package:
        print_lines(whole_lines(package))
    return 0


def _show(found: Diff, full: bool, html: Path | None, as_json: bool) -> None:
    from pt2kit.text.changes import diff_lines, headline

    if html is not None:
        from pt2kit.text.changes_html import diff_html

        html.write_text(diff_html(found), encoding="utf-8")
    if as_json:
        print_json(found.to_tree())
    elif html is not None:
        print_lines([headline(found)])
    elif wants_colour(sys.stdout):
        _print_coloured(diff_lines(found, full=full))
    else:
        print_lines(diff_lines(found, full=full))


def _print_coloured(lines: Iterable[str]) -> None:
    """Print lines, which are printable, with the colour of their marks."""
    try:
        for line in lines:
            style = STYLES.get(line[2:4])
            click.echo(click.style(line, fg=style) if style else colour(line))
    except BrokenPipeError:
        raise OutputClosed from None
