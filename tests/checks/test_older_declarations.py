"""Results that torch declared otherwise before 2.13: states of projected LSTMs, quotients, unique elements, counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.packages import edited
from tests.samples import sample

import pt2kit
from pt2kit.editing import tensor_meta
from pt2kit.errors import GraphError

LSTM = "torch.ops.aten.lstm.input"


def projected(version: str, *, sizes: list[int]) -> Any:
    """Return a change: the states of the LSTM have these sizes, in a file of a release."""

    def change(tree: Any) -> None:
        tree["torch_version"] = version
        graph = tree["graph_module"]["graph"]
        (node,) = (node for node in graph["nodes"] if node["target"] == LSTM)
        for output in node["outputs"][1:]:
            meta = graph["tensor_values"][output["as_tensor"]["name"]]
            meta["sizes"] = [{"as_int": size} for size in sizes]
            meta["strides"] = [{"as_int": 6}] * len(sizes)

    return change


@pytest.mark.parametrize(
    ("version", "sizes", "wrong"),
    [
        ("2.5.1+cu124", [4, 1, 1, 6], 0),
        ("2.10.0", [4, 1, 1, 6], 0),
        ("2.13.0", [4, 1, 1, 6], 2),
        ("2.5.1", [4, 1, 2, 6], 2),
        ("2.5.1", [1, 4, 1, 6], 2),
    ],
)
def test_states_with_a_dimension_too_many(version, sizes, wrong) -> None:
    """The extra dimension is after the layers, and of older releases alone."""
    problems = pt2kit.check(edited(sample("2.13.0", "embedding_lstm"), projected(version, sizes=sizes)))
    assert [problem.rule for problem in problems if problem.rule == "T8"] == ["T8"] * wrong


def with_call(version: str, operator: str, *operands: str, metas: Any, **options: Any) -> pt2kit.Package:
    """Return a program of a release with inputs of 3 elements, a call, and its first result plus one as an output."""
    with pt2kit.edit(edited(sample("2.13.0", "mlp"), lambda tree: tree.update(torch_version=version))) as editor:
        given = [editor.add_input(f"given{n}", tensor_meta(dtype, [3])) for n, dtype in enumerate(operands)]
        made = editor.graph.append(operator, *given, meta=metas, **options)
        last = made.outputs[-1]
        editor.add_output(editor.graph.append("aten.add.Tensor", last, 1, meta=last).output)
    return editor.result


QUOTIENT: Any = ("aten.div.Tensor", "i64", "i64")
UNIQUE: Any = ("aten._unique2", "f32")


def unique_metas(dtype: str) -> Any:
    """Return metas of unique elements with indices and counts of an element type."""
    return tensor_meta("f32", [3]), tensor_meta(dtype, [3]), tensor_meta(dtype, [3])


@pytest.mark.parametrize("version", ["2.5.1+cu124", "2.12.1", ""])
def test_types_of_operands(version) -> None:
    """Older releases give quotients of integers, and indices of unique elements, the type of the operands; sessions the
    type that kernels return."""
    x = np.ones((3, 8), np.float32)
    divided = with_call(version, *QUOTIENT, metas=tensor_meta("i64", [3]))
    *_, found = pt2kit.run(divided, x, np.array([1, 2, 3]), np.array([2, 2, 2]))
    assert found.dtype == np.float32
    assert found.tolist() == [1.5, 2, 2.5]
    counted = with_call(version, *UNIQUE, metas=unique_metas("f32"), return_inverse=True, return_counts=True)
    *_, found = pt2kit.run(counted, x, np.array([2, 1, 2], np.float32))
    assert found.dtype == np.int64
    assert found.tolist() == [2, 3]
    summed = with_call(version, "aten.bincount", "i64", "i32", metas=tensor_meta("i64", ["u0"]))
    *_, found = pt2kit.run(summed, x, np.array([0, 1, 1]), np.array([2, 3, 4], np.int32))
    assert found.dtype == np.float64
    assert found.tolist() == [3, 8]


def test_types_of_kernels() -> None:
    """Since 2.13, these are errors."""
    with_call("2.13.0", *QUOTIENT, metas=tensor_meta("f32", [3]))
    with pytest.raises(GraphError, match="expected dtype f32, got i64") as caught:
        with_call("2.13.0", *QUOTIENT, metas=tensor_meta("i64", [3]))
    assert caught.value.rule == "T11"
    with pytest.raises(GraphError, match="expected dtype i64, got f32"):
        with_call("2.13.0", *UNIQUE, metas=unique_metas("f32"), return_inverse=True, return_counts=True)


def with_found(version: str) -> None:
    """Search an empty tensor for elements that are not 0, whose number is stated as 2 or more."""
    program = pt2kit.open(sample("2.13.0", "mlp")).programs["model"]
    with pt2kit.edit(replace(program, torch_version=version)) as editor:
        nothing = editor.graph.append("aten.zeros", [0], dtype="f32", meta=tensor_meta("f32", [0])).output
        editor.ranges["u0"] = (2, None)
        editor.graph.append("aten.nonzero", nothing, meta=tensor_meta("i64", ["u0", 1]))


def test_counts_of_two_or_more() -> None:
    """Torch 2.2 states this of any size that depends on data."""
    with_found("2.2.1")
    with pytest.raises(GraphError, match="expected sizes") as caught:
        with_found("2.13.0")
    assert caught.value.rule == "T8"
