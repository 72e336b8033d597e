"""Result rules of collectives of processes compared with torch's fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bridge.operators.fake_calls import Draw, Drawn, agreement

pytest.importorskip("torch.distributed._functional_collectives")  # registers how fake tensors answer


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
test_rules_of_collectives_agree_with_fake_tensors = agreement(
    (f"_c10d_functional.{name}.default", drawers) for name, drawers in OPERATORS.items()
)
