"""The bytes of a live tensor's storage -> buffers to write, without a Python copy of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from pt2kit.bridge.torch_names import disable_current_modes

CHUNK = 4 << 20
"""Bytes that are given at a time: few enough to stay in a processor's cache while they are summed and written."""
DEVICE_CHUNK = 16 << 20
"""The same for another device, where each transfer has a price."""


def storage_bytes(tensor: torch.Tensor) -> int:
    """How many bytes of a tensor's storage are written: all whole elements."""
    size, item = int(tensor.untyped_storage().nbytes()), int(tensor.element_size())
    return size - size % item


def storage_chunks(tensor: torch.Tensor) -> Iterator[Any]:
    """The bytes of a tensor's whole storage, in order.

    On the CPU these are views of the storage itself, which must not change meanwhile.
    """
    size = storage_bytes(tensor)
    flat = _flat(tensor, size)
    if not flat.is_cpu:
        for start in range(0, size, DEVICE_CHUNK):
            yield _fetch(flat[start : start + DEVICE_CHUNK])
        return
    whole = _fetch(flat)
    for start in range(0, size, CHUNK):
        yield whole[start : start + CHUNK]


def _flat(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """A storage as bytes, without a copy, whatever tensor modes the caller is in."""
    with disable_current_modes():
        flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        return flat.set_(tensor.untyped_storage(), 0, (size,), (1,))


def _fetch(flat: torch.Tensor) -> memoryview:
    with disable_current_modes():
        return memoryview(flat.cpu().numpy())
