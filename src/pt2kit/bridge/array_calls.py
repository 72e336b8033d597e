"""A module and arrays -> what it gives for them, as an array: for tools that know no tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def call_with_arrays(module: torch.nn.Module, arrays: Iterable[Any]) -> Any:
    """Call a module with arrays as 32-bit floats, without gradients.

    Args:
        module: what is called.
        arrays: anything that `torch.as_tensor` takes, one for each input.

    Returns:
        an array where the module gives one tensor, else what it gives.
    """
    with torch.no_grad():
        output = module(*(torch.as_tensor(one, dtype=torch.float32) for one in arrays))
    return output.numpy() if isinstance(output, torch.Tensor) else output
