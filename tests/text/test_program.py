"""A whole program as lines."""

from __future__ import annotations

from typing import Any

import pytest
from tests import samples
from tests.packages import edited

import pt2kit
from pt2kit.graph import walk
from pt2kit.node_metadata.modules import module_of
from pt2kit.text.program import program_lines, target_text

CURRENT = samples.corpus(*samples.CURRENT_LAYOUT)


@pytest.mark.parametrize("path", CURRENT, ids=samples.release_id)
def test_real_files(path) -> None:
    """Every node has its line, and every line prints."""
    with pt2kit.open(path) as package:
        for program in package.programs.values():
            lines = list(program_lines(program))
            assert all(line.isprintable() and line == line.rstrip() for line in lines)
            body = lines[lines.index("nodes") + 1 : lines.index("outputs")]
            calls = [line for line in body if not line.strip().startswith(("@", "return "))]
            assert len(calls) == sum(1 for _ in walk(program))


def _lines(change) -> list[str]:
    with pt2kit.open(edited(samples.sample("2.13.0", "dynamic_batch"), change)) as package:
        return list(program_lines(package.programs["model"]))


def test_hostile_texts() -> None:
    """Names, targets and guards that hold control characters or quotes are escaped."""

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        graph["nodes"][0]["target"] = "torch.ops.a\x1b[2J.b"
        graph["nodes"][0]["metadata"]["nn_module_stack"] = "a,x\x1b[31m y,T"
        graph["nodes"][1]["inputs"][0]["name"] = 'self"\n'
        graph["nodes"][1]["outputs"][0] = {"as_tensor": {"name": "no such value\t"}}
        tree["guards_code"] = ["L['x']\x07 == 1"]
        tree["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = "w\x9b"

    text = "\n".join(_lines(change))
    assert all(line.isprintable() for line in text.split("\n"))
    for shown in ("a\\x1b[2J.b", '"x\\x1b[31m y"', '"self\\"\\n"=%', '%"no such value\\t"', "\\x07 == 1", '"w\\x9b"'):
        assert shown in text


def test_inputs_without_a_spec() -> None:
    """A graph with more inputs than specs is printed all the same."""
    lines = _lines(lambda tree: tree["graph_module"]["signature"].update(input_specs=[], output_specs=[]))
    assert "  %x: f32[s77, 8]  (no spec)" in lines


def test_small_answers() -> None:
    """Targets lose what all of them share; a node's module is the innermost of its stack."""
    assert target_text("torch.ops.aten.add.Tensor") == "aten.add.Tensor"
    assert target_text("_operator.mul") == "_operator.mul"
    with pt2kit.open(samples.sample("2.13.0", "dynamic_batch")) as package:
        nodes = package.programs["model"].graph_module.graph.nodes
    assert [module_of(node.metadata) for node in nodes] == ["a", "", "b"]
