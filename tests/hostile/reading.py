"""Reads everything of a `.pt2` file that can be read without torch, as a careful user of the package would."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.narrow import instance

import pt2kit
from pt2kit import graph, schema, signature, symbols, treespec
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.tensors import OpaquePayload, TensorView


def read_everything(path: Path) -> dict[str, bytes]:
    """Open a file and read all of it but its sample inputs.

    Returns:
        model and name of each weight -> its bytes in row-major order.

    Raises:
        Pt2Error: the first thing that is wrong.
    """
    weights: dict[str, bytes] = {}
    with pt2kit.open(path) as package:
        for record in package.records:
            package.archive.read(record)
        for model, program in package.programs.items():
            read_program(program, package.stored[model].unknown)
            for name, payload in package.weights(model).items():
                weights[f"{model}: {name}"] = _numbers(payload)
            for payload in package.constants(model).values():
                _numbers(payload)
        assert all(content.readonly for content in package.extra_files.values())
    return weights


def read_program(program: schema.ExportedProgram, unknown: Any = ()) -> None:
    """Read all that a program says: graphs, signature, expressions, guards, tree specs.

    Raises:
        Pt2Error: the first thing that is wrong.
    """
    module = program.graph_module
    for scope, _ in graph.indexes(program):
        _read_expressions(scope.graph)
    signature.from_schema(module)
    for text in program.range_constraints:
        symbols.parse(text)
    for text in program.guards_code:
        symbols.parse_guard(text)
    fields = {name: row.field_names for name, row in module.treespec_namedtuple_fields.items()}
    for entry in module.module_call_graph:
        if entry.signature is not None:
            for text in (entry.signature.in_spec, entry.signature.out_spec):
                treespec.key_paths(treespec.parse(text), fields=fields)
            in_spec = treespec.parse(entry.signature.in_spec)
            for problem in treespec.find_name_problems(entry.signature.forward_arg_names or (), in_spec):
                raise GraphError(f"{problem.loc}: {problem.message}")


def _read_expressions(graph: schema.Graph) -> None:
    """Read all symbolic expressions in the value tables of a graph, each as what it is used as."""
    sizes = [
        size for meta in graph.tensor_values.values() for size in (*meta.sizes, *meta.strides, meta.storage_offset)
    ]
    tables: list[tuple[Callable[[str], Any], Iterable[Any]]] = [
        (symbols.parse_size, sizes),
        (symbols.parse_size, graph.sym_int_values.values()),
        (symbols.parse_number, graph.sym_float_values.values()),
        (symbols.parse_truth, graph.sym_bool_values.values()),
    ]
    for parse, values in tables:
        for text in dict.fromkeys(value.value.expr_str for value in values if isinstance(value.value, schema.SymExpr)):
            parse(text)


def _numbers(payload: Any) -> bytes:
    view = payload.view() if isinstance(payload, OpaquePayload) else payload
    return bytes(instance(TensorView, view).contiguous_bytes()) if view.numpy().size else b""


def main(path: str) -> None:
    """Read a file in a process of its own: prints the error's class, or "read"."""
    try:
        read_everything(Path(path))
    except Pt2Error as error:
        print(type(error).__name__, error)
    else:
        print("read")


if __name__ == "__main__":
    main(sys.argv[1])
