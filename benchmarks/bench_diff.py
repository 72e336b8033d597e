"""Differences: two versions of a large program -> what differs; and weights, as fast as they are read."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import measure, programs
from benchmarks.bench_open import open_program
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings
from benchmarks.programs import CHAIN, TRANSFORMER

LAYER = "model.model.layers.17.mlp"


def with_operators(program: Any, change: Any) -> Any:
    """A program whose nodes call other operators; `change` gets a node's number and the node."""
    module = program.graph_module
    nodes = [msgspec.structs.replace(node, target=change(n, node)) for n, node in enumerate(module.graph.nodes)]
    graph = msgspec.structs.replace(module.graph, nodes=nodes)
    return msgspec.structs.replace(program, graph_module=msgspec.structs.replace(module, graph=graph))


def in_layer(node: Any) -> bool:
    """Return whether a node was traced in the activation of the edited layer."""
    return f"{LAYER}.act_fn," in node.metadata.get("nn_module_stack", "")


def one_layer(settings: Settings) -> Measured:
    """The whole way, files to text: two versions of a transformer that differ in one layer."""
    import pt2kit
    from pt2kit.text.diff_report import diff_lines

    before = programs.path(TRANSFORMER)
    edited = with_operators(
        open_program(before), lambda n, node: "torch.ops.aten.gelu.default" if in_layer(node) else node.target
    )
    with tempfile.TemporaryDirectory() as folder:
        after = Path(folder, "after.pt2")
        with pt2kit.open(before) as package:
            pt2kit.write(package, after, programs={"model": edited})
        ours = measure.best(
            lambda: list(diff_lines(pt2kit.diff(before, after, tensors=False))), rounds=settings.rounds(5)
        )
        [change] = pt2kit.diff(before, after, tensors=False).changes
        named = change.module == f"{LAYER}.act_fn"
    return Measured(
        ours, note=f"{programs.facts(TRANSFORMER)['nodes']} nodes; {'names' if named else 'MISSES'} {LAYER}"
    )


def many_edits(settings: Settings) -> Measured:
    """A long chain of nodes that are much alike, every hundredth replaced."""
    from pt2kit.diffs.compute import compare_programs
    from pt2kit.diffs.graphs import DiffOptions

    old = open_program(programs.path(settings.program(CHAIN)))
    new = with_operators(old, lambda n, node: f"{node.target}_out" if n % 100 == 50 else node.target)
    ours = measure.best(lambda: compare_programs(old, new, "model", DiffOptions()), rounds=settings.rounds(3))
    found = len(compare_programs(old, new, "model", DiffOptions())[0])
    return Measured(ours, note=f"{found} of {len(old.graph_module.graph.nodes) // 100} edits told")


def equal_weights(settings: Settings) -> Measured:
    """Two files with equal weights, against hashing one of them."""
    import hashlib

    import pt2kit

    file = programs.path("weights_256mb")
    ours, reference = measure.alternate(
        lambda: pt2kit.diff(file, file), lambda: hashlib.sha256(file.read_bytes()).digest(), rounds=settings.rounds(3)
    )
    return Measured(ours, reference, note="two files of 268 MB; the reference is sha256 of one")


BENCHES = (
    Bench("diff_one_layer", "diff of two transformers, files to text", Limit(1, "s"), one_layer),
    Bench("diff_many_edits", "diff of 10,000 nodes with 100 edits", Limit(3, "s"), many_edits),
    Bench("diff_weights", "diff of equal weights, against sha256", AtMost(2), equal_weights),
)
