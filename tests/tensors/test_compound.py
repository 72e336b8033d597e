"""Sparse, quantized, nested and meta tensors, by hand-made parts; torch's own are compared in the bridge tests."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tensors.helpers import view, view_of

from pt2kit.errors import LimitError, PayloadError, SchemaError
from pt2kit.messages import count_text
from pt2kit.schema import Layout, ScalarType
from pt2kit.tensors import MetaView, NestedView, QuantizedView, SparseView, TensorView, scalar_type_of


def tensor(values: Any, dtype: str = "<i8") -> TensorView:
    array = np.array(values, dtype)
    return view_of(array, scalar_type_of(array.dtype, "test"))


def sparse(layout: Layout, sizes: tuple[int, ...], values: Any, *indices: Any, dtype: str = "<f4") -> SparseView:
    return SparseView("s", layout, tuple(map(tensor, indices)), tensor(values, dtype), sizes)


@given(st.integers(1, 3), st.integers(0, 2), st.integers(0, 6), st.randoms(use_true_random=False))
def test_coo_is_the_sum_of_its_entries(sparse_dims: int, dense_dims: int, count: int, random: Any) -> None:
    """Each entry is added at its place; entries at the same place add up."""
    sizes = tuple(random.randint(1, 4) for _ in range(sparse_dims + dense_dims))
    indices = [[random.randrange(size) for _ in range(count)] for size in sizes[:sparse_dims]]
    values = np.arange(count * int(np.prod(sizes[sparse_dims:])), dtype="<f8").reshape(count, *sizes[sparse_dims:])
    expected = np.zeros(sizes)
    for n in range(count):
        expected[tuple(row[n] for row in indices)] += values[n]
    found = sparse(Layout.SparseCoo, sizes, values, indices, dtype="<f8")
    np.testing.assert_array_equal(found.numpy(), expected)
    assert not found.numpy().flags.writeable
    assert found.describe() == f"f64{list(sizes)} SparseCoo, {count_text(count, 'nonzero')}"


def compress(
    dense: np.ndarray[Any, Any], layout: Layout, block: tuple[int, int]
) -> tuple[list[int], list[int], list[Any]]:
    """The parts of one matrix [rows, columns, *dense] in a compressed layout."""
    height, width = block
    tall, wide = dense.shape[0] // height, dense.shape[1] // width
    by_rows = layout in (Layout.SparseCsr, Layout.SparseBsr)
    starts, plain, values = [0], [], []
    for outer in range(tall if by_rows else wide):
        for inner in range(wide if by_rows else tall):
            row, column = (outer, inner) if by_rows else (inner, outer)
            part = dense[row * height : (row + 1) * height, column * width : (column + 1) * width]
            if part.any():
                plain.append(inner)
                values.append(part if layout in (Layout.SparseBsr, Layout.SparseBsc) else part[0, 0])
        starts.append(len(plain))
    return starts, plain, values


@pytest.mark.parametrize("layout", [Layout.SparseCsr, Layout.SparseCsc, Layout.SparseBsr, Layout.SparseBsc])
@pytest.mark.parametrize(("batch", "extra"), [((), ()), ((2, 3), ()), ((), (2,)), ((2,), (3, 2))])
def test_compressed_layouts(layout: Layout, batch: tuple[int, ...], extra: tuple[int, ...]) -> None:
    """Rows, columns and blocks, alone and in batches, with dense dimensions, give the matrix they were made from."""
    block = (2, 3) if layout in (Layout.SparseBsr, Layout.SparseBsc) else (1, 1)
    rng = np.random.default_rng(3)
    # All matrices of a batch must have the same number of nonzeros: the same pattern, other values.
    pattern = np.kron(np.array([[1, 0], [1, 1], [0, 0]]), np.ones(block, int)).reshape(3 * block[0], 2 * block[1])
    dense = rng.integers(1, 9, (*batch, *pattern.shape, *extra)).astype("<f4")
    dense *= pattern.reshape(*pattern.shape, *[1] * len(extra))
    parts = [compress(dense[index], layout, block) for index in itertools.product(*map(range, batch))]
    starts, plain, values = (np.array([part[n] for part in parts]) for n in range(3))
    found = sparse(
        layout,
        dense.shape,
        values.reshape(*batch, *values.shape[1:]),
        starts.reshape(*batch, -1),
        plain.reshape(*batch, -1),
    )
    np.testing.assert_array_equal(found.numpy(), dense)
    assert "3 nonzeros" in repr(found)


@pytest.mark.parametrize("dtype", ["<f2", "|b1", "<c8", "<i4"])
def test_other_element_types(dtype: str) -> None:
    """Values of every kind add up at the same place; bools by `or`."""
    found = sparse(Layout.SparseCoo, (2,), [1, 1, 1], [[1, 1, 0]], dtype=dtype)
    expected = np.array([1, 1 if dtype == "|b1" else 2], dtype)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("dtype", [ScalarType.BFLOAT16, ScalarType.COMPLEXHALF])
def test_types_that_numpy_lacks(dtype: ScalarType) -> None:
    """bfloat16 and complex half add up as well."""
    one = {ScalarType.BFLOAT16: b"\x80\x3f", ScalarType.COMPLEXHALF: b"\x00\x3c\x00\x40"}[dtype]
    found = SparseView("s", Layout.SparseCoo, (tensor([[1, 1]]),), view(one * 2, dtype, (2,)), (2,))
    assert found.numpy(upcast=True).tolist() == ([0, 2] if dtype is ScalarType.BFLOAT16 else [0, 2 + 4j])


def test_coo_without_sparse_dimensions() -> None:
    """All values are at the one place there is."""
    assert sparse(Layout.SparseCoo, (2,), [[1, 2], [3, 4]], np.zeros((0, 2))).numpy().tolist() == [4, 6]
    assert sparse(Layout.SparseCoo, (), [1, 2], np.zeros((0, 2))).numpy() == 3


BAD_SPARSE = {
    "outside": (sparse(Layout.SparseCoo, (2,), [1], [[2]]), "expected indices from 0 to 1, got 2 to 2"),
    "far outside": (sparse(Layout.SparseCoo, (2,), [1], [[1 << 40]]), "expected indices from 0 to 1, got"),
    "negative": (sparse(Layout.SparseCoo, (2,), [1], [[-1]]), "expected indices from 0 to 1, got -1 to -1"),
    "empty": (sparse(Layout.SparseCoo, (0,), [1], [[0]]), "expected indices from 0 to -1, got 0 to 0"),
    "rising": (sparse(Layout.SparseCsr, (2, 2), [1, 1], [0, 3, 2], [0, 1]), "that rise from 0 to 2, got 0 to 2"),
    "end": (sparse(Layout.SparseCsr, (2, 2), [1, 1], [0, 1, 3], [0, 1]), "that rise from 0 to 2, got 0 to 3"),
    "start": (sparse(Layout.SparseCsr, (2, 2), [1, 1], [1, 1, 2], [0, 1]), "that rise from 0 to 2, got 1 to 2"),
    "column": (sparse(Layout.SparseCsr, (2, 2), [1, 1], [0, 1, 2], [0, 2]), "from 0 to 1, got 0 to 2"),
    "row": (sparse(Layout.SparseCsc, (2, 3), [1, 1], [0, 1, 2, 2], [0, 2]), "from 0 to 1, got 0 to 2"),
    "wrapping": (
        SparseView(
            "s",
            Layout.SparseCsr,
            (tensor([0, 2**31 - 1, -2, 1], "<i4"), tensor([0], "<i4")),
            tensor([1], "<f4"),
            (3, 2),
        ),
        "that rise from 0 to 1, got 0 to 1",
    ),
}


@pytest.mark.parametrize("case", BAD_SPARSE, ids=str)
def test_indices_of_a_file_are_not_trusted(case: str) -> None:
    """Places of indices are checked before anything is written there."""
    found, text = BAD_SPARSE[case]
    with pytest.raises(PayloadError) as caught:
        found.numpy()
    assert text in str(caught.value)
    assert str(caught.value).endswith("[P17]")


def test_sparse_bombs() -> None:
    """A sparse tensor whose zeros would fill the memory is described, and not made dense."""
    found = sparse(Layout.SparseCoo, (1 << 20, 1 << 20), [1], [[5], [5]])
    assert found.describe() == "f32[1048576, 1048576] SparseCoo, 1 nonzero"
    with pytest.raises(LimitError, match="expected a copy of at most"):
        found.numpy()
    repeated = dataclasses.replace(
        sparse(Layout.SparseCoo, (2,), [1], [[1]]),
        indices=(view(bytes(8), ScalarType.LONG, (1, 1 << 40), (0, 0)),),
        values=view(bytes(4), ScalarType.FLOAT, (1 << 40,), (0,)),
    )
    with pytest.raises(LimitError, match=r"expected a copy of at most 1073741824 bytes, got 8796093022208 .*\[P16\]"):
        repeated.numpy()
    with pytest.raises(PayloadError, match="P8"):
        sparse(Layout.SparseCoo, (1 << 61, 1), [1], [[5]]).numpy()


def quantized(values: TensorView, **fields: Any) -> QuantizedView:
    given: dict[str, Any] = {
        "dtype_name": "quint8",
        "sizes": values.sizes,
        "qscheme": "per_tensor_affine",
        "scale": 0.5,
        "zero_point": 2,
    }
    return QuantizedView("q", values=values, **{**given, **fields})


def test_quantized_per_tensor() -> None:
    """Integers are given as they are, and as the numbers they stand for."""
    found = quantized(tensor([[0, 2], [4, 255]], "|u1"))
    assert found.integers().tolist() == [[0, 2], [4, 255]]
    assert found.numpy().tolist() == [[-1, 0], [1, 126.5]]
    assert found.numpy().dtype == np.float32
    assert repr(found) == "QuantizedView('q', quint8[2, 2] per_tensor_affine, 'm/data/weights/weight_0')"
    assert found.nbytes == 4


def test_quantized_per_channel() -> None:
    """Scales and zero points belong to the elements of one dimension; they may be tensors or tuples."""
    values = tensor([[1, 2, 3], [1, 2, 3]], "|i1")
    for scale, zero in [
        ((1.0, 2.0, 4.0), (0.0, 1.0, 2.0)),
        (tensor([1, 2, 4], "<f8"), tensor([0, 1, 2])),
    ]:
        found = quantized(
            values, dtype_name="qint8", qscheme="per_channel_affine", scale=scale, zero_point=zero, axis=1
        )
        assert found.numpy().tolist() == [[1, 2, 4], [1, 2, 4]]


def test_packed_integers() -> None:
    """Several small integers share a byte, lowest bits first; the last byte need not be full."""
    four = quantized(
        tensor([0x10, 0x32, 0x04], "|u1"), dtype_name="quint4x2", sizes=(5,), bits=4, zero_point=0, scale=1.0
    )
    assert four.integers().tolist() == [0, 1, 2, 3, 4]
    two = quantized(tensor([0xE4, 0x03], "|u1"), dtype_name="quint2x4", sizes=(5, 1), bits=2)
    assert two.integers().tolist() == [[0], [1], [2], [3], [3]]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"zero_point": 2**100}, f"zero_point: expected an integer of 64 bits, got {2**100} [P17]"),
        ({"scale": tensor(1j, "<c8")}, "scale: expected real numbers, got c64[] [P17]"),
    ],
)
def test_quantizers_are_not_trusted(fields: dict[str, Any], text: str) -> None:
    """Scales and zero points that do not fit their tensor are refused before they are used."""
    with pytest.raises(PayloadError) as caught:
        quantized(tensor([1, 2, 3], "|u1"), **fields).numpy()
    assert text in str(caught.value)


def test_overflow_is_not_an_error() -> None:
    """Numbers that leave the range of their type become infinite, without a warning."""
    assert quantized(tensor([9], "|u1"), scale=1e300).numpy().tolist() == [np.inf]
    assert sparse(Layout.SparseCoo, (1,), [6e4, 6e4], [[0, 0]], dtype="<f2").numpy().tolist() == [np.inf]


def nested(sizes: Any, strides: Any, offsets: Any, elements: int = 8) -> NestedView:
    buffer = tensor(np.arange(elements), "<f4")
    given = offsets if isinstance(offsets, tuple) else tensor(offsets)
    return NestedView("n", buffer, tensor(sizes), tensor(strides), given)


@pytest.mark.parametrize("offsets", [(0, 4), [0, 4]])
def test_nested(offsets: Any) -> None:
    """The tensors inside lie in one storage, each with its own shape."""
    found = nested([[2, 2], [1, 3]], [[2, 1], [3, 1]], offsets)
    first, second = found.tensors()
    assert first.numpy().tolist() == [[0, 1], [2, 3]]
    assert second.numpy().tolist() == [[4, 5, 6]]
    assert first.shares_storage(second)
    assert (first.name, second.name) == ("n[0]", "n[1]")
    assert repr(found) == "NestedView('n', f32 nested, 2 tensors of 2 dimensions, 'm/data/weights/weight_0')"


def test_nested_of_nothing() -> None:
    """No tensors, and tensors without dimensions."""
    assert nested(np.zeros((0, 2)), np.zeros((0, 2)), ()).tensors() == ()
    assert [part.numpy().item() for part in nested(np.zeros((2, 0)), np.zeros((2, 0)), (3, 5)).tensors()] == [3, 5]


@pytest.mark.parametrize(
    ("found", "error", "text"),
    [
        (nested([[9]], [[1]], (0,)), PayloadError, "'n[0]': expected at least 36 bytes"),
        (nested([[1]], [[1]], (8,)), PayloadError, "'n[0]': expected at least 36 bytes"),
        (nested([[-1]], [[1]], (0,)), PayloadError, "sizes: expected 0 to 2**63 - 1, got -1"),
        (nested([[1]], [[1]], (-1,)), PayloadError, "storage_offset: expected 0 to 2**63 - 1, got -1"),
        (
            nested([[1], [1]], [[1]], (0,)),
            PayloadError,
            "as many sizes as strides and offsets, got 2, 1 and 1",
        ),
        (nested([1], [[1]], (0,)), PayloadError, "expected i64[tensors, dimensions], got i64[1]"),
        (nested([[1]], [[1]], [[0]]), PayloadError, "expected i64[tensors], got i64[1, 1]"),
    ],
)
def test_nested_numbers_are_not_trusted(found: NestedView, error: type[Exception], text: str) -> None:
    """Sizes and offsets that are tensors of the file are checked like any others."""
    with pytest.raises(error) as caught:
        found.tensors()
    assert text in str(caught.value)


def test_nested_bombs() -> None:
    """A few bytes that claim to be millions of tensors are refused before they are counted out."""
    for sizes in ((1 << 30, 1), (1, 1 << 30)):
        many = view(bytes(8), ScalarType.LONG, sizes, (0, 0))
        with pytest.raises(LimitError, match=r"expected at most 100000 tensors and 1000000 numbers, got i64\["):
            NestedView("n", tensor([1], "<f4"), many, many, (0,)).tensors()


def test_meta() -> None:
    """A tensor without data has a type and a shape that hold water."""
    found = MetaView("m", ScalarType.FLOAT, (2, 3), (3, 1))
    assert repr(found) == "MetaView('m', f32[2, 3] meta)"
    assert (found.nbytes, found.shape) == (24, (2, 3))
    with pytest.raises(PayloadError, match="P7"):
        MetaView("m", ScalarType.FLOAT, (-2,), (1,))
    with pytest.raises(SchemaError, match="P4"):
        MetaView("m", ScalarType.UNKNOWN, (2,), (1,))
