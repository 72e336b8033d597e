"""Calls of a torch module with arrays instead of tensors, for tools without tensors of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def call_with_arrays(module: torch.nn.Module, arrays: Iterable[Any]) -> Any:
    """Call a module with arrays as 32-bit floats, without gradients.

    Args:
        module: the module to call.
        arrays: anything that `torch.as_tensor` accepts, one for each input.

    Returns:
        an array if the module returns one tensor, else the module's result.
    """
    with torch.no_grad():
        output = module(*(torch.as_tensor(one, dtype=torch.float32) for one in arrays))
    return output.numpy() if isinstance(output, torch.Tensor) else output
