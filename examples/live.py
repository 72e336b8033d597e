"""Save a live program with pt2kit, or load one and compare it with the model it came from.

python examples/live.py save attention.pt2
python examples/live.py load attention.pt2
"""

from __future__ import annotations

import sys
import time

import torch

import pt2kit


class Attention(torch.nn.Module):
    """A block of a transformer with a mask that depends on the length of the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.attend = torch.nn.MultiheadAttention(64, 4, batch_first=True)
        self.grow = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, length, 64] -> the same."""
        length = x.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        y = self.norm(x)
        x = x + self.attend(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.grow(self.norm(x))


def model() -> tuple[Attention, torch.Tensor]:
    """The model, the same each time, and an input for it."""
    torch.manual_seed(0)
    return Attention().eval(), torch.randn(2, 7, 64)


def save(path: str) -> None:
    """Export the model with a dynamic batch and length, and save it."""
    block, x = model()
    shapes = ({0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("length", min=2, max=512)},)
    program = torch.export.export(block, (x,), dynamic_shapes=shapes)
    started = time.perf_counter()
    pt2kit.save(program, path)
    print(f"saved {len(program.graph.nodes)} nodes in {time.perf_counter() - started:.3f} s")


def load(path: str) -> None:
    """Load the program, run it on other sizes than it was exported with, and compare."""
    block, _ = model()
    started = time.perf_counter()
    program = pt2kit.load(path)
    print(f"loaded in {time.perf_counter() - started:.3f} s")
    x = torch.randn(5, 31, 64)
    torch.testing.assert_close(program.module()(x), block(x))
    print(f"run on {list(x.shape)}: the same numbers as the model it came from")


if __name__ == "__main__":
    {"save": save, "load": load}[sys.argv[1]](sys.argv[2])
