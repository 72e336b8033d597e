"""The bytes of a live tensor's storage -> buffers to write, without a Python copy of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

CHUNK = 16 << 20
"""Bytes that are fetched from another device at a time."""


def storage_bytes(tensor: torch.Tensor) -> int:
    """How many bytes of a tensor's storage are written: all whole elements."""
    size, item = int(tensor.untyped_storage().nbytes()), int(tensor.element_size())
    return size - size % item


def storage_chunks(tensor: torch.Tensor) -> Iterator[Any]:
    """The bytes of a tensor's whole storage, in order.

    On the CPU that is one view of the storage itself, which must not change meanwhile; from other devices `CHUNK` bytes
    at a time.
    """
    size = storage_bytes(tensor)
    with torch.utils._python_dispatch._disable_current_modes():
        flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        flat = flat.set_(tensor.untyped_storage(), 0, (size,), (1,))
        for start in range(0, size, size if flat.is_cpu else CHUNK):
            part = flat if flat.is_cpu else flat[start : start + CHUNK].cpu()
            yield memoryview(part.numpy())
