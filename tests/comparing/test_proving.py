"""Proofs by running: planted wrong rewrites are caught, right ones pass, and what cannot be run is named."""

from __future__ import annotations

import io

import numpy as np
import pytest
from tests import samples
from tests.checks.mutations import call
from tests.cli.run import pt2
from tests.comparing.test_runs import OTHERS, places
from tests.packages import edited

import pt2kit
from pt2kit.comparing.proving import prove, prove_joined, prove_part
from pt2kit.editing import passes
from pt2kit.errors import ProofError, UnsupportedError
from pt2kit.graph.traversal import operator_name

RELEASE = "2.13.0"
NAMES = ("mlp", "convnet", "dynamic_two_dims", "sdpa", "multi_output", "shared_weights", "dynamic_batch", "buffers")
FOUND = [name for name in NAMES if samples.sample(RELEASE, name).exists()]


def path(name):
    """The path of a sample file."""
    return samples.sample(RELEASE, name)


PLANTED = [(name, number, target) for name in FOUND for number, target in places(path(name))]


@pytest.mark.parametrize(("name", "number", "target"), PLANTED)
def test_another_operator_is_caught(name, number, target):
    """A node that calls another operator: nothing is written."""
    written = io.BytesIO()
    with pt2kit.edit(path(name)) as editor:
        node = list(editor.graph.nodes)[number]
        node.retarget(f"torch.ops.{OTHERS[operator_name(node.target)]}")
    with pytest.raises(ProofError, match=r"for inputs of seed \d+ .*: expected output"):
        editor.write(written, prove=True)
    assert not written.getvalue()


@pytest.mark.parametrize("name", FOUND)
def test_another_weight_is_caught(name):
    """A tenth of a percent in one weight."""
    with pt2kit.open(path(name)) as package:
        found = {key: one for key, one in package.weights().items() if one.numpy().dtype.kind == "f"}
        if not found:
            pytest.skip("no weights")
        key = max(found, key=lambda one: found[one].numpy().size)
        numbers = found[key].numpy() * np.float32(1.001) + np.float32(1e-3)
    with pt2kit.edit(path(name)) as editor:
        editor.set_weight(key, numbers)
    with pytest.raises(ProofError, match="got differences of up to"):
        editor.prove()


@pytest.mark.parametrize(
    ("right", "wrong"), [("abs", "clone"), ("neg", "bitwise_not"), ("sign", "ceil"), ("neg", "neg")]
)
def test_negative_integers_are_drawn(right, wrong):
    """The program takes 8-bit integers of any sign."""

    def program(name):
        def change(tree):
            graph = tree["graph_module"]["graph"]
            [x], [y] = (graph[part][-1:] for part in ("inputs", "outputs"))
            graph["nodes"] = [call(f"torch.ops.aten.{name}.default", y["as_tensor"]["name"], self=x)]
            graph["tensor_values"][y["as_tensor"]["name"]] = graph["tensor_values"][x["as_tensor"]["name"]]

        return edited(path("out_dtype_hop"), change)

    with pt2kit.open(program(right)) as before, pt2kit.open(program(wrong)) as after:
        if right == wrong:
            return prove(before, after)
        with pytest.raises(ProofError, match="expected output 0 as before"):
            prove(before, after)
        return None


def test_small_differences_are_caught():
    """Five hundred-thousandths more in each output of about 1."""
    with pt2kit.open(path("mlp")) as package:
        name, found = [*package.weights().items()][-1]
        numbers = found.numpy() + np.float32(5e-5)
    with pt2kit.edit(path("mlp")) as editor:
        editor.set_weight(name, numbers)
    with pytest.raises(ProofError, match="got differences of up to 5"):
        editor.prove()


def test_nothing_to_compare(tmp_path):
    """A program whose outputs are nan for all inputs is neither proven nor called different."""
    with pt2kit.open(path("mlp")) as package:
        found = {name: np.full_like(one.numpy(), np.nan) for name, one in package.weights().items()}
    with pt2kit.edit(path("mlp")) as editor:
        for name, numbers in found.items():
            editor.set_weight(name, numbers)
    editor.write(tmp_path / "nan.pt2")
    done = pt2("edit", str(tmp_path / "nan.pt2"), str(tmp_path / "out.pt2"), "--pass", "dce", "--prove")
    assert done.code == 2
    assert "expected inputs for which the program has finite results" in done.err
    assert not (tmp_path / "out.pt2").exists()


@pytest.mark.parametrize("name", FOUND)
def test_right_rewrites_pass(name):
    """Conversion down and up, cleaning passes, sanitizing, other names of inputs."""
    older = io.BytesIO()
    pt2kit.convert(path(name), older, target="torch==2.8", prove=True)
    newer = io.BytesIO()
    pt2kit.convert(older, newer, target="torch==2.13", prove=True)
    pt2kit.sanitize(newer, io.BytesIO(), prove=True)
    with pt2kit.edit(path(name)) as editor:
        for one in ("dce", "cse", "identities"):
            passes.PASSES[one](editor)
        editor.rename_input(editor.user_inputs[0].name, "renamed_input")
    editor.prove()


