"""Calls against the operators of torch: what is an error, a warning or a note, and what is said."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, OPERATORS, TOKENS, graph, nodes, program

from pt2kit.checks import check
from pt2kit.errors import Problem


def found(data: bytes) -> list[Problem]:
    """The problems about targets."""
    return [problem for problem in check(data) if problem.rule.startswith("T")]


def in_release(release: str, change: Any) -> bytes:
    """A file that says it is of another release."""

    def apply(tree: Any) -> None:
        tree["torch_version"] = release
        change(graph(tree)["nodes"])

    return program(MLP, apply).data


def bogus(found: list[Any]) -> None:
    """Give a call an argument too many."""
    found[1]["inputs"].append({"name": "bogus", "arg": {"as_int": 1}, "kind": 1})


def nope(found: list[Any]) -> None:
    """Call an operator that is not there."""
    found[1]["target"] = "torch.ops.aten.relu.nope"


def test_messages() -> None:
    """A message names the operator, what it has, what it got, and the place."""
    [problem] = found(nodes(MLP, bogus).data)
    assert problem == Problem(
        "models/model.json: $.graph_module.graph.nodes[1].inputs[1].name",
        "T3",
        "expected an argument of aten.relu.default (self), got 'bogus'",
    )
    [problem] = found(nodes(MLP, nope).data)
    assert problem.message == (
        "expected an operator that torch has, got 'torch.ops.aten.relu.nope'; there is aten.relu.default, aten.relu.out"
    )


@pytest.mark.parametrize(("release", "kind"), [("2.13.1", "error"), ("2.6.0", "error"), ("2.99.0", "warning")])
def test_other_releases(release: str, kind: str) -> None:
    """A call that does not fit is an error in programs of known releases, a warning in those of others."""
    [problem] = found(in_release(release, bogus))
    assert (problem.rule, problem.kind) == ("T3", kind)
    assert (f"(as torch 2.15 has it; the program is of torch {release[:4]})" in problem.message) == (kind != "error")


@pytest.mark.parametrize(
    ("release", "target", "expected"),
    [
        ("2.13.0+cu130", "aten.relu.nope", ("T1", "error")),
        ("2.7.1", "aten.relu.nope", ("T1", "error")),
        ("2.99.0", "aten.relu.nope", ("T1", "error")),
        ("2.1.0", "aten._scaled_dot_product_attention_math_for_mps.default", ("T1", "error")),
        ("2.99.0", "aten._scaled_dot_product_attention_math_for_mps.nope", ("T1", "error")),
        ("2.13.0", "higher_order.nope", ("T1", "error")),
        ("2.1.0", "higher_order.scan", ("T2", "note")),
        ("2.13.0", "quantized.nope.default", ("T1", "error")),
        ("2.13.0", "quantized_decomposed.nope.default", ("T2", "note")),
    ],
)
def test_operators_of_other_releases(release: str, target: str, expected: tuple[str, str]) -> None:
    """Operators of no release are errors; so are those of other releases if every build has all of the namespace."""

    def change(found: list[Any]) -> None:
        found[1]["target"] = f"torch.ops.{target}"

    assert expected in {(p.rule, p.kind) for p in found(in_release(release, change))}


def test_namespaces_are_told_once() -> None:
    """Operators of libraries are not checked; that is said once for each namespace, with the number of calls."""

    def change(found: list[Any]) -> None:
        for number, target in enumerate(("mine.a.default", "mine.b.default", "yours.c.default")):
            found[number]["target"] = f"torch.ops.{target}"

    messages = [problem.message for problem in found(nodes(MLP, change).data)]
    assert messages == [
        "operators of the namespace 'mine', of a library: 2 calls not checked",
        "operators of the namespace 'yours', of a library: 1 call not checked",
    ]


def test_operators_as_arguments() -> None:
    """An operator that is an argument of another one must exist too."""

    def change(found: list[Any]) -> None:
        found[0]["inputs"][1]["arg"] = {"as_operator": "torch.ops.aten.nope.default"}

    assert [problem.rule for problem in found(nodes(TOKENS, change).data)] == ["T1"]


def test_arguments_given_twice() -> None:
    """An argument that is there twice is said so."""
    [problem] = found(nodes(MLP, lambda n: n[1]["inputs"].append(n[1]["inputs"][0])).data)
    assert (problem.rule, problem.message) == ("T3", "expected 'self' once, got it twice")


def test_functions_over_numbers() -> None:
    """Python's operators take as many arguments as they take."""
    where: list[int] = []

    def change(found: list[Any]) -> None:
        where.append(next(number for number, node in enumerate(found) if node["target"] == "_operator.add"))
        found[where[0]]["inputs"].pop()

    [problem] = found(nodes(OPERATORS, change).data)
    assert (problem.rule, problem.message) == ("T4", "expected 2 arguments of _operator.add, got 1")
    assert problem.loc.endswith(f"nodes[{where[0]}].inputs")


def test_results() -> None:
    """The number and the kind of results are those of the operator."""

    def two(found: list[Any]) -> None:
        found[1]["outputs"].append({"as_none": True})

    [problem] = found(nodes(MLP, two).data)
    assert problem.message == "expected 1 output, as many as aten.relu.default has, got 2"
    [problem] = found(nodes(MLP, lambda n: n[1].update(outputs=[{"as_tensors": [{"name": "relu"}]}])).data)
    assert problem.message == "expected Tensor as result 0 of aten.relu.default, got as_tensors"
    problems = found(nodes(MLP, lambda n: n[1].update(target="torch.ops.aten.item.default")).data)
    assert problems[0].message == "expected Scalar as result 0 of aten.item.default, got as_tensor"


def test_older_releases_leave_numbers_out_of_results() -> None:
    """Up to torch 2.2 a node lists the tensors among its results alone."""
    target = "torch.ops.aten._scaled_dot_product_flash_attention.default"

    def change(found: list[Any]) -> None:
        found[1]["target"] = target
        found[1]["outputs"] = [{"as_tensor": {"name": f"result_{n}"}} for n in range(7)]

    assert "T6" not in {problem.rule for problem in found(in_release("2.2.0", change))}
    assert "T6" in {problem.rule for problem in found(in_release("2.13.0", change))}
