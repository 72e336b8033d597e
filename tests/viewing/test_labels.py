"""Labels and module calls of a drawing: module stacks, important arguments, names of inputs and outputs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests import samples

import pt2kit
from pt2kit.viewing.modules import module_calls, named_calls
from pt2kit.viewing.notes import leaf_names, node_note

MODELS = Path(__file__).parent / "models"
TIMES = "\N{MULTIPLICATION SIGN}"


@pytest.mark.parametrize(
    ("stack", "names"),
    [
        ("", None),
        ("s,,m.Net", []),
        ("s,,m.Net;a,layer1,m.Seq;b,layer1.0,m.Block;c,layer1.0.relu,m.ReLU", ["layer1", "0", "relu"]),
        ("s,,m.Net;c@2,relu,m.ReLU", ["relu@2"]),
        ("s,,m.Net;c,relu@1,m.ReLU", ["relu@1"]),
        ("s,,m.Net;a,model,m.Model;b,model.layers.3,m.Layer", ["model", "layers", "3"]),
        ("s,,m.Net;a,block,m.Block;b,shared.act,m.Act", ["block", "shared.act"]),
        ("s,,m.Net;a,block,m.Block;b,block,m.Block", ["block"]),
    ],
)
def test_module_calls(stack: str, names: list[str] | None) -> None:
    """Each module of a stack is one call in the one before; containers between them are calls, too."""
    found = module_calls(stack)
    assert (None if found is None else [call.name for call in found]) == names


def test_nesting_is_limited() -> None:
    """However deep a name is, there are few boxes."""
    assert len(named_calls(["a"] * 10_000)) == 64
    deep = ".".join("a" * 5000)
    assert len(module_calls(f"s,,m.Net;k,{deep},m.Deep") or ()) <= 64


def test_important_arguments() -> None:
    """Convolutions show kernel, stride and groups; defaults and endless ends are left out."""
    with pt2kit.open(gzip.decompress((MODELS / "resnet50.json.gz").read_bytes())) as package:
        program = package.programs["model"]
    graph = program.graph_module.graph
    from pt2kit.text.values import ValueTexts

    texts = ValueTexts(program)
    notes = [node_note(node, graph.tensor_values, texts) for node in graph.nodes[:4]]
    assert notes == [f"7{TIMES}7 s2", "eps 1e-05", "", f"3{TIMES}3 s2"]


def test_lists_of_positions() -> None:
    """Factors of a size have a cross between them; axes and paddings, which nobody multiplies, a comma."""
    with pt2kit.open(gzip.decompress((MODELS / "swin_t.json.gz").read_bytes())) as package:
        program = package.programs["model"]
    graph = program.graph_module.graph
    from pt2kit.text.values import ValueTexts

    texts = ValueTexts(program)
    notes = {node.target.split(".")[3]: node_note(node, graph.tensor_values, texts) for node in reversed(graph.nodes)}
    assert notes["permute"] == "dims 0,2,3,1"
    assert notes["pad"] == "0,0,0,0,0,0"
    assert notes["conv2d"] == f"4{TIMES}4 s4"


def test_names_of_callers() -> None:
    """Inputs are called as in `forward`, outputs by the keys of their containers."""
    with pt2kit.open(gzip.decompress((MODELS / "llama28.json.gz").read_bytes())) as package:
        assert leaf_names(package.programs["model"]) == (["input_ids", "attention_mask"], ["logits"])
    for path in samples.corpus()[::40]:
        with pt2kit.open(path) as package:
            for program in package.programs.values():
                inputs, outputs = leaf_names(program)
                assert all(isinstance(name, str) and name for name in (*inputs, *outputs))