def test_several_sizes_are_run():
    """A rewrite that is right for the example's batch alone is caught."""
    [(symbol, example)] = pt2kit.cost(path("dynamic_batch")).symbols.items()
    with pt2kit.edit(path("dynamic_batch")) as editor:
        editor.specialize(symbol, example)
    with pytest.raises(ProofError, match="expected results, got an error"):
        editor.prove()


def test_part_is_proven():
    """A module, and what lies between values; a wrong part is caught."""
    pt2kit.extract(path("dynamic_batch"), "a", prove=True)
    with pt2kit.open(path("dynamic_batch")) as whole:
        part = pt2kit.extract(whole, inputs=["linear"], outputs=["linear_1"], prove=True)
        with pt2kit.edit(part) as editor:
            next(node for node in editor.graph.nodes if "relu" in node.target).retarget(
                "torch.ops.aten.sigmoid.default"
            )
        with pytest.raises(ProofError, match="expected linear_1 as before"):
            prove_part(whole, None, editor.result)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("mlp", ["p_0_weight", "input"], ["linear", "p_0_bias"]),
        ("buffer_mutation__decomp", ["x"], ["mul"]),
        ("batchnorm_train", ["x"], ["batch_norm", "b_bn_running_mean"]),
    ],
)
def test_parts_with_weights_are_proven(name, inputs, outputs):
    """Weights that the part takes or returns, and buffers that the whole program updates after the part read them."""
    pt2kit.extract(path(name), inputs=inputs, outputs=outputs, prove=True)


def test_joined_programs_are_proven():
    """The second runs on what the first gives; a wrong join is caught."""
    with pt2kit.open(path("dynamic_batch")) as whole:
        first = pt2kit.extract(whole, outputs=["relu"])
        second = pt2kit.extract(whole, inputs=["relu"])
        both = pt2kit.compose(first, second, {"relu": "relu"}, prefixes=("one", "two"), prove=True)
        with pt2kit.edit(both) as editor:
            next(node for node in editor.graph.nodes if "relu" in node.target).retarget(
                "torch.ops.aten.sigmoid.default"
            )
        with pytest.raises(ProofError, match="expected output 0 as before"):
            prove_joined(first, second, (None, None), [("relu", "relu")], editor.result)


def test_what_cannot_be_run_is_named():
    """Custom operators without a kernel; results that depend on chance."""
    with pytest.raises(UnsupportedError, match=r"corpus\.\w+\.default \(\d+\)"):
        pt2kit.convert(path("custom_op"), io.BytesIO(), target="torch==2.12", prove=True)
    with pytest.raises(UnsupportedError, match="nothing is proven"):
        pt2kit.convert(path("dropout_train"), io.BytesIO(), target="torch==2.12", prove=True)


@pytest.mark.parametrize("limit", [None, 1])
def test_inputs_that_a_program_refuses_are_skipped(limit):
    """A program with dropout that asserts positive inputs, or such below 1, which the first random ones are not."""
    with pt2kit.edit(path("dropout_train")) as editor:
        editor.drop_output(1)
        dropout = next(iter(editor.graph.nodes))
        dropout.set_argument("train", False)
        positive = dropout.insert_before("aten.gt.Scalar", dropout.inputs[0], 0)
        every = dropout.insert_before("aten.all.default", positive.output)
        dropout.insert_before("aten._assert_async.msg", every.output, "expected positive numbers")
        if limit is not None:
            small = dropout.insert_before("aten.lt.Scalar", dropout.inputs[0], limit)
            every = dropout.insert_before("aten.all.default", small.output)
            dropout.insert_before("aten._assert_async.msg", every.output, "expected small numbers")
    pt2kit.sanitize(editor.result, io.BytesIO(), prove=True)


def test_other_outputs_are_refused():
    """A program with an output more cannot be compared, and is not written."""
    with pt2kit.edit(path("dynamic_batch")) as editor:
        editor.add_output("relu")
    with pytest.raises(ProofError, match="got output 1 besides"):
        editor.prove()


def test_commands_refuse_to_write(tmp_path):
    """`--prove` ends with 1 and writes nothing if results differ, with 0 if they are the same."""
    source, target = path("dynamic_batch"), tmp_path / "out.pt2"
    wrong = pt2("edit", source, target, "--operator", "aten.relu.default=aten.sigmoid.default", "--prove")
    assert (wrong.code, target.exists()) == (1, False), wrong.err
    assert "expected output 0 as before" in wrong.err
    assert pt2("edit", source, target, "--pass", "cse", "--prove").code == 0
    assert pt2("convert", source, target, "--target", "torch==2.8", "--prove").code == 0
    assert pt2("sanitize", source, target, "--prove").code == 0
    assert pt2("extract", source, target, "--module", "a", "--prove").code == 0
    assert pt2("extract", source, tmp_path / "b.pt2", "--module", "b", "--prove").code == 0
