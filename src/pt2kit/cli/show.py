"""`pt2 show FILE`: what is in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from pt2kit import codec
from pt2kit.cli.common import (
    Refusal,
    choose_model,
    file_argument,
    json_option,
    model_option,
    open_file,
    suggestion,
)
from pt2kit.cli.output import print_json, print_lines
from pt2kit.package.open import Package

EPILOG = """\b
Examples:
  pt2 show model.pt2                    one screen
  pt2 show model.pt2 --graph | less     the whole program
  pt2 show model.pt2 --module layers.0  one module's nodes and tensors
  pt2 show https://host/model.pt2 --json

\b
Exit codes: 0 fine, 1 shown, but part of the file contradicts itself, 2 could not be read.
"""


@click.command("show", epilog=EPILOG, short_help="What is in a file.")
@file_argument
@click.option("--graph", is_flag=True, help="Print the whole program.")
@click.option("--text", "as_text", is_flag=True, help="Print the whole program in the form that can be read back.")
@click.option("--node", metavar="NAME", help="Print one node or graph input, by its name or a value's name.")
@click.option(
    "--module", metavar="FQN", help='Print the nodes and tensors of one module and those below; "" is the root.'
)
@click.option("--records", is_flag=True, help="List the records of the archive.")
@click.option("--oldest", is_flag=True, help="Also say which release is the oldest that could read it, once converted.")
@model_option
@json_option
def command(
    file: str,
    graph: bool,
    as_text: bool,
    node: str | None,
    module: str | None,
    records: bool,
    oldest: bool,
    model: str | None,
    as_json: bool,
) -> int:
    """Show what is in a .pt2 file: who wrote it, how it is called, its operators, tensors and modules."""
    if sum((graph, as_text, node is not None, module is not None, records, oldest)) > 1:
        raise click.UsageError("expected one of --graph, --text, --node, --module, --records, --oldest, got several")
    with open_file(file) as package:
        if records:
            return _show(_records(package), lambda: _record_lines(package), as_json)
        if as_text:
            return _show_text(package, choose_model(package, model), as_json)
        if graph:
            return _show_graph(package, choose_model(package, model), as_json)
        if node is not None:
            return _show_node(package, choose_model(package, model), node, as_json)
        if module is not None:
            return _show_module(package, choose_model(package, model), module, as_json)
        return _show_summary(package, model, oldest, as_json)


def _show(value: Any, lines: Callable[[], Iterable[str]], as_json: bool) -> int:
    if as_json:
        print_json(value)
    else:
        print_lines(lines())
    return 0


def _show_text(package: Package, model: str, as_json: bool) -> int:
    from pt2kit.text.source import print_program

    text = print_program(package.programs[model])
    return _show({"text": text}, text.splitlines, as_json)


def _show_summary(package: Package, model: str | None, oldest: bool, as_json: bool) -> int:
    from pt2kit.text.report import model_lines, summary_lines
    from pt2kit.text.summary import summarize, summarize_model

    if model is not None:
        one = summarize_model(package, choose_model(package, model), oldest=oldest)
        _show(one, lambda: model_lines(one), as_json)
        return 1 if one.problems else 0
    summary = summarize(package, oldest=oldest)
    _show(summary, lambda: summary_lines(summary), as_json)
    return 1 if any(found.problems for found in summary.models) else 0


def _show_graph(package: Package, model: str, as_json: bool) -> int:
    from pt2kit.text.program import program_lines

    stored = package.stored[model]
    if not as_json:
        print_lines(program_lines(stored.program))
    elif stored.unknown:
        print_json(codec.parse(codec.encode(stored.program, stored.unknown), model))
    else:
        print_json(stored.program)
    return 0


def _show_node(package: Package, model: str, name: str, as_json: bool) -> int:
    from pt2kit.text import nodes
    from pt2kit.text.values import ValueTexts

    program = package.programs[model]
    found = nodes.find(program, name)
    if not found:
        names = (known for entry in nodes.entries(program) for known in (entry.path, *entry.values))
        raise Refusal(
            f"{package.name}: {model}: expected a node or a value {name!r}, got none of that name"
            + suggestion(name, dict.fromkeys(names))
        )
    if as_json:
        rows = [
            {
                "path": entry.path,
                "values": entry.values,
                "node": entry.node,
                "users": list(nodes.users_of(entry.scope.graph, entry.values)),
            }
            for entry in found
        ]
        print_json(rows)
        return 0
    texts = ValueTexts(program)
    for number, entry in enumerate(found):
        print_lines([""] if number else [])
        print_lines(nodes.found_lines(entry, texts))
    return 0


def _show_module(package: Package, model: str, fqn: str, as_json: bool) -> int:
    from pt2kit.graph.traversal import walk
    from pt2kit.text.payloads import entries_of, payload_lines, payload_row
    from pt2kit.text.program import module_of, node_line
    from pt2kit.text.values import ValueTexts

    program = package.programs[model]
    inside = re.compile(rf"{re.escape(fqn)}(\..*)?" if fqn else r".*", re.DOTALL)
    tensors = [entry for entry in entries_of(package, model, constants=True) if inside.fullmatch(entry.name)]
    steps = [step for step in walk(program) if inside.fullmatch(module_of(step.node))]
    if fqn and not steps and not tensors:
        raise Refusal(
            f"{package.name}: {model}: expected a module {fqn!r}, got no node or tensor of it"
            + suggestion(fqn, _module_names(module_of(step.node) for step in walk(program)))
        )
    if as_json:
        rows = [payload_row(entry) for entry in tensors]
        print_json({"module": fqn, "tensors": rows, "nodes": [step.node for step in steps]})
        return 0
    texts = ValueTexts(program)
    if tensors:
        print_lines(payload_lines(tensors))
    print_lines([f"{len(steps):,} node{'' if len(steps) == 1 else 's'}"])
    print_lines(f"  {node_line(step.scope.graph, step.node, texts)}" for step in steps)
    return 0


def _module_names(fqns: Iterable[str]) -> dict[str, None]:
    """The names of modules and of those above them."""
    found: dict[str, None] = {}
    for fqn in dict.fromkeys(fqns):
        parts = fqn.split(".")
        found |= {".".join(parts[:count]): None for count in range(1, len(parts) + 1)}
    return found


def _records(package: Package) -> list[dict[str, Any]]:
    from pt2kit.package import record_names as names

    return [
        {
            "name": record.name,
            "kind": names.kind(package.relative(record.name)),
            "bytes": record.size,
            "stored_bytes": record.compressed_size,
            "method": "stored" if record.is_stored else "deflated",
            "crc32": f"{record.crc32:08x}",
        }
        for record in package.records.values()
    ]


def _record_lines(package: Package) -> Iterator[str]:
    from pt2kit.messages import printable
    from pt2kit.text.columns import table
    from pt2kit.text.format import bytes_text, count_text

    rows = _records(package)
    yield f"{count_text(len(rows), 'record')}, {bytes_text(sum(row['bytes'] for row in rows))}"
    cells = [
        (
            bytes_text(row["bytes"]),
            "" if row["method"] == "stored" else f"{bytes_text(row['stored_bytes'])} deflated",
            row["kind"],
            printable(row["name"]),
        )
        for row in rows
    ]
    yield from (f"  {line}" for line in table(cells, 20, right=(0, 1)))
