"""A node as a call: plain values, the names of values, and what it asks for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, call, graph, new_value, program, sizes_of, tensor

from pt2kit.checks import schemas
from pt2kit.checks.plain_calls import Call, argument_of, asked_sizes, call_of, declared, names_of, permuted_strides
from pt2kit.graph.traversal import Step, walk
from pt2kit.package.open import open_package


def last_call(target: str, **arguments: Any) -> Call:
    """The last call of a program, as rules see it."""

    def change(tree: Any) -> None:
        sizes_of(tree, new_value(tree, "extra", "relu"), {"as_expr": {"expr_str": "s77", "hint": None}}, 4)
        graph(tree)["nodes"].append(call(f"torch.ops.{target}", "extra", **arguments))

    with open_package(program(MLP, change).data) as package:
        step: Step = list(walk(package.programs["model"]))[-1]
    signature = schemas.find(f"torch.ops.{target}", "2.13")
    assert signature is not None
    return call_of(step, f"torch.ops.{target}".split("."), signature)


def test_call() -> None:
    """Values and plain arguments are told apart, names are taken apart, results are in order."""
    made = last_call("aten.add.Tensor", self=tensor("relu"), other=tensor("x"), alpha={"as_int": 2})
    assert (made.operator, made.name, made.overload, made.results) == ("aten.add", "add", "Tensor", ["extra"])
    assert made.values == {"self": ["relu"], "other": ["x"]}
    assert made.plain["alpha"] == 2
    assert list(made.numbers) == []


@pytest.mark.parametrize(
    ("argument", "plain"),
    [
        ({"as_ints": [2, -1]}, [2, -1]),
        ({"as_sym_ints": [{"as_name": "n"}, {"as_int": 3}]}, ["n", 3]),
        ({"as_none": True}, None),
    ],
)
def test_plain_values(argument: Any, plain: Any) -> None:
    """Symbols are their names, nothing is None."""
    assert last_call("aten.view.default", self=tensor("relu"), size=argument).plain["size"] == plain


def test_numbers_that_are_computed() -> None:
    """Values that go where no tensor goes are told by themselves."""
    size = {"as_sym_ints": [{"as_name": "n"}, {"as_int": 3}]}
    assert list(last_call("aten.view.default", self=tensor("relu"), size=size).numbers) == [["n"]]


def test_arguments_as_they_stand() -> None:
    """An argument is found by its name, with what a plain value leaves out."""
    indices = {"as_optional_tensors": [{"as_none": True}, tensor("relu")]}
    made = last_call("aten.index.Tensor", self=tensor("relu"), indices=indices)
    argument = argument_of(made, "indices")
    assert argument is not None
    assert names_of([argument]) == made.values["indices"] == ["relu"]
    assert isinstance(argument.as_optional_tensors, list)
    assert len(argument.as_optional_tensors) == 2
    assert argument_of(made, "values") is None


def test_declared() -> None:
    """Sizes as they are declared; symbols are None, and so is a value that nobody describes."""
    scope = last_call("aten.relu.default", self=tensor("relu")).step.scope
    assert declared(scope.graph.tensor_values["extra"]) == (None, 4)
    assert declared(None) is None


@pytest.mark.parametrize(
    ("plain", "sizes"),
    [
        ({"size": [2, "n", 3]}, (2, None, 3)),
        ({"shape": [2]}, (2,)),
        ({"size": [-1, 4]}, (None, 4)),
        ({"size": []}, ()),
        ({"dim": [2]}, None),
        ({"size": 4}, None),
    ],
)
def test_asked_sizes(plain: Any, sizes: Any) -> None:
    """The sizes that a call asks for, by either name."""
    assert asked_sizes(plain) == sizes


@pytest.mark.parametrize(
    ("sizes", "layout", "strides"),
    [
        ((2, 3, 4), [0, 1, 2], [12, 4, 1]),
        ((2, 3, 4), [2, 0, 1], [3, 1, 6]),
        ((2, 0, 4), [0, 1, 2], [4, 4, 1]),
        ((), [], []),
        ((2, 3), [0, 0], None),
        ((2, 3), [1], None),
        ((2, 3), [0, "n"], None),
    ],
)
def test_permuted_strides(sizes: Any, layout: Any, strides: Any) -> None:
    """The last of the layout steps by one; an order that is none has no strides."""
    assert permuted_strides(sizes, layout) == strides
