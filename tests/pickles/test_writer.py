"""torch.save files are written without torch, and read back as what they were."""

from __future__ import annotations

import io
import math
import zipfile
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.packages import Stream
from tools.golden_maker import tensor

from pt2kit.errors import LimitError, UnsupportedError
from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import MetaTensor, PickledTensor, SparseTensor
from pt2kit.zip.reader import Storage


def described(value):
    """A tensor's description without its storage."""
    return (
        value.dtype_name,
        value.sizes,
        value.strides,
        value.storage_offset,
        value.requires_grad,
        value.kind,
        value.conj,
        value.neg,
        bytes(value.storage.read()),
        value.device,
    )


def stored(nbytes=32):
    data = memoryview(bytes(range(nbytes)))
    return Storage("k", nbytes, lambda: data)


TENSORS = [
    tensor(),
    PickledTensor(stored(), "float64", (2, 2), (1, 2), 0, requires_grad=True),
    PickledTensor(stored(), "int64", (), (), 3),
    PickledTensor(stored(), "bool", (0, 4), (4, 1), 0),
    PickledTensor(stored(), "bfloat16", (3,), (2,), 1, requires_grad=True, kind="parameter"),
    PickledTensor(stored(), "float32", (3,), (1,), 0, kind="parameter"),
    PickledTensor(stored(), "complex64", (2,), (1,), 0, conj=True),
    PickledTensor(stored(), "float32", (2,), (1,), 0, neg=True),
    PickledTensor(stored(), "uint16", (3,), (1,), 0),
    PickledTensor(stored(), "float8_e5m2", (3,), (1,), 0, kind="parameter"),
    PickledTensor(stored(), "float32", (3,), (1,), 0, "cuda:1"),
]


@pytest.mark.parametrize("value", TENSORS, ids=lambda value: f"{value.dtype_name} {value.kind}")
def test_tensors_come_back(value):
    """Every field of the description, and the bytes."""
    assert described(read_payload(torch_save.dumps(value, "x"), "x")) == described(value)


@pytest.mark.parametrize("kind", ["tensor", "parameter"])
def test_tensors_without_data_come_back(kind):
    """They have type, shape and strides; no storage is written."""
    value = MetaTensor("bfloat16", (2, 3), (1, 2), requires_grad=True, kind=kind)
    data = torch_save.dumps(value, "x")
    assert read_payload(data, "x") == value
    assert not [name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if name.startswith("archive/data/")]


def test_tied_tensors_stay_tied():
    """Their storage is in the file once."""
    storage = stored()
    first, second = (PickledTensor(storage, "float32", (2,), (1,), offset) for offset in (0, 4))
    data = torch_save.dumps({"a": first, "b": second, "c": tensor()}, "x")
    found = read_payload(data, "x")
    assert found["a"].storage is found["b"].storage
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert [name for name in names if name.startswith("archive/data/")] == ["archive/data/0", "archive/data/1"]


def test_sparse_tensors_come_back():
    """COO with its flag, the compressed layouts by their parts."""
    values = PickledTensor(stored(), "float32", (2,), (1,), 0)
    indices = PickledTensor(stored(), "int64", (2, 2), (2, 1), 0)
    pointers, columns = (PickledTensor(stored(), "int64", (size,), (1,), 0) for size in (4, 2))
    coo = SparseTensor("sparse_coo", (indices,), values, (3, 3), True)
    csr = SparseTensor("sparse_csr", (pointers, columns), values, (3, 3))
    for sparse in (coo, csr):
        found = read_payload(torch_save.dumps(sparse, "x"), "x")
        assert (found.layout, found.sizes, found.is_coalesced) == (sparse.layout, sparse.sizes, sparse.is_coalesced)
        assert [described(part) for part in (*found.indices, found.values)] == [
            described(part) for part in (*sparse.indices, sparse.values)
        ]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**400), 2**400)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.complex_numbers(allow_nan=False)
)
KEYS = st.text(max_size=3) | st.integers(0, 300)
VALUES = st.recursive(
    SCALARS,
    lambda t: (
        st.lists(t, max_size=3)
        | st.lists(t, max_size=3).map(tuple)
        | st.dictionaries(KEYS, t, max_size=3)
        | st.dictionaries(KEYS, t, max_size=3).map(OrderedDict)
    ),
    max_leaves=12,
)


@given(value=VALUES)
def test_plain_values_come_back(value):
    """With their types."""
    found = read_payload(torch_save.dumps(value, "x"), "x")
    assert found == value
    assert repr(found).replace("PickledDict", "OrderedDict") == repr(value)


def test_nan_comes_back():
    """It equals nothing, so it is looked at alone."""
    assert math.isnan(read_payload(torch_save.dumps(math.nan, "x"), "x"))


def test_the_same_value_gives_the_same_bytes():
    """Nothing in the file depends on the clock or on identities."""
    first, second = (torch_save.dumps({"a": tensor(), "b": [1]}, "x") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "value", [b"bytes", {1, 2}, object(), PickledTensor(stored(), "qint8", (1,), (1,), 0), range(3)]
)
def test_other_values_are_refused(value):
    """By their type; quantized storages alone mean nothing."""
    if isinstance(value, PickledTensor):
        value = PickledTensor(value.storage, "float9", (1,), (1,), 0)
    with pytest.raises(UnsupportedError, match=r"^f\.pt: expected "):
        torch_save.dumps({"a": value}, "f.pt")


def test_limits():
    """Depth and the length of an integer."""
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(LimitError, match=r"^x: expected containers nested at most 100 levels deep"):
        torch_save.dumps(deep, "x")
    with pytest.raises(LimitError, match=r"^x: expected integers of at most 255 bytes, got one of 300"):
        torch_save.dumps(1 << 2398, "x")


def test_a_file_that_cannot_seek():
    """The file is written as it comes."""
    pipe = Stream()
    torch_save.dump([tensor()], pipe, "x")  # type: ignore[arg-type]
    assert pipe.data == torch_save.dumps([tensor()], "x")
