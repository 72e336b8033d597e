"""Element types (dtypes): the schema's numbers, torch's names, short names, sizes and numpy's types.

One table. numpy has no bfloat16 and no 8-bit floats; `ml_dtypes` supplies them. Complex numbers of two half floats
exist nowhere: their array has two fields, `real` and `imag`. Bytes are little-endian in every file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pt2kit.errors import SchemaError, UnsupportedError
from pt2kit.schema import ScalarType

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["bool", "int", "uint", "float", "complex"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    Args:
        scalar_type: its number in the schema.
        name: torch's name without the `torch.` ("float32").
        short: the short name that torch prints in graphs ("f32").
        itemsize: bytes per element.
        kind: the kind of its values.
        array: numpy's type string ("<f4"), or the name in `ml_dtypes`, or "" for complex half.
        wide: numpy's type string of the narrowest type of numpy's own that holds every value exactly.
    """

    scalar_type: ScalarType
    name: str
    short: str
    itemsize: int
    kind: Kind
    array: str
    wide: str

    @property
    def is_native(self) -> bool:
        """Return whether numpy has this type without `ml_dtypes`."""
        return self.array == self.wide

    @property
    def has_gradient(self) -> bool:
        """Return whether a tensor of this type can require a gradient."""
        return self.kind in ("float", "complex")


def _native(scalar_type: ScalarType, name: str, short: str, array: str, kind: Kind) -> DType:
    return DType(scalar_type, name, short, int(array[2:]), kind, array, array)


def _foreign(scalar_type: ScalarType, name: str, short: str, itemsize: int) -> DType:
    return DType(scalar_type, name, short, itemsize, "float", name, "<f4")


DTYPES: Mapping[ScalarType, DType] = MappingProxyType(
    {
        row.scalar_type: row
        for row in (
            _native(ScalarType.BYTE, "uint8", "u8", "|u1", "uint"),
            _native(ScalarType.CHAR, "int8", "i8", "|i1", "int"),
            _native(ScalarType.SHORT, "int16", "i16", "<i2", "int"),
            _native(ScalarType.INT, "int32", "i32", "<i4", "int"),
            _native(ScalarType.LONG, "int64", "i64", "<i8", "int"),
            _native(ScalarType.HALF, "float16", "f16", "<f2", "float"),
            _native(ScalarType.FLOAT, "float32", "f32", "<f4", "float"),
            _native(ScalarType.DOUBLE, "float64", "f64", "<f8", "float"),
            DType(ScalarType.COMPLEXHALF, "complex32", "c32", 4, "complex", "", "<c8"),
            _native(ScalarType.COMPLEXFLOAT, "complex64", "c64", "<c8", "complex"),
            _native(ScalarType.COMPLEXDOUBLE, "complex128", "c128", "<c16", "complex"),
            _native(ScalarType.BOOL, "bool", "b8", "|b1", "bool"),
            _foreign(ScalarType.BFLOAT16, "bfloat16", "bf16", 2),
            _native(ScalarType.UINT16, "uint16", "u16", "<u2", "uint"),
            _foreign(ScalarType.FLOAT8E4M3FN, "float8_e4m3fn", "f8e4m3fn", 1),
            _foreign(ScalarType.FLOAT8E5M2, "float8_e5m2", "f8e5m2", 1),
            _foreign(ScalarType.FLOAT8E4M3FNUZ, "float8_e4m3fnuz", "f8e4m3fnuz", 1),
            _foreign(ScalarType.FLOAT8E5M2FNUZ, "float8_e5m2fnuz", "f8e5m2fnuz", 1),
            _foreign(ScalarType.FLOAT8E8M0FNU, "float8_e8m0fnu", "f8e8m0fnu", 1),
            _native(ScalarType.UINT32, "uint32", "u32", "<u4", "uint"),
            _native(ScalarType.UINT64, "uint64", "u64", "<u8", "uint"),
        )
    }
)
"""Every element type a payload can have: all of the schema's but UNKNOWN."""

_BY_NAME: Mapping[str, ScalarType] = MappingProxyType({row.name: number for number, row in DTYPES.items()})


def dtype_of(scalar_type: ScalarType, where: str) -> DType:
    """Look up an element type.

    Args:
        scalar_type: its number in the schema.
        where: what messages call the tensor.

    Raises:
        SchemaError: UNKNOWN, or no element type at all (P4).
    """
    dtype = DTYPES.get(scalar_type)
    if dtype is None:
        raise SchemaError(
            f"{where}: dtype: expected one of the {len(DTYPES)} element types, got {int(scalar_type)}",
            rule="P4",
        )
    return dtype


def scalar_type_named(name: str, where: str) -> ScalarType:
    """Return the number of an element type by torch's name ("bfloat16").

    Raises:
        UnsupportedError: a type that torch may have but the schema lacks (P4).
    """
    scalar_type = _BY_NAME.get(name)
    if scalar_type is None:
        raise UnsupportedError(
            f"{where}: expected an element type of the schema ({', '.join(sorted(_BY_NAME))}), got {name!r}",
            rule="P4",
        )
    return scalar_type


def short_name(scalar_type: ScalarType) -> str:
    """Return the short name of any element type: "f32"; "?" for UNKNOWN."""
    dtype = DTYPES.get(scalar_type)
    return dtype.short if dtype else "?"


def largest_number(scalar_type: ScalarType) -> float:
    """Return the largest finite number of a type of floats."""
    import ml_dtypes

    limits: Any = ml_dtypes.finfo(numpy_dtype(scalar_type))  # type: ignore[no-untyped-call]
    return float(limits.max)


def numpy_dtype(scalar_type: ScalarType, where: str = "numpy_dtype") -> np.dtype[Any]:
    """Return the numpy type whose elements have the bytes of `scalar_type`, little-endian.

    Args:
        scalar_type: its number in the schema. COMPLEXHALF is a structured type with the fields `real` and `imag`.
        where: what messages call the tensor.

    Raises:
        SchemaError: UNKNOWN (P4).
        UnsupportedError: bfloat16 on a big-endian machine, for which `ml_dtypes` has no type (P4).
    """
    import numpy as np

    row = dtype_of(scalar_type, where)
    if row.is_native:
        return np.dtype(row.array)
    if not row.array:
        return np.dtype([("real", "<f2"), ("imag", "<f2")])
    if row.itemsize > 1 and sys.byteorder != "little":
        raise UnsupportedError(f"{where}: dtype: expected a little-endian machine for {row.name}, got big", rule="P4")
    import ml_dtypes

    foreign: np.dtype[Any] = np.dtype(getattr(ml_dtypes, row.array))  # A name of the table, never one of a file.
    return foreign


def scalar_type_of(array_dtype: np.dtype[Any], where: str) -> ScalarType:
    """Return the element type whose bytes a numpy type has, whatever its byte order.

    Raises:
        UnsupportedError: the schema has no such type (P4).
    """
    if array_dtype.names == ("real", "imag") and array_dtype == numpy_dtype(ScalarType.COMPLEXHALF):
        return ScalarType.COMPLEXHALF
    return scalar_type_named(array_dtype.name, where)
