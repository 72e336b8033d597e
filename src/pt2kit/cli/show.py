"""`pt2 show FILE...`: what is in files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from pt2kit.cli import views
from pt2kit.cli.common import chosen_models, json_option, model_option, open_file
from pt2kit.cli.output import print_json, print_lines, width
from pt2kit.cli.several import answers, chosen_files, files_argument, jobs_option, report_unread
from pt2kit.messages import printable
from pt2kit.package.open import Package
from pt2kit.text.columns import WIDTH

EPILOG = """\b
Examples:
  pt2 show model.pt2                    one screen
  pt2 show model.pt2 --graph | less     the whole program
  pt2 show model.pt2 --module layers.0  one module's nodes and tensors
  pt2 show model.pt2 --sizes            where the bytes are, and what can go
  pt2 show models/                      all files in a folder and below
  pt2 show https://host/model.pt2 --json

\b
Exit codes: 0 fine, 1 shown, but part of a file contradicts itself, 2 a file could not be read.
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What of a file is asked for."""

    graph: bool
    as_text: bool
    node: str | None
    module: str | None
    records: bool
    sizes: bool
    oldest: bool
    top: int
    model: str | None
    as_json: bool
    width: int


@click.command("show", epilog=EPILOG, short_help="What is in files.")
@files_argument
@click.option("--graph", is_flag=True, help="Print the whole program.")
@click.option("--text", "as_text", is_flag=True, help="Print the whole program in the form that can be read back.")
@click.option("--node", metavar="NAME", help="Print one node or graph input, by its name or a value's name.")
@click.option(
    "--module", metavar="FQN", help='Print the nodes and tensors of one module and those below; "" is the root.'
)
@click.option("--records", is_flag=True, help="List the records of the archive.")
@click.option("--sizes", is_flag=True, help="Say where the bytes are, and what --strip would save.")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="With --sizes: list so many of each."
)
@click.option("--oldest", is_flag=True, help="Also say which release is the oldest that could read it, once converted.")
@model_option
@jobs_option
@json_option
def command(files: tuple[str, ...], jobs: int, **asked: Any) -> int:
    """Show what is in .pt2 files: who wrote them, how they are called, their operators, tensors and modules."""
    look = Look(**asked, width=min(width() or WIDTH, WIDTH))
    if sum((*_ways(look), look.oldest)) > 1:
        raise click.UsageError(
            "expected one of --graph, --text, --node, --module, --records, --sizes, --oldest, got several"
        )
    chosen, several = chosen_files(files)
    if several:
        return _show_all(chosen, look, jobs)
    [file] = chosen
    with open_file(file) as package:
        view = _view(package, look)
        if look.as_json:
            print_json(view.tree())
        else:
            print_lines(view.lines, fitted=view.fitted)
        return view.code


def _ways(look: Look) -> tuple[bool, ...]:
    """Which ways to look at a file, other than its summary, are asked for."""
    return (look.graph, look.as_text, look.node is not None, look.module is not None, look.records, look.sizes)


def _view(package: Package, look: Look) -> views.View:
    if look.records:
        return views.records_view(package)
    if look.model is None and not any(_ways(look)):
        return views.summary_view(package, None, look.oldest, look.width)
    models = chosen_models(package, look.model)
    if look.sizes:
        return views.sizes_view(package, models, look.top, look.width)
    if look.as_text:
        return views.together(models, partial(views.text_view, package))
    if look.graph:
        return views.together(models, partial(views.graph_view, package))
    if look.node is not None:
        return views.node_view(package, models, look.node)
    if look.module is not None:
        return views.module_view(package, models, look.module)
    return views.summary_view(package, None if look.model is None else models, look.oldest, look.width)


def _seen(look: Look, file: str) -> tuple[Any, int, bool, tuple[int, int]]:
    """What is shown of a file, its exit code, whether lines may be broken; its programs and bytes."""
    from pt2kit import codec

    with open_file(file) as package:
        view = _view(package, look)
        shown = codec.to_tree(view.tree()) if look.as_json else list(view.lines)
        return shown, view.code, view.fitted, (len(package.layout.models), package.archive.source.size)


def _show_all(files: list[str], look: Look, jobs: int) -> int:
    """Show each file, and how many programs and bytes all of them have."""
    from pt2kit.text.format import bytes_text, count_text

    code, unread, programs, size = 0, 0, 0, 0
    trees, errors = [], []
    for answer in answers(files, partial(_seen, look), jobs):
        if answer.found is None:
            unread += 1
            errors.append({"file": answer.file, "error": answer.error})
            code = max(code, report_unread(answer))
            continue
        shown, one, fitted, (count, length) = answer.found
        code, programs, size = max(code, one), programs + count, size + length
        if look.as_json:
            trees.append({"file": answer.file, "shown": shown})
            continue
        head = [printable(answer.file, 1000)] if any(_ways(look)) or look.model is not None else []
        print_lines([*head, *shown, ""], fitted=fitted)
    if look.as_json:
        totals = {"files": len(files), "programs": programs, "bytes": size}
        print_json({"files": trees, "unreadable": errors, "summary": totals})
    else:
        what = f"{count_text(programs, 'program')}, {bytes_text(size)}"
        print_lines([f"{count_text(len(files), 'file')}: {what}{f', {unread:,} not readable' if unread else ''}"])
    return code
