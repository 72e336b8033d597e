"""States of an LSTM with projections, which torch declared with one dimension too many before 2.13."""

from __future__ import annotations

from typing import Any

import pytest
from tests.packages import edited
from tests.samples import sample

import pt2kit

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
