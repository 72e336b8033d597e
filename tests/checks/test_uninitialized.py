"""Memory that nothing was written to (X11): a warning where a program returns it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, call, graph, new_value, program, tensor

from pt2kit.checks import check


def said(*calls: tuple[str, str, dict[str, Any]], returned: str) -> list[str]:
    """Return X11's messages for a file that ends with calls and returns a value."""

    def change(tree: Any) -> None:
        for target, name, arguments in calls:
            graph(tree)["nodes"].append(call(f"torch.ops.aten.{target}", new_value(tree, name, "relu"), **arguments))
        old = graph(tree)["outputs"][0]["as_tensor"]["name"]
        graph(tree)["outputs"][0] = tensor(returned)
        for spec in tree["graph_module"]["signature"]["output_specs"]:
            for value in spec.values():
                if value["arg"].get("as_tensor", {}).get("name") == old:
                    value["arg"] = tensor(returned)

    found = [problem for problem in check(program(MLP, change).data) if problem.rule == "X11"]
    assert all(problem.severity == "warning" for problem in found)
    return [problem.message for problem in found]


EMPTY = ("empty_like.default", "e", {"self": tensor("relu")})
VIEW = ("alias.default", "v", {"self": tensor("e")})
FILL = ("fill_.Scalar", "f", {"self": tensor("v"), "value": {"as_int": 1}})


@pytest.mark.parametrize(
    ("calls", "returned", "expected"),
    [
        ((EMPTY,), "e", "returns 'e', which may be uninitialized memory: nothing is written to it"),
        ((EMPTY, VIEW), "v", "returns 'v', a view of 'e', which may be uninitialized memory: nothing is written to it"),
        ((EMPTY, VIEW, FILL), "e", None),
        ((EMPTY,), "relu", None),
    ],
)
def test_returned(calls: Any, returned: str, expected: str | None) -> None:
    """A result of `empty` and its like, or a view of it, that nothing writes to."""
    assert said(*calls, returned=returned) == ([] if expected is None else [expected])
