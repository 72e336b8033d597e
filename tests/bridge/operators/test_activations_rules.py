"""Result rules of activations and their gradients compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bridge.operators.fake_calls import DTYPES, FLOATS, Draw, compare_calls, names_in

FORWARD = sorted(
    name
    for name in names_in("elementwise.activations.txt")
    if "_foreach_" not in name and "_fused_" not in name and "backward" not in name
)
BACKWARD = sorted(name for name in names_in("elementwise.activations.txt") if "backward" in name and "glu" not in name)


@pytest.mark.parametrize("part", range(4))
def test_activations_agree_with_fake_tensors(part: int) -> None:
    drawn: dict[str, Any] = {
        "self": lambda draw: draw.tensor(dtypes=draw.choice(FLOATS, FLOATS, DTYPES)),
        "approximate": lambda draw: draw.choice("none", "tanh", "erf"),
        "weight": lambda draw: draw.tensor(1, dtypes=(draw.given["self"].dtype,)),
    }
    for name in FORWARD[part::4]:
        report = compare_calls(name, 15, symbolic=0, **drawn)
        assert report.answered > 2, (name, report)


def like_first(draw: Draw) -> Any:
    return draw.like(next(iter(draw.given)))


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_agree_with_fake_tensors(name: str) -> None:
    drawn: dict[str, Any] = dict.fromkeys(("self", "output", "self_or_result", "buffer", "weight", "noise"), like_first)
    first: dict[str, Any] = dict.fromkeys(("grad_output", "grad_out"), lambda draw: draw.tensor(dtypes=FLOATS))
    report = compare_calls(name, 15, symbolic=0, **first, **drawn)
    assert report.answered > 5, report


@pytest.mark.parametrize("name", ["abs", "exp", "neg", "sqrt", "sub", "mul", "div", "maximum"])
def test_lists_agree_with_fake_tensors(name: str) -> None:
    overload = "Scalar" if name in ("sub", "mul", "div", "maximum") else "default"
    report = compare_calls(f"aten._foreach_{name}.{overload}", 25, symbolic=0)
    assert report.answered > 5, report
