"""Quantized weights of torchao load without `trust=`: its classes are looked up in a table, and never called."""

from __future__ import annotations

import sys
from enum import Enum
from types import ModuleType
from typing import Any

import pytest
import torch
from tests import samples

import pt2kit
from pt2kit.errors import UnsupportedError

PATH = samples.DATA / "torchao" / "float8.pt2"


class _Quantized(torch.Tensor):
    """A stub of torchao's class; its constructor must not be called."""

    def __new__(cls, *args: Any) -> Any:
        raise AssertionError("called")

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(str(function))


class _Preference(str, Enum):
    AUTO = "auto"


@pytest.fixture
def torchao(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with the names that the sample needs."""
    classes: dict[str, dict[str, Any]] = {
        "torchao": {},
        "torchao.quantization": {"Float8Tensor": _Quantized},
        "torchao.quantization.quantize_": {},
        "torchao.quantization.quantize_.common": {},
        "torchao.quantization.quantize_.common.kernel_preference": {"KernelPreference": _Preference},
    }
    for name, members in classes.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("torchao")
def test_with_torchao() -> None:
    """The weight is a parameter of torchao's class, with its inner tensors and options."""
    weight: Any = pt2kit.load(PATH).state_dict["lin.weight"]
    assert type(weight) is _Quantized
    assert isinstance(weight, torch.nn.Parameter)
    assert (weight.shape, weight.dtype, weight.qdata.dtype) == (torch.Size((8, 32)), torch.float32, torch.float8_e4m3fn)
    assert weight.block_size == [1, 32]
    assert weight.kernel_preference is _Preference.AUTO
    assert weight.act_quant_kwargs is None


@pytest.mark.usefixtures("torchao")
def test_weights_alone() -> None:
    """Without the program, the weight is the same."""
    weights: Any = pt2kit.load_weights(PATH)
    state = pt2kit.load(PATH).state_dict
    assert list(weights) == list(state)
    assert type(weights["lin.weight"]) is _Quantized
    assert isinstance(weights["lin.weight"], torch.nn.Parameter)
    for name in ("qdata", "scale"):
        parts = [getattr(each["lin.weight"], name).view(torch.uint8) for each in (weights, state)]
        assert torch.equal(*parts)


def test_without_torchao(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "torchao", None)
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    with pytest.raises(UnsupportedError, match=r"expected torchao with torchao\.quantization\.Float8Tensor.*install"):
        pt2kit.load(PATH)
    with pytest.raises(UnsupportedError, match=r"expected torchao with torchao\.quantization\.Float8Tensor.*install"):
        pt2kit.load_weights(PATH)
