"""Views: what they say of themselves, and how they give their numbers."""

from __future__ import annotations

import dataclasses
import tracemalloc

import numpy as np
import pytest
from tests.tensors.helpers import meta, storage, view, view_of

from pt2kit.errors import LimitError, PayloadError
from pt2kit.schema import Device, ScalarType
from pt2kit.tensors import Storage, TensorView


def never() -> memoryview:
    raise RuntimeError("the storage was read")


def test_making_a_view_reads_nothing() -> None:
    """A view can be made, printed and compared without its bytes."""
    w = TensorView("fc.weight", ScalarType.FLOAT, (16, 8), (8, 1), 0, Storage("m/data/weights/weight_0", 512, never))
    assert repr(w) == "TensorView('fc.weight', f32[16, 8], 'm/data/weights/weight_0')"
    assert w.describe() == "f32[16, 8]"
    assert (w.numel, w.nbytes, w.itemsize, w.shape, w.is_contiguous) == (128, 512, 4, (16, 8), True)
    assert w.record == "m/data/weights/weight_0"
    assert {w} == {dataclasses.replace(w)}
    with pytest.raises(RuntimeError, match="the storage was read"):
        w.numpy()


def test_repr_names_what_matters() -> None:
    """Flags appear where they are set; names from a file cannot break the line."""
    w = view(bytes(8), ScalarType.COMPLEXFLOAT, (), name="a\nb", requires_grad=True, conj=True)
    assert repr(w) == "TensorView('a\\nb', c64[], 'm/data/weights/weight_0', requires_grad, conj)"


def test_frozen() -> None:
    """A view cannot be changed after it was checked."""
    w = view(bytes(8), ScalarType.FLOAT, (2,))
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'sizes'"):
        w.sizes = (3,)  # type: ignore[misc]


def test_tied_views_share_memory() -> None:
    """Views of one storage share it, and their arrays overlap; equal bytes elsewhere are not shared."""
    under = storage(np.arange(6, dtype="<f4").tobytes())
    a = view(under, ScalarType.FLOAT, (2, 3))
    b = view(under, ScalarType.FLOAT, (3,), (1,), 3)
    other = view(bytes(under.read()), ScalarType.FLOAT, (2, 3))
    assert a.shares_storage(b)
    assert not a.shares_storage(other)
    assert a != other
    assert np.shares_memory(a.numpy(), b.numpy())
    assert a.numpy()[1].tolist() == b.numpy().tolist() == [3, 4, 5]


def test_array_protocol() -> None:
    """`np.asarray` takes a view as it is; other types and copies are made as numpy asks for them."""
    w = view_of(np.array([1.5, 2.5], "<f4"), ScalarType.FLOAT)
    assert np.asarray(w).ctypes.data == w.numpy().ctypes.data
    assert np.asarray(w, np.float64).tolist() == [1.5, 2.5]
    copy = np.array(w)
    copy[0] = 9
    assert w.numpy()[0] == 1.5
    with pytest.raises(ValueError, match="expected no copy"):
        w.__array__(np.float64, copy=False)


def test_bytes_in_row_major_order() -> None:
    """A transposed tensor gives its elements in its own order; a contiguous part is a view of the storage."""
    under = storage(np.arange(6, dtype="<i2").tobytes())
    transposed = view(under, ScalarType.SHORT, (3, 2), (1, 3))
    assert np.frombuffer(transposed.tobytes(), "<i2").tolist() == [0, 3, 1, 4, 2, 5]
    part = view(under, ScalarType.SHORT, (2,), (1,), 2)
    assert part.contiguous_bytes() == under.read()[4:8]
    assert part.contiguous_bytes().readonly
    assert transposed.contiguous_bytes().readonly
    assert part.buffer().nbytes == 12


def test_expanded_tensors() -> None:
    """Strides of 0 cost nothing to look at, however large; a copy of them has a limit."""
    w = view(np.array([7.0], "<f4").tobytes(), ScalarType.FLOAT, (1 << 20, 1 << 20), (0, 0))
    array = w.numpy()
    assert array.shape == (1 << 20, 1 << 20)
    assert array[123, 456] == 7
    for read in (w.tobytes, w.contiguous_bytes, lambda: next(w.iter_bytes())):
        with pytest.raises(LimitError, match=r"expected a copy of at most 1073741824 bytes, got 4398046511104 from 4"):
            read()
    small = view(np.array([7.0], "<f4").tobytes(), ScalarType.FLOAT, (2, 2), (0, 0))
    assert np.frombuffer(small.tobytes(), "<f4").tolist() == [7.0] * 4
    narrow = view(b"\x00\x3f", ScalarType.BFLOAT16, (1 << 40,), (0,))
    with pytest.raises(LimitError, match=r"expected a copy of at most 1073741824 bytes, got 2199023255552 .*\[P16\]"):
        narrow.numpy(upcast=True)


