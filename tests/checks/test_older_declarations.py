"""Results that torch declared otherwise before 2.13: states of an LSTM with projections, indices of unique elements."""

from __future__ import annotations

from typing import Any

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


def with_unique(version: str, dtype: str) -> None:
    """Add a call for unique elements to a program of a release, with indices and counts of an element type."""
    program = pt2kit.open(sample("2.13.0", "mlp")).programs["model"]
    with pt2kit.edit(replace(program, torch_version=version)) as editor:
        metas = (tensor_meta("f32", [3]), tensor_meta(dtype, [3, 4]), tensor_meta(dtype, [3]))
        value = editor.user_outputs[0].value
        editor.graph.append("aten._unique2", value, return_inverse=True, return_counts=True, meta=metas)


def test_indices_in_the_type_of_values() -> None:
    """Fake tensors of older releases give indices and counts of unique elements the type of these."""
    for version in ("2.5.1+cu124", "2.12.1", ""):
        with_unique(version, "f32")
    with_unique("2.13.0", "i64")
    with pytest.raises(GraphError, match="expected dtype i64, got f32") as caught:
        with_unique("2.13.0", "f32")
    assert caught.value.rule == "T11"
