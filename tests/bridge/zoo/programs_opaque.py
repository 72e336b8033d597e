"""Programs with opaque objects, which releases since 2.11 have: the zoo leaves this file out where torch has none."""

from __future__ import annotations

import torch
from tests.bridge.zoo.program import Recipe
from tests.bridge.zoo.programs_custom import Calls
from torch import nn
from torch._library.opaque_object import register_opaque_type
from torch._opaque_base import OpaqueBase


class Counter(OpaqueBase):
    """An object that an operator uses and export knows nothing of."""

    def __init__(self, start):
        self.start = start


class Weighting(OpaqueBase):
    """An opaque value: it stands in the graph as a constant."""

    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return isinstance(other, Weighting) and self.factor == other.factor

    def __hash__(self):
        return hash(self.factor)

    def __fx_repr__(self):
        return f"Weighting({self.factor})", {"Weighting": Weighting}


register_opaque_type(Counter, typ="reference")
register_opaque_type(Weighting, typ="value")


@torch.library.custom_op("zoo::count", mutates_args=())
def count(x: torch.Tensor, counter: Counter) -> torch.Tensor:
    return x + counter.start


@count.register_fake
def _(x, counter):
    return torch.empty_like(x)


@torch.library.custom_op("zoo::weigh", mutates_args=())
def weigh(x: torch.Tensor, weighting: Weighting) -> torch.Tensor:
    return x * weighting.factor


@weigh.register_fake
def _(x, weighting):
    return torch.empty_like(x)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter(3)

    def forward(self, x):
        return torch.ops.zoo.count(x, self.counter)


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""

    def square():
        return (torch.randn(4, 3),)

    return [
        Recipe("opaque_object", Counting, square),
        Recipe("opaque_value", lambda: Calls(lambda x: weigh(x, Weighting(3))), square),
    ]
