"""Result rules of operators that create tensors compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.fake_calls import FLOATS, INTS, Draw, compare_calls, names_in

CPU = torch.device("cpu")


def memory_format(draw: Draw) -> Any:
    return draw.choice(None, torch.contiguous_format, torch.channels_last)


def some_dtype(draw: Draw) -> Any:
    return draw.choice(*FLOATS, *INTS)


COMMON: dict[str, Any] = {
    "requires_grad": lambda draw: False,
    "device": lambda draw: CPU,
    "pin_memory": lambda draw: False,
    "layout": lambda draw: torch.strided,
}
DRAWERS: dict[str, dict[str, Any]] = {
    "aten.contiguous.default": {"memory_format": memory_format},
    "aten.empty_permuted.default": {"size": lambda draw: [2, 3, 4], "physical_layout": lambda draw: [2, 0, 1]},
    "prims.empty_permuted.default": {"shape": lambda draw: [2, 3, 4], "physical_layout": lambda draw: [2, 0, 1]},
    "prims.scalar_tensor.default": {"dtype": some_dtype},
    "prims.empty_strided.default": {"shape": lambda draw: [2, 3], "strides": lambda draw: [1, 2]},
    "prims.iota.default": {"dtype": lambda draw: torch.int64, "length": lambda draw: draw.choice(0, 1, 7)},
    **{
        f"aten.{name}.{kind}": {"start": Draw.scalar_tensor, "end": Draw.scalar_tensor}
        for name in ("linspace", "logspace")
        for kind in ("Tensor_Tensor",)
    },
    **{f"aten.{name}_indices.default": {"dtype": lambda draw: torch.int64} for name in ("tril", "triu")},
}
NAMES = sorted(set(names_in("creation.txt")) - {"aten.detach_.default", "aten.to.device"})


@pytest.mark.parametrize("part", range(4))
def test_rules_agree_with_fake_tensors(part: int) -> None:
    unanswered = []
    for name in NAMES[part::4]:
        drawers = {key: value for key, value in {**COMMON, **DRAWERS.get(name, {})}.items() if key in parameters(name)}
        if not compare_calls(name, 15, symbolic=0, **drawers).answered:
            unanswered.append(name)
    assert not unanswered


def parameters(name: str) -> set[str]:
    from tests.bridge.operators.fake_calls import overload

    return {parameter.name for parameter in overload(name)._schema.arguments}


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_of_all_kinds(name: str) -> None:
    def size(draw: Draw) -> int:
        return draw.rng.randint(0, 6)

    drawn: dict[str, Any] = {"row": size, "col": size, "offset": lambda draw: draw.rng.randint(-8, 8)}
    report = compare_calls(
        f"aten.{name}_indices.default", 150, symbolic=0, **drawn, **{**COMMON, "dtype": lambda _: torch.int64}
    )
    assert report.answered > 140


@pytest.mark.parametrize("kind", ["default", "start", "start_step"])
def test_ranges(kind: str) -> None:
    def number(draw: Draw) -> Any:
        return draw.choice(0, 1, 2, 7, -3, 0.5, 2.75, -1.25)

    drawn: dict[str, Any] = {
        key: number for key in ("start", "end", "step") if key in parameters(f"aten.arange.{kind}")
    }
    report = compare_calls(f"aten.arange.{kind}", 100, symbolic=0, **drawn, **COMMON)
    assert report.answered > 20
    assert report.refused > 5
