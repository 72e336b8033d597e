"""Sizes, strides and offsets inside and outside a storage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tensors.helpers import storage, view

from pt2kit.errors import LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.tensors.bounds import (
    MAX_EXPANDED_BYTES,
    check_copy,
    check_device,
    contiguous_strides,
    extent,
    is_contiguous,
    show_integer,
)

BIG = 1 << 63


@st.composite
def geometries(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    ndim = draw(st.integers(0, 4))
    sizes = draw(st.tuples(*[st.integers(0, 5)] * ndim))
    strides = draw(st.tuples(*[st.integers(0, 9)] * ndim))
    return sizes, strides, draw(st.integers(0, 12))


@given(geometries(), st.integers(0, 60), st.sampled_from([ScalarType.BYTE, ScalarType.SHORT, ScalarType.DOUBLE]))
def test_agrees_with_numpy_inside_and_refuses_outside(
    geometry: tuple[tuple[int, ...], tuple[int, ...], int], elements: int, dtype: ScalarType
) -> None:
    """Whatever lies inside the storage reads as numpy reads it, element by element; whatever doesn't is refused."""
    sizes, strides, offset = geometry
    width = {ScalarType.BYTE: 1, ScalarType.SHORT: 2, ScalarType.DOUBLE: 8}[dtype]
    flat = np.arange(elements, dtype=f"<u{width}")
    places = [
        offset + sum(i * step for i, step in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, sizes))
    ]
    if places and max(places) >= elements:
        with pytest.raises(PayloadError, match=rf"expected at least {(max(places) + 1) * width:,} bytes? .*\[P9\]"):
            view(flat.tobytes(), dtype, sizes, strides, offset)
        return
    w = view(flat.tobytes(), dtype, sizes, strides, offset)
    got = w.numpy()
    assert got.shape == w.shape == sizes
    assert got.tobytes() == w.tobytes() == bytes(w.contiguous_bytes()) == b"".join(map(bytes, w.iter_bytes()))
    if places:
        base = np.frombuffer(w.buffer(), flat.dtype)[offset:]
        byte_strides = [step * width for step in strides]
        np.testing.assert_array_equal(
            got.view(flat.dtype), np.lib.stride_tricks.as_strided(base, sizes, byte_strides, writeable=False)
        )
        assert list(got.reshape(-1).view(flat.dtype)) == places


@given(geometries())
def test_contiguous_as_numpy_means_it(geometry: tuple[tuple[int, ...], tuple[int, ...], int]) -> None:
    """`is_contiguous` is what numpy says of the same array; `contiguous_strides` are contiguous."""
    sizes, strides, offset = geometry
    w = view(bytes(4096), ScalarType.BYTE, sizes, strides, offset)
    assert w.is_contiguous == w.numpy().flags.c_contiguous
    assert is_contiguous(sizes, contiguous_strides(sizes))


REFUSED = {
    "negative size": (((-1,), (1,), 0), PayloadError, "sizes: expected 0 to 2**63 - 1, got -1 [P7]"),
    "negative stride": (((2,), (-1,), 1), PayloadError, "strides: expected 0 to 2**63 - 1, got -1 [P7]"),
    "negative offset": (((2,), (1,), -1), PayloadError, "storage_offset: expected 0 to 2**63 - 1, got -1 [P7]"),
    "huge size": (((1 << 70,), (1,), 0), PayloadError, f"sizes: expected 0 to 2**63 - 1, got {1 << 70} [P7]"),
    "endless size": (((1 << 99999,), (1,), 0), PayloadError, "got an integer of 100000 bits [P7]"),
    "huge stride of one": (((1,), (BIG,), 0), PayloadError, f"strides: expected 0 to 2**63 - 1, got {BIG} [P7]"),
    "rank": (((2, 2), (1,), 0), PayloadError, "expected as many strides as sizes, got 1 and 2 [P7]"),
    "dimensions": (((1,) * 65, (1,) * 65, 0), LimitError, "sizes: expected at most 64 dimensions, got 65 [P7]"),
    "elements": (((1 << 61,), (0,), 0), PayloadError, f"sizes: expected at most 2**63 - 1 bytes, got {BIG} for"),
    "elements times 0": (((0, 1 << 61), (0, 0), 0), PayloadError, "sizes: expected at most 2**63 - 1 bytes"),
    "beyond": (
        ((3,), (1,), 0),
        PayloadError,
        "r: 'w': expected at least 12 bytes (sizes [3], strides [1], storage_offset 0, float32), got 8 [P9]",
    ),
    "offset beyond": (((1,), (1,), 2), PayloadError, "expected at least 12 bytes"),
    "wraps to nothing": (((5, 2), (1 << 62, 1), 0), PayloadError, f"expected at least {4 * ((1 << 64) + 2):,} bytes"),
    "no dimensions": (((), (), 2), PayloadError, "expected at least 12 bytes (sizes [], strides [], storage_offset 2"),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case: str) -> None:
    """Numbers that no tensor has are refused, with the place, both numbers and the rule."""
    (sizes, strides, offset), error, text = REFUSED[case]
    with pytest.raises(error) as caught:
        view(storage(bytes(8), "r"), ScalarType.FLOAT, sizes, strides, offset)
    assert text in str(caught.value)
    assert type(caught.value) is error


