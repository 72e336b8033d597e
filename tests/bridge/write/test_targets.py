"""Callables and the texts that stand for them."""

from __future__ import annotations

import functools
import math
import operator

import pytest
import torch

from pt2kit.bridge.callables import SYMBOLIC_FUNCTIONS, describe, parameter_names, target_text
from pt2kit.bridge.torch_names import SYMBOLIC
from pt2kit.errors import UnsupportedError

CASES = [
    (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
    (torch.ops.aten.sym_size.int, "torch.ops.aten.sym_size.int"),
    (torch.ops.higher_order.cond, "torch.ops.higher_order.cond"),
    (operator.mul, "_operator.mul"),
    (math.trunc, "math.trunc"),
    (round, "builtins.round"),
    (torch.sym_max, "torch.sym_max"),
    (torch.sym_sqrt, "torch._sym_sqrt"),
    (torch.nn.Linear, "torch.nn.modules.linear.Linear"),
    ("already.text", "already.text"),
]


@pytest.mark.parametrize(("target", "text"), CASES, ids=[text for _, text in CASES])
def test_target_text(target, text):
    """A callable is named by its public module and its name."""
    assert target_text(target) == text
    assert describe(target) == text


@pytest.mark.parametrize("target", [3, functools.partial(print), torch.Tensor.add])
def test_nameless(target):
    """An object without a module or name of its own cannot be a target, but can be described."""
    with pytest.raises(UnsupportedError, match="expected a callable with a module and a name, got"):
        target_text(target)
    assert describe(target)


def test_described_by_owner():
    """Methods of C classes are described by the class they belong to."""
    assert describe(torch.Tensor.add) == "torch._C.TensorBase.add"
    assert describe(3) == "builtins.int"


def test_parameter_names():
    """Parameter names come from the signature, and are missing where Python knows none."""
    assert parameter_names(operator.add) == ("a", "b")
    assert parameter_names(torch.sym_ite) == ("b", "t", "f")
    assert parameter_names(max) == ()


def test_plain_functions():
    """Every function over symbolic numbers is found again by its text."""
    assert {SYMBOLIC[target_text(function)] for function in SYMBOLIC_FUNCTIONS} == SYMBOLIC_FUNCTIONS
