"""Runs of two programs: a changed node is reported first, precision and missing numbers are located."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import numpy as np
import pytest
from tests import samples
from tests.cli.run import pt2

import pt2kit
from pt2kit import schema
from pt2kit.comparing.runs import error_of, settle, worst
from pt2kit.errors import InputError
from pt2kit.graph.traversal import operator_name

OTHERS = {
    "aten.add.Tensor": "aten.sub.Tensor",
    "aten.mul.Tensor": "aten.add.Tensor",
    "aten.relu.default": "aten.sigmoid.default",
    "aten.sin.default": "aten.cos.default",
    "aten.cos.default": "aten.sin.default",
}


def changed(path, number):
    """The bytes of a file whose program calls another operator in one node."""
    with pt2kit.open(path) as package:
        program = package.programs["model"]
    module = program.graph_module
    nodes = list(module.graph.nodes)
    target = OTHERS[operator_name(nodes[number].target)]
    nodes[number] = msgspec.structs.replace(nodes[number], target=f"torch.ops.{target}")
    graph = msgspec.structs.replace(module.graph, nodes=nodes)
    buffer = io.BytesIO()
    with pt2kit.edit(path) as editor:
        new = msgspec.structs.replace(module, graph=graph)
        editor.replace_program(msgspec.structs.replace(program, graph_module=new))
        editor.write(buffer)
    return buffer.getvalue()


def places(path):
    """The nodes of a file that can be changed."""
    with pt2kit.open(path) as package:
        graph = package.programs["model"].graph_module.graph
    for number, node in enumerate(graph.nodes):
        if operator_name(node.target) in OTHERS:
            [output] = node.outputs
            assert output.as_tensor is not msgspec.UNSET
            if graph.tensor_values[output.as_tensor.name].dtype is schema.ScalarType.FLOAT:
                yield number, node.name


@pytest.mark.parametrize("name", ["mlp", "convnet", "dynamic_two_dims", "sdpa", "multi_output", "shared_weights"])
def test_the_changed_node_is_reported_first(name):
    """One node is changed: it is the first that differs, wherever it is."""
    path = samples.sample("2.13.0", name)
    for number, node in list(places(path))[:4]:
        found = pt2kit.compare_runs(path, io.BytesIO(changed(path, number)))
        assert found.first is not None
        assert found.first.new == node


def test_a_program_equals_its_decomposition():
    old, new = samples.sample("2.13.0", "convnet"), samples.sample("2.13.0", "convnet__decomp")
    found = pt2kit.compare_runs(old, new)
    assert found.same
    assert found.first is None
    assert found.to_tree()["same"] is True
    assert str(found).startswith("1 output: equal")


def test_inputs_may_be_passed():
    path = samples.sample("2.13.0", "dynamic_batch")
    found = pt2kit.compare_runs(path, path, [np.ones((3, 8), np.float32)])
    assert found.same
    assert {node.error.max for node in found.nodes} == {0.0}
    with pytest.raises(InputError, match="size of dimension 1: expected 8"):
        pt2kit.compare_runs(path, path, [np.ones((3, 7), np.float32)])


def test_missing_numbers_are_located():
    """The first node with NaN is named, for each program."""
    path = samples.sample("2.13.0", "dynamic_batch")
    found = pt2kit.compare_runs(path, path, [np.full((3, 8), np.nan, np.float32)])
    assert found.same
    assert all(node is not None and node.operator == "aten.linear.default" for node in found.nonfinite)


def test_errors_are_those_of_the_less_precise_type():
    x = np.linspace(1, 2, 9)
    assert not error_of(x, x.astype(np.float32)).exceeds
    assert not error_of(x.astype(np.float32), x.astype(np.float16)).exceeds
    assert error_of(x, x + 1e-3).exceeds
    assert error_of(x, x[:3]).exceeds
    assert error_of(np.array([1, 2]), np.array([1, 3])).exceeds
    assert not error_of(np.array([np.nan, np.inf]), np.array([np.nan, np.inf])).exceeds
    assert error_of(np.array([np.nan]), np.array([1.0])).nonfinite == (1, 0)
    assert worst([error_of(1.0, 1.0), error_of(1.0, 2.0)]).max == 1.0
    assert worst([error_of(np.nan, 1.0), error_of(np.nan, 1.0), error_of(1.0, np.inf)]).nonfinite == (2, 1)
    assert error_of(None, None).max == 0.0


def test_the_command_prints_what_differs(tmp_path):
    """Exit code 1, the node and its line of code; --json has the same."""
    path = samples.sample("2.13.0", "mlp")
    number, node = next(places(path))
    other = tmp_path / "other.pt2"
    other.write_bytes(changed(path, number))
    done = pt2("diff", path, other, "--run")
    assert (done.code, f"first node that differs: {node} (" in done.out) == (1, True)
    tree = json.loads(pt2("diff", path, other, "--run", "--json").out)
    assert (tree["first"]["new"], tree["same"]) == (node, False)
    assert pt2("diff", path, path, "--run").code == 0


def test_places_in_another_tensor_are_a_difference():
    """Places that the other program's tensor does not have, and other results, are compared as they are."""
    given: dict[str | int, Any] = {"self": np.array([1, 2, 2], np.float32)}
    for old in ([np.array(7)], [np.array(2.0)], [], [np.array(2), np.array(2)], [2]):
        new = [np.array(1)]
        settle("aten.argmax.default", given, old, new)
        assert new == [1], old
    settle("aten.argmax.default", given, [np.array(2)], new)
    assert new == [2]


def test_factors_that_have_no_inverse():
    """Eigenvectors of a matrix that has too few, and ones that are NaN, are compared as they are."""
    values, vectors = np.ones(2, np.complex64), np.array([[1, -1], [0, 0]], np.complex64)
    for old in (-vectors, vectors * np.nan):
        new = [values, vectors.copy()]
        settle("aten.linalg_eig.default", {0: np.array([[1, 1], [0, 1]], np.float32)}, [values, old], new)
        assert np.array_equal(new[1], old) == np.isfinite(old).all()
