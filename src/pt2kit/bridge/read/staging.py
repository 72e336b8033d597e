"""Bytes that are read piece by piece -> storages on an accelerator, through two pinned buffers.

While one buffer is copied to the device, the other is filled from the file: reading and copying overlap, and however
large the file is, the host holds two pieces of it. Devices that know no pinned memory get the same pieces one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch

PIECE: Final = 64 << 20
"""Bytes of one buffer: enough that starting a copy costs nothing, and two of them stay far below 256 MB."""

Fill: TypeAlias = "Callable[[int, memoryview], None]"
"""(start, buffer) -> fills the buffer with the bytes from there on."""


class Staging:
    """Copies storages to one device.

    Args:
        device: where they go.
        piece: bytes of a buffer.
    """

    def __init__(self, device: torch.device, piece: int = PIECE) -> None:
        self.device = device
        self._is_cuda = device.type == "cuda"
        self._piece = piece
        self._buffers: dict[int, torch.Tensor] = {}
        self._stream: Any = torch.cuda.Stream(device) if self._is_cuda else None
        self._copied: list[Any] = [torch.cuda.Event(), torch.cuda.Event()] if self._is_cuda else []

    def upload(self, nbytes: int, fill: Fill) -> torch.UntypedStorage:
        """Make a storage on the device.

        Args:
            nbytes: its length.
            fill: called once for each piece, in order.

        Returns:
            the storage. Its last copies may be under way; the device's current stream waits for them.

        Raises:
            RuntimeError: torch cannot use the device, or has no memory there.
        """
        whole = torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        if self.device.type == "meta":
            return whole.untyped_storage()
        if self._is_cuda:
            # The memory may have been somebody else's on the current stream.
            self._stream.wait_stream(torch.cuda.current_stream(self.device))
            whole.record_stream(self._stream)
        for number, start in enumerate(range(0, nbytes, self._piece)):
            self._copy(number % 2, whole[start : start + self._piece], start, fill)
        if self._is_cuda:
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return whole.untyped_storage()

    def _copy(self, which: int, part: torch.Tensor, start: int, fill: Fill) -> None:
        if self.device.type == "cpu":
            fill(start, memoryview(part.numpy()))
            return
        if self._is_cuda:
            self._copied[which].synchronize()  # What was in this buffer is on the device.
        buffer = self._buffer(which, part.numel())
        fill(start, memoryview(buffer.numpy()))
        if not self._is_cuda:
            part.copy_(buffer)
            return
        with torch.cuda.stream(self._stream):
            part.copy_(buffer, non_blocking=True)
            self._copied[which].record(self._stream)

    def _buffer(self, which: int, nbytes: int) -> torch.Tensor:
        """One of the two buffers, of `nbytes` bytes; nothing is being copied from it."""
        size = min(self._piece, 1 << max(nbytes - 1, 0).bit_length())
        if which not in self._buffers or self._buffers[which].numel() < nbytes:
            self._buffers[which] = torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=self._is_cuda)
        return self._buffers[which][:nbytes]
