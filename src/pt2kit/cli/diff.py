"""`pt2 diff OLD NEW`: what differs between two files."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pt2kit.cli.colours import colour
from pt2kit.cli.common import FILE, choose_model, json_option, open_file, progress
from pt2kit.cli.output import print_json, print_lines, width

if TYPE_CHECKING:
    from pt2kit.diffs.changes import Diff
    from pt2kit.package.open import Package

STYLES: Final = {"+ ": "green", "- ": "red", "~ ": "yellow", "@ ": "cyan"}
"""The mark of a line -> its colour."""

EPILOG = """\b
Examples:
  pt2 diff old.pt2 new.pt2                   summary first, then what differs
  pt2 diff old.pt2 new.pt2 --no-tensors      programs only: no weights are read
  pt2 diff old.pt2 new.pt2 --html diff.html  one page with everything
  pt2 diff both.pt2 new.pt2 --model encoder=model
  git config diff.pt2.textconv 'pt2 diff --textconv'   and "*.pt2 diff=pt2" in .gitattributes

\b
Exit codes: 0 no difference, 1 a difference, 2 could not be read. With --textconv, what cannot be read becomes a line
that says why, as git gives up where this command does.
"""


@click.command("diff", epilog=EPILOG, short_help="What differs between two files.")
@click.argument("files", metavar="OLD NEW", nargs=-1, required=True, type=FILE)
@click.option("--no-tensors", is_flag=True, help="Don't compare the numbers of weights and constants.")
@click.option("--no-metadata", is_flag=True, help="Don't compare stack traces and the like.")
@click.option("--names", is_flag=True, help="Compare the names of nodes and values, too.")
@click.option("--order", is_flag=True, help="Compare the order of nodes, too.")
@click.option(
    "--model",
    "models",
    metavar="OLD[=NEW]",
    multiple=True,
    help="Compare this program with that one; by default those of equal names, then those of equal digests.",
)
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
    models: tuple[str, ...],
    full: bool,
    html: Path | None,
    textconv: bool,
    as_json: bool,
) -> int:
    """Compare two .pt2 files by what they do: names of values and the order of nodes make no difference."""
    if len(files) != (1 if textconv else 2):
        expected = "one file with --textconv" if textconv else "two files"
        raise click.UsageError(f"expected {expected}, got {len(files)}")
    if textconv and models:
        raise click.UsageError("expected --textconv without --model, got both")
    if textconv and (html is not None or as_json):
        raise click.UsageError("expected --textconv without --json and --html, got both")
    if files.count("-") > 1:
        raise click.UsageError("expected standard input once, got it twice")
    if textconv:
        return _print_whole(files[0])
    from pt2kit.diffs.compute import diff
    from pt2kit.tensors.output import no_progress

    with ExitStack() as stack:
        old, new = (stack.enter_context(open_file(file)) for file in files)
        with nullcontext(no_progress) if no_tensors else progress("comparing tensors") as report:
            comparison = diff(
                old,
                new,
                models=_pairs(old, new, models) if models else None,
                tensors=not no_tensors,
                metadata=not no_metadata,
                names=names,
                order=order,
                progress=report,
            )
        _show(comparison, full, html, as_json)
    return int(not comparison.same)


def _pairs(old: Package, new: Package, models: tuple[str, ...]) -> dict[str, str]:
    """Program of the old file -> that of the new one, as they are asked for: "a=b", or "a" for those of one name."""
    pairs = {}
    for text in models:
        one, sign, other = (text, "", "") if text in old.layout.models else text.rpartition("=")
        if not sign:
            one, other = text, text
        pairs[choose_model(old, one)] = choose_model(new, other)
    return pairs


def _print_whole(file: str) -> int:
    """Print one file as text; where it cannot be read, that is its text: git would show nothing at all."""
    from pt2kit.errors import Pt2Error
    from pt2kit.text.full_program import whole_lines

    try:
        with open_file(file) as package:
            print_lines(whole_lines(package))
    except Pt2Error as error:
        print_lines([f"cannot be read: {error}"])
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
    else:
        columns = None if full else width()
        print_lines((_cut(line, columns) for line in diff_lines(found, full=full)), _style)


def _style(line: str) -> str:
    """A line with the colour of its mark."""
    style = STYLES.get(line[2:4])
    return click.style(line, fg=style) if style else colour(line)


def _cut(line: str, columns: int | None) -> str:
    """A line, cut where the terminal ends if it is a node that only stands around."""
    is_around = line.startswith("    ") and line[4:5] not in (" ", "…")
    return f"{line[: columns - 1]}…" if columns and is_around and len(line) > columns else line
