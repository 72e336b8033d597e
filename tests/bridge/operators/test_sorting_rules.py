"""Result rules of scans and sorts compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.fake_calls import FLOATS, INTS, Draw, agreement


def dim(draw: Draw) -> int:
    return draw.dim()


def reals(draw: Draw) -> Any:
    return draw.tensor(dtypes=(*FLOATS, *INTS))


DIM = {"dim": dim}
BOUNDS = {"boundaries": lambda draw: draw.tensor(*draw.choice((4,), (4,), (2, 3)), dtypes=FLOATS)}
OPERATORS: dict[str, dict[str, Any]] = {
    **{f"aten.{name}.default": DIM for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sort")},
    "aten.sort.stable": DIM,
    "aten.argsort.default": DIM,
    "aten.argsort.stable": DIM,
    "aten.msort.default": {},
    "aten.cumsum_.default": {"self": reals, **DIM, "dtype": lambda draw: None},
    "aten.topk.default": {**DIM, "k": lambda draw: draw.rng.randint(-1, 4)},
    "aten.bucketize.Tensor": {"self": reals, **BOUNDS},
    "aten.bucketize.Scalar": BOUNDS,
    "aten.searchsorted.Tensor": {
        "sorted_sequence": lambda draw: draw.tensor(*draw.choice((4,), (2, 3, 4), (3, 4)), dtypes=FLOATS),
        "self": lambda draw: draw.tensor(
            *draw.choice((2,), (2, 3, 5), (3, 1)), dtypes=(draw.given["sorted_sequence"].dtype,)
        ),
        "sorter": lambda draw: None,
        "side": lambda draw: draw.choice(None, "left", "right", "middle"),
    },
    "aten.searchsorted.Scalar": {
        "sorted_sequence": lambda draw: draw.tensor(*draw.choice((4,), (2, 3))),
        "sorter": lambda draw: None,
        "side": lambda draw: draw.choice(None, "left"),
    },
    "aten.isin.Tensor_Tensor": {"elements": reals, "test_elements": lambda draw: draw.like("elements")},
    "aten.isin.Tensor_Scalar": {"elements": reals},
    "aten.isin.Scalar_Tensor": {"test_elements": reals},
}
test_rules_of_scans_and_sorts_agree_with_fake_tensors = agreement(OPERATORS.items())


@pytest.mark.parametrize("name", ["_unique2", "unique_dim", "unique_consecutive"])
def test_sizes_that_elements_decide_are_unknown(name: str) -> None:
    values = torch.tensor([[1, 2], [1, 2], [3, 4]])
    from tests.bridge.operators.fake_calls import to_facts

    from pt2kit.operators.facts import Tensor
    from pt2kit.operators.table import infer

    for dim in (None, 0, 1):
        arguments: dict[str, Any] = {"self": values, "return_inverse": True, "return_counts": True}
        if name != "_unique2" and dim is not None:
            arguments["dim"] = dim
        elif name == "unique_dim":
            continue
        expected = getattr(torch.ops.aten, name).default(**arguments)
        results = infer(f"aten.{name}.default", to_facts(arguments), is_strict=True)
        assert isinstance(results, tuple)
        for result, wanted in zip(results, expected, strict=True):
            assert isinstance(result, Tensor)
            assert result.dtype is to_facts(wanted).dtype
            assert [size for size in result.sizes if isinstance(size, int)] == [
                wanted.shape[at] for at, size in enumerate(result.sizes) if isinstance(size, int)
            ]
            assert result.rank == wanted.dim()
