"""Memory that nothing was written to: what reads or returns it, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, Mutation, call, graph, new_value, program, tensor

from pt2kit.checks import check

EMPTY = ("empty_like.default", "e", {"self": tensor("relu")})


def chain(*calls: tuple[str, str, dict[str, Any]], returned: str = "") -> Mutation:
    """A file with more calls at its end, the last result of which may be returned."""

    def change(tree: Any) -> None:
        for target, result, arguments in calls:
            new_value(tree, result, "relu")
            graph(tree)["nodes"].append(call(f"torch.ops.{target}", result, **arguments))
        if returned:
            graph(tree)["outputs"][0] = tensor(returned)

    return program(MLP, change)


def said(*calls: tuple[str, str, dict[str, Any]], returned: str = "") -> list[str]:
    """What is said of memory that nothing was written to."""
    named = [(f"aten.{target}" if "." in target and target[0] != "m" else target, *rest) for target, *rest in calls]
    found = check(chain(*named, returned=returned).data)  # type: ignore[arg-type]
    return [problem.message for problem in found if problem.rule == "X11"]


E, F, R = tensor("e"), tensor("f"), tensor("relu")
READ = ("add.Tensor", "g", {"self": R, "other": E})


@pytest.mark.parametrize(
    ("calls", "returned", "expected"),
    [
        ([EMPTY], "", []),
        ([EMPTY], "e", ["returns 'e', whose memory nothing was written to"]),
        ([EMPTY, READ], "", []),
        ([EMPTY, READ], "g", ["reads 'e', whose memory nothing was written to"]),
        ([EMPTY, READ, (*READ[:1], "h", READ[2])], "g", ["reads 'e', whose memory nothing was written to"]),
        ([EMPTY, ("relu.default", "f", {"self": E})], "f", ["reads 'e', whose memory nothing was written to"]),
        ([EMPTY, ("zero_.default", "f", {"self": E}), READ], "e", []),
        ([EMPTY, ("copy_.default", "f", {"self": E, "src": R})], "e", []),
        ([EMPTY, ("fill.Scalar", "f", {"self": E, "value": {"as_int": 1}})], "f", []),
        ([EMPTY, ("zeros_like.default", "f", {"self": E})], "f", []),
        ([EMPTY, ("sym_size.int", "f", {"self": E, "dim": {"as_int": 0}})], "", []),
        (
            [EMPTY, ("view.default", "f", {"self": E, "size": {"as_ints": [1]}})],
            "f",
            ["returns 'f', whose memory nothing was written to (it comes from 'e')"],
        ),
        (
            [EMPTY, ("clone.default", "f", {"self": E})],
            "f",
            ["returns 'f', whose memory nothing was written to (it comes from 'e')"],
        ),
        (
            [EMPTY, ("view.default", "f", {"self": E, "size": {"as_ints": [1]}}), ("zero_.default", "g", {"self": F})],
            "e",
            [],
        ),
        ([EMPTY, ("mine.op.default", "f", {"x": E})], "e", []),
        ([EMPTY, ("add.out", "f", {"self": R, "other": R, "out": E})], "e", []),
        (
            [EMPTY, ("copy_.default", "f", {"self": R, "src": E})],
            "relu",
            ["reads 'e', whose memory nothing was written to"],
        ),
    ],
)
def test_taint(calls: Any, returned: str, expected: list[str]) -> None:
    """Reading and returning is found, through views and copies; writing makes it clean under every name."""
    assert said(*calls, returned=returned) == expected


def test_tensors_without_elements() -> None:
    """A tensor without elements holds no memory."""

    def change(tree: Any) -> None:
        new_value(tree, "e", "relu")
        graph(tree)["tensor_values"]["e"]["sizes"][0] = {"as_int": 0}
        graph(tree)["nodes"].append(call("torch.ops.aten.empty_like.default", "e", self=R))
        graph(tree)["nodes"].append(call("torch.ops.aten.relu.default", new_value(tree, "f", "relu"), self=E))

    assert not [problem for problem in check(program(MLP, change).data) if problem.rule == "X11"]
