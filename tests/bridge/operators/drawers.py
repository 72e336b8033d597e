"""Drawers of arguments for random calls: tensors by the letters of their dimensions, lists, choices."""

from __future__ import annotations

from typing import Any

import torch
from tests.bridge.operators.fake_calls import FLOATS, Draw, Drawer

SIZES = (2, 3, 3, 3, 3, 3, 1, 0)
"""Sizes to draw from: mostly those that fit each other."""
NUMBERS = (*FLOATS, torch.int64, torch.complex64)


def tensor(*shapes: str, like: str = "", dtypes: Any = NUMBERS) -> Drawer:
    """Return a drawer of a tensor: one letter per dimension, digits for fixed sizes; of the dtype of `like`.

    Args:
        shapes: the shapes to draw from.
        like: the argument whose dtype it has, mostly.
        dtypes: otherwise.
    """

    def drawn(draw: Draw) -> Any:
        sizes = [int(name) if name.isdigit() else draw.rng.choice(SIZES) for name in draw.rng.choice(shapes)]
        same = (draw.given[like].dtype,) if like and draw.rng.random() < 0.9 else dtypes
        return draw.tensor(*sizes, dtypes=same) if sizes else draw.scalar_tensor(same)

    return drawn


def tensors(*shapes: str, counts: tuple[int, ...] = (1, 2, 3)) -> Drawer:
    """Return a drawer of a list of tensors of one dtype."""

    def drawn(draw: Draw) -> Any:
        dtype = (draw.rng.choice(FLOATS),)
        return [tensor(*shapes, dtypes=dtype)(draw) for _ in range(draw.rng.choice(counts))]

    return drawn


def choose(*values: Any) -> Drawer:
    """Return a drawer of one of some values."""
    return lambda draw: draw.rng.choice(values)
