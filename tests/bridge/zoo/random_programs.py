"""Random models over core operators with dynamic shapes, for property tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import nn
from torch.export import Dim, ExportedProgram

Step = tuple[str, int, int, float]

# Each takes two tensors of the same batch and width, the module and a number, and gives one of that shape back.
STEPS: dict[str, Callable[[Any, Any, Any, float], Any]] = {
    "sin": lambda x, y, m, c: x.sin(),
    "relu": lambda x, y, m, c: torch.relu(x),
    "add": lambda x, y, m, c: x + y,
    "add_scalar": lambda x, y, m, c: x + c,
    "mul_int": lambda x, y, m, c: x * int(c),
    "sub_alpha": lambda x, y, m, c: torch.sub(x, y, alpha=2),
    "where": lambda x, y, m, c: torch.where(x > y, x, y * c),
    "clamp": lambda x, y, m, c: x.clamp(min=-abs(c), max=None),
    "linear": lambda x, y, m, c: m.linear(x),
    "buffer": lambda x, y, m, c: x * m.shift,
    "constant": lambda x, y, m, c: x + torch.tensor([1.0, 2.0, 3.0, 4.0]),
    "softmax": lambda x, y, m, c: torch.softmax(x, -1),
    "layer_norm": lambda x, y, m, c: nn.functional.layer_norm(x, [4], eps=1e-3),
    "mean": lambda x, y, m, c: x - x.mean(dim=0, keepdim=True),
    "cat": lambda x, y, m, c: torch.cat([x, y], dim=1)[:, 2:6],
    "chunk": lambda x, y, m, c: torch.cat([x.chunk(2, dim=1)[1], y.chunk(2, dim=1)[0]], dim=1),
    "topk": lambda x, y, m, c: x.topk(2, dim=1)[0].repeat(1, 2),
    "var_mean": lambda x, y, m, c: x - torch.var_mean(y, dim=1, keepdim=True)[1],
    "flatten": lambda x, y, m, c: x.reshape(-1).view(x.shape[0], 4),
    "transpose": lambda x, y, m, c: x.t().contiguous().t(),
    "expand": lambda x, y, m, c: x + y[:, :1].expand(-1, 4),
    "size": lambda x, y, m, c: x * (x.shape[0] + 1),
    "size_float": lambda x, y, m, c: x / x.shape[0],
    "full": lambda x, y, m, c: x + torch.full((x.shape[0], 1), c),
    "arange": lambda x, y, m, c: x + torch.arange(x.shape[0])[:, None],
    "index": lambda x, y, m, c: x[torch.arange(x.shape[0])][:, [3, 2, 1, 0]],
    "cast": lambda x, y, m, c: x.to(torch.float64).to(torch.float32),
    "masked": lambda x, y, m, c: x.masked_fill(x > c, float("inf")).nan_to_num(posinf=1.0),
    "in_place": lambda x, y, m, c: x.clone().add_(y).mul_(c),
    "matmul": lambda x, y, m, c: (x.t() @ y).sum(0) + x,
    "no_grad": lambda x, y, m, c: _without_gradient(x, y),
}


def _without_gradient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x * y


class Random(nn.Module):
    """Does steps one after the other on a growing pool of tensors, and gives back the last ones."""

    def __init__(self, steps: Sequence[Step], results: int) -> None:
        super().__init__()
        self.steps, self.results = tuple(steps), results
        self.linear = nn.Linear(4, 4)
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        pool = [x, y]
        for name, first, second, number in self.steps:
            pool.append(STEPS[name](pool[first % len(pool)], pool[second % len(pool)], self, number))
        return pool[-self.results :]


@dataclass(frozen=True, slots=True)
class Example:
    """A random model, and how it is exported.

    Args:
        steps, results: of the model.
        dynamic: whether the batch is dynamic.
        decompose: whether it is decomposed after export.
    """

    steps: tuple[Step, ...]
    results: int
    dynamic: bool
    decompose: bool

    def export(self) -> ExportedProgram:
        """Export the model."""
        torch.manual_seed(0)
        shapes = (
            {"x": {0: Dim("batch", min=2, max=64)}, "y": {0: Dim("batch", min=2, max=64)}} if self.dynamic else None
        )
        program = torch.export.export(Random(self.steps, self.results), self.inputs(5), dynamic_shapes=shapes)
        return program.run_decompositions() if self.decompose else program

    def inputs(self, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs of a batch size; other than 5 only where the batch is dynamic."""
        torch.manual_seed(batch)
        return torch.randn(batch, 4), torch.randn(batch, 4)


STEP = st.tuples(
    st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9), st.floats(-4, 4, allow_subnormal=False)
)
EXAMPLES = st.builds(
    Example,
    st.lists(STEP, min_size=1, max_size=8).map(tuple),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([False, False, False, True]),
)
