"""Programs that `check` reports and torch refuses to load, run or decompose: torch is asked."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.packages import edited

import pt2kit

PROGRAM = "models/model.json"
CONSTANTS = "data/constants/model_constants_config.json"
X = torch.ones(3)


class Buffers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.state: torch.Tensor
        self.register_buffer("state", torch.zeros(3))
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.constant = torch.full((3,), 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(x)
        return x * self.weight + self.constant


def _twice(tree: Any) -> None:
    for side in (tree["graph_module"]["signature"]["output_specs"], tree["graph_module"]["graph"]["outputs"]):
        side.insert(0, copy.deepcopy(side[0]))


def _stack(tree: Any) -> None:
    tree["graph_module"]["graph"]["nodes"][0]["metadata"]["nn_module_stack"] = "L__self__,a(b,c"


def _other_size(tree: Any) -> None:
    """Replace the value written to the buffer with a new tensor of other sizes."""
    graph = tree["graph_module"]["graph"]
    name = graph["outputs"][0]["as_tensor"]["name"]
    graph["tensor_values"][name]["sizes"] = [{"as_int": 5}]
    node = next(one for one in graph["nodes"] if one["outputs"][0].get("as_tensor", {}).get("name") == name)
    node["target"] = "torch.ops.aten.full.default"
    node["inputs"] = [
        {"name": "size", "arg": {"as_ints": [5]}, "kind": 1},
        {"name": "fill_value", "arg": {"as_float": 1.0}, "kind": 1},
    ]


def _in_both(tree: Any) -> None:
    tree["config"]["weight"] = next(iter(tree["config"].values()))


def load(path: Path) -> None:
    torch.export.load(path)


def run(path: Path) -> None:
    torch.export.load(path).module()(X)


def decompose(path: Path) -> None:
    torch.export.load(path).run_decompositions()


@pytest.mark.parametrize(
    ("change", "record", "rule", "use"),
    [
        (_twice, PROGRAM, "S7", load),
        (_stack, PROGRAM, "V5", load),
        (_other_size, PROGRAM, "S15", run),
        (_in_both, CONSTANTS, "P24", decompose),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_torch_refuses(
    tmp_path: Path, change: Callable[[Any], None], record: str, rule: str, use: Callable[[Path], None]
) -> None:
    path, changed = tmp_path / "sound.pt2", tmp_path / "changed.pt2"
    program = torch.export.export(Buffers(), (X,)).run_decompositions()
    torch.export.save(program, path)
    use(path)
    assert not pt2kit.check(path).errors
    changed.write_bytes(edited(path, change, record))
    assert rule in {problem.rule for problem in pt2kit.check(changed).errors}
    with pytest.raises(Exception, match=r"\S"):
        use(changed)


def test_converted_files_have_no_warning_about_versions(tmp_path: Path) -> None:
    path = tmp_path / "new.pt2"
    torch.export.save(torch.export.export(Buffers(), (X,)), path)
    for target in ("2.5", "2.7", "2.9"):
        old = tmp_path / f"{target}.pt2"
        pt2kit.convert(path, old, target=f"torch=={target}")
        assert "V2" not in {problem.rule for problem in pt2kit.check(old)}
