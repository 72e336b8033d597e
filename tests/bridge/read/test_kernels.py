"""Unchecked kernels in `load`: what a file shows to be wrong is refused, and everything else is torch's."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
import torch
from tests.bridge.run.unchecked_calls import Program, saved
from tests.checks.mutations import MLP, Mutation, call, graph, new_value, program
from tests.checks.test_unchecked import lying, pooled, said, wrong_padding
from tests.packages import bytes_of
from torch.export.experimental import _export_forward_backward

import pt2kit
from pt2kit.errors import OperatorError
from pt2kit.operators.requirements import TABLE, find_requirement

REFUSED = [
    "aten._convert_indices_from_coo_to_csr.default",
    "aten._sobol_engine_ff_.default",
    "aten._cummax_helper.default",
    "aten._slow_conv2d_backward.output_mask",
    "aten.batch_norm_update_stats.default",
    "aten._remove_batch_dim.default",
    "aten._make_dep_token.default",
    "aten.to_mkldnn.default",
    "aten.resize_as_sparse_.default",
]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """An operator that no export writes is refused by name, everywhere."""
    data = program(
        MLP, lambda tree: graph(tree)["nodes"].append(call(f"torch.ops.{name}", new_value(tree, "b", "relu")))
    )
    assert TABLE.operators[name.rpartition(".")[0]].is_refused
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(OperatorError, match=re.escape(f"torch.ops.{name} is refused: it ")):
            load(data.data)


def with_stored_indices(numbers: tuple[int, ...], *, is_written: bool = False) -> Mutation:
    """A file that passes stored numbers to a kernel that takes them for rows."""

    class Embedded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("indices", torch.tensor(numbers))

        def forward(self, g: torch.Tensor) -> torch.Tensor:
            if is_written:
                self.indices.clamp_(0, 5)
            return torch.ops.aten.embedding_dense_backward(g, self.indices, 6, -1, True)

    return Mutation(None, saved(Embedded(), (torch.ones(len(numbers), 3),)))


def test_stored_numbers() -> None:
    """Numbers that the file stores and passes on directly are looked at, unless the program changes them."""
    assert said(with_stored_indices((0, 5))) == []
    (found,) = said(with_stored_indices((0, 99)))
    assert found.severity == "error"
    assert found.message.endswith("indices: expected indices from 0 that are less than num_weights")
    with pytest.raises(OperatorError, match=r"less than num_weights; .*trust=\('aten.embedding_dense_backward',\)"):
        pt2kit.load(with_stored_indices((0, 99)).data)
    assert [problem.severity for problem in said(with_stored_indices((0, 99), is_written=True))] == ["warning"]
    assert pt2kit.load(with_stored_indices((0, 99), is_written=True).data).graph


A = torch.ops.aten
BYTES = torch.ones(1, 3, 4, 4, dtype=torch.uint8)
NUMBERS = {
    "upsample_nearest1d": (lambda s, x: A.upsample_nearest1d(x[0], [6], s), BYTES, 0.7, 1e-30),
    "_upsample_nearest_exact1d": (lambda s, x: A._upsample_nearest_exact1d(x[0], [6], s), BYTES, 0.7, 1e-30),
    "upsample_nearest2d": (lambda s, x: A.upsample_nearest2d(x, [6, 6], None, s), BYTES, 1.5, 5e-324),
    "upsample_nearest3d": (lambda s, x: A.upsample_nearest3d(x[None], [6, 6, 6], None, s), BYTES, -1.0, 1e-19),
    "upsample_bicubic2d": (lambda s, x: A.upsample_bicubic2d(x, [6, 6], False, s), BYTES, 1.5, 1e-20),
    "lanczos": (
        lambda s, x: A._upsample_lanczos2d_aa_backward(x, [8, 8], [1, 2, 4, 4], False, s, s),
        *(torch.ones(1, 2, 8, 8), 2.0, 1e-19),
    ),
    "conv1d": (lambda s, x: A.conv1d(x, torch.ones(2, 16, 3), None, [s]), torch.ones(2, 16, 4), 500, 12_000),
    "conv_transpose1d": (
        lambda s, x: A.conv_transpose1d(x, torch.ones(16, 64, 3), None, [s]),
        *(torch.ones(2, 16, 1), 250, 6_000),
    ),
    "histc": (lambda n, x: A.histc(x, n, 0, 1), torch.ones(3, dtype=torch.bfloat16), 128, 259),
    "histc of halves": (lambda n, x: A.histc(x, n, 0, 1), torch.ones(3, dtype=torch.float16), 1024, 2051),
    "histc of floats": (lambda n, x: A.histc(x, n, 0, 1), torch.ones(3), 1000, (1 << 24) + 3),
}
"""A call of an unchecked kernel -> itself, of a number, its tensor, a sound number and one that the kernel trusts."""


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    """Numbers in the graph that lead behind the memory of a tensor are refused; others compute what torch does."""
    call, tensor, sound, hostile = NUMBERS[name]
    module = pt2kit.load_module(saved(Program(partial(call, sound)), (tensor,)))
    assert torch.equal(module(tensor), call(sound, tensor))
    data = saved(Program(partial(call, hostile)), (tensor,))
    assert [problem.rule for problem in pt2kit.check(data).errors] == ["X10"]
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(OperatorError, match=r"(scales(_[hw])?|bins|stride|output_size): expected .*\[X10\]"):
            load(data)


def test_declared_sizes() -> None:
    """A call that does not fit the declared sizes is refused; one whose numbers are computed is not."""
    with pytest.raises(OperatorError, match=r"padding: expected 4 numbers .*trust=\('aten.replication_pad2d',\)"):
        pt2kit.load(wrong_padding().data)
    assert pt2kit.load(pooled().data).graph


def test_declared_sizes_that_lie() -> None:
    """`load` computes sizes from the inputs; `load_module` validates what the kernel gets in a run."""
    file = lying(lying(pooled((1, 3, 2, 2)), "g", (1, 2, 2, 2)), "i", (1, 2, 2, 2), dtype=5)
    with pytest.raises(OperatorError, match="grad_output: expected the batches and channels of self"):
        pt2kit.load(file.data)
    assert isinstance(pt2kit.load_module(file.data), torch.nn.Module)


class Trained(torch.nn.Module):
    """A layer with an unchecked backward kernel, and a loss."""

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
    """A joint graph of training calls such a kernel; it passes check, and loads."""
    torch.manual_seed(0)
    exported = torch.export.export(Trained(LAYERS[name]).train(), (torch.randn(1, 2, 8, 8),), strict=False)
    file = bytes_of(pt2kit.save, _export_forward_backward(exported))
    assert find_requirement(f"torch.ops.aten.{name}.default") is not None
    assert not pt2kit.check(file).errors
    targets = [str(node.target) for node in pt2kit.load(file).graph.nodes]
    assert any(target.startswith(f"aten.{name}.") for target in targets), json.dumps(targets)
    assert pt2kit.load_module(file) is not None
