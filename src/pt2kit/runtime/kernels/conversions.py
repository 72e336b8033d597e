"""Kernels: the same tensor, and its copies in another element type or memory format."""

from __future__ import annotations

from typing import Any

import numpy as np

from pt2kit.runtime.arrays import Array, DType, cast, reserve
from pt2kit.runtime.table import kernel, kernels, write
from pt2kit.schema import MemoryFormat

# The same tensor, and copies in another type or order.


@kernel("aten.alias.default aten.detach.default aten.lift_fresh.default")
@kernel("aten.detach_.default aten.positive.default aten.to_dense.default aten._to_dense.default")
def alias(self: Array, **options: Any) -> Any:
    return self


def _ordered(self: Array, memory_format: Any) -> Array:
    """Copy an array in a memory format."""
    if memory_format in (MemoryFormat.ChannelsLast, MemoryFormat.ChannelsLast3d):
        return np.moveaxis(np.moveaxis(self, 1, -1).copy(order="C"), -1, 1)
    reserve(self.shape, self.dtype)
    return self.copy(order="C" if memory_format is MemoryFormat.ContiguousFormat else "K")


@kernel("aten.contiguous.default")
def contiguous(self: Array, memory_format: Any = MemoryFormat.ContiguousFormat) -> Any:
    if memory_format is MemoryFormat.ContiguousFormat and self.flags.c_contiguous:
        return self
    return _ordered(self, memory_format)


@kernel("aten._to_copy.default")
def to_copy(self: Array, dtype: DType | None = None, memory_format: Any = None, **options: Any) -> Any:
    return to(self, dtype, True, memory_format)


@kernel("aten.to.dtype .dtype_layout .device .prim_Device .prim_dtype .prim_other")
def to(self: Array, dtype: DType | None = None, copy: bool = False, memory_format: Any = None, **options: Any) -> Any:
    array = self
    if dtype is not None and array.dtype != dtype:
        reserve(array.shape, dtype)
        array = cast(array, dtype)
    elif copy:
        array = array.copy(order="K")
    if memory_format in (MemoryFormat.ChannelsLast, MemoryFormat.ChannelsLast3d):
        return _ordered(array, memory_format)
    return array


@kernel("aten.copy.default")
def copy(self: Array, src: Array, non_blocking: bool = False) -> Any:
    reserve(self.shape, self.dtype)
    return np.broadcast_to(cast(src, self.dtype), self.shape).copy()


kernels(
    {
        "aten.clone.default aten.lift_fresh_copy.default": lambda self, memory_format=None: _ordered(
            self, memory_format
        ),
        "aten.to.other aten.type_as.default": lambda self, other, **options: cast(self, other.dtype),
        "aten.copy_.default": lambda self, src, non_blocking=False: write(self, np.broadcast_to(src, self.shape)),
    }
)
