"""Editing: 10,000 replacements in a program of 10,000 nodes, against torch.fx and onnx-ir, in processor time."""

from __future__ import annotations

import time
from itertools import pairwise

from benchmarks import pictures
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings
from pt2kit import edit, schema

NODES = 10_000


def chain(count: int) -> schema.ExportedProgram:
    """A program of `count` relus, one after another."""
    names = ["x", *(f"v{number}" for number in range(count))]
    nodes = [pictures.call("torch.ops.aten.relu.default", [("self", old)], new) for old, new in pairwise(names)]
    return pictures.program(["x"], nodes, names[-1:])


def replace_ours(program: schema.ExportedProgram) -> float:
    """Replace every relu by a gelu; the processor seconds it took, without reading and writing the program."""
    editor = edit(program)
    start = time.process_time()
    for node in list(editor.graph.nodes):
        new = node.insert_after("aten.gelu", node.inputs[0], meta=node.output)
        node.output.replace_uses(new.output)
        node.erase()
    return time.process_time() - start


def replace_fx(count: int) -> float:
    """The same with torch.fx."""
    import torch

    aten, graph = torch.ops.aten, torch.fx.Graph()
    last = graph.placeholder("x")
    for _ in range(count):
        last = graph.call_function(aten.relu.default, (last,))
    graph.output(last)
    start = time.process_time()
    for node in list(graph.nodes):
        if node.op == "call_function":
            with graph.inserting_after(node):
                new = graph.call_function(aten.gelu.default, node.args)
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    return time.process_time() - start


def replace_onnx_ir(count: int) -> float | None:
    """The same with onnx-ir; None where it is not installed."""
    try:
        import onnx_ir as ir
    except ImportError:
        return None
    values, nodes = [ir.val("x")], []
    for _ in range(count):
        nodes.append(ir.node("Relu", [values[-1]]))
        values.append(nodes[-1].outputs[0])
    graph = ir.Graph([values[0]], [values[-1]], nodes=nodes, opset_imports={"": 20})
    start = time.process_time()
    for node in list(graph):
        new = ir.node("Gelu", [node.inputs[0]])
        graph.insert_after(node, [new])
        ir.convenience.replace_all_uses_with(node.outputs[0], new.outputs[0], replace_graph_outputs=True)
        graph.remove(node, safe=True)
    return time.process_time() - start


def edit_replace(settings: Settings) -> Measured:
    """Our replacements, with what the other two took in the same run in the note; all in seconds of one processor."""
    program = chain(NODES)
    rounds = settings.rounds(3)
    ours = min(replace_ours(program) for _ in range(rounds))
    fx = min(replace_fx(NODES) for _ in range(rounds))
    onnx = [replace_onnx_ir(NODES) for _ in range(rounds)]
    other = "not installed" if None in onnx else f"{min(one for one in onnx if one is not None):.2f} s"
    return Measured(ours, note=f"{NODES:,} replacements, processor time; torch.fx {fx:.2f} s, onnx-ir {other}")


def edit_growth(settings: Settings) -> Measured:
    """Time per replacement in a program of ten times as many nodes."""
    few, many = (500, 5_000) if settings.quick else (1_000, 10_000)
    small, large = chain(few), chain(many)
    rounds = settings.rounds(3)
    ours = min(replace_ours(large) for _ in range(rounds))
    reference = min(replace_ours(small) for _ in range(rounds))
    return Measured(ours / many, reference / few, note=f"per replacement, {many:,} nodes against {few:,}")


BENCHES = (
    Bench("edit_replace", "10,000 replacements", Limit(2, "s"), edit_replace),
    Bench("edit_growth", "replacements, ten times the nodes", AtMost(2), edit_growth),
)