def test_overlapping_windows_are_read_exactly() -> None:
    """Overlap is legal: each element is what its place holds."""
    w = view(np.arange(5, dtype="<f4").tobytes(), ScalarType.FLOAT, (3, 3), (1, 1))
    assert w.numpy().tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert not w.is_contiguous


def test_unaligned_storage() -> None:
    """Bytes at an odd address (a repacked archive) read the same."""
    data = memoryview(b"x" + np.arange(3, dtype="<f8").tobytes())[1:]
    w = view(Storage("r", 24, lambda: data), ScalarType.DOUBLE, (3,))
    assert w.numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [2, 128, 255])
def test_bools_are_bools(value: int) -> None:
    """A bool of another value than 0 and 1 is undefined behaviour in torch; here it is an error."""
    data = bytes([0, 1, value, 1])
    assert view(data, ScalarType.BOOL, (2,)).numpy().tolist() == [False, True]
    for w in (
        view(data, ScalarType.BOOL, (4,)),
        view(data, ScalarType.BOOL, (2,), (2,)),
        view(data, ScalarType.BOOL, (1 << 50,), (0,), 2),
        view(data * 1000, ScalarType.BOOL, (1000, 1000, 1000), (1, 1, 1)),
    ):
        with pytest.raises(PayloadError, match=rf"'w': expected bools stored as 0 or 1, got a byte of {value} \[P13\]"):
            w.numpy()
    with pytest.raises(PayloadError, match=rf"expected bools stored as 0 or 1, got a byte of {value} \[P13\]"):
        list(view(data, ScalarType.BOOL, (4,)).iter_bytes())
    assert view(data, ScalarType.BOOL, (2, 1 << 40), (3, 0)).numpy()[:, 5].tolist() == [False, True]


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        (ScalarType.COMPLEXFLOAT, np.array([1 + 2j, -3 - 4j], "<c8").tobytes()),
        (ScalarType.COMPLEXHALF, np.array([1, 2, -3, -4], "<f2").tobytes()),
    ],
)
def test_conjugate_and_negative(dtype: ScalarType, data: bytes) -> None:
    """The marks that torch.save keeps are applied to numbers and bytes; the storage does not change."""
    for conj, neg, expected in [
        (True, False, [1 - 2j, -3 + 4j]),
        (False, True, [-1 - 2j, 3 + 4j]),
        (True, True, [-1 + 2j, 3 - 4j]),
    ]:
        w = view(data, dtype, (2,), conj=conj, neg=neg)
        assert w.numpy(upcast=True).tolist() == expected
        again = view(w.tobytes(), dtype, (2,))
        assert again.numpy(upcast=True).tolist() == expected
        assert b"".join(map(bytes, w.iter_bytes())) == w.tobytes()
        assert bytes(w.buffer()) == data
        assert not w.numpy().flags.writeable


def test_negative_of_real_numbers() -> None:
    """The negative bit also occurs on real tensors: the imaginary part of a conjugate."""
    assert view_of(np.array([1.0, -2.0], "<f8"), ScalarType.DOUBLE, neg=True).numpy().tolist() == [-1.0, 2.0]
    assert view(b"\x80\x3f", ScalarType.BFLOAT16, (), neg=True).numpy() == -1


def test_pieces_are_bounded() -> None:
    """A large tensor in any order of dimensions comes in pieces of at most 16 MiB and needs no copy of the whole."""
    data = np.random.default_rng(1).bytes(1 << 26)
    w = view(data, ScalarType.DOUBLE, (64, 1 << 10, 1 << 7), (1, 1 << 13, 1 << 6))
    tracemalloc.start()
    total = 0
    for piece in w.iter_bytes():
        assert piece.nbytes <= 1 << 24
        total += piece.nbytes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == w.nbytes
    assert peak < 1 << 25


def test_meta_round_trip() -> None:
    """`meta` is what a config says of the tensor."""
    w = view(bytes(64), ScalarType.FLOAT, (2, 3), (1, 2), 4, requires_grad=True, device=Device("cuda", 1))
    expected = meta((2, 3), (1, 2), 4, requires_grad=True, device=Device("cuda", 1))
    assert w.meta() == expected
