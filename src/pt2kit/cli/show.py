"""`pt2 show FILE...`: contents of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click

from pt2kit.cli import views
from pt2kit.cli.common import chosen_models, open_file, rate_amount
from pt2kit.cli.completion import complete_modules, complete_nodes
from pt2kit.cli.frame import Result, argument, option
from pt2kit.cli.output import print_json, print_lines, print_paged, width
from pt2kit.cli.several import FilesOptions, chosen_files, run_task
from pt2kit.messages import printable
from pt2kit.package.open import Package
from pt2kit.text.format import WIDTH


def _rate_option(help: str) -> Any:
    """Declare a field for a number such as 900G."""
    return option(help, "N", callback=rate_amount)


@dataclass(frozen=True, slots=True)
class Options(FilesOptions):
    """Options of `pt2 show`."""

    files: tuple[str, ...] = argument("FILE...")
    graph: bool = option("Print the whole program.")
    as_text: bool = option("Print the whole program in the form that can be read back.", "--text")
    node: str | None = option(
        "Print one node or graph input, by its name or a value's name.", "NAME", shell_complete=complete_nodes
    )
    module: str | None = option(
        'Print the nodes and tensors of one module and those below; "" is the root.',
        "FQN",
        shell_complete=complete_modules,
    )
    records: bool = option("List the records of the archive.")
    sizes: bool = option("Report where the bytes are, and what --strip would save.")
    top: int = option("With --sizes: list so many of each.", type=click.IntRange(1), default=10, show_default=True)
    cost: bool = option("Count FLOPs, bytes moved and peak memory, as formulas.")
    at: Mapping[str, int] = option("With --cost: the value of a symbol; repeatable.", "SYMBOL=N")
    depth: int = option("With --cost: levels of modules to list.", type=click.IntRange(0), default=3, show_default=True)
    peak_flops: int | None = _rate_option("With --cost: FLOPs per second of a device, such as 19.5T.")
    bandwidth: int | None = _rate_option("With --cost: bytes per second of its memory, such as 900G.")
    oldest: bool = option("Also find the oldest release that could read it, once converted.")

    @property
    def ways(self) -> tuple[bool, ...]:
        """Return which views of a file are requested other than its summary."""
        named = (self.node is not None, self.module is not None)
        return (self.graph, self.as_text, *named, self.records, self.sizes, self.cost)


def run(options: Options) -> int:
    """Show what is in .pt2 files: writer, inputs and outputs, operators, tensors and modules.

    Examples:
      pt2 show model.pt2                    one screen
      pt2 show model.pt2 --graph            the whole program, in a pager
      pt2 show model.pt2 --module layers.0  one module's nodes and tensors
      pt2 show model.pt2 --sizes            where the bytes are, and what can go
      pt2 show model.pt2 --cost --at s0=64  FLOPs, bytes moved and peak memory
      pt2 show models/                      all files in a folder and below
      pt2 show https://host/model.pt2 --json

    Exit codes: 0 fine, 1 shown, but part of a file contradicts itself, 2 a file could not be read.
    """
    if (options.peak_flops is None) != (options.bandwidth is None):
        raise click.UsageError("expected both --peak-flops and --bandwidth, got one")
    if sum((*options.ways, options.oldest)) > 1:
        raise click.UsageError(
            "expected one of --graph, --text, --node, --module, --records, --sizes, --cost, --oldest, got several"
        )
    chosen, several = chosen_files(options.files)
    if several:
        task = partial(_task, options)
        return run_task(chosen, True, task, options, summary=_summary)
    with open_file(chosen[0]) as package:
        view = _view(package, options)
        if options.as_json:
            print_json(view.tree())
        else:
            is_long = options.graph or options.as_text or options.module is not None
            (print_paged if is_long else print_lines)(view.lines, fitted=view.fitted)
        return view.code


def _view(package: Package, options: Options) -> Result:
    if options.records:
        return views.records_view(package)
    if not any(options.ways):
        models = None if options.model is None else chosen_models(package, options.model)
        return views.summary_view(package, models, options.oldest, width())
    models = chosen_models(package, options.model)
    if options.sizes:
        return views.sizes_view(package, models, options.top, min(width() or WIDTH, WIDTH))
    if options.cost:
        device = None if not options.peak_flops or not options.bandwidth else (options.peak_flops, options.bandwidth)
        return views.together(models, lambda model: views.cost_view(package, model, options.at, options.depth, device))
    if options.as_text:
        return views.together(models, partial(views.text_view, package))
    if options.graph:
        return views.together(models, partial(views.graph_view, package))
    if options.node is not None:
        return views.node_view(package, models, options.node)
    return views.module_view(package, models, options.module or "")


def _task(options: Options, file: str) -> Result:
    """Show one of several files."""
    from pt2kit import codec

    with open_file(file) as package:
        view = _view(package, options)
        head = [printable(file, 1000)] if any(options.ways) or options.model is not None else []
        lines: list[str] = [] if options.as_json else [*head, *view.lines, ""]
        tree: Any = {"shown": codec.to_tree(view.tree())} if options.as_json else {}
        totals = {"programs": len(package.layout.models), "bytes": package.archive.source.size}
        return replace(view, lines=lines, tree=lambda: tree, totals=totals)


def _summary(totals: Mapping[str, int]) -> str:
    from pt2kit.messages import count_text
    from pt2kit.text.format import bytes_text

    return f"{count_text(totals['programs'], 'program')}, {bytes_text(totals['bytes'])}"