def test_empty_record_says_what_it_means() -> None:
    """A record without bytes is not taken for zeros; the message says how such a file comes about."""
    with pytest.raises(PayloadError, match=r"got 0; it was saved without its data \(a fake tensor\) \[P9\]"):
        view(b"", ScalarType.FLOAT, (4,))


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"), [((0,), (1,), 5), ((0, 3), (1 << 62, 0), BIG - 1), ((2, 0), (1, 1), 0)]
)
def test_no_elements_lie_nowhere(sizes: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
    """A tensor without elements needs no bytes, wherever its offset points (torch writes slices like that)."""
    w = view(b"", ScalarType.FLOAT, sizes, strides, offset)
    assert w.numpy().shape == sizes
    assert w.tobytes() == b""
    assert list(w.iter_bytes()) == []
    assert not w.numpy().flags.writeable
    assert view(b"", ScalarType.BOOL, (0, *sizes)).numpy().size == 0


def test_strides_of_size_one_may_be_anything() -> None:
    """torch keeps whatever stride a dimension of size 1 had."""
    w = view(bytes(range(8)), ScalarType.SHORT, (1, 4), (BIG - 1, 1))
    np.testing.assert_array_equal(w.numpy(), [[0x100, 0x302, 0x504, 0x706]])
    assert w.is_contiguous


def test_sixty_four_dimensions() -> None:
    """The limit itself is allowed; a numpy that holds fewer ends in an error of ours."""
    w = view(bytes(8), ScalarType.FLOAT, (1,) * 63 + (2,))
    try:
        assert w.numpy().ndim == 64
    except LimitError as error:
        assert int(np.__version__.split(".")[0]) < 2, error


@pytest.mark.parametrize(
    ("device", "text"),
    [
        (Device("evil", -5), "device: expected a device type of torch (cpu, cuda, mps, xpu, …), got evil [P6]"),
        (Device("", None), "device: expected a device type of torch"),
        (Device("cuda", -1), "device: expected an index from 0 to 127, got -1 [P6]"),
        (Device("cuda", 1 << 9999), "got an integer of 10000 bits [P6]"),
        (Device("\n" * 99), "got '\\n\\n"),
    ],
)
def test_devices_that_torch_has_not(device: Device, text: str) -> None:
    """A device is a word and a small number; nothing else gets far, nor into a message as it is."""
    with pytest.raises(UnsupportedError) as caught:
        check_device("here", device)
    assert text in str(caught.value)
    assert str(caught.value).startswith("here: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("device", [Device("cpu"), Device("cuda", 127), Device("privateuseone", 0), Device("mps")])
def test_devices_are_labels(device: Device) -> None:
    """The device of a tensor does not change how it is read."""
    assert view(bytes(8), ScalarType.FLOAT, (2,), device=device).numpy().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("flags", "error", "text"),
    [
        ({"device": Device("meta")}, PayloadError, "device: expected one that holds data, got meta [P6]"),
        ({"layout": Layout.SparseCoo}, UnsupportedError, "stored as raw bytes, got SparseCoo [P5]"),
        ({"layout": Layout.Unknown}, UnsupportedError, "stored as raw bytes, got Unknown [P5]"),
        ({"layout": Layout._mkldnn}, UnsupportedError, "stored as raw bytes, got _mkldnn [P5]"),
        ({"conj": True}, PayloadError, "conj: expected a complex element type, got float32 [P12]"),
        ({"dtype": ScalarType.INT, "requires_grad": True}, PayloadError, "expected false for int32, got true"),
        ({"dtype": ScalarType.BOOL, "requires_grad": True}, PayloadError, "expected false for bool, got true"),
        ({"dtype": ScalarType.BOOL, "neg": True}, PayloadError, "neg: expected a number, got bool [P12]"),
    ],
)
def test_flags_that_contradict_the_tensor(flags: dict[str, object], error: type[Pt2Error], text: str) -> None:
    """Types that raw bytes cannot have are refused before the bytes are read."""
    dtype = flags.pop("dtype", ScalarType.FLOAT)
    with pytest.raises(error) as caught:
        view(bytes(8), dtype, (2,), **flags)  # type: ignore[arg-type]
    assert text in str(caught.value)
    assert type(caught.value) is error


def test_extent() -> None:
    """The extent is the end of the last element, in bytes."""
    assert extent((), (), 0, 4) == 4
    assert extent((16, 8), (8, 1), 0, 4) == 512
    assert extent((2, 3), (0, 0), 7, 2) == 16
    assert extent((2, 0), (8, 1), 9, 4) == 0


def test_copies_are_bounded() -> None:
    """A copy may take as much as its storage, or a fixed amount where the storage is small."""
    check_copy("here", MAX_EXPANDED_BYTES, 1)
    check_copy("here", MAX_EXPANDED_BYTES + 1, MAX_EXPANDED_BYTES + 1)
    with pytest.raises(LimitError, match=rf"^here: expected a copy of at most {1 << 30} bytes, got {1 << 31} from 4"):
        check_copy("here", 1 << 31, 4)


def test_integers_in_messages_are_short() -> None:
    """An integer of a file with a million digits is not printed (Python would refuse to)."""
    assert show_integer(-5) == "-5"
    assert show_integer(1 << 4_000_000) == "an integer of 4000001 bits"
