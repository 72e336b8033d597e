"""Result rules of operators that draw random numbers, and of element-wise prims, compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.fake_calls import FLOATS, INTS, Draw, compare_calls, names_in, overload


def half(draw: Draw) -> float:
    return 0.5


def floats(draw: Draw) -> Any:
    return draw.tensor(dtypes=FLOATS)


CPU = torch.device("cpu")
COMMON: dict[str, Any] = {
    "device": lambda draw: CPU,
    "pin_memory": lambda draw: False,
    "layout": lambda draw: torch.strided,
    "generator": lambda draw: None,
    "requires_grad": lambda draw: False,
    "self": lambda draw: draw.tensor(dtypes=FLOATS, ranks=(1, 2, 3)),
    "input": lambda draw: draw.tensor(dtypes=FLOATS, ranks=(2, 3, 4)),
    "mean": half,
    "std": half,
    "sigma": half,
    "count": lambda draw: draw.tensor(dtypes=FLOATS[:2]),
    "prob": lambda draw: draw.tensor(dtypes=FLOATS[:2]),
    "mask": lambda draw: draw.like("grad_output", dtypes=(torch.bool,)),
    "noise": lambda draw: draw.like("self"),
    "p": lambda draw: draw.choice(0.0, 0.25, 0.5),
    "high": lambda draw: draw.choice(0, 3, 100),
    "dtype": lambda draw: draw.choice(*FLOATS, *INTS),
    "size": lambda draw: draw.choice([], [2], [0, 3], [4, 5]),
    "shape": lambda draw: draw.choice([], [2], [0, 3], [4, 5]),
    "stride": lambda draw: torch.zeros(draw.given["shape"]).stride(),
    "num_samples": lambda draw: draw.choice(0, 1, 2, 9),
}
SPECIAL: dict[str, dict[str, Any]] = {
    "aten.bernoulli.Tensor": {"p": lambda draw: draw.like("self")},
    "aten.bernoulli_.Tensor": {"p": lambda draw: draw.like("self")},
    "aten.normal.Tensor_Tensor": {"mean": floats, "std": floats},
    "aten.normal.Tensor_float": {"mean": floats, "std": lambda draw: draw.choice(-1.0, 0.5)},
    "aten.normal.float_Tensor": {"std": floats},
    "prims.normal.default": {"dtype": lambda draw: torch.float32},
    "prims.uniform.default": {"dtype": lambda draw: torch.float32},
    "aten.native_dropout.default": {"train": lambda draw: True},
}
NAMES = sorted(
    name for name in names_in("creation.random.txt") if "_generator" not in name and ".generator" not in name
)


@pytest.mark.parametrize("part", range(2))
def test_rules_agree_with_fake_tensors(part: int) -> None:
    unanswered = []
    for name in NAMES[part::2]:
        names = {parameter.name for parameter in overload(name)._schema.arguments}
        drawers = {key: one for key, one in {**COMMON, **SPECIAL.get(name, {})}.items() if key in names}
        report = compare_calls(name, 20, symbolic=0, **drawers)
        if not report.answered:
            unanswered.append((name, report, report.torch_refused[:3]))
    assert not unanswered


def of_first(draw: Draw) -> Any:
    return draw.like("self" if "self" in draw.given else "a")


@pytest.mark.parametrize("part", range(2))
def test_prims_agree_with_fake_tensors(part: int) -> None:
    names = sorted(set(names_in("elementwise.prims.txt")) - {"prims.copy_to.default"})
    unanswered = []
    for name in names[part::2]:
        drawn: dict[str, Any] = {
            "other": of_first,
            "b": of_first,
            "pred": lambda draw: draw.tensor(2, 3, dtypes=(torch.bool,)),
        }
        if "where" in name:
            drawn["a"] = lambda draw: draw.like("pred", dtypes=FLOATS)
        if not compare_calls(name, 10, symbolic=0, **drawn).answered:
            unanswered.append(name)
    assert not unanswered
