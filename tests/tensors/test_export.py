"""`.npy` and `.npz` files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.tensors.helpers import every_pattern, storage, view, view_of

from pt2kit.errors import ArchiveError, LimitError, PayloadError, UnsupportedError
from pt2kit.schema import Layout, ScalarType
from pt2kit.tensors import DTYPES, SparseView, Storage, TensorView, to_npy, to_npz


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: DTYPES[dtype].name)
def test_every_type(dtype: ScalarType, tmp_path: Path) -> None:
    """numpy loads each type with exactly the same values, widened, if asked for, where numpy has no such type."""
    data = every_pattern(dtype)
    w = view(data, dtype, (len(data) // DTYPES[dtype].itemsize,))
    if not DTYPES[dtype].is_native:
        for write in (lambda: to_npy(w, tmp_path / "a.npy"), lambda: to_npz({"a": w}, tmp_path / "a.npz")):
            with pytest.raises(UnsupportedError, match=f"types that NumPy has names for, got {DTYPES[dtype].name} "):
                write()
        assert not list(tmp_path.iterdir())
    to_npy(w, tmp_path / "a.npy", widen=True)
    to_npz({"a": w}, tmp_path / "a.npz", widen=True)
    for array in (np.load(tmp_path / "a.npy"), np.load(tmp_path / "a.npz")["a"]):
        assert array.dtype == np.dtype(DTYPES[dtype].wide)
        assert array.tobytes() == w.numpy(upcast=True).tobytes()


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"),
    [((), (), 3), ((2, 3), (1, 2), 0), ((2, 3), (0, 1), 4), ((0, 5), (5, 1), 0), ((3, 3), (1, 1), 0)],
)
def test_every_geometry(sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, tmp_path: Path) -> None:
    """Strides and offsets are resolved; the file is row-major."""
    w = view(np.arange(9, dtype="<f4").tobytes(), ScalarType.FLOAT, sizes, strides, offset)
    calls: list[tuple[int, int]] = []
    to_npy(w, tmp_path / "a.npy", progress=lambda done, total: calls.append((done, total)))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), w.numpy())
    assert calls[-1] == (w.nbytes, w.nbytes)


def test_npz(tmp_path: Path) -> None:
    """Each tensor under its own name, tied ones in full; a plain zip with fixed dates; progress ends at the end."""
    under = storage(np.arange(6, dtype="<f4").tobytes())
    views = {
        "a.weight": view(under, ScalarType.FLOAT, (2, 3)),
        "tied": view(under, ScalarType.FLOAT, (3, 2), (1, 3)),
        "däta/x": view_of(np.array([1, 2]), ScalarType.LONG),
        "empty": view(b"", ScalarType.BOOL, (0,)),
    }
    calls: list[tuple[int, int]] = []
    for name in ("a.npz", "b.npz"):
        to_npz(views, tmp_path / name, progress=lambda done, total: calls.append((done, total)))
    loaded = np.load(tmp_path / "a.npz")
    assert list(loaded) == list(views)
    for name, found in views.items():
        np.testing.assert_array_equal(loaded[name], found.numpy())
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert calls == [(24, 64), (48, 64), (64, 64)] * 2
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.testzip() is None
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_nothing_to_write(tmp_path: Path) -> None:
    """No tensors make an empty file, and progress still ends."""
    calls: list[tuple[int, int]] = []
    to_npz({}, tmp_path / "a.npz", progress=lambda done, total: calls.append((done, total)))
    assert list(np.load(tmp_path / "a.npz")) == []
    assert calls == [(0, 0)]


def test_sparse_tensors_become_dense(tmp_path: Path) -> None:
    """A format of arrays gets the array."""
    index = view_of(np.array([[1]], "<i8"), ScalarType.LONG)
    value = view_of(np.array([6], "<f4"), ScalarType.FLOAT)
    to_npy(SparseView("s", Layout.SparseCoo, (index,), value, (3,)), tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == [0, 6, 0]


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a\\b", "a\0b", "c:x", "a/../b", "a//b", "\ud800"])
def test_names_that_would_leave_the_folder(name: str, tmp_path: Path) -> None:
    """A tensor's name becomes a path when somebody unpacks the file; nothing is written if it is not fit for one."""
    with pytest.raises(ArchiveError, match="A6"):
        to_npz({name: view(bytes(4), ScalarType.FLOAT, ())}, tmp_path / "a.npz")
    assert list(tmp_path.iterdir()) == []


def test_errors_leave_no_file(tmp_path: Path) -> None:
    """A bad tensor in the middle leaves neither the file nor a part of it."""
    good, bad = view(bytes(4), ScalarType.FLOAT, ()), view(b"\x07", ScalarType.BOOL, ())
    with pytest.raises(PayloadError, match=r"expected bools stored as 0 or 1, got a byte of 7 \[P13\]"):
        to_npz({"a": good, "b": bad}, tmp_path / "a.npz")
    with pytest.raises(LimitError, match=r"expected a copy of at most 1073741824 bytes, got 4398046511104 .*\[P16\]"):
        to_npy(view(bytes(4), ScalarType.FLOAT, (1 << 40,), (0,)), tmp_path / "a.npy")
    assert list(tmp_path.iterdir()) == []


def test_storages_are_read_once(tmp_path: Path) -> None:
    """A storage under many tensors is fetched once, and not kept by the view."""
    loads = []

    def load() -> memoryview:
        loads.append(1)
        return memoryview(bytes(8))

    under = Storage("r", 8, load)
    to_npz({name: TensorView(name, ScalarType.FLOAT, (2,), (1,), 0, under) for name in "abc"}, tmp_path / "a.npz")
    assert len(loads) == 1
    under.read(keep=False)
    assert len(loads) == 2
