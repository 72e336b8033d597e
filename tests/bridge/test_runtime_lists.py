"""Operators over lists of tensors, places of true elements, and fused layers of encoders: sessions agree with torch."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit.bridge.torch_names import schema_version
from pt2kit.runtime.session import output_leaves


class Called(torch.nn.Module):
    """A function of its inputs."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        """Call the function."""
        return self.function(*inputs)


def agree(model, inputs, strict, target):
    with torch.no_grad():
        program, file = torch.export.export(model.eval(), inputs, strict=strict), io.BytesIO()
        expected = pytree.tree_leaves(program.module()(*inputs))
    assert any(target in str(node.target) for node in program.graph.nodes)
    torch.export.save(program, file)
    got = output_leaves(pt2kit.Session(file.getvalue()).run_leaves([one.numpy() for one in inputs]))
    assert len(expected) == len(got)
    for one, other in zip(expected, got, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-5)


def written(x, y):
    tensors = [x.clone(), y.clone()]
    torch._foreach_add_(tensors, 1.0)
    torch._foreach_mul_(tensors, [2.0, 3.0])
    torch._foreach_copy_(tensors[1:], [y * 2])
    return tensors


LISTS: dict[str, Any] = {
    "add.List": lambda x, y: torch._foreach_add([x, y], [x + 1, y - 2], alpha=0.5),
    "add.Scalar": lambda x, y: torch._foreach_add([x, y], 2.0),
    "sub.ScalarList": lambda x, y: torch._foreach_sub([x, y], [1.0, 2.0]),
    "addcdiv.Scalar": lambda x, y: torch._foreach_addcdiv([x, y], [x, y], [x.exp(), y.exp()], 0.5),
    "addcmul.ScalarList": lambda x, y: torch._foreach_addcmul([x, y], [x, y], [x, y], [0.5, 0.2]),
    "lerp.Scalar": lambda x, y: torch._foreach_lerp([x, y], [y[0], x[:2]], 0.3),
    "lerp.List": lambda x, y: torch._foreach_lerp([x, y], [x, y], [x, y]),
    "norm.Scalar": lambda x, y: torch._foreach_norm([x, y], 1),
    "maximum.Scalar": lambda x, y: torch._foreach_maximum([x, y], 0.0),
    "pow.Scalar": lambda x, y: torch._foreach_pow([x.abs(), y.abs()], 2.0),
    "sqrt.default": lambda x, y: torch._foreach_sqrt([x.abs(), y.abs()]),
    "copy_.default": written,
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(name):
    agree(Called(LISTS[name]), (torch.randn(2), torch.randn(2, 2)), False, f"_foreach_{name}")


def test_places_of_true_elements():
    agree(Called(lambda x: torch.where(x > 0)), (torch.randn(3, 4),), False, "where.default")
    agree(Called(lambda x: torch.where(x.sum() > -100)), (torch.randn(3, 4),), False, "where.default")


MASKS: dict[str, Any] = {
    "none": (lambda layers, x: layers(x), ()),
    "padding": (
        lambda layers, x, mask: layers(x, src_key_padding_mask=mask),
        (torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),),
    ),
    "causal": (lambda layers, x, mask: layers(x, mask=mask), (torch.ones(5, 5).triu(1).bool(),)),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
def test_fused_encoder_layers(norm_first, activation, mask):
    """Layers in evaluation, traced by torch's compiler, call one kernel each."""
    if mask == "none" and schema_version() < (8, 20):
        pytest.skip("this torch calls the operators of a layer one by one if there is no mask")
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0, 0.2)
    function, masks = MASKS[mask]
    model = Called(None)
    model.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    model.function = lambda *inputs: function(model.layers, *inputs)
    agree(model, (torch.randn(2, 5, 16), *masks), True, "_transformer_encoder_layer_fwd")
