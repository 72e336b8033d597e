"""Small graphs for tests, and the programs of sample files."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pt2kit import codec, schema

PLACE = "$.graph_module.graph"


def programs(path: Path) -> Iterator[tuple[str, schema.ExportedProgram]]:
    """The programs of a file of the current layout, each with its record's name below the root folder."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if "/models/" in name and name.endswith(".json"):
                record = name.partition("/")[2]
                yield record, codec.decode(archive.read(name), schema.ExportedProgram, record).value


def program(path: Path) -> schema.ExportedProgram:
    """The first program of a file."""
    return next(programs(path))[1]


def arg(**one: Any) -> schema.Argument:
    """An argument, from plain values: `arg(as_tensor="x")`, `arg(as_tensors=["x"])`, `arg(as_sym_int="n")`."""
    [(arm, value)] = one.items()
    return codec.convert({arm: _tree(arm, value)}, schema.Argument, "argument").value


def _tree(arm: str, value: Any) -> Any:
    if arm == "as_tensor":
        return {"name": value}
    if arm == "as_tensors":
        return [{"name": name} for name in value]
    if arm in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        return {"as_name": value}
    if arm == "as_custom_obj":
        return {"name": value, "class_fqn": "__torch__.C"}
    return codec.to_tree(value) if isinstance(value, schema.Object | schema.Union) else value


def meta(*sizes: int, strides: tuple[int, ...] | None = None, offset: int = 0) -> schema.TensorMeta:
    """A float tensor on the CPU; strides of a row-major tensor where none are given."""
    if strides is None:
        strides = tuple(math.prod(sizes[dim + 1 :]) for dim in range(len(sizes)))
    return schema.TensorMeta(
        dtype=schema.ScalarType.FLOAT,
        sizes=[schema.SymInt(as_int=size) for size in sizes],
        requires_grad=False,
        device=schema.Device("cpu"),
        strides=[schema.SymInt(as_int=stride) for stride in strides],
        storage_offset=schema.SymInt(as_int=offset),
        layout=schema.Layout.Strided,
    )


def node(
    outputs: list[schema.Argument], *inputs: schema.Argument, target: str = "torch.ops.aten.op", **rest: Any
) -> schema.Node:
    """A node whose arguments are called a0, a1, …."""
    named = [schema.NamedArgument(f"a{i}", held, schema.ArgumentKind.POSITIONAL) for i, held in enumerate(inputs)]
    return schema.Node(target, named, outputs, {}, **rest)


def graph(
    inputs: list[schema.Argument], nodes: list[schema.Node], outputs: list[schema.Argument], **rest: Any
) -> schema.Graph:
    """A graph; tables that are not given are empty."""
    tables: dict[str, Any] = {"tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}}
    return schema.Graph(inputs, outputs, nodes, **{**tables, **rest})


def chain(*names: str) -> schema.Graph:
    """A graph in which the first name is the input, each other one a node of the one before, the last the output."""
    nodes = [node([arg(as_tensor=name)], arg(as_tensor=before), name=name) for before, name in pairwise(names)]
    values = {name: meta(2, 3) for name in names}
    return graph([arg(as_tensor=names[0])], nodes, [arg(as_tensor=names[-1])], tensor_values=values)


def subgraph(inner: schema.Graph, name: str = "body") -> schema.Argument:
    """An argument that carries a graph."""
    return schema.Argument(as_graph=schema.GraphArgument(name, inner))


def nested(depth: int) -> schema.Graph:
    """A graph with `depth` levels of subgraphs below it."""
    inner = chain("x", "y")
    for _ in range(depth):
        outer = chain("x", "y")
        holder = node([arg(as_tensor="y")], subgraph(inner), arg(as_tensor="x"), name="y")
        inner = schema.Graph(outer.inputs, outer.outputs, [holder], outer.tensor_values, {}, {})
    return inner


def dicts(depth: int, innermost: schema.Argument) -> schema.Argument:
    """An argument inside `depth` dicts."""
    held = innermost
    for _ in range(depth):
        held = schema.Argument(as_string_to_argument={"k": held})
    return held
