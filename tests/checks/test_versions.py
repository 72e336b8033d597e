"""Odd versions, dialects and operator sets of a program: warnings, errors or notes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, WEIGHTS, graph, program
from tests.packages import edited

from pt2kit.checks import check
from pt2kit.errors import Problem


def said(data: bytes) -> list[Problem]:
    """Return version problems."""
    return [problem for problem in check(data) if problem.rule[0] in "VO"]


def with_version(text: str) -> bytes:
    """A file of schema 8.20 that says which torch wrote it."""
    return program(MLP, lambda tree: tree.update(torch_version=text)).data


@pytest.mark.parametrize(
    "text",
    [
        "2.13.0",
        "2.12.1+cu130",
        "2.15.0",
        "2.12.0.dev20260301+cpu",
        "2.9.0a0+git1",
        "2.13.0rc2",
        "3.0.1",
        "<=2.4",
        "2.9.1",
    ],
)
def test_versions_that_fit(text: str) -> None:
    """Releases, builds between them, releases that are not known yet, and those that write another schema."""
    assert said(with_version(text)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a version such as '2.13.0', got ''"),
        ("latest", "expected a version such as '2.13.0', got 'latest'"),
    ],
)
def test_versions_that_do_not(text: str, message: str) -> None:
    """Other texts are warned of."""
    assert said(with_version(text)) == [Problem("models/model.json: $.torch_version", "V2", message, "warning")]


def test_dialects_and_operator_sets() -> None:
    """Unknown dialects are errors, unknown operator sets warnings, at their places."""

    def change(tree: Any) -> None:
        tree["verifiers"] = ["TRAINING", "EDGE", "MINE"]
        tree["opset_version"] = {"aten": 0, "mine": 3}

    assert [(problem.loc, problem.rule, problem.kind) for problem in said(program(MLP, change).data)] == [
        ("models/model.json: $.verifiers[2]", "V3", "error"),
        ("models/model.json: $.opset_version.aten", "O1", "error"),
        ("models/model.json: $.opset_version.mine", "O2", "warning"),
    ]


@pytest.mark.parametrize(("minor", "kind"), [(20, "warning"), (21, "note")])
def test_unknown_keys(minor: int, kind: str) -> None:
    """Keys that this build does not know are odd in a version that it knows, to be expected in a newer one."""

    def change(tree: Any) -> None:
        tree["schema_version"]["minor"] = minor
        tree["torch_version"] = "2.13.0" if minor == 20 else "2.16.0"
        graph(tree)["novelty"] = 1

    [problem] = said(program(MLP, change).data)
    assert (problem.loc, problem.rule, problem.kind) == (
        "models/model.json: $.graph_module.graph.novelty",
        "V4",
        kind,
    )


def test_unknown_keys_of_payloads() -> None:
    """Keys in the lists of payloads are told too."""
    [problem] = said(edited(MLP, lambda tree: tree["config"]["0.bias"].update(novelty=1), WEIGHTS))
    assert (problem.rule, problem.loc) == ("V4", f'{WEIGHTS}: $.config["0.bias"].novelty')
