"""Result rules of collectives of processes compared with torch's fake tensors."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch.distributed
from tests.bridge.operators.fake_calls import Draw, Drawn, compare_calls

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no collectives")
COLLECTIVES = "_c10d_functional"


def several(draw: Draw) -> list[Drawn]:
    return [draw.tensor(ranks=(1, 2, 3)) for _ in range(draw.rng.randint(0, 3))]


def one(draw: Draw) -> Drawn:
    return draw.tensor(ranks=(1, 2, 3))


def processes(draw: Draw) -> int:
    return draw.rng.randint(1, 4)


def splits(draw: Draw) -> list[int]:
    return [draw.rng.randint(0, 3) for _ in range(2)]


OPERATORS: dict[str, dict[str, Any]] = {
    "wait_tensor": {},
    "all_reduce": {},
    "broadcast": {},
    "all_reduce_coalesced": {"inputs": several},
    "all_gather_into_tensor": {"input": one, "group_size": processes},
    "all_gather_into_tensor_coalesced": {"inputs": several, "group_size": processes},
    "reduce_scatter_tensor": {"input": one, "group_size": processes},
    "reduce_scatter_tensor_coalesced": {"inputs": several, "group_size": processes},
    "all_to_all_single": {"input": one, "output_split_sizes": splits, "input_split_sizes": splits},
}


@pytest.mark.parametrize("name", OPERATORS)
def test_rules_of_collectives_agree_with_fake_tensors(name: str) -> None:
    importlib.import_module("torch.distributed._functional_collectives")  # registers how fake tensors answer
    report = compare_calls(f"{COLLECTIVES}.{name}.default", 25, symbolic=1, **OPERATORS[name])
    assert report.answered, report
