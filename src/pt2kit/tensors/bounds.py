"""Checks of sizes, strides, offsets and devices that a file states.

Everything is decided in Python integers, which do not wrap, before any byte of the tensor is touched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pt2kit.errors import LimitError, PayloadError, UnsupportedError
from pt2kit.schema import Device
from pt2kit.zip.chosen_names import show_name

INT64_MAX: Final = (1 << 63) - 1
"""The largest size, stride or offset: torch and numpy count in 64 bits with a sign."""

MAX_NDIM: Final = 64
"""Dimensions of a tensor: numpy's limit since 2.0, and torch's for every operator that iterates."""

MAX_EXPANDED_BYTES: Final = 1 << 30
"""Limit of a copy's bytes if its tensor's storage is smaller than it (stride 0, overlapping windows, sparse zeros)."""

MAX_DEVICE_INDEX: Final = 127
"""torch keeps the index of a device in 8 bits with a sign."""

DEVICE_TYPES: Final = frozenset(
    (
        *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla"),
        *("lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone"),
        # Names that others give `privateuseone`: Ascend, Cambricon, Moore Threads, Spyre, torch's own example.
        *("npu", "mlu", "musa", "spyre", "openreg"),
    )
)
"""Source: c10/core/DeviceType.cpp (2.13)."""


def contiguous_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a row-major tensor in torch; a size of 0 counts as 1."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether elements are stored in row-major order without gaps.

    Strides of dimensions of size 1 do not count.
    """
    if 0 in sizes:
        return True
    step = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def extent(sizes: Sequence[int], strides: Sequence[int], storage_offset: int, itemsize: int) -> int:
    """Return the bytes that a storage must have for a tensor: up to the end of its last element; 0 if it has none.

    Args:
        sizes, strides, storage_offset: in elements, none negative, as many sizes as strides.
        itemsize: bytes per element.
    """
    if 0 in sizes:
        return 0
    last = storage_offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return (last + 1) * itemsize


def check_shape(
    where: str, sizes: Sequence[int], strides: Sequence[int], storage_offset: int = 0, itemsize: int = 1
) -> None:
    """Check the numbers of a tensor, whether it has a storage or not.

    Raises:
        PayloadError: a number out of range (P7), too many elements (P8).
        LimitError: more than 64 dimensions (P7).
    """
    if len(sizes) > MAX_NDIM:
        raise LimitError(f"{where}: sizes: expected at most {MAX_NDIM} dimensions, got {len(sizes)}", rule="P7")
    if len(sizes) != len(strides):
        raise PayloadError(
            f"{where}: expected as many strides as sizes, got {len(strides)} and {len(sizes)}",
            rule="P7",
        )
    for field, values in (("sizes", sizes), ("strides", strides), ("storage_offset", (storage_offset,))):
        for value in values:
            if not 0 <= value <= INT64_MAX:
                raise PayloadError(f"{where}: {field}: expected 0 to 2**63 - 1, got {show_integer(value)}", rule="P7")
    # A size of 0 does not excuse the others: numpy and torch multiply all of them.
    if (total := math.prod(size or 1 for size in sizes) * itemsize) > INT64_MAX:
        raise PayloadError(
            f"{where}: sizes: expected at most 2**63 - 1 bytes, "
            f"got {show_integer(total)} for {list(sizes)} of {itemsize} bytes each",
            rule="P8",
        )


def parse_device(text: str) -> Device | None:
    """Return the device that a text names ("cuda:0"), whether torch has it or not; None if it has another form."""
    kind, colon, index = text.partition(":")
    if not kind.isidentifier() or (colon and not (index.isascii() and index.isdecimal() and len(index) < 4)):
        return None
    return Device(kind, int(index) if colon else None)


def device_text(device: Device) -> str:
    """Return a device as torch prints it: "cpu", "cuda:1"."""
    return device.type if device.index is None else f"{device.type}:{device.index}"


def is_device(device: Device) -> bool:
    """Return whether a device is one that torch could have."""
    return device.type in DEVICE_TYPES and (device.index is None or 0 <= device.index <= MAX_DEVICE_INDEX)


def check_device(where: str, device: Device) -> None:
    """Check that a device is one that torch could have; it states where the bytes were, and does not affect them.

    Raises:
        UnsupportedError: an unknown type, or an index out of range (P6).
    """
    if device.type not in DEVICE_TYPES:
        raise UnsupportedError(
            f"{where}: device: expected a device type of torch (cpu, cuda, mps, xpu, …), "
            f"got {show_name(device.type[:40])!s}",
            rule="P6",
        )
    if device.index is not None and not 0 <= device.index <= MAX_DEVICE_INDEX:
        raise UnsupportedError(
            f"{where}: device: expected an index from 0 to {MAX_DEVICE_INDEX}, got {show_integer(device.index)}",
            rule="P6",
        )


def check_copy(where: str, needed: int, held: int) -> None:
    """Check that a copy is not much larger than its source, as expanded and sparse tensors can make it.

    Args:
        where: what messages call the tensor.
        needed: bytes of the copy.
        held: bytes that hold the elements in the file.

    Raises:
        LimitError: `needed` is more than both `held` and `MAX_EXPANDED_BYTES` (P16).
    """
    if needed > max(held, MAX_EXPANDED_BYTES):
        raise LimitError(
            f"{where}: expected a copy of at most {max(held, MAX_EXPANDED_BYTES)} bytes, "
            f"got {needed} from {held} stored; read the parts, or index the array that numpy() gives",
            rule="P16",
        )


def show_integer(value: int) -> str:
    """Return an integer as messages print it: its digits, or its length if those are too many to print."""
    return str(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
