"""`pt2 show FILE...`: what is in files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from pt2kit.cli import views
from pt2kit.cli.common import chosen_models, json_option, model_option, open_file, symbol_values
from pt2kit.cli.completion import complete_modules, complete_nodes
from pt2kit.cli.output import print_json, print_lines, print_paged, width
from pt2kit.cli.several import Result, chosen_files, files_argument, jobs_option, run_task
from pt2kit.messages import printable
from pt2kit.package.open import Package
from pt2kit.text.columns import WIDTH

EPILOG = """\b
Examples:
  pt2 show model.pt2                    one screen
  pt2 show model.pt2 --graph            the whole program, in a pager
  pt2 show model.pt2 --module layers.0  one module's nodes and tensors
  pt2 show model.pt2 --sizes            where the bytes are, and what can go
  pt2 show model.pt2 --cost --at s0=64  FLOPs, bytes moved and peak memory
  pt2 show models/                      all files in a folder and below
  pt2 show https://host/model.pt2 --json

\b
Exit codes: 0 fine, 1 shown, but part of a file contradicts itself, 2 a file could not be read.
"""


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Options of `pt2 show`."""

    graph: bool
    as_text: bool
    node: str | None
    module: str | None
    records: bool
    sizes: bool
    oldest: bool
    top: int
    cost: bool
    at: Mapping[str, int]
    depth: int
    device: tuple[float, float] | None
    model: str | None
    as_json: bool
    columns: int | None


@click.command("show", epilog=EPILOG)
@files_argument
@click.option("--graph", is_flag=True, help="Print the whole program.")
@click.option("--text", "as_text", is_flag=True, help="Print the whole program in the form that can be read back.")
@click.option(
    "--node",
    metavar="NAME",
    shell_complete=complete_nodes,
    help="Print one node or graph input, by its name or a value's name.",
)
@click.option(
    "--module",
    metavar="FQN",
    shell_complete=complete_modules,
    help='Print the nodes and tensors of one module and those below; "" is the root.',
)
@click.option("--records", is_flag=True, help="List the records of the archive.")
@click.option("--sizes", is_flag=True, help="Report where the bytes are, and what --strip would save.")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="With --sizes: list so many of each."
)
@click.option("--cost", is_flag=True, help="Count FLOPs, bytes moved and peak memory, as formulas.")
@click.option("--at", metavar="SYMBOL=N", multiple=True, help="With --cost: the value of a symbol; repeatable.")
@click.option(
    "--depth", type=click.IntRange(0), default=3, show_default=True, help="With --cost: levels of modules to list."
)
@click.option("--peak-flops", metavar="N", help="With --cost: FLOPs per second of a device, such as 19.5T.")
@click.option("--bandwidth", metavar="N", help="With --cost: bytes per second of its memory, such as 900G.")
@click.option("--oldest", is_flag=True, help="Also find the oldest release that could read it, once converted.")
@model_option
@jobs_option
@json_option
def command(
    files: tuple[str, ...], jobs: int, at: tuple[str, ...], peak_flops: str | None, bandwidth: str | None, **asked: Any
) -> int:
    """Show what is in .pt2 files: who wrote them, how they are called, their operators, tensors and modules."""
    if (peak_flops is None) != (bandwidth is None):
        raise click.UsageError("expected both --peak-flops and --bandwidth, got one")
    device = None
    if peak_flops is not None and bandwidth is not None:
        device = _rate(peak_flops, "--peak-flops"), _rate(bandwidth, "--bandwidth")
    options = ShowOptions(**asked, at=symbol_values(at), device=device, columns=width())
    if sum((*_ways(options), options.oldest)) > 1:
        raise click.UsageError(
            "expected one of --graph, --text, --node, --module, --records, --sizes, --cost, --oldest, got several"
        )
    chosen, several = chosen_files(files)
    if several:
        return run_task(chosen, partial(_task, options), jobs=jobs, as_json=options.as_json, summary=_summary)
    [file] = chosen
    with open_file(file) as package:
        view = _view(package, options)
        if options.as_json:
            print_json(view.tree())
        else:
            print_whole = print_paged if options.graph or options.as_text or options.module is not None else print_lines
            print_whole(view.lines, fitted=view.fitted)
        return view.code


def _rate(text: str, option: str) -> float:
    """Return a number that is written with a unit: 900G, 19.5T.

    Raises:
        UsageError: no such number.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text.strip(), re.IGNORECASE)
    if match is None or not float(match[1]):
        raise click.UsageError(f"{option}: expected a number such as 900G or 19.5T, got {text!r}")
    return float(match[1]) * 1000.0 ** " KMGTP".index(match[2].upper() or " ")


def _ways(options: ShowOptions) -> tuple[bool, ...]:
    """Which ways to options at a file, other than its summary, are asked for."""
    return (
        options.graph,
        options.as_text,
        options.node is not None,
        options.module is not None,
        options.records,
        options.sizes,
        options.cost,
    )


def _view(package: Package, options: ShowOptions) -> views.View:
    if options.records:
        return views.records_view(package)
    if options.model is None and not any(_ways(options)):
        return views.summary_view(package, None, options.oldest, options.columns)
    models = chosen_models(package, options.model)
    if options.sizes:
        return views.sizes_view(package, models, options.top, min(options.columns or WIDTH, WIDTH))
    if options.cost:
        return views.together(
            models, lambda model: views.cost_view(package, model, options.at, options.depth, options.device)
        )
    if options.as_text:
        return views.together(models, partial(views.text_view, package))
    if options.graph:
        return views.together(models, partial(views.graph_view, package))
    if options.node is not None:
        return views.node_view(package, models, options.node)
    if options.module is not None:
        return views.module_view(package, models, options.module)
    return views.summary_view(package, None if options.model is None else models, options.oldest, options.columns)


def _task(options: ShowOptions, file: str) -> Result:
    """Show one of several files."""
    from pt2kit import codec

    with open_file(file) as package:
        view = _view(package, options)
        head = [printable(file, 1000)] if any(_ways(options)) or options.model is not None else []
        tree, lines = ({"shown": codec.to_tree(view.tree())}, []) if options.as_json else ({}, [*head, *view.lines, ""])
        totals = {"programs": len(package.layout.models), "bytes": package.archive.source.size}
        return Result(tree, lines, view.code, totals=totals, fitted=view.fitted)


def _summary(totals: Mapping[str, int]) -> str:
    from pt2kit.text.format import bytes_text, count_text

    return f"{count_text(totals['programs'], 'program')}, {bytes_text(totals['bytes'])}"
