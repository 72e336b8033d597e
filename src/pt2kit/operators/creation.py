"""Creation, copy, conversion and random rows of the operator table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from pt2kit.operators.facts import (
    Mismatch,
    Symbolic,
    Tensor,
    Unknown,
    at_least,
    decided,
    expect,
    new,
    require,
    require_least,
    row_major,
)
from pt2kit.operators.pointwise import (
    channels_last,
    if_row_major,
    is_channels_last,
    is_contiguous,
    is_dense,
    new_like,
    preserved_strides,
)
from pt2kit.schema import Device, Layout, MemoryFormat, ScalarType
from pt2kit.symbols.polynomials import Polynomial, Size, text

CPU: Final = Device("cpu", None)
_LONGEST: Final = 1 << 62
_RANKS: Final = {MemoryFormat.ChannelsLast: 4, MemoryFormat.ChannelsLast3d: 5}
_KEPT: Final = (None, MemoryFormat.PreserveFormat)


def placed(device: Device | None, default: Device | None = CPU) -> Device | None:
    """Return the device of a new tensor.

    Args:
        device: as the call names it.
        default: if it names none.

    Returns:
        The device; None if the number of an accelerator is not named, which depends on where the program runs.
    """
    if device is None:
        return default
    return device if device.index is not None or device.type in ("cpu", "meta") else None


def created(
    size: Sequence[Size],
    dtype: ScalarType | None,
    device: Device | None = None,
    layout: Layout | None = None,
    default: Device | None = CPU,
) -> Tensor:
    """Return a new row-major tensor.

    Args:
        size: its sizes, none of them negative.
        dtype: its dtype.
        device: as the call names it.
        layout: as the call names it; no kernel creates such a tensor in another one than strided.
        default: the device if the call names none.
    """
    expect(layout in (None, Layout.Strided), f"layout: expected Strided, got {layout and layout.name}")
    require_least(size, 0, "size: expected sizes of 0 or more")
    return new(size, dtype, placed(device, default))


def require_strided(layout: Layout | None) -> None:
    """Leave results of other layouts unknown."""
    if layout not in (None, Layout.Strided):
        raise Unknown("a result that is not strided")


def with_strides(tensor: Tensor, stride: Sequence[Size]) -> Tensor:
    """Return a tensor with given strides, one for each dimension."""
    expect(len(stride) == tensor.rank, f"stride: expected {tensor.rank} strides, got {len(stride)}", "sizes")
    is_sure = all(at_least(one, 0) is not False for one in stride)
    return new_like(tensor, tensor.dtype, tuple(stride) if is_sure else None)


def range_length(start: Any, end: Any, step: Any) -> Size:
    """Return how many numbers a range has."""
    if any(isinstance(number, Symbolic) for number in (start, end, step)):
        raise Unknown("a range of symbolic floats")
    if isinstance(step, (int, float)):
        expect(step != 0, "step: expected a number other than 0, got 0")
    if any(isinstance(number, float) for number in (start, end, step)):
        if any(isinstance(number, Polynomial) for number in (start, end, step)):
            raise Unknown("a range of floats of symbolic length")
        fraction: float = (end - start) / step
        if not math.isfinite(fraction) or abs(fraction) > _LONGEST:
            raise Mismatch(f"expected a finite range, got {start} to {end}")
        expect(fraction >= 0, f"step: expected one towards the end, got {step} from {start} to {end}")
        return math.ceil(fraction)
    if not isinstance(step, int):
        raise Unknown("a range of symbolic steps")
    length, distance = (end - start, step) if step > 0 else (start - end, -step)
    count: Size = (length + distance - 1) // distance
    expect(at_least(count, 0), f"step: expected one towards the end, got {step} from {text(start)} to {text(end)}")
    return count


def triangle(row: int, col: int, offset: int) -> int:
    """Return how many elements of a matrix are on a diagonal or below it: row i has i + offset + 1 of `col`."""
    first = min(row, max(0, -offset))  # The first row that has any.
    whole = min(row, max(first, col - offset - 1))  # The first row that has all.
    return (whole - first) * (first + whole + 2 * offset + 1) // 2 + (row - whole) * col


def in_format(tensor: Tensor, memory_format: MemoryFormat | None = None) -> tuple[Size, ...] | None:
    """Return the strides of a copy in a memory format, by default in the order of the tensor; None if not known.

    Raises:
        Mismatch: tensors of this rank do not have that format.
    """
    if memory_format in _KEPT:
        return preserved_strides(tensor)
    if memory_format in _RANKS:
        expected = f"memory_format: expected {_RANKS[memory_format]} dimensions"
        require(tensor.rank == _RANKS[memory_format], "dimension", expected, tensor.rank)
        return channels_last(tensor.sizes)
    return row_major(tensor.sizes)


def contiguous(self: Tensor, memory_format: MemoryFormat | None = MemoryFormat.ContiguousFormat) -> Tensor:
    """Return the tensor if it is in a memory format, otherwise a copy in it."""
    require_strided(self.layout)
    if memory_format is MemoryFormat.PreserveFormat:
        raise Unknown("preserve_format is no format for contiguous")
    if memory_format is MemoryFormat.ContiguousFormat and is_contiguous(self):
        return self
    strides = in_format(self, memory_format or MemoryFormat.ContiguousFormat)
    return Tensor(self.sizes, self.dtype, strides, self.device, None)


def copied(
    self: Tensor,
    dtype: ScalarType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Return a copy of a tensor in another dtype, device or memory format."""
    require_strided(layout)
    require_strided(self.layout)
    strides, is_moved = in_format(self, memory_format), device is not None
    if memory_format in _KEPT and not is_surely_dense(self) and (is_moved or strides != row_major(self.sizes)):
        strides = None  # Kernels choose channels_last or contiguous; fake tensors keep the order, or gaps.
    return Tensor(self.sizes, dtype or self.dtype, strides, placed(device, self.device), None if is_moved else 0)


def is_surely_dense(tensor: Tensor) -> bool:
    """Return whether a tensor is known to have no gaps in memory."""
    return decided(is_dense, tensor) is True


def converted(
    self: Tensor,
    dtype: ScalarType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    copy: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Return the tensor if it has a dtype and device, otherwise a copy."""
    result = copied(self, dtype, layout, device, memory_format)
    if copy or (result.dtype is not self.dtype and self.dtype is not None):
        return result
    strides = None if memory_format in _KEPT else result.strides
    if device in (None, self.device):
        suggested = _suggested_format(self)
        if memory_format in (*_KEPT, suggested):
            return self
        strides = None if suggested is None else strides
    return Tensor(result.sizes, result.dtype, strides, result.device, None)


def _suggested_format(tensor: Tensor) -> MemoryFormat | None:
    """Return the memory format that torch suggests for a tensor: contiguous for all that do not look like
    channels_last, whether they are contiguous or not. None if it is not known.
    """
    if tensor.strides is None:
        return None
    is_last = decided(is_channels_last, tensor)
    if is_last is None:
        return None
    formats = {rank: memory_format for memory_format, rank in _RANKS.items()}
    return formats[tensor.rank] if is_last else MemoryFormat.ContiguousFormat


def drawn(self: Tensor) -> Tensor:
    """Return a tensor of random numbers of the sizes and dtype of another one."""
    return if_row_major(Tensor(self.sizes, self.dtype, self.strides, self.device))


def sparse(tensor: Tensor, layout: Layout) -> Tensor:
    """Return a tensor of another layout."""
    return Tensor(tensor.sizes, tensor.dtype, None, tensor.device, None, layout)
