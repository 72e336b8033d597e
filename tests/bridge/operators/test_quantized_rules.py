"""Result rules of quantization compared with torch's fake tensors."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from tests.bridge.operators.fake_calls import FLOATS, Draw, compare_calls, names_in, overload

NAMES = sorted(
    name
    for name in names_in("elementwise.quantized.txt")
    if not any(part in name for part in ("_group", "fused_moving", "_fused_", "learnable_per_channel"))
)


def dtype(draw: Draw) -> Any:
    return torch.int8


def scales(draw: Draw) -> Any:
    name = "input" if "input" in draw.given else "self"
    return draw.tensor(draw.given[name].sizes[-1], dtypes=(torch.float32,))


def zeros(draw: Draw) -> Any:
    name = "input" if "input" in draw.given else "self"
    return draw.tensor(draw.given[name].sizes[-1], dtypes=(torch.int32,))


COMMON: dict[str, Any] = {
    "self": lambda draw: draw.tensor(dtypes=(torch.float32,), ranks=(1, 2, 3)),
    "grad": lambda draw: draw.tensor(dtypes=FLOATS),
    "mask": lambda draw: draw.like("grad", dtypes=(torch.bool,)),
    "scale": lambda draw: 0.5,
    "zero_point": lambda draw: 0,
    "scales": scales,
    "zero_points": zeros,
    "axis": lambda draw: -1,
    "quant_min": lambda draw: draw.choice(-128, -127),
    "quant_max": lambda draw: 127,
    "eps": lambda draw: 0.001,
    "dtype": dtype,
    "output_dtype": lambda draw: torch.float32,
    "out_dtype": lambda draw: draw.choice(None, torch.float32, torch.bfloat16),
}


@pytest.mark.parametrize("name", NAMES)
def test_rules_agree_with_fake_tensors(name: str) -> None:
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    schema = overload(name)._schema
    types = {parameter.name: str(parameter.type) for parameter in schema.arguments}
    drawn = {key: one for key, one in COMMON.items() if key in types}
    for key in ("scale", "zero_point", "fake_quant_enabled", "quant_min", "quant_max"):
        if types.get(key) == "Tensor":
            kind = torch.float32 if key == "scale" else torch.int64
            drawn[key] = lambda draw, kind=kind: draw.tensor(1, dtypes=(kind,))
    if "per_channel" in name and "scale" in drawn:
        drawn |= {"scale": scales, "zero_point": zeros, "axis": lambda draw: draw.rank("self") - 1}
    stored = torch.int8 if "dequantize" in name else torch.float32
    drawn["input"] = lambda draw: draw.tensor(dtypes=(stored,), ranks=(1, 2, 3))
    if "input" not in types:
        del drawn["input"]
    report = compare_calls(name, 15, symbolic=0, **drawn)
    assert report.answered > 3, (report, report.torch_refused[:2])
