"""torch's dtypes, layouts, memory formats and devices <-> the schema's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import torch

from pt2kit.bridge.torch_names import MKLDNN
from pt2kit.errors import UnsupportedError
from pt2kit.schema import Device, Layout, MemoryFormat, ScalarType

DTYPES: Mapping[ScalarType, torch.dtype] = MappingProxyType(
    {
        ScalarType.BYTE: torch.uint8,
        ScalarType.CHAR: torch.int8,
        ScalarType.SHORT: torch.int16,
        ScalarType.INT: torch.int32,
        ScalarType.LONG: torch.int64,
        ScalarType.HALF: torch.float16,
        ScalarType.FLOAT: torch.float32,
        ScalarType.DOUBLE: torch.float64,
        ScalarType.COMPLEXHALF: torch.complex32,
        ScalarType.COMPLEXFLOAT: torch.complex64,
        ScalarType.COMPLEXDOUBLE: torch.complex128,
        ScalarType.BOOL: torch.bool,
        ScalarType.BFLOAT16: torch.bfloat16,
        ScalarType.UINT16: torch.uint16,
        ScalarType.UINT32: torch.uint32,
        ScalarType.UINT64: torch.uint64,
        ScalarType.FLOAT8E4M3FN: torch.float8_e4m3fn,
        ScalarType.FLOAT8E5M2: torch.float8_e5m2,
        ScalarType.FLOAT8E4M3FNUZ: torch.float8_e4m3fnuz,
        ScalarType.FLOAT8E5M2FNUZ: torch.float8_e5m2fnuz,
        **({ScalarType.FLOAT8E8M0FNU: torch.float8_e8m0fnu} if hasattr(torch, "float8_e8m0fnu") else {}),  # 2.7
    }
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
SCALAR_TYPES: Mapping[torch.dtype, ScalarType] = MappingProxyType({v: k for k, v in DTYPES.items()})
SCHEMA_LAYOUTS: Mapping[torch.layout, Layout] = MappingProxyType({v: k for k, v in LAYOUTS.items()})
SCHEMA_MEMORY_FORMATS: Mapping[torch.memory_format, MemoryFormat] = MappingProxyType(
    {v: k for k, v in MEMORY_FORMATS.items()}
)


def to_dtype(value: ScalarType) -> torch.dtype:
    """The dtype of a `ScalarType`.

    Raises:
        UnsupportedError: UNKNOWN.
    """
    if value not in DTYPES:
        raise UnsupportedError(f"expected a scalar type that torch has, got {value.name}")
    return DTYPES[value]


def from_dtype(dtype: torch.dtype) -> ScalarType:
    """The `ScalarType` of a dtype.

    Raises:
        UnsupportedError: the schema has no number for it (sub-byte and quantized dtypes).
    """
    if dtype not in SCALAR_TYPES:
        raise UnsupportedError(f"expected a dtype of the schema, got {dtype}")
    return SCALAR_TYPES[dtype]


MAX_DEVICE_INDEX: Final = 127
"""What torch has a number for. Source: c10/core/Device.h, 2.13."""


def to_device(device: Device) -> torch.device:
    """The live device of a schema `Device`; nothing is allocated on it.

    Raises:
        UnsupportedError: a type that torch does not know, or an index that it has no number for.
    """
    name = device.type if device.index is None else f"{device.type}:{device.index}"
    if device.index is not None and not 0 <= device.index <= MAX_DEVICE_INDEX:  # torch keeps the lowest byte
        raise UnsupportedError(f"expected a device index from 0 to {MAX_DEVICE_INDEX}, got {name[:80]!a}")
    try:
        return torch.device(device.type) if device.index is None else torch.device(device.type, device.index)
    except RuntimeError as error:
        raise UnsupportedError(f"expected a device that torch knows, got {name[:80]!a}") from error


def from_device(device: torch.device) -> Device:
    """The schema `Device` of a live one."""
    return Device(device.type, device.index)
