"""Make `conformance/runs`: programs with inputs and the outputs that torch computes for them, seeded.

    python -m tools.conformance_runs

Each program is exported by the torch that is installed, run by it on seeded inputs, and written with them as
safetensors. `conformance/README.md` describes the files.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn import functional

ROOT: Final = Path(__file__).parents[1] / "conformance" / "runs"
TOLERANCES: Final = {
    "F16": [1e-3, 1e-5],
    "BF16": [1.6e-2, 1e-5],
    "F32": [1.3e-6, 1e-5],
    "F64": [1e-7, 1e-7],
}
"""Element type -> relative and absolute tolerance, those of `torch.testing.assert_close`; others are exact."""
SCALE: Final = 10
"""Factor on the tolerances: sums in another order round differently."""


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        """Call the function."""
        return self.function(*args)


class Counter(nn.Module):
    """A buffer that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor([3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Count, then scale."""
        self.count.add_(1)
        return x * self.count


class Recurrent(nn.Module):
    """Two layers of LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6, num_layers=2, bidirectional=True)

    def forward(self, x: torch.Tensor) -> Any:
        """Outputs and states."""
        return self.lstm(x)


class Tied(nn.Module):
    """An embedding whose table is the weight of the last layer, too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.last = nn.Linear(6, 11, bias=False)
        self.last.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.last(torch.tanh(self.table(tokens)))


def _conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 6, 3, groups=3)
    )


def _in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 1:3] += 1
    y.t()[0].mul_(2)
    return y


def _autocast(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        product = x @ y
    return product.float() + 1


def _loop(x: torch.Tensor, count: torch.Tensor) -> Any:
    return while_loop(lambda i, x: i < count, lambda i, x: (i + 1, x * 1.5), (torch.tensor(0), x))


def _scan(x: torch.Tensor, start: torch.Tensor) -> Any:
    return scan(lambda carry, row: (carry + row, carry * row), start, x, dim=0)


def _branch(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x.sin(),), lambda x: (x.cos() - 1,), (x,))


def _selected(x: torch.Tensor) -> torch.Tensor:
    found = x.nonzero()
    return found * 2


def _f(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


CASES: Final[dict[str, tuple[Any, Callable[[], tuple[Any, ...]]]]] = {
    "elementwise.arithmetic": (lambda x, y: (x + 2 * y) / (y.abs() + 1) - x**2, lambda: (_f(3, 4), _f(4))),
    "elementwise.activations": (
        lambda x: (functional.gelu(x), functional.silu(x), functional.softplus(x), functional.elu(x)),
        lambda: (_f(5, 5),),
    ),
    "elementwise.promotion": (lambda x, n: (x * n, n / 2, n > 1), lambda: (_f(4), torch.arange(4))),
    "elementwise.integers": (
        lambda x, y: (x // y, x % y, x & y, x << 1),
        lambda: (torch.arange(-6, 6), torch.arange(1, 13)),
    ),
    "elementwise.bool": (lambda x, y: torch.where(x & ~y, 1, -1), lambda: (_f(6) > 0, _f(6) > 0)),
    "dtypes.bfloat16": (lambda x, y: (x @ y, x.sum(-1)), lambda: (_f(4, 8).bfloat16(), _f(8, 3).bfloat16())),
    "dtypes.float16": (lambda x: torch.softmax(x, -1), lambda: (_f(3, 7).half(),)),
    "dtypes.float64": (lambda x: torch.cumsum(x.double(), 0), lambda: (_f(9),)),
    "dtypes.casts": (lambda x: (x.to(torch.int8), x.to(torch.uint8), x.bool()), lambda: (_f(8).abs() * 9,)),
    "reductions.sums": (lambda x: (x.sum(), x.mean(1), x.var(0), x.norm()), lambda: (_f(4, 6),)),
    "reductions.extremes": (lambda x: (*x.max(1), x.argmin(), *x.topk(2)), lambda: (_f(3, 8),)),
    "reductions.softmax": (lambda x: functional.log_softmax(x, 1), lambda: (_f(2, 5, 3),)),
    "views.rearranged": (
        lambda x: (x.transpose(0, 2).reshape(4, 6), x[:, ::2].unsqueeze(1), x.flip(1)),
        lambda: (_f(2, 3, 4),),
    ),
    "views.in_place": (_in_place, lambda: (_f(4, 4),)),
    "views.joined": (
        lambda x, y: (torch.cat([x, y], 1), torch.stack([x, y]), *x.chunk(2)),
        lambda: (_f(4, 3), _f(4, 3)),
    ),
    "indexing.gather": (
        lambda x, i: (x[i], x.gather(1, i[:, None])),
        lambda: (_f(5, 4), torch.tensor([3, 0, 1])),
    ),
    "indexing.scatter": (
        lambda x, i, y: (x.index_add(0, i, y), x.index_put((i,), y)),
        lambda: (_f(5, 4), torch.tensor([4, 0]), _f(2, 4)),
    ),
    "indexing.embedding": (Tied, lambda: (torch.randint(0, 11, (2, 5)),)),
    "products.linear": (lambda: nn.Linear(6, 4), lambda: (_f(2, 3, 6),)),
    "products.batched": (
        lambda x, y: (torch.bmm(x, y), torch.einsum("bij,bjk->ki", x, y)),
        lambda: (_f(2, 3, 4), _f(2, 4, 5)),
    ),
    "networks.convolutions": (_conv, lambda: (_f(2, 3, 10, 10),)),
    "networks.transposed": (lambda: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1), lambda: (_f(1, 4, 5, 5),)),
    "networks.norms": (lambda: nn.Sequential(nn.GroupNorm(2, 6), nn.LayerNorm(4)), lambda: (_f(2, 6, 4),)),
    "networks.attention": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda: (_f(1, 2, 5, 4), _f(1, 2, 5, 4), _f(1, 2, 5, 4)),
    ),
    "networks.transformer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda: (_f(2, 4, 8),),
    ),
    "networks.lstm": (Recurrent, lambda: (_f(4, 2, 5),)),
    "networks.pooling": (
        lambda x: (
            functional.avg_pool2d(x, 2),
            functional.adaptive_avg_pool2d(x, 3),
            functional.interpolate(x, scale_factor=2.0),
        ),
        lambda: (_f(1, 2, 6, 6),),
    ),
    "state.buffer": (Counter, lambda: (_f(3),)),
    "sizes.batch": (lambda: nn.Linear(6, 4), lambda: (_f(7, 6),)),
    "sizes.computed": (
        lambda x: x.reshape(x.shape[0] * 2, -1) + torch.arange(x.shape[0] * 2)[:, None],
        lambda: (_f(5, 6),),
    ),
    "sizes.from_data": (_selected, lambda: (torch.tensor([0.0, 2.0, 0.0, 3.0]),)),
    "control.cond": (_branch, lambda: (_f(4),)),
    "control.while_loop": (_loop, lambda: (_f(3), torch.tensor(4))),
    "control.scan": (_scan, lambda: (_f(5, 2), torch.zeros(2))),
    "control.autocast": (_autocast, lambda: (_f(3, 8), _f(8, 3))),
}
"""Name -> a function or what makes a module, and what makes its inputs."""
ANY_BATCH: Final = ("sizes.batch", "sizes.computed")
"""Programs whose one input may have any number of rows."""


def _module(made: Any) -> nn.Module:
    is_maker = isinstance(made, type) or (callable(made) and not made.__code__.co_argcount)
    return made() if is_maker else Function(made)


def write() -> None:
    """Write the programs, their inputs and outputs, and the manifest."""
    ROOT.mkdir(parents=True, exist_ok=True)
    listed = []
    for name, (made, inputs) in CASES.items():
        torch.manual_seed(zlib.crc32(name.encode()))
        module, args = _module(made).eval(), inputs()
        rows: Any = ({0: torch.export.Dim.DYNAMIC},)
        rows = (rows,) if isinstance(module, Function) else rows  # whose arguments are all in *args
        program = torch.export.export(module, args, dynamic_shapes=rows if name in ANY_BATCH else None, strict=False)
        torch.export.save(program, ROOT / f"{name}.pt2")
        given = {f"input_{place}": one.clone().contiguous() for place, one in enumerate(args)}
        with torch.no_grad():
            leaves = torch.utils._pytree.tree_leaves(program.module()(*args))
        outputs = {f"output_{place}": one.clone().contiguous() for place, one in enumerate(leaves)}
        save_file(given, ROOT / f"{name}.inputs.safetensors")
        save_file(outputs, ROOT / f"{name}.outputs.safetensors")
        listed.append({"name": name, "inputs": len(given), "outputs": len(outputs)})
    manifest = {"format": "pt2 executable conformance 1", "tolerances": TOLERANCES, "scale": SCALE, "programs": listed}
    (ROOT / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
