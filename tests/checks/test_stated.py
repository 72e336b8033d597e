"""Calls against what they state of their results: a type, sizes, dimensions, an assertion."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, call, graph, new_value, program, sizes_of, tensor

from pt2kit.checks.program_context import ProgramContext, context_of
from pt2kit.checks.stated import stated_problems
from pt2kit.package.open import open_package

RELU = {"self": tensor("relu")}  # 3 by 16 floats
FLOAT, DOUBLE, LONG = ({"as_scalar_type": number} for number in (7, 8, 5))


def ints(*numbers: int) -> dict[str, Any]:
    return {"as_ints": list(numbers)}


def some(*numbers: int | str) -> dict[str, Any]:
    """Sizes of which some are symbols."""
    entries = [{"as_int": number} if isinstance(number, int) else {"as_name": number} for number in numbers]
    return {"as_sym_ints": entries}


def context(change: Any) -> ProgramContext:
    """A changed program, as rules get it."""
    with open_package(program(MLP, change).data) as package:
        stored = package.stored["model"]
        return context_of(stored.program, "models/model.json", stored.version)


def said(target: str, sizes: tuple[int, ...], **arguments: Any) -> list[tuple[str, str]]:
    """What is said of a file with one more call, whose result is declared to have these sizes, and floats."""

    def change(tree: Any) -> None:
        new_value(tree, "extra", "relu")
        sizes_of(tree, "extra", *sizes)
        graph(tree)["nodes"].append(call(f"torch.ops.aten.{target}", "extra", **arguments))

    found = list(stated_problems(context(change)))
    assert all(problem.loc == "models/model.json: $.graph_module.graph.nodes[3]" for problem in found)
    return [(problem.rule, problem.message) for problem in found]


SOUND: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("_to_copy.default", (3, 16), {**RELU, "dtype": FLOAT}),
    ("_to_copy.default", (3, 16), {**RELU, "dtype": {"as_none": True}}),
    ("linalg_vector_norm.default", (), {**RELU, "dtype": DOUBLE}),
    ("select.int", (3,), {**RELU, "dim": {"as_int": -1}, "index": {"as_int": 0}}),
    ("unsqueeze.default", (3, 16, 1), {**RELU, "dim": {"as_int": 2}}),
    ("unsqueeze.default", (1, 3, 16), {**RELU, "dim": {"as_int": -3}}),
    ("permute.default", (16, 3), {**RELU, "dims": ints(-1, 0)}),
    ("view.default", (48,), {**RELU, "size": ints(-1)}),
    ("view.default", (4, 12), {**RELU, "size": some("s0", 12)}),
    ("expand.default", (2, 3, 16), {**RELU, "size": ints(2, -1, -1)}),
    ("_assert_tensor_metadata.default", (3, 16), {"a": tensor("relu"), "dtype": FLOAT, "layout": {"as_layout": 7}}),
]
WRONG: list[tuple[str, tuple[int, ...], dict[str, Any], str, str]] = [
    (
        *("_to_copy.default", (3, 16), {**RELU, "dtype": DOUBLE}, "T11"),
        "expected a result of the type that is asked for, DOUBLE, got FLOAT declared",
    ),
    (
        *("select.int", (3,), {**RELU, "dim": {"as_int": 2}, "index": {"as_int": 0}}, "T12"),
        "expected dimensions from -2 to 1 as dim, got 2",
    ),
    (
        *("unsqueeze.default", (3, 16, 1), {**RELU, "dim": {"as_int": 3}}, "T12"),
        "expected dimensions from -3 to 2 as dim, got 3",
    ),
    (
        *("transpose.int", (16, 3), {**RELU, "dim0": {"as_int": 0}, "dim1": {"as_int": -3}}, "T12"),
        "expected dimensions from -2 to 1 as dim1, got -3",
    ),
    (
        *("permute.default", (3, 3), {**RELU, "dims": ints(0, -2)}, "T12"),
        "expected each of 2 dimensions once, got [0, -2]",
    ),
    (
        *("sum.dim_IntList", (), {**RELU, "dim": ints(0, 10**30)}, "T12"),
        "expected dimensions from -2 to 1 as dim, got 100000000000000000000000",
    ),
    (
        *("view.default", (4, 12), {**RELU, "size": ints(12, 4)}, "T8"),
        "expected a result of the sizes that are asked for, [12, 4], got [4, 12] declared",
    ),
    (
        *("view.default", (4, 12), {**RELU, "size": some("s0", 4)}, "T8"),
        "expected a result of the sizes that are asked for, [?, 4], got [4, 12] declared",
    ),
    (
        *("reshape.default", (48,), {**RELU, "shape": ints(-1, 48)}, "T8"),
        "expected a result of the sizes that are asked for, [-1, 48], got [48] declared",
    ),
    (
        *("_assert_tensor_metadata.default", (3, 16), {"a": tensor("relu"), "dtype": LONG}, "T11"),
        "expected the assertion of dtype to hold, FLOAT, got",
    ),
]


@pytest.mark.parametrize(("target", "sizes", "arguments"), SOUND)
def test_sound(target: str, sizes: tuple[int, ...], arguments: Any) -> None:
    """What agrees with its declaration, or leaves a size open, is nothing to be told."""
    assert said(target, sizes, **arguments) == []


@pytest.mark.parametrize(("target", "sizes", "arguments", "rule", "message"), WRONG)
def test_wrong(target: str, sizes: tuple[int, ...], arguments: Any, rule: str, message: str) -> None:
    """Each contradiction is one problem, which says both sides."""
    ((found, text),) = said(target, sizes, **arguments)
    assert (found, text[: len(message)]) == (rule, message)


def test_operators_of_others() -> None:
    """Of operators that are not torch's own, nothing is known."""

    def change(tree: Any) -> None:
        new_value(tree, "extra", "relu")
        graph(tree)["nodes"].append(call("torch.ops.mine.view.default", "extra", **RELU, size=ints(1), dtype=LONG))

    assert list(stated_problems(context(change))) == []
