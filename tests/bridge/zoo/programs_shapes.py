"""Programs with symbolic sizes: dynamic dimensions, arithmetic on sizes, data-dependent values, assertions."""

from __future__ import annotations

import math

import torch
from tests.bridge.zoo.program import Recipe
from torch import nn
from torch.export import Dim

ALL = ("plain", "strict", "decomp")


class Add(nn.Module):
    def forward(self, x, y):
        return x + y, x.shape[0]


class Matmul(nn.Module):
    def forward(self, x, y):
        return (x @ y).flatten(), x.reshape(-1), torch.zeros(x.shape[0], y.shape[1] * 2)


class SymOps(nn.Module):
    def forward(self, x):
        a, b = x.shape
        parts = [a + b, a * b, a // 2, a % 3, a - b, max(a, b), min(a, b), -a, a**2]
        return x + sum(parts[:3]), x * parts[3], x[: a // 2], torch.full((a + 1, b * 2), 7), tuple(parts)


class SymFloats(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x * (n / 3), x / math.sqrt(n), x + float(n) * 0.5, x * torch.sym_float(n)


class SymBools(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x * torch.sym_ite(n > 5, 2, 3), torch.sym_not(n > 7)


class SymMinMax(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y])[: torch.sym_max(x.shape[0], y.shape[0])], x[: torch.sym_min(x.shape[0], 3)]


class SymSum(nn.Module):
    def forward(self, x, y, z):
        return torch.zeros(torch.sym_sum([x.shape[0], y.shape[0], z.shape[0]]))


class Rounding(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x.new_ones(math.trunc(n / 3) + 1), x.new_ones(int(n * 1.5))


class Ceiling(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x.new_ones(math.ceil(n / 3)), x.new_ones(math.floor(n / 2) + 1)


class Item(nn.Module):
    def forward(self, x):
        n = x.item()
        torch._check(n >= 0)
        torch._check(n <= 10)
        return torch.zeros(n + 1), n


class ItemBool(nn.Module):
    def forward(self, x):
        return x.sum() * (x > 0).any().item()


class ItemFloat(nn.Module):
    def forward(self, x):
        return x * x.sum().item()


class Nonzero(nn.Module):
    def forward(self, x):
        found = torch.nonzero(x)
        return found, x[x > 0], torch.masked_select(x, x > 0)


class Constrain(nn.Module):
    def forward(self, x, n):
        size = n.item()
        torch._check(size >= 2)
        torch._check(size <= x.shape[0])
        return x[:size], torch.arange(size)


class Row(nn.Module):
    def forward(self, x, n):
        row = x[n.item()]
        return row + 1, row.storage_offset()


class Rows(nn.Module):
    def forward(self, x, n):
        start = n.item()
        torch._check(start >= 0)
        torch._check(start + 2 <= x.shape[0])
        return torch.narrow(x, 0, start, 2).storage_offset(), x[start].relu()


class Asserts(nn.Module):
    def forward(self, x):
        torch._check(x.shape[0] % 2 == 0)
        torch._check(x.shape[0] != 14)
        return x.reshape(-1, 2, x.shape[1])


class IntInput(nn.Module):
    def forward(self, x, n):
        return x[:n] * n


class Windows(nn.Module):
    def forward(self, x):
        return x.unfold(0, 3, 2), x[::2], x[-2:], x.split(2, 1), torch.nn.functional.pad(x, (1, 1, 0, 0))


class Interpolate(nn.Module):
    def forward(self, x):
        return nn.functional.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=False)


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""
    batch, other = Dim("batch", min=2, max=100), Dim("other")
    auto = Dim.AUTO
    matrix = lambda: (torch.randn(6, 4),)  # noqa: E731
    return [
        Recipe(
            "dynamic_batch",
            Add,
            lambda: (torch.randn(4, 3), torch.randn(4, 3)),
            variants=ALL,
            dynamic_shapes=lambda: {"x": {0: batch}, "y": {0: batch}},
            more=lambda: [((torch.randn(9, 3), torch.randn(9, 3)), {})],
        ),
        Recipe(
            "dynamic_two_dims",
            Matmul,
            lambda: (torch.randn(4, 3), torch.randn(3, 5)),
            variants=("plain", "decomp"),
            dynamic_shapes=lambda: {"x": {0: batch}, "y": {1: other}},
            more=lambda: [((torch.randn(2, 3), torch.randn(3, 8)), {})],
        ),
        Recipe(
            "dynamic_auto",
            Matmul,
            lambda: (torch.randn(4, 3), torch.randn(3, 5)),
            dynamic_shapes=({0: auto, 1: auto}, {0: auto, 1: auto}),
        ),
        Recipe(
            "dynamic_derived",
            Add,
            lambda: (torch.randn(8, 3), torch.randn(8, 3)),
            dynamic_shapes=lambda: {"x": {0: 2 * Dim("half", max=50)}, "y": {0: auto}},
        ),
        Recipe(
            "sym_ops",
            SymOps,
            matrix,
            dynamic_shapes=({0: auto, 1: auto},),
            variants=("plain", "decomp"),
            more=lambda: [((torch.randn(9, 5),), {})],
        ),
        Recipe(
            "sym_ops_sum",
            SymOps,
            matrix,
            dynamic_shapes=({0: auto, 1: auto},),
            variants=("strict",),
            flags={"torch_saves": "it does not know sym_sum, into which strict export turns sums"},
        ),
        Recipe(
            "sym_float",
            SymFloats,
            matrix,
            dynamic_shapes=({0: auto},),
            variants=("strict",),
            more=lambda: [((torch.randn(9, 4),), {})],
        ),
        Recipe(
            "sym_bool",
            SymBools,
            matrix,
            dynamic_shapes=({0: auto},),
            flags={"torch_saves": "its signature has no symbolic bool", "torch_reads": "likewise"},
        ),
        Recipe(
            "sym_min_max",
            SymMinMax,
            lambda: (torch.randn(4, 3), torch.randn(6, 3)),
            dynamic_shapes=({0: auto}, {0: auto}),
        ),
        Recipe(
            "sym_sum",
            SymSum,
            lambda: (torch.randn(4), torch.randn(6), torch.randn(5)),
            dynamic_shapes=({0: auto}, {0: auto}, {0: auto}),
            flags={"torch_saves": "it does not know sym_sum"},
        ),
        Recipe("rounding", Rounding, matrix, dynamic_shapes=({0: auto},)),
        Recipe(
            "ceiling",
            Ceiling,
            matrix,
            dynamic_shapes=({0: auto},),
            flags={"torch_saves": "it does not know math.ceil and math.floor"},
        ),
        Recipe(
            "item_symint",
            Item,
            lambda: (torch.tensor(3),),
            variants=("plain", "decomp"),
            more=lambda: [((torch.tensor(0),), {})],
        ),
        Recipe("item_bool", ItemBool, lambda: (torch.randn(4),)),
        Recipe("item_float", ItemFloat, lambda: (torch.randn(4),)),
        Recipe("nonzero", Nonzero, lambda: (torch.tensor([1.0, 0.0, 2.0, 0.0]),), variants=("plain", "decomp")),
        Recipe(
            "item_constrain", Constrain, lambda: (torch.randn(6, 2), torch.tensor(3)), dynamic_shapes=({0: auto}, None)
        ),
        Recipe("item_row", Row, lambda: (torch.randn(6, 2), torch.tensor(3)), variants=("plain", "decomp")),
        Recipe("item_rows", Rows, lambda: (torch.randn(6, 2), torch.tensor(3)), variants=("plain", "decomp")),
        Recipe(
            "sym_assert",
            Asserts,
            lambda: (torch.randn(6, 4),),
            dynamic_shapes=({0: auto, 1: auto},),
            variants=("plain", "decomp"),
        ),
        Recipe(
            "int_input",
            IntInput,
            lambda: (torch.randn(6, 2), 3),
            dynamic_shapes=({0: auto}, Dim.DYNAMIC),
            more=lambda: [((torch.randn(6, 2), 4), {})],
        ),
        Recipe("windows", Windows, matrix, dynamic_shapes=({0: auto},), variants=("plain", "decomp")),
        Recipe(
            "interpolate",
            Interpolate,
            lambda: (torch.randn(1, 2, 6, 8),),
            dynamic_shapes=({2: auto, 3: auto},),
            variants=("plain", "decomp"),
        ),
    ]
