"""A small exported chain -> the same chain with any number of nodes, without torch, for which export takes minutes.

The program is the one that export gives for that length. The file is ours, so its records are deflated.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import pt2kit
from pt2kit import schema

KINDS = 4
"""Operators that take turns in a chain."""


def build(small: Path, nodes: int, out: Path) -> dict[str, Any]:
    """Write a longer chain at `out` and its facts next to it; returns the facts.

    Args:
        small: a chain as `models.chain` gives it.
        nodes: how many the new one has.
        out: where to write it.
    """
    started = time.perf_counter()
    with pt2kit.open(small) as package:
        program = package.programs["model"]
        module = program.graph_module
        grown = replace(program, graph_module=replace(module, **_grown(module, nodes)))
        out.unlink(missing_ok=True)
        facts = {"recipe": "grown", "size": nodes, "nodes": nodes, "grown_from": small.name}
        out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
        pt2kit.write(package, out, programs={"model": grown})  # last: a file that is there is whole and has its facts
    return {**facts, "bytes": out.stat().st_size, "build_s": round(time.perf_counter() - started, 3)}


def _grown(module: schema.GraphModule, count: int) -> dict[str, object]:
    """The graph and the signature of the longer chain."""
    graph = module.graph
    pattern = graph.nodes[:KINDS]
    last = pattern[-1].name or ""
    nodes = [_node(pattern[index % KINDS], index, last) for index in range(count)]
    [result] = nodes[-1].outputs
    meta = graph.tensor_values[pattern[0].name or ""]
    inputs = {name: graph.tensor_values[name] for name in [argument.as_tensor.name for argument in graph.inputs]}
    values = {**inputs, **{node.name or "": meta for node in nodes}}
    [spec] = module.signature.output_specs
    output = replace(spec, user_output=schema.UserOutputSpec(arg=result))
    return {
        "graph": replace(graph, nodes=nodes, outputs=[result], tensor_values=values),
        "signature": replace(module.signature, output_specs=[output]),
    }


def _node(like: schema.Node, index: int, last: str) -> schema.Node:
    """The node at that place of the chain, after the one of its kind in the first turn; `last` ends each turn."""
    turn = index // KINDS
    name = _name(like.name or "", turn)
    previous = like.inputs[0]
    if turn or index % KINDS:
        is_first = index % KINDS == 0
        before = last if is_first else previous.arg.as_tensor.name
        previous = replace(previous, arg=_tensor(_name(before, turn - is_first)))
    metadata = {**like.metadata, "torch_fn": like.metadata["torch_fn"].replace("_1;", f"_{turn + 1};", 1)}
    return replace(like, name=name, inputs=[previous, *like.inputs[1:]], outputs=[_tensor(name)], metadata=metadata)


def _name(base: str, turn: int) -> str:
    return f"{base}_{turn}" if turn else base


def _tensor(name: str) -> schema.Argument:
    return schema.Argument(as_tensor=schema.TensorArgument(name=name))
