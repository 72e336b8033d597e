"""Element-wise result rules compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bridge.operators.fake_calls import DTYPES, FLOATS, Draw, Drawer, Drawn, compare_calls, names_in

NO_VERDICT = ("aten.equal.default", "aten.allclose.default")
"""Fake tensors do not tell."""
FREQUENT = ("add.Tensor", "sub.Tensor", "mul.Scalar", "div.Tensor", "pow.Tensor_Scalar", "gt.Scalar", "where.self")


def of_one_dtype(*names: str, **drawn: Drawer) -> dict[str, Any]:
    """Draw tensors of floats of the dtype of the first one."""
    first = names[0]

    def other(draw: Draw) -> object:
        return draw.tensor(dtypes=(draw.given[first].dtype,))

    return {first: lambda draw: draw.tensor(dtypes=FLOATS), **dict.fromkeys(names[1:], other), **drawn}


def mask(draw: Draw) -> object:
    return draw.tensor(dtypes=(DTYPES[9],))


DRAWERS: dict[str, dict[str, Any]] = {
    "aten.complex.default": of_one_dtype("real", "imag"),
    "aten.polar.default": of_one_dtype("abs", "angle"),
    "aten.lerp.Tensor": of_one_dtype("self", "end", "weight"),
    "aten.lerp.Scalar": of_one_dtype("self", "end"),
    "aten.heaviside.default": of_one_dtype("self", "values"),
    "aten.isclose.default": of_one_dtype("self", "other"),
    "aten.masked_fill.Scalar": {"mask": mask},
    "aten.masked_fill.Tensor": {"mask": mask, "value": Draw.scalar_tensor},
    "aten.masked_fill_.Scalar": {"mask": mask},
    "aten.masked_fill_.Tensor": {"mask": mask, "value": Draw.scalar_tensor},
    **{f"aten.where.{kind}": {"condition": mask} for kind in ("self", "ScalarSelf", "ScalarOther", "Scalar")},
}
NAMES = sorted(name for name in names_in("elementwise.txt") if name not in NO_VERDICT)


@pytest.mark.parametrize("part", range(8))
def test_rules_agree_with_fake_tensors(part: int) -> None:
    unanswered = [
        name for name in NAMES[part::8] if not compare_calls(name, 8, symbolic=0, **DRAWERS.get(name, {})).answered
    ]
    assert len(unanswered) <= 9, unanswered  # Of few calls, some have only arguments that torch refuses.


@pytest.mark.parametrize(
    "name",
    ["copysign.Tensor", "div.Tensor_mode", "floor_divide.default", "normal.Tensor_Tensor", "special_xlog1py.default"],
)
@pytest.mark.parametrize("strides", [((4, 1), (1, 3)), ((1, 3), (4, 1)), ((8, 2), (1, 3)), ((4, 1), (0, 1))])
def test_operands_in_several_memory_orders(name: str, strides: tuple[tuple[int, int], ...]) -> None:
    """Decompositions differ in which operand comes first, and decides the order of the result."""
    first, second = (Drawn((3, 4), FLOATS[0], one) for one in strides)
    drawers: dict[str, Any] = dict.fromkeys(("self", "mean"), lambda _: first)
    drawers |= dict.fromkeys(("other", "std"), lambda _: second)
    drawers["rounding_mode"] = lambda draw: draw.choice("floor", "trunc")
    compare_calls(f"aten.{name}", 4, symbolic=1, kernel=False, **drawers)


@pytest.mark.parametrize("name", FREQUENT)
def test_rules_agree_with_symbolic_sizes(name: str) -> None:
    report = compare_calls(f"aten.{name}", 30, symbolic=8, **DRAWERS.get(f"aten.{name}", {}))
    assert report.strides > 10, report
