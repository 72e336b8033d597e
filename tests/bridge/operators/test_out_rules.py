"""Rules of operators that store their result in `out`, compared with torch's fake tensors."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.bridge.operators.fake_calls import DTYPES, Draw, Drawn, compare_calls, names_in, to_facts

from pt2kit.bridge.operators import SCHEMA
from pt2kit.operators.facts import Mismatch, Tensor, Unknown
from pt2kit.operators.table import infer, without_out
from pt2kit.schema.operators import known_releases, operators_of

FILES = ("elementwise.txt", "elementwise.activations.txt", "linalg.products.txt", "reductions.txt")
PLAIN = frozenset(names_in(*FILES))
OTHER_RESULT = ("aten.argsort.stable_out", "aten.msort.out")
"""Fake ones return a tensor of their own, which CPU kernels don't."""
NAMES = sorted(
    name
    for name in operators_of(known_releases()[-2])
    if PLAIN.intersection(without_out(name)) and name not in OTHER_RESULT
)


def made(value: Any) -> Any:
    """Return the fact of a drawn argument."""
    if isinstance(value, list):
        return [made(one) for one in value]
    return to_facts(value.make() if isinstance(value, Drawn) else value)


def fitting(name: str, draw: Draw) -> Drawn:
    """Draw a tensor into which the result of a call fits; any tensor if the rule has no result."""
    arguments = {key: made(value) for key, value in draw.given.items()}
    for plain in without_out(name):
        try:
            result = infer(plain, arguments)
        except (Unknown, Mismatch):
            continue
        if isinstance(result, Tensor) and result.sizes and all(isinstance(size, int) for size in result.sizes):
            dtypes = [one for one in DTYPES if SCHEMA[one] == result.dtype]
            return draw.tensor(*map(int, result.sizes), dtypes=dtypes or DTYPES)
    return draw.scalar_tensor()


@pytest.mark.parametrize("part", range(4))
def test_rules_agree_with_fake_tensors(part: int) -> None:
    reports = [compare_calls(name, 6, symbolic=0, out=partial(fitting, name)) for name in NAMES[part::4]]
    assert len(reports) > 40
    assert sum(report.answered for report in reports) > 2 * len(reports)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("aten.add.out", "aten.add.Tensor"),
        ("aten.max.out", "aten.max.other"),
        ("aten.sum.IntList_out", "aten.sum.dim_IntList"),
        ("aten.zeros.out", "aten.zeros.default"),
    ],
)
def test_overloads_of_equal_parameters(name: str, plain: str) -> None:
    assert without_out(name) == (plain,)


@pytest.mark.parametrize("name", ["aten.add.Tensor", "aten.frexp.Tensor_out", "aten.nothing.out"])
def test_no_single_out(name: str) -> None:
    assert without_out(name) == ()
