"""`pt2 show FILE`: what is in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from pt2kit import codec
from pt2kit.cli.common import (
    choose_model,
    file_argument,
    json_option,
    model_option,
    open_file,
    print_json,
    print_lines,
)
from pt2kit.package import Package

EPILOG = """\b
Examples:
  pt2 show model.pt2                    one screen
  pt2 show model.pt2 --graph | less     the whole program
  pt2 show model.pt2 --module layers.0  one module's nodes and tensors
  pt2 show https://host/model.pt2 --json
"""


@click.command("show", epilog=EPILOG, short_help="What is in a file.")
@file_argument
@click.option("--graph", is_flag=True, help="Print the whole program.")
@click.option("--node", metavar="NAME", help="Print one node, by its name or the name of a value it defines.")
@click.option("--module", metavar="FQN", help="Print the nodes and tensors of one module and those below it.")
@click.option("--records", is_flag=True, help="List the records of the archive.")
@model_option
@json_option
def command(
    file: str, graph: bool, node: str | None, module: str | None, records: bool, model: str | None, as_json: bool
) -> None:
    """Show what is in a .pt2 file: who wrote it, how it is called, its operators, tensors and modules."""
    with open_file(file) as package:
        if records:
            _show(_records(package), _record_lines(package), as_json)
        elif graph:
            _show_graph(package, choose_model(package, model), as_json)
        elif node is not None:
            _show_node(package, choose_model(package, model), node, as_json)
        elif module is not None:
            _show_module(package, choose_model(package, model), module, as_json)
        else:
            _show_summary(package, model, as_json)


def _show(value: Any, lines: Iterator[str], as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        print_lines(lines)


def _show_summary(package: Package, model: str | None, as_json: bool) -> None:
    from pt2kit.text.report import model_lines, summary_lines
    from pt2kit.text.summary import summarize, summarize_model

    if model is not None:
        found = summarize_model(package, choose_model(package, model))
        _show(found, model_lines(found), as_json)
    else:
        summary = summarize(package)
        _show(summary, summary_lines(summary), as_json)


def _show_graph(package: Package, model: str, as_json: bool) -> None:
    from pt2kit.text.program import program_lines

    program = package.programs[model]
    _show(program, program_lines(program), as_json)


def _show_node(package: Package, model: str, name: str, as_json: bool) -> None:
    from pt2kit.graph import node_outputs, walk
    from pt2kit.text.program import node_lines
    from pt2kit.text.values import ValueTexts

    program = package.programs[model]
    for step in walk(program):
        if step.node.name == name or name in node_outputs(step.node) or step.path == name:
            _show(step.node, node_lines(step.scope.graph, step.node, ValueTexts(program)), as_json)
            return
    raise click.ClickException(f"{package.name}: {model}: expected a node or value {name!r}, got none of that name")


def _show_module(package: Package, model: str, fqn: str, as_json: bool) -> None:
    from pt2kit.graph import walk
    from pt2kit.text.program import module_of, node_line
    from pt2kit.text.values import ValueTexts

    program = package.programs[model]
    inside = re.compile(rf"{re.escape(fqn)}(\..*)?" if fqn else r".*", re.DOTALL)
    steps = [step for step in walk(program) if inside.fullmatch(module_of(step.node))]
    tensors = {
        name: payload
        for payloads in (package.weights(model), package.constants(model))
        for name, payload in payloads.items()
        if inside.fullmatch(name)
    }
    if not steps and not tensors:
        raise click.ClickException(f"{package.name}: {model}: expected a module {fqn!r}, got no node or tensor of it")
    if as_json:
        print_json({"nodes": [codec.to_tree(step.node) for step in steps], "tensors": list(tensors)})
        return
    texts = ValueTexts(program)
    print_lines(["tensors", *(f"  {name}: {payload.describe()}" for name, payload in tensors.items()), "nodes"])
    print_lines(f"  {node_line(step.scope.graph, step.node, texts)}" for step in steps)


def _records(package: Package) -> list[dict[str, Any]]:
    from pt2kit.archive import names

    return [
        {
            "name": record.name,
            "kind": names.kind(record.name.removeprefix(package.layout.root)),
            "bytes": record.size,
            "stored_bytes": record.compressed_size,
            "method": "stored" if record.is_stored else "deflated",
            "crc32": f"{record.crc32:08x}",
        }
        for record in package.records.values()
    ]


def _record_lines(package: Package) -> Iterator[str]:
    from pt2kit.text.names import printable
    from pt2kit.text.quantities import bytes_text

    rows = _records(package)
    yield f"{len(rows)} records"
    for row in rows:
        packed = "" if row["method"] == "stored" else f", {bytes_text(row['stored_bytes'])} deflated"
        yield f"  {bytes_text(row['bytes']):>9}  {row['kind']:<16}  {printable(row['name'])}{packed}"
