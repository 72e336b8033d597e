"""Tags of operators: the table that ships, compared with the torch that is installed."""

from __future__ import annotations

import torch

from pt2kit.operators.schemas import RANDOM, is_random, tags_of
from pt2kit.schema.operators import operators_of

RELEASE = ".".join(torch.__version__.split(".")[:2])


def overload_of(name: str) -> torch._ops.OpOverload | None:
    """Return the overload of a name; None if only TorchScript can call it or this build lacks it."""
    namespace, operator, overload = name.split(".", 2)
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return getattr(packet, overload, None) if isinstance(packet, torch._ops.OpOverloadPacket) else None


def test_tags_are_those_of_torch() -> None:
    """Each overload has the tags that torch states."""
    compared = random = 0
    for name in operators_of(RELEASE):
        overload = overload_of(name)
        if not isinstance(overload, torch._ops.OpOverload):
            continue
        stated = {tag.name for tag in overload.tags}
        assert tags_of(name, RELEASE) == stated, name
        assert is_random(name) == (RANDOM in stated), name
        compared += 1
        random += RANDOM in stated
    assert compared > 3500
    assert random > 100
