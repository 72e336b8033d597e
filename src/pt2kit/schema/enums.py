"""The enums of the schema. A file holds their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class ScalarType(IntEnum):
    """The element type of a tensor."""

    UNKNOWN = 0
    BYTE = 1
    CHAR = 2
    SHORT = 3
    INT = 4
    LONG = 5
    HALF = 6
    FLOAT = 7
    DOUBLE = 8
    COMPLEXHALF = 9
    COMPLEXFLOAT = 10
    COMPLEXDOUBLE = 11
    BOOL = 12
    BFLOAT16 = 13
    UINT16 = 28
    FLOAT8E4M3FN = 29
    FLOAT8E5M2 = 30
    FLOAT8E4M3FNUZ = 31
    FLOAT8E5M2FNUZ = 32
    FLOAT8E8M0FNU = 33
    UINT32 = 34
    UINT64 = 35


class Layout(IntEnum):
    """Memory layout of a tensor's elements."""

    Unknown = 0
    SparseCoo = 1
    SparseCsr = 2
    SparseCsc = 3
    SparseBsr = 4
    SparseBsc = 5
    _mkldnn = 6
    Strided = 7


class MemoryFormat(IntEnum):
    """The order of the dimensions in memory."""

    Unknown = 0
    ContiguousFormat = 1
    ChannelsLast = 2
    ChannelsLast3d = 3
    PreserveFormat = 4


class ArgumentKind(IntEnum):
    """Way of passing an argument."""

    UNKNOWN = 0
    POSITIONAL = 1
    KEYWORD = 2


ENUM_SINCE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "ScalarType": MappingProxyType(
            {
                "UINT16": "8.2",
                "FLOAT8E4M3FN": "8.6",
                "FLOAT8E5M2": "8.6",
                "FLOAT8E4M3FNUZ": "8.14",
                "FLOAT8E5M2FNUZ": "8.14",
                "FLOAT8E8M0FNU": "8.20",
                "UINT32": "8.20",
                "UINT64": "8.20",
            }
        ),
        "ArgumentKind": MappingProxyType({"UNKNOWN": "8.6", "POSITIONAL": "8.6", "KEYWORD": "8.6"}),
    }
)
"""Schema version that introduced each value of an enum, by enum name and value name; others are as old as the
schema.
"""
