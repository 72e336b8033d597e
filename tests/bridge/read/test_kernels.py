"""Kernels that would leave their memory: programs that call them are not loaded, and sound ones that call them are."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
import torch
from tests.checks.test_provenance import HOSTILE, POOL, SOUND, back, chain
from tests.packages import edited
from torch.export.experimental import _export_forward_backward

import pt2kit
from pt2kit.checks.refused import EVERYDAY, REFUSED_OPERATORS
from pt2kit.errors import OperatorError

REFUSED = [
    "aten._convert_indices_from_coo_to_csr.default",
    "aten._sobol_engine_ff_.default",
    "aten._cummax_helper.default",
    "aten._slow_conv2d_backward.output_mask",
    "aten.batch_norm_update_stats.default",
    "aten._remove_batch_dim.default",
    "aten._make_dep_token.default",
    "aten.to_mkldnn.default",
]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """An operator that no export writes is refused by name."""
    assert name.rpartition(".")[0] in REFUSED_OPERATORS
    with pytest.raises(OperatorError, match=re.escape(f"torch.ops.{name} is refused: it ")):
        pt2kit.load(chain((f"{name} b", {})).data)


@pytest.mark.parametrize(("calls", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_nobody_vouches(calls: list[Any], expected: str) -> None:
    """What `check` finds ends the load, which names the operator to trust."""
    name = expected.removeprefix("torch calls ").partition(":")[0] if expected.startswith("torch") else ""
    with pytest.raises(OperatorError) as caught:
        pt2kit.load(chain(*calls).data)
    assert caught.value.rule == "X10"
    assert expected.removeprefix(f"torch calls {name}: ") in str(caught.value)
    assert "if you trust the file, pass trust=('aten." in str(caught.value)


def test_trusted() -> None:
    """What is named in `trust` passes, the operator alone or the rule."""
    data = chain(POOL, back("p")).data
    with pytest.raises(OperatorError, match=r"trust=\('aten\.max_pool2d_with_indices_backward',\)"):
        pt2kit.load(data)
    assert pt2kit.load(data, trust=("aten.max_pool2d_with_indices_backward",)).graph
    assert pt2kit.load(data, trust=("X10",)).graph


def test_a_program_in_order() -> None:
    """A call whose argument is vouched for is loaded."""
    assert pt2kit.load(chain(*SOUND["several copies"]).data).graph


class Half(torch.nn.Module):
    """A transform to real numbers, of a part of its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._fft_c2r(torch.ops.aten.narrow(x, 0, 0, 5), [0], 0, 8)


def half(length: int, declared: int) -> bytes:
    """A file that transforms 5 numbers, says that it makes `length` of them, and that they are `declared`."""
    file = io.BytesIO()
    pt2kit.save(torch.export.export(Half(), (torch.ones(9, dtype=torch.complex64),)), file)

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        graph["tensor_values"]["narrow"]["sizes"] = [{"as_int": declared}]
        (call,) = (node for node in graph["nodes"] if "_fft_c2r" in node["target"])
        call["inputs"][3]["arg"] = {"as_int": length}

    return edited(file.getvalue(), change)


def test_sizes_that_are_declared() -> None:
    """A call that does not fit the declared sizes is found without torch, and not loaded."""
    (found,) = [problem for problem in pt2kit.check(half(800, 5)) if problem.rule == "X10"]
    assert found.message == "torch calls aten._fft_c2r: expected last_dim_size of at most 9"
    with pytest.raises(OperatorError, match="expected last_dim_size of at most 9"):
        pt2kit.load(half(800, 5))


def test_sizes_that_are_not_what_is_declared() -> None:
    """Loading counts for itself: a call that fits what is declared, and not what there is, is refused."""
    data = half(800, 500)
    assert [problem for problem in pt2kit.check(data) if problem.rule == "X10"] == []
    with pytest.raises(OperatorError, match=r"expected last_dim_size of at most 9, got self \(5,\).*_fft_c2r"):
        pt2kit.load(data)
    assert pt2kit.load(half(8, 5)).graph
    assert pt2kit.load(data, trust=("aten._fft_c2r",)).graph


class Trained(torch.nn.Module):
    """A layer, something that trusts, and a loss."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(2, 4, 3, padding=1)
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.layer(self.first(x))
        return (found[0] if isinstance(found, tuple) else found).sum()


LAYERS = {
    "max_pool2d_with_indices_backward": torch.nn.MaxPool2d(2),
    "adaptive_max_pool2d_backward": torch.nn.AdaptiveMaxPool2d(2),
    "fractional_max_pool2d_backward": torch.nn.FractionalMaxPool2d(2, output_size=3),
    "avg_pool2d_backward": torch.nn.AvgPool2d(2),
    "_adaptive_avg_pool2d_backward": torch.nn.AdaptiveAvgPool2d(2),
    "replication_pad2d_backward": torch.nn.ReplicationPad2d(2),
    "_native_batch_norm_legit_functional": torch.nn.BatchNorm2d(4),
    "native_group_norm": torch.nn.GroupNorm(2, 4),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's own, in exporting joint graphs
@pytest.mark.parametrize("name", LAYERS)
def test_training(name: str) -> None:
    """A joint graph of training calls such an operator, and is loaded."""
    program = torch.export.export(Trained(LAYERS[name]).train(), (torch.randn(1, 2, 8, 8),), strict=False)
    joint = _export_forward_backward(program)
    file = io.BytesIO()
    pt2kit.save(joint, file)
    assert f"aten.{name}" in EVERYDAY
    targets = [str(node.target) for node in pt2kit.load(file.getvalue()).graph.nodes]
    assert any(target.startswith(f"aten.{name}.") for target in targets), json.dumps(targets)


def recurrent(is_batch_first: bool) -> bytes:
    """A file with an LSTM, which is told whether the batch or the steps come first."""
    layer = torch.nn.LSTM(4, 5, num_layers=2, bidirectional=True, proj_size=3)
    file = io.BytesIO()
    # Not strict, torch 2.9 takes the layer's own list of weights for something that the export assigned.
    pt2kit.save(torch.export.export(layer, (torch.ones(7, 3, 4),), strict=True), file)

    def change(tree: Any) -> None:
        (call,) = (node for node in tree["graph_module"]["graph"]["nodes"] if "lstm" in node["target"])
        (flag,) = (given for given in call["inputs"] if given["name"] == "batch_first")
        flag["arg"] = {"as_bool": is_batch_first}

    return edited(file.getvalue(), change)


@pytest.mark.filterwarnings("ignore:The tensor attributes self._flat_weights")  # torch's own, in exporting it
def test_an_lstm() -> None:
    """States for 3 sequences do not fit a batch of 7, which the kernel does not look at; in order, they pass."""
    assert pt2kit.load(recurrent(False)).module()(torch.ones(7, 3, 4))[0].shape == (7, 3, 6)
    message = "expected states in hx with numbers, for each layer and direction and each sequence of the batch"
    (found,) = [problem for problem in pt2kit.check(recurrent(True)) if problem.rule == "X10"]
    assert found.message == f"torch calls aten.lstm: {message}"
    with pytest.raises(OperatorError, match=rf"{message}; .* pass trust=\('aten\.lstm',\) \[X10\]"):
        pt2kit.load(recurrent(True))
