"""Statistics."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tensors.helpers import view, view_of

from pt2kit.errors import LimitError
from pt2kit.schema import Layout, ScalarType
from pt2kit.tensors import DTYPES, QuantizedView, SparseView, Statistics, Storage, arrays, statistics


@given(st.lists(st.floats(width=32, allow_subnormal=False), max_size=60))
def test_floats(numbers: list[float]) -> None:
    """Over the finite values as numpy computes them; the others are counted."""
    array = np.array(numbers, "<f4")
    found = statistics(view_of(array, ScalarType.FLOAT))
    finite = array[np.isfinite(array)].astype(np.float64)
    assert (found.numel, found.zeros, found.non_finite) == (
        array.size,
        int((array == 0).sum()),
        array.size - finite.size,
    )
    if not finite.size:
        assert (found.min, found.max, found.mean, found.std) == (None,) * 4
        return
    assert (found.min, found.max) == (finite.min(), finite.max())
    scale = float(np.abs(finite).max()) or 1.0
    assert found.mean == pytest.approx(finite.mean(), rel=1e-9, abs=1e-9 * scale)
    assert found.std == pytest.approx(finite.std(), rel=1e-6, abs=1e-7 * scale)


def test_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging blocks gives what one pass gives, also far from zero, where sums of squares would cancel."""
    data = np.random.default_rng(5).normal(1e8, 1.0, (300, 7)).astype("<f8")
    monkeypatch.setattr(arrays.blocks, "__defaults__", (64,))
    for array in (data, np.ascontiguousarray(data.T).T):
        strides = tuple(step // 8 for step in array.strides)
        found = statistics(
            view(data.tobytes() if array is data else data.T.tobytes(), ScalarType.DOUBLE, (300, 7), strides)
        )
        assert found.mean == pytest.approx(data.mean(), rel=1e-12)
        assert found.std == pytest.approx(data.std(), rel=1e-9)
        assert (found.min, found.max) == (data.min(), data.max())


@pytest.mark.parametrize(
    ("dtype", "numbers", "expected"),
    [
        (ScalarType.LONG, [-(2**63), 2**63 - 1, 0], (-(2**63), 2**63 - 1, 1)),
        (ScalarType.UINT64, [0, 2**64 - 1], (0, 2**64 - 1, 1)),
        (ScalarType.BOOL, [True, False, False], (0, 1, 2)),
        (ScalarType.CHAR, [-128, 127], (-128, 127, 0)),
    ],
)
def test_integers_are_exact(dtype: ScalarType, numbers: list[int], expected: tuple[int, int, int]) -> None:
    """Extremes of integers are integers, not doubles nearby."""
    found = statistics(view_of(np.array(numbers, DTYPES[dtype].array), dtype))
    assert (found.min, found.max, found.zeros) == expected
    assert type(found.min) is int
    assert found.mean == pytest.approx(float(np.mean(np.array(numbers, dtype=object))), abs=1)


@pytest.mark.parametrize("dtype", [row for row in DTYPES if DTYPES[row].kind in ("float", "complex")])
def test_every_float_type(dtype: ScalarType) -> None:
    """Types that numpy lacks are widened block by block; magnitudes stand for complex numbers."""
    data = np.random.default_rng(2).bytes(DTYPES[dtype].itemsize * 500)
    w = view(data, dtype, (500,))
    found = statistics(w)
    with np.errstate(all="ignore"):
        wide = w.numpy(upcast=True)
        numbers = np.abs(wide.astype("<c16")) if DTYPES[dtype].kind == "complex" else wide.astype("<f8")
        finite = numbers[np.isfinite(numbers)]
        assert found.non_finite == 500 - finite.size
        assert found.max == finite.max()
        assert found.min == finite.min()
        assert found.mean == pytest.approx(finite.mean()) or not math.isfinite(finite.mean())


def test_no_elements() -> None:
    """An empty tensor has no extremes."""
    assert statistics(view(b"", ScalarType.FLOAT, (0, 3))) == Statistics(0, None, None, None, None, 0, 0)


def test_expanded_tensors() -> None:
    """Repeated elements count each time and are looked at once."""
    found = statistics(view(np.array([0, 4], "<f4").tobytes(), ScalarType.FLOAT, (2, 1 << 40), (1, 0)))
    assert found == Statistics(1 << 41, 0.0, 4.0, 2.0, 2.0, 1 << 40, 0)


def test_windows_have_a_limit() -> None:
    """Overlapping windows are not walked for ever."""
    with pytest.raises(LimitError, match=r"expected a copy of at most 1073741824 bytes, got 4398046511104 .*\[P16\]"):
        statistics(view(bytes(1 << 16), ScalarType.BYTE, (1 << 14,) * 3, (1, 1, 1)))


def test_marks() -> None:
    """The negative of a tensor has the negative extremes."""
    assert statistics(view_of(np.array([1.0, 2.0], "<f4"), ScalarType.FLOAT, neg=True)).max == -1


def test_tensors_in_parts() -> None:
    """Sparse tensors count with their zeros, quantized ones as floats."""
    index = view_of(np.array([[1]], "<i8"), ScalarType.LONG)
    value = view_of(np.array([6], "<f4"), ScalarType.FLOAT)
    found = statistics(SparseView("s", Layout.SparseCoo, (index,), value, (3,)))
    assert (found.zeros, found.max, found.mean) == (2, 6.0, 2.0)
    q = QuantizedView("q", "quint8", view(b"\x02\x04", ScalarType.BYTE, (2,)), (2,), "per_tensor_affine", 0.5, 2)
    assert statistics(q).max == 1.0


def test_memory_is_bounded() -> None:
    """64 MiB of weights take far less than 64 MiB more, and are not kept."""
    loads: list[int] = []
    data = memoryview(bytes(1 << 26))

    def load() -> memoryview:
        loads.append(1)
        return data

    w = view(Storage("r", 1 << 26, load), ScalarType.BFLOAT16, (1 << 12, 1 << 13), (1, 1 << 12))
    tracemalloc.start()
    statistics(w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 25
    statistics(w)
    assert len(loads) == 2
