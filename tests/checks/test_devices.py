"""Devices that torch does not have, wherever a program names them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import COND, JOINT, MLP, graph, program

from pt2kit.checks import check

ROOT = "models/model.json: $.graph_module.graph"


def said(data: bytes) -> list[tuple[str, str]]:
    """Place and message of what is said of devices."""
    return [(problem.loc, problem.message) for problem in check(data) if problem.rule == "P6"]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ({"type": "cuda", "index": 3}, None),
        ({"type": "meta", "index": None}, None),
        ({"type": "evil", "index": None}, "expected a device type of torch (cpu, cuda, mps, xpu, …), got evil"),
        ({"type": "cuda", "index": 128}, "expected an index from 0 to 127, got 128"),
        ({"type": "cpu", "index": -1}, "expected an index from 0 to 127, got -1"),
    ],
)
def test_values(device: dict[str, Any], expected: str | None) -> None:
    """The device of a value is one that torch has; each bad one is reported once, at its first value."""

    def change(tree: Any) -> None:
        for name in ("relu", "linear_1"):
            graph(tree)["tensor_values"][name]["device"] = device

    place = f"{ROOT}.tensor_values.relu: device"
    assert said(program(MLP, change).data) == ([(place, expected)] if expected else [])


def test_subgraphs_and_arguments() -> None:
    """Devices of subgraphs and those that calls ask for are looked at as well."""

    def inside(tree: Any) -> None:
        inner = graph(tree)["nodes"][0]["inputs"][1]["arg"]["as_graph"]["graph"]
        next(iter(inner["tensor_values"].values()))["device"]["type"] = "evil"

    [(place, _)] = said(program(COND, inside).data)
    assert place.startswith(f"{ROOT}.nodes[0].inputs[1].arg.as_graph.graph.tensor_values.")

    def asked(tree: Any) -> None:
        node = next(node for node in graph(tree)["nodes"] if node["target"].endswith("scalar_tensor.default"))
        next(named for named in node["inputs"] if named["name"] == "device")["arg"]["as_device"]["type"] = "evil"

    [(place, _)] = said(program(JOINT, asked).data)
    assert place == f"{ROOT}.nodes[5].inputs[3].arg: device"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu", []),
        ("evil:0", [("P6", "expected a device type of torch (cpu, cuda, mps, xpu, …), got evil")]),
        ("two words", [("P6", "expected a device type of torch (cpu, cuda, mps, xpu, …), got two words")]),
        ("cuda:0", [("T15", "expected a result on cuda:0, got cpu declared (aten.scalar_tensor.default)")]),
    ],
)
def test_texts(text: str, expected: list[tuple[str, str]]) -> None:
    """torch accepts the text of a device as an argument; it is compared with the result like a device."""

    def asked(tree: Any) -> None:
        node = next(node for node in graph(tree)["nodes"] if node["target"].endswith("scalar_tensor.default"))
        next(named for named in node["inputs"] if named["name"] == "device")["arg"] = {"as_string": text}

    found = check(program(JOINT, asked).data)
    assert [(one.rule, one.message) for one in found if one.kind != "note"] == expected
