"""`.safetensors` files, read back by the library."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tensors.helpers import every_pattern, storage, view, view_of

from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.schema import ScalarType
from pt2kit.tensors import DTYPES, to_safetensors

REFUSED = (ScalarType.COMPLEXHALF, ScalarType.COMPLEXDOUBLE)
CODES = {
    "bfloat16": "BF16",
    "bool": "BOOL",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e8m0fnu": "F8_E8M0",
    "uint64": "U64",
    "float16": "F16",
}


def read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header and the bytes of each tensor, by the format's own definition."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    return header, {
        name: body[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"
    }


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype not in REFUSED], ids=lambda d: DTYPES[d].name)
@pytest.mark.parametrize("in_place", [True, False])
def test_every_type(dtype: ScalarType, in_place: bool, tmp_path: Path) -> None:
    """Types keep their names and their bits, from a mapped file and otherwise."""
    data = every_pattern(dtype)
    count = len(data) // DTYPES[dtype].itemsize
    to_safetensors({"a": view(storage(data, in_place=in_place), dtype, (count, 1))}, tmp_path / "a.safetensors")
    header, bodies = read(tmp_path / "a.safetensors")
    assert bodies == {"a": data}
    assert header["a"]["shape"] == [count, 1]
    code = CODES.get(DTYPES[dtype].name)
    assert code is None or header["a"]["dtype"] == code


@pytest.mark.parametrize("in_place", [True, False])
def test_geometries_and_order(in_place: bool, tmp_path: Path) -> None:
    """Strided, expanded, empty and scalar tensors arrive row-major; the library loads them."""
    from safetensors.numpy import load_file

    under = storage(np.arange(12, dtype="<f4").tobytes(), in_place=in_place)
    views = {
        "whole": view(under, ScalarType.FLOAT, (3, 4)),
        "transposed": view(under, ScalarType.FLOAT, (4, 3), (1, 4)),
        "expanded": view(under, ScalarType.FLOAT, (2, 2), (0, 1), 5),
        "scalar": view(under, ScalarType.FLOAT, (), (), 7),
        "empty": view(b"", ScalarType.INT, (0, 3)),
        "negative": view_of(np.array([1.0]), ScalarType.DOUBLE, neg=True),
    }
    calls: list[tuple[int, int]] = []
    path = tmp_path / "a.safetensors"
    to_safetensors(views, path, metadata={"x": "ü"}, progress=lambda done, total: calls.append((done, total)))
    loaded = load_file(path)
    assert set(loaded) == set(views)
    for name, found in views.items():
        np.testing.assert_array_equal(loaded[name], found.numpy())
        assert loaded[name].shape == found.sizes
    assert read(path)[0]["__metadata__"] == {"format": "pt", "x": "ü"}
    assert calls[-1] == (124, 124)
    assert calls == sorted(calls)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]


def test_tied_tensors(tmp_path: Path) -> None:
    """By default each name has its bytes; "once" writes them once and says where the others are."""
    under = storage(np.arange(4, dtype="<f4").tobytes())
    views = {
        "embed": view(under, ScalarType.FLOAT, (2, 2)),
        "head": view(under, ScalarType.FLOAT, (2, 2)),
        "head.t": view(under, ScalarType.FLOAT, (2, 2), (1, 2)),
    }
    to_safetensors(views, tmp_path / "copy")
    to_safetensors(views, tmp_path / "once", tied="once")
    assert set(read(tmp_path / "copy")[1]) == set(views)
    header, bodies = read(tmp_path / "once")
    assert set(bodies) == {"embed", "head.t"}
    assert header["__metadata__"] == {"format": "pt", "head": "embed"}


def test_nothing_to_write(tmp_path: Path) -> None:
    """No tensors make a file without tensors."""
    to_safetensors({}, tmp_path / "a")
    assert read(tmp_path / "a")[1] == {}


@pytest.mark.parametrize("dtype", REFUSED)
def test_types_that_the_format_lacks(dtype: ScalarType, tmp_path: Path) -> None:
    """Complex types other than complex64 are refused by name, before anything is written."""
    w = view(bytes(DTYPES[dtype].itemsize), dtype, (1,))
    with pytest.raises(UnsupportedError, match=rf"got {DTYPES[dtype].name}; write .npz instead \[P18\]"):
        to_safetensors({"a": w}, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "metadata"), [("__metadata__", {}), ("\ud800", {}), ("a", {"b": "\ud800"}), ("a", {"b": 5})]
)
def test_texts_that_the_format_cannot_hold(name: str, metadata: dict[str, Any], tmp_path: Path) -> None:
    """Names and notes that are no UTF-8, or that the format uses itself, are refused; no file is left."""
    with pytest.raises(UnsupportedError, match="P18"):
        to_safetensors({name: view(bytes(4), ScalarType.FLOAT, ())}, tmp_path / "a", metadata=metadata)
    assert list(tmp_path.iterdir()) == []


def test_bools_are_checked(tmp_path: Path) -> None:
    """Bytes that are no bools are not passed on."""
    with pytest.raises(PayloadError, match="P13"):
        to_safetensors({"a": view(b"\x02", ScalarType.BOOL, ())}, tmp_path / "a")
