"""Descriptions of pickled tensors -> views."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples import corpus, release_id, sample

from pt2kit.errors import LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.package.layouts.detection import detect
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import (
    DeviceTensor,
    MetaTensor,
    NumpyArray,
    PickledTensor,
    SparseTensor,
)
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.tensors import MetaView, SparseView, TensorView, from_pickled
from pt2kit.zip.reader import Storage, open_archive
from pt2kit.zip.writer import ArchiveWriter

OLD = corpus("2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0")


def storage(data: bytes, record: str = "m/data/weights/model.pt: storage 0") -> Storage:
    return Storage(record, len(data), lambda: memoryview(data))


def dense(data: bytes, dtype_name: str, sizes: tuple[int, ...], **fields: Any) -> PickledTensor:
    strides = tuple(int(np.prod(sizes[axis + 1 :], dtype=int)) for axis in range(len(sizes)))
    return PickledTensor(storage(data), dtype_name, sizes, strides, 0, **fields)


def turn(tensor: Any) -> Any:
    return from_pickled(tensor, name="t", where="m/data/weights/model.pt")


@pytest.mark.parametrize("path", OLD, ids=release_id)
def test_real_files_of_old_layouts(path: Path) -> None:
    """Every weight, constant and sample input of releases that pickled them becomes a view that can be read."""
    with open_archive(path) as opened:
        detect(opened)
        for name in opened.records:
            if not name.endswith(".pt") and not name.endswith(("state_dict.json", "constants.json")):
                continue
            for value in _tensors(read_payload(opened.read(name), name)):
                found = turn(value)
                assert repr(found)
                if isinstance(found, TensorView | SparseView):
                    assert found.numpy().shape == found.sizes


def _tensors(value: Any) -> list[Any]:
    """All tensors inside a payload."""
    if isinstance(value, dict):
        return [found for part in value.values() for found in _tensors(part)]
    if isinstance(value, list | tuple):
        return [found for part in value for found in _tensors(part)]
    return [value] if hasattr(value, "requires_grad") else []


def test_tied_tensors_stay_tied() -> None:
    """Tensors over one storage share one; the storage is read once."""
    under = storage(np.arange(4, dtype="<f4").tobytes(), "p: storage 0")
    state = {
        "a": PickledTensor(under, "float32", (2, 2), (2, 1), 0, requires_grad=True, kind="parameter"),
        "b": PickledTensor(under, "float32", (2,), (1,), 2),
        "c": PickledTensor(under, "int32", (4,), (1,), 0),
        "d": dense(bytes(4), "float32", (1,)),
    }
    a, b, c, d = (from_pickled(state[name], name=name, where="p") for name in "abcd")
    assert isinstance(a, TensorView)
    assert isinstance(b, TensorView)
    assert isinstance(c, TensorView)
    assert isinstance(d, TensorView)
    assert a.shares_storage(b)
    assert a.shares_storage(c)
    assert not a.shares_storage(d)
    assert (a.is_param, a.requires_grad, b.is_param) == (True, True, False)
    assert b.numpy().tolist() == [2, 3]
    assert a.record == "p: storage 0"


def test_storage_of_any_length() -> None:
    """An untyped storage may hold more bytes than a whole number of elements."""
    assert turn(dense(bytes(10), "float64", (1,))).numpy().tolist() == [0]


@pytest.mark.parametrize(
    ("tensor", "error", "text"),
    [
        (dense(bytes(8), "float32", (3,)), PayloadError, "expected at least 12 bytes"),
        (dense(bytes(8), "bits8", (3,)), UnsupportedError, "expected an element type of the schema"),
        (dense(bytes(8), "uint3", (3,)), UnsupportedError, "got 'uint3' [P4]"),
        (dense(bytes(8), "float32", (2,), device="evil"), UnsupportedError, "got evil [P6]"),
        (dense(bytes(8), "float32", (2,), device="cuda:x"), UnsupportedError, "device type of torch"),
        (dense(bytes(8), "float32", (2,), device="cuda:9999999"), UnsupportedError, "device type of torch"),
        (dense(bytes(8), "float32", (2,), device="meta"), PayloadError, "got meta [P6]"),
        (dense(bytes(8), "int32", (2,), requires_grad=True), PayloadError, "[P12]"),
        (dense(bytes(8), "float32", (2,), conj=True), PayloadError, "[P12]"),
        (MetaTensor("quint8", (2,), (1,)), UnsupportedError, "got 'quint8' [P4]"),
        (MetaTensor("float32", (1 << 62,), (1,)), PayloadError, "[P8]"),
        (
            DeviceTensor(NumpyArray("|O8", (1,), False, bytes(8)), "float32", "xla:0"),
            UnsupportedError,
            "got '|O8' [P4]",
        ),
        (DeviceTensor(NumpyArray("<f4", (3,), False, bytes(8)), "float32", "xla:0"), PayloadError, "[P9]"),
        (DeviceTensor(dense(bytes(8), "float64", (1,)), "complex32", "xla"), UnsupportedError, "got float64 [P4]"),
        (DeviceTensor(dense(bytes(8), "complex64", (1,)), "float32", "xla"), UnsupportedError, "got complex64 [P4]"),
        ("no tensor", UnsupportedError, "expected a tensor, got a str [P15]"),
    ],
)
def test_refused(tensor: Any, error: type[Pt2Error], text: str) -> None:
    """Whatever made a description, a view of it is checked like one of a config."""
    with pytest.raises(error) as caught:
        turn(tensor)
    assert text in str(caught.value)
    assert str(caught.value).startswith("m/data/weights/model.pt: ")


def test_marks_of_a_pickle() -> None:
    """Conjugate and negative marks arrive."""
    found = turn(dense(np.array([1 + 2j], "<c8").tobytes(), "complex64", (1,), conj=True, device="cuda:1"))
    assert found.numpy().tolist() == [1 - 2j]
    assert found.device == Device("cuda", 1)


def test_sparse() -> None:
    """Parts become views with names of their own."""
    indices = dense(np.array([[1]], "<i8").tobytes(), "int64", (1, 1))
    found = turn(SparseTensor("sparse_coo", (indices,), dense(np.array([5], "<f4").tobytes(), "float32", (1,)), (3,)))
    assert isinstance(found, SparseView)
    assert found.layout is Layout.SparseCoo
    assert found.numpy().tolist() == [0, 5, 0]
    assert found.values.name == "t.values"


def test_meta() -> None:
    """A tensor without data stays one."""
    found = turn(MetaTensor("bfloat16", (2, 3), (3, 1), kind="parameter"))
    assert found == MetaView("t", ScalarType.BFLOAT16, (2, 3), (3, 1), is_param=True)


@pytest.mark.parametrize(
    ("data", "dtype_name", "expected"),
    [
        (NumpyArray("<f4", (2, 2), False, np.arange(4, dtype="<f4").tobytes()), "float32", [[0, 1], [2, 3]]),
        (NumpyArray("<f4", (2, 2), True, np.arange(4, dtype="<f4").tobytes()), "float32", [[0, 2], [1, 3]]),
        (NumpyArray(">f4", (2,), False, np.arange(2, dtype=">f4").tobytes()), "bfloat16", [0, 1]),
        (NumpyArray("|b1", (2,), False, b"\0\1"), "bool", [False, True]),
        (NumpyArray("<i8", (), False, bytes(8)), "int32", 0),
        (dense(np.arange(2, dtype="<f8").tobytes(), "float64", (2,)), "float16", [0, 1]),
        (dense(b"\x80\x3f", "bfloat16", (1,)), "float8_e5m2", [1]),
        (dense(np.array([1e300], "<f8").tobytes(), "float64", (1,)), "float32", [np.inf]),
    ],
)
def test_tensors_of_devices_without_storages(data: Any, dtype_name: str, expected: Any) -> None:
    """An array that is to be copied to a device has the type that it will have there."""
    found = turn(DeviceTensor(data, dtype_name, "xla:0"))
    assert found.numpy(upcast=True).tolist() == expected
    assert found.device == Device("xla", 0)
    assert found.describe().startswith({"bool": "b8", "bfloat16": "bf16", "float8_e5m2": "f8e5m2"}.get(dtype_name, ""))


def test_device_tensor_bombs() -> None:
    """Conversion of an expanded tensor has a limit."""
    huge = PickledTensor(storage(bytes(4)), "float32", (1 << 40,), (0,), 0)
    with pytest.raises(LimitError, match="P16"):
        turn(DeviceTensor(huge, "float16", "xla:0"))


def _payload(stream: bytes, storages: dict[str, bytes]) -> bytes:
    """A torch.save payload with this pickle stream."""
    file = io.BytesIO()
    with ArchiveWriter(file, root="archive") as writer:
        writer.write("data.pkl", stream)
        for key, data in storages.items():
            writer.write(f"data/{key}", data)
    return file.getvalue()


def _streams() -> list[tuple[bytes, dict[str, bytes]]]:
    """Pickle streams and storages of real payloads."""
    found = []
    for name in ("sparse_buffer", "dtypes", "shared_weights"):
        with open_archive(sample("2.8.0", name)) as opened:
            record = next(record for record in opened.records if record.endswith("data/weights/model.pt"))
            with open_archive(bytes(opened.read(record))) as inner:
                parts = {part.partition("/")[2]: bytes(inner.read(part)) for part in inner.records}
        storages = {part[5:]: data for part, data in parts.items() if part.startswith("data/")}
        found.append((parts["data.pkl"], storages))
    return found


STREAMS = _streams()


@settings(max_examples=300)
@given(st.sampled_from(range(len(STREAMS))), st.data())
def test_damaged_payloads(which: int, data: st.DataObject) -> None:
    """A payload with some bytes of its pickle changed gives views that can be read, or an error of ours."""
    stream, storages = STREAMS[which]
    damaged = bytearray(stream)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        state = read_payload(_payload(bytes(damaged), storages), "p")
        if not isinstance(state, dict):
            return
        for value in state.values():
            found = from_pickled(value, name="t", where="p")
            assert repr(found)
            if isinstance(found, TensorView | SparseView) and found.nbytes < 1 << 20:
                assert found.numpy().shape == found.sizes
    except Pt2Error as error:
        assert "\n" not in str(error)
