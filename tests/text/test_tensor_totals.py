"""How many tensors, elements and bytes: by kind, and by what lies in the file."""

from __future__ import annotations

import math

from tests import samples

import pt2kit
from pt2kit import schema
from pt2kit.tensors import MetaView, NestedView, OpaquePayload, QuantizedView, SparseView, Storage, TensorView
from pt2kit.text.payloads import NOTHING, Amount, amount_of, dtype_of, elements_of, group_of, stored_bytes, sum_of


def _view(name: str, *sizes: int, dtype: schema.ScalarType = schema.ScalarType.FLOAT, storage: Storage | None = None):
    strides = tuple(1 if number == len(sizes) - 1 else sizes[-1] for number in range(len(sizes)))
    nbytes = 8 * max(1, math.prod(sizes))
    storage = storage or Storage(name, nbytes, lambda: memoryview(bytes(nbytes)))
    return TensorView(name, dtype, sizes, strides, 0, storage)


ODD = OpaquePayload("odd", Storage("odd", 33, lambda: memoryview(bytes(33))), "opaque")


def test_groups() -> None:
    """A group counts tensors, elements and bytes in all and by type; pickles count by their bytes alone."""
    group = group_of({"a": _view("a", 2, 3), "b": _view("b", 4, dtype=schema.ScalarType.LONG), "odd": ODD})
    assert group.total == Amount(3, 10, 24 + 32 + 33)
    assert group.dtypes == {"float32": Amount(1, 6, 24), "int64": Amount(1, 4, 32)}
    assert group.opaque == {"odd": "a Python object, 33 bytes"}
    assert group_of({}).total == NOTHING == sum_of(())


def test_shared_bytes_count_once() -> None:
    """A storage that two names share counts once."""
    with pt2kit.open(samples.sample("2.13.0", "shared_weights")) as package:
        weights = package.weights()
        assert sum_of(map(amount_of, weights.values())).bytes == 600
        assert stored_bytes(weights.values()) == 240 + 48


def test_other_kinds_of_tensors() -> None:
    """Sparse, quantized, nested and meta tensors have elements and a type too."""
    numbers = _view("v", 5)
    places = _view("i", 2, 5, dtype=schema.ScalarType.LONG)
    sparse = SparseView("s", schema.Layout.SparseCoo, (places,), numbers, (3, 4))
    quantized = QuantizedView(
        "q", "quint8", _view("n", 6, dtype=schema.ScalarType.BYTE), (2, 3), "per_tensor_affine", 0.5, 0
    )
    nested = NestedView("t", numbers, places, places, ())
    meta = MetaView("m", schema.ScalarType.HALF, (2, 2), (2, 1))
    found = [(elements_of(view), dtype_of(view)) for view in (sparse, quantized, nested, meta, ODD)]
    assert found == [(12, "float32"), (6, "quint8"), (5, "float32"), (4, "float16"), (0, "")]
    assert [stored_bytes([view]) for view in (sparse, meta)] == [sparse.nbytes, 0]
