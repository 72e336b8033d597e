"""Passes: each leaves a sound program, and does what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.checks.mutations import JOINT, graph, program
from tests.narrow import dense
from tests.packages import errors
from tests.samples import corpus, sample

import pt2kit
from pt2kit import schema
from pt2kit.editing import passes
from pt2kit.editing.metas import tensor_meta
from pt2kit.errors import GraphError, Pt2Error


@pytest.mark.parametrize("path", corpus("2.13.0", "2.5.1"), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_pass_leaves_every_program_sound(path: Path) -> None:
    """Run over each sample program, alone; what a pass refuses it names."""
    with pt2kit.open(path) as package:
        model = package.layout.models[0]
        for name, run in passes.PASSES.items():
            editor = pt2kit.edit(package, model)
            try:
                run(editor)
                result = editor.finish()
            except Pt2Error as error:
                assert "expected" in str(error), name
            else:
                assert errors(result) == [], name


def test_dead_code_goes_and_what_acts_stays() -> None:
    """Nodes nobody uses are erased, in order of their uses; those that write, draw or assert are not."""
    editor = pt2kit.edit(sample("2.13.0", "buffer_mutation"))
    nodes = len(editor.graph.nodes)
    first = editor.graph.append("aten.neg", editor.graph.outputs[-1])
    editor.graph.append("aten.neg", first.output)
    assert passes.dce(editor) == 2
    assert len(editor.graph.nodes) == nodes


def test_common_subexpressions_and_identities_go() -> None:
    """The second of two equal calls is not computed; taking zero away is nothing, adding it makes 0.0 of -0.0."""
    editor = pt2kit.edit(sample("2.13.0", "mlp"))
    relu = editor.value("relu")
    one, two = (editor.graph.append("aten.exp", relu) for _ in range(2))
    editor.graph.append("aten.add.Tensor", editor.graph.append("aten.sub.Tensor", one.output, 0).output, two.output)
    assert passes.cse(editor) == 1
    assert passes.identities(editor) == 1
    last = list(editor.graph.nodes)[-1]
    assert last.inputs == (one.output, one.output)
    editor.graph.append("aten.neg", editor.graph.append("aten.add.Tensor", one.output, 0).output)
    assert passes.identities(editor) == 0


@pytest.mark.parametrize(
    ("call", "count"),
    [
        (("aten.narrow", 1, 0, 4), 1),
        (("aten.squeeze.dims", [1]), 1),
        (("aten.movedim.int", 0, 0), 1),
        (("aten.alias",), 1),
        (("aten._conj",), 0),
        (("aten._neg_view",), 0),
        (("aten.detach",), 0),
        (("aten.slice.Tensor", 1, 0, 2), 0),
        (("aten.dropout", 0.5, False), 1),
        (("aten.dropout", 0.0, True), 1),
        (("aten.dropout", 0.5, True), 0),
    ],
)
def test_views_of_everything_go(call: tuple[Any, ...], count: int) -> None:
    """A view of all elements in their order is its operand, unless it says how they are read or cuts the gradient.
    Dropout that drops nothing is its operand, too."""
    editor = pt2kit.edit(sample("2.13.0", "mlp"))
    source = editor.graph.append("aten.zeros", [2, 4], meta=tensor_meta("f32", [2, 4])).output
    target, *rest = call
    editor.graph.append("aten.neg", editor.graph.append(target, source, *rest, meta=_view_meta(call)).output)
    assert passes.identities(editor) == count


def _view_meta(call: tuple[Any, ...]) -> Any:
    return tensor_meta("f32", [2, 2], strides=[4, 1]) if call[0] == "aten.slice.Tensor" else tensor_meta("f32", [2, 4])


def test_results_that_the_caller_gets_keep_their_memory() -> None:
    """Equal results, and copies that change nothing, stay apart where the caller may write to one of them."""
    editor = pt2kit.edit(sample("2.13.0", "mlp"))
    relu = editor.value("relu")
    for _ in range(2):
        made = editor.graph.append("aten.exp", relu)
        editor.add_output(editor.graph.append("aten.view", made.output, [-1]).output)
    copied = editor.graph.append("aten.sub.Tensor", relu, 0)
    editor.add_output(editor.graph.append("aten.t", copied.output).output)
    nodes = len(editor.graph.nodes)
    assert passes.cse(editor) == 0
    assert passes.identities(editor) == 0
    assert len(editor.graph.nodes) == nodes


def test_sizes_that_are_known_are_folded() -> None:
    """With its symbols specialized, a program computes no sizes any more."""
    with pt2kit.edit(sample("2.13.0", "sym_ops")) as editor:
        for symbol, (low, _) in list(editor.ranges.items()):
            editor.specialize(symbol, (low or 0) + 4)
        assert passes.fold_shapes(editor) > 0
    assert errors(editor.result) == []
    targets = {node.target for node in editor.result.programs["model"].graph_module.graph.nodes}
    assert not any(target.startswith("_operator.") for target in targets)


def test_devices_and_kinds_follow_into_payloads() -> None:
    """A type alone stands for all its devices; parameters become constants with their records."""
    with pt2kit.edit(sample("2.13.0", "mlp")) as editor:
        assert passes.move(editor, {"cpu": "cuda:1"}) > 4
        assert passes.convert_weights(editor, "parameter", "constant") == 4
    assert dict(editor.result.weights()) == {}
    assert {view.device.index for view in dense(editor.result.constants()).values()} == {1}
    assert errors(editor.result) == []


def test_weights_that_share_memory_with_a_written_one_keep_their_kind() -> None:
    """As constants they would have memory of their own, which the write does not reach."""
    with pt2kit.edit(sample("2.13.0", "buffer_mutation")) as editor:
        editor.add_buffer("other", np.zeros(4, np.float32))
        editor.tie("other", "state")
        kinds = [one.kind for one in editor.inputs]
        passes.convert_weights(editor, "buffer", "constant")
        assert [one.kind for one in editor.inputs] == kinds


REFUSED = {
    "no float": (lambda e: passes.cast_weights(e, "int8"), "expected an element type of floats, got int8"),
    "no weight": (lambda e: passes.cast_weights(e, "bf16", ["nothing"]), "expected names of weights of the program"),
    "no device": (lambda e: passes.move(e, "a b"), "device: expected a type and perhaps an index"),
    "no fit": (lambda e: passes.rename_operators(e, {"aten::relu": "aten::mul.Tensor"}), "expected the argument other"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_passes_say_why(case: str) -> None:
    """The error names the pass or the node."""
    run, text = REFUSED[case]
    with pytest.raises(GraphError, match=text):
        run(pt2kit.edit(sample("2.13.0", "mlp")))


def test_devices_given_as_text_move() -> None:
    """An argument that names its device in a text moves like one that holds a device."""

    def change(tree: Any) -> None:
        node = next(node for node in graph(tree)["nodes"] if node["target"].endswith("scalar_tensor.default"))
        next(named for named in node["inputs"] if named["name"] == "device")["arg"] = {"as_string": "cpu"}

    with pt2kit.edit(program(JOINT, change).data) as editor:
        passes.move(editor, {"cpu": "cuda:1"})
    nodes = editor.result.programs["model"].graph_module.graph.nodes
    given = [one.arg for node in nodes for one in node.inputs if one.name == "device"]
    assert {arg.as_device for arg in given} == {schema.Device("cuda", 1)}
