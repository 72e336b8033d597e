"""The table of element types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.tensors.helpers import every_pattern, view

from pt2kit.errors import SchemaError, UnsupportedError
from pt2kit.schema import ScalarType
from pt2kit.tensors import DTYPES, numpy_dtype, scalar_type_of, short_name
from pt2kit.tensors.dtypes import dtype_of, scalar_type_named

FOREIGN = [number for number, row in DTYPES.items() if not row.is_native]


def test_every_type_of_the_schema_has_a_row() -> None:
    """All element types but UNKNOWN can be read."""
    assert set(DTYPES) == set(ScalarType) - {ScalarType.UNKNOWN}


@pytest.mark.parametrize("number", DTYPES, ids=lambda number: DTYPES[number].name)
def test_row_agrees_with_numpy(number: ScalarType) -> None:
    """Item size, name and byte order are those of the numpy type; it leads back to the same element type."""
    row, dtype = DTYPES[number], numpy_dtype(number)
    assert dtype.itemsize == row.itemsize
    assert dtype.byteorder in ("|", "=", "<")
    assert scalar_type_of(dtype, "here") is number
    assert scalar_type_of(dtype.newbyteorder(">"), "here") is number if row.is_native else True
    assert scalar_type_named(row.name, "here") is number
    assert (dtype.name == row.name) is (number is not ScalarType.COMPLEXHALF)
    assert row.has_gradient is (row.name[:5] in ("float", "bfloa", "compl"))


@pytest.mark.parametrize("number", DTYPES, ids=lambda number: DTYPES[number].name)
def test_bytes_survive(number: ScalarType) -> None:
    """Raw bytes -> view -> numpy -> bytes is the identity, and nothing is copied."""
    data = every_pattern(number)
    w = view(data, number, (len(data) // DTYPES[number].itemsize,))
    array = w.numpy()
    assert array.tobytes() == data == w.tobytes()
    assert array.dtype == numpy_dtype(number)
    assert not array.flags.writeable
    address = np.frombuffer(data, np.uint8).ctypes.data
    assert array.ctypes.data == address


@pytest.mark.parametrize("number", FOREIGN, ids=lambda number: DTYPES[number].name)
def test_widening_is_exact(number: ScalarType) -> None:
    """Every pattern of a type that numpy lacks widens to the same value, and narrows to the same bits again."""
    data = every_pattern(number)
    w = view(data, number, (len(data) // DTYPES[number].itemsize,))
    narrow, wide = w.numpy(), w.numpy(upcast=True)
    assert wide.dtype == np.dtype(DTYPES[number].wide)
    assert not wide.flags.writeable
    if number is ScalarType.COMPLEXHALF:
        np.testing.assert_array_equal(wide.real, narrow["real"].astype("<f4"))
        np.testing.assert_array_equal(wide.imag, narrow["imag"].astype("<f4"))
        return
    keep = ~np.isnan(wide)
    np.testing.assert_array_equal(wide[keep].astype(narrow.dtype).view(np.uint8), narrow[keep].view(np.uint8))
    with np.errstate(invalid="ignore"):  # Signalling nans.
        assert np.isnan(narrow[~keep]).all()


def test_native_types_are_not_copied_by_upcast() -> None:
    """`upcast` leaves numpy's own types alone."""
    w = view(bytes(8), ScalarType.FLOAT, (2,))
    assert w.numpy(upcast=True).ctypes.data == w.numpy().ctypes.data


@pytest.mark.parametrize(
    ("number", "short"),
    [
        (ScalarType.FLOAT, "f32"),
        (ScalarType.BFLOAT16, "bf16"),
        (ScalarType.LONG, "i64"),
        (ScalarType.FLOAT8E4M3FN, "f8e4m3fn"),
        (ScalarType.FLOAT8E8M0FNU, "f8e8m0fnu"),
        (ScalarType.BOOL, "b8"),
        (ScalarType.COMPLEXHALF, "c32"),
        (ScalarType.COMPLEXFLOAT, "c64"),
        (ScalarType.UNKNOWN, "?"),
    ],
)
def test_short_names(number: ScalarType, short: str) -> None:
    """Types are printed as torch prints them in graphs."""
    assert short_name(number) == short


def test_unknown_is_refused() -> None:
    """UNKNOWN has no bytes."""
    with pytest.raises(SchemaError, match=r"^here: dtype: expected one of the 21 element types, got 0 \[P4\]$"):
        dtype_of(ScalarType.UNKNOWN, "here")


@pytest.mark.parametrize("dtype", ["float128", "S4", "U2", "datetime64[s]", "V3"])
def test_types_that_the_schema_lacks(dtype: str) -> None:
    """numpy types without a number in the schema are refused by name."""
    if dtype == "float128" and not hasattr(np, "float128"):
        pytest.skip("this machine has no 128-bit floats")
    with pytest.raises(UnsupportedError, match=r"^here: expected an element type of the schema .*\[P4\]$"):
        scalar_type_of(np.dtype(dtype), "here")
    with pytest.raises(UnsupportedError, match=r"^here: expected an element type of the schema .*int4.*\[P4\]$"):
        scalar_type_of(np.dtype(ml_dtypes.int4), "here")


def test_big_endian_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """If `ml_dtypes` has no little-endian bfloat16, the type is refused; types of one byte are fine."""
    monkeypatch.setattr("sys.byteorder", "big")
    with pytest.raises(UnsupportedError, match="expected a little-endian machine for bfloat16"):
        numpy_dtype(ScalarType.BFLOAT16)
    assert numpy_dtype(ScalarType.FLOAT8E5M2).itemsize == 1
