"""Programs with higher-order operators: control flow, regions with other modes, subgraphs, functionalized mutation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.bridge.zoo.program import Recipe
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_hop
from torch._higher_order_ops.out_dtype import out_dtype
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.strict_mode import strict_mode
from torch._higher_order_ops.while_loop import while_loop
from torch._higher_order_ops.wrap import wrap
from torch.export import Dim
from torch.utils.checkpoint import checkpoint


class Cond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() + 1, (x,))


class CondMany(nn.Module):
    """Branches that close over the module's tensors and give back several results, one of them unused."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x, y):
        def yes(x, y):
            return self.a(x) + self.shift, y * 2, x - y

        def no(x, y):
            return self.b(x) - self.shift, y / 2, y - x

        first, _, third = torch.cond(x.sum() > y.sum(), yes, no, (x, y))
        return first + third


class CondNested(nn.Module):
    def forward(self, x, n):
        def inner(x):
            return torch.cond(x.max() > 1, lambda x: x * 2, lambda x: x * 3, (x,))

        return torch.cond(n > 2, inner, lambda x: x + 1, (x,))


class CondSize(nn.Module):
    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x + x.shape[0], lambda x: x - x.shape[0], (x,))


class Map(nn.Module):
    def forward(self, xs, y):
        return map_hop(lambda x, y: x.cos() + y * 2, xs, y)


class Scan(nn.Module):
    def forward(self, init, xs):
        return scan(lambda carry, x: (carry + x, carry * x), init, xs)


class AssociativeScan(nn.Module):
    def forward(self, xs):
        return associative_scan(lambda a, b: a * b, xs, dim=0, combine_mode="generic")


class While(nn.Module):
    def forward(self, n, x):
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))


class WhileInt(nn.Module):
    def forward(self, x):
        n, y = while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x + 1), (x.shape[0], x))
        return y + n


class NoGrad(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x)
            z = x.relu()
        with torch.enable_grad():
            w = (y + z).sin()
        return y + w


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
        return y.float() + self.linear(x)


class Checkpoint(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return checkpoint(lambda x: self.linear(x).relu(), x, use_reentrant=False) + 1


@torch.compiler.nested_compile_region
def region(x, y):
    return torch.sin(x * y), x + y


class Regions(nn.Module):
    def forward(self, x, y):
        a, b = region(x, y)
        c, _ = region(a, b)
        return c - b


class OutDtype(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(-128, 127, (4, 4), dtype=torch.int8))

    def forward(self, x):
        return out_dtype(torch.ops.aten.mm.default, torch.int32, x, self.w)


class Wrap(nn.Module):
    def forward(self, x):
        return wrap(lambda x: (x.sin(), x.cos()), x)[0]


class StrictMode(nn.Module):
    def forward(self, x):
        return strict_mode(lambda x: x.sin() + 1, (x,))


class Vmap(nn.Module):
    def forward(self, x, y):
        return torch.vmap(lambda x, y: (x * y).sum() + x)(x, y)


class Print(nn.Module):
    def forward(self, x):
        torch.ops.aten._print("a text; with, separators")
        return x + 1


def recipes() -> list[Recipe]:
    """Every model here and how it is exported."""
    auto, batch = Dim.AUTO, Dim("batch", min=2, max=50)
    row = lambda: (torch.ones(3),)  # noqa: E731
    square = lambda: (torch.randn(4, 3),)  # noqa: E731
    pair = lambda: (torch.randn(2, 3), torch.randn(2, 3))  # noqa: E731
    other: Callable[[], list[Any]] = lambda: [((-torch.ones(3),), {})]  # noqa: E731
    all_ = ("plain", "strict", "decomp")
    return [
        Recipe("cond", Cond, row, more=other, variants=all_),
        Recipe("cond_many", CondMany, pair, variants=all_),
        Recipe(
            "cond_nested",
            CondNested,
            lambda: (torch.randn(3), torch.tensor(3)),
            variants=("plain", "decomp"),
            more=lambda: [((torch.randn(3), torch.tensor(1)), {})],
        ),
        Recipe("cond_size", CondSize, square, dynamic_shapes=({0: auto},), more=lambda: [((torch.randn(9, 3),), {})]),
        Recipe(
            "map",
            Map,
            lambda: (torch.randn(4, 3), torch.randn(3)),
            dynamic_shapes=({0: auto}, None),
            variants=("plain", "decomp"),
        ),
        Recipe("scan", Scan, lambda: (torch.randn(3), torch.randn(4, 3)), variants=("plain", "strict", "decomp")),
        Recipe(
            "scan_dynamic", Scan, lambda: (torch.randn(3), torch.randn(4, 3)), dynamic_shapes=lambda: (None, {0: batch})
        ),
        Recipe("associative_scan", AssociativeScan, square, variants=("plain", "strict")),
        Recipe("while_loop", While, lambda: (torch.tensor(3), torch.randn(2)), variants=all_),
        Recipe("while_int", WhileInt, lambda: (torch.randn(3, 2),), dynamic_shapes=({0: auto},)),
        Recipe("no_grad", NoGrad, lambda: (torch.randn(2, 3),), variants=all_),
        Recipe("autocast", Autocast, lambda: (torch.randn(2, 3),)),
        Recipe("autocast_strict", Autocast, lambda: (torch.randn(2, 3),), variants=("strict",), callable=False),
        Recipe("checkpoint", Checkpoint, lambda: (torch.randn(2, 3),), train=True),
        Recipe("invoke_subgraph", Regions, pair, variants=("plain", "strict")),
        Recipe("out_dtype", OutDtype, lambda: (torch.randint(-128, 127, (4, 4), dtype=torch.int8),)),
        Recipe("wrap", Wrap, row, variants=("plain", "strict")),
        Recipe("strict_mode", StrictMode, row),
        Recipe("vmap", Vmap, pair),
        Recipe("print_effect", Print, row, variants=("plain", "decomp")),
    ]
