"""Names that torch replaces, and the file's names next to them."""

from __future__ import annotations

import copy
import io
import pickle
from types import SimpleNamespace

import torch
from torch import fx

import pt2kit
from pt2kit.bridge.callables import StoredName, stored_name


def test_a_name_that_remembers():
    """It is the live name, and remembers the file's through copies."""
    name = StoredName("assert_unused", "assert_1")
    for made in (name, copy.deepcopy(name), pickle.loads(pickle.dumps(name))):
        assert made == "assert_unused"
        assert made.stored == "assert_1"


def test_what_is_written():
    """The file's name, unless another node has it now."""
    graph = fx.Graph()
    node = graph.call_function(abs, (1,), name="live")
    assert stored_name(node) == "live"
    node.name = StoredName("live", "stored")
    assert stored_name(node) == "stored"
    graph.call_function(abs, (2,), name="stored")
    assert stored_name(node) == "live"
    assert type(stored_name(SimpleNamespace(name="a"))) is str


def test_an_operator_without_tensors():
    """A result that the format has no place for does not keep a loaded program from being saved."""

    class Promoting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.promote_types(x.dtype, torch.float32)) * 2

    first, second = io.BytesIO(), io.BytesIO()
    torch.export.save(torch.export.export(Promoting(), (torch.ones(2),)), first)
    pt2kit.save(pt2kit.load(first.getvalue()), second)
    before, after = (pt2kit.open(file.getvalue()).programs["model"].graph_module.graph for file in (first, second))
    assert [node.name for node in before.nodes] == [node.name for node in after.nodes]
    assert "torch.ops.aten.promote_types.default" in [node.target for node in after.nodes]
