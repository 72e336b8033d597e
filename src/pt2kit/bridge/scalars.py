"""Conversion of torch's dtypes, layouts, memory formats and devices to and from the schema's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import torch

from pt2kit.bridge.torch_names import MKLDNN
from pt2kit.errors import UnsupportedError
from pt2kit.schema import Device, Layout, MemoryFormat, ScalarType
from pt2kit.tensors.dtypes import DTYPES as ROWS

DTYPES: Mapping[ScalarType, torch.dtype] = MappingProxyType(
    {number: getattr(torch, row.name) for number, row in ROWS.items() if hasattr(torch, row.name)}
)
LAYOUTS: Mapping[Layout, torch.layout] = MappingProxyType(
    {
        Layout.SparseCoo: torch.sparse_coo,
        Layout.SparseCsr: torch.sparse_csr,
        Layout.SparseCsc: torch.sparse_csc,
        Layout.SparseBsr: torch.sparse_bsr,
        Layout.SparseBsc: torch.sparse_bsc,
        Layout._mkldnn: MKLDNN,
        Layout.Strided: torch.strided,
    }
)
MEMORY_FORMATS: Mapping[MemoryFormat, torch.memory_format] = MappingProxyType(
    {
        MemoryFormat.ContiguousFormat: torch.contiguous_format,
        MemoryFormat.ChannelsLast: torch.channels_last,
        MemoryFormat.ChannelsLast3d: torch.channels_last_3d,
        MemoryFormat.PreserveFormat: torch.preserve_format,
    }
)
SCHEMA: Mapping[Any, Any] = MappingProxyType(
    {live: stored for table in (DTYPES, LAYOUTS, MEMORY_FORMATS) for stored, live in table.items()}
)
"""dtype, layout or memory format of torch -> member of the schema."""
_KINDS: Mapping[type, str] = MappingProxyType(
    {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory format"}
)


def to_dtype(value: ScalarType) -> torch.dtype:
    """Return the dtype of a `ScalarType`.

    Raises:
        UnsupportedError: UNKNOWN.
    """
    if value not in DTYPES:
        raise UnsupportedError(f"expected a scalar type that torch has, got {value.name}")
    return DTYPES[value]


def to_schema(live: torch.dtype | torch.layout | torch.memory_format) -> Any:
    """Return the schema's member for a dtype, layout or memory format of torch.

    Raises:
        UnsupportedError: the schema has no number for it (for example sub-byte and quantized dtypes).
    """
    if live not in SCHEMA:
        raise UnsupportedError(f"expected a {_KINDS[type(live)]} of the schema, got {live}")
    return SCHEMA[live]


MAX_DEVICE_INDEX: Final = 127
"""Largest device index that torch supports. Source: c10/core/Device.h, 2.13."""


def to_device(device: Device) -> torch.device:
    """Return the live device of a schema `Device`; nothing is allocated on it.

    Raises:
        UnsupportedError: a type unknown to torch, or an index that it has no number for.
    """
    name = device.type if device.index is None else f"{device.type}:{device.index}"
    if device.index is not None and not 0 <= device.index <= MAX_DEVICE_INDEX:  # torch keeps the lowest byte
        raise UnsupportedError(f"expected a device index from 0 to {MAX_DEVICE_INDEX}, got {name[:80]!a}")
    try:
        return torch.device(device.type) if device.index is None else torch.device(device.type, device.index)
    except RuntimeError as error:
        raise UnsupportedError(f"expected a device that torch knows, got {name[:80]!a}") from error


def from_device(device: torch.device) -> Device:
    """Return the schema `Device` of a live one."""
    return Device(device.type, device.index)
