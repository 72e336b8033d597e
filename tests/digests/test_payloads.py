"""Digests of tensors: what counts and what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pt2kit.digests.payloads import Hasher, digest_payloads, shared
from pt2kit.errors import UnsupportedError
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.tensors import MetaView, NestedView, OpaquePayload, QuantizedView, SparseView, Storage, TensorView
from pt2kit.zip.source import no_progress


def storage(data: bytes = bytes(range(64)), record: str = "data/weights/weight_0") -> Storage:
    return Storage(record, len(data), lambda: memoryview(data))


def view(held: Storage | None = None, **changes: Any) -> TensorView:
    base = TensorView("w", ScalarType.INT, (2, 3), (3, 1), 0, held or storage())
    return replace(base, **changes)


def leaf(payload: Any) -> bytes:
    return Hasher([payload], no_progress).leaf(payload)


SAME: dict[str, Callable[[], TensorView]] = {
    "name": lambda: view(name="other"),
    "record": lambda: view(storage(record="data/weights/weight_9")),
    "offset": lambda: view(storage(bytes(8) + bytes(range(64))), storage_offset=2),
    "unused bytes": lambda: view(storage(bytes(range(24)))),
}
OTHER: dict[str, Callable[[], TensorView]] = {
    "elements": lambda: view(storage(b"\1" + bytes(range(1, 64)))),
    "dtype": lambda: view(dtype=ScalarType.FLOAT),
    "sizes": lambda: view(sizes=(3, 2), strides=(2, 1)),
    "strides": lambda: view(strides=(1, 2)),
    "moved elements": lambda: view(storage_offset=1),
    "requires_grad": lambda: view(dtype=ScalarType.FLOAT, requires_grad=True, is_param=True),
    "device": lambda: view(device=Device("cuda", 0)),
    "is_param": lambda: view(is_param=True),
}


@pytest.mark.parametrize("case", SAME)
def test_where_a_tensor_lies_does_not_count(case: str) -> None:
    """Names (they count above), records, offsets and bytes of the storage that are not the tensor's."""
    assert leaf(SAME[case]()) == leaf(view())


def test_each_property_of_a_tensor_counts() -> None:
    """No two of these tensors have one digest."""
    found = {leaf(make()) for make in OTHER.values()} | {leaf(view()), leaf(view(dtype=ScalarType.FLOAT))}
    assert len(found) == len(OTHER) + 1  # "dtype" is there twice.
    buffer = view(dtype=ScalarType.FLOAT, requires_grad=True)  # torch sets it for buffers that share memory
    assert leaf(buffer) == leaf(view(dtype=ScalarType.FLOAT))


def test_elements_are_read_in_row_major_order() -> None:
    """The elements of a tensor and those of the same tensor stored by columns are the same; only strides differ."""
    rows, columns = [0, 1, 2, 3, 4, 5], [0, 3, 1, 4, 2, 5]
    data = [b"".join(number.to_bytes(4, "little") for number in order) for order in (rows, columns)]
    by_rows, by_columns = view(storage(data[0])), view(storage(data[1]), strides=(1, 2))
    described = [Hasher([one], no_progress)._dense(one) for one in (by_rows, by_columns)]
    assert [key for key in described[0] if described[0][key] != described[1][key]] == ["strides"]


def _of(**payloads: Any) -> bytes:
    return digest_payloads(payloads, Hasher(list(payloads.values()), no_progress)).digest


def test_aliasing_counts_and_order_does_not() -> None:
    """Tied tensors are not two equal ones; the order of names is nothing."""
    one, two = storage(), storage(record="data/weights/weight_1")
    tied = _of(a=view(one, name="a"), b=view(one, name="b"))
    apart = _of(a=view(one, name="a"), b=view(two, name="b"))
    assert tied != apart
    assert tied == _of(b=view(two, name="b"), a=view(two, name="a"))
    assert apart == _of(b=view(one, name="b"), a=view(two, name="a"))


def test_tensors_that_share_a_storage_but_no_bytes_are_apart() -> None:
    """Two halves of one buffer are two tensors."""
    one = storage(bytes(range(24)) * 2)
    halves = _of(a=view(one, name="a"), b=view(one, name="b", storage_offset=6))
    assert halves == _of(a=view(storage(), name="a"), b=view(storage(bytes(range(24)), "r"), name="b"))


def test_overlapping_tensors_are_grouped_by_their_bytes() -> None:
    """A chain of overlaps is one group; offsets count from its first byte; tensors without elements overlap nothing."""
    one = storage(bytes(160))
    found = {
        "z": view(one, storage_offset=2),
        "y": view(one, storage_offset=7),
        "x": view(one, storage_offset=20),
        "empty": view(one, sizes=(0, 3)),
        "v": view(one, storage_offset=12),
        "t": view(storage(), sizes=(1, 1)),
    }
    assert shared(found) == [{"v": 40, "y": 20, "z": 0}]
    assert shared({name: found[name] for name in ("z", "y", "x")}) == [{"y": 20, "z": 0}]
    assert shared(
        {"a": view(one), "b": view(one), "c": view(one, storage_offset=20), "d": view(one, storage_offset=21)}
    ) == [
        {"a": 0, "b": 0},
        {"c": 0, "d": 4},
    ]


def _int64(values: list[int], sizes: tuple[int, ...]) -> TensorView:
    data = b"".join(value.to_bytes(8, "little", signed=True) for value in values)
    strides = (sizes[1], 1) if len(sizes) == 2 else (1,)
    return TensorView("i", ScalarType.LONG, sizes, strides, 0, storage(data))


def compound() -> dict[str, Any]:
    """One payload of every kind."""
    indices = _int64([0, 1, 2, 0], (2, 2))
    values = TensorView("v", ScalarType.FLOAT, (2,), (1,), 0, storage())
    eight = TensorView("q", ScalarType.CHAR, (4,), (1,), 0, storage())
    scales = TensorView("s", ScalarType.DOUBLE, (4,), (1,), 0, storage())
    return {
        "sparse": SparseView("w", Layout.SparseCoo, (indices,), values, (3, 3), True),
        "other sparse": SparseView("w", Layout.SparseCoo, (indices,), values, (3, 4), True),
        "quantized": QuantizedView("w", "qint8", eight, (4,), "per_tensor_affine", 0.5, 3),
        "other zero point": QuantizedView("w", "qint8", eight, (4,), "per_tensor_affine", 0.5, 4),
        "per channel": QuantizedView("w", "qint8", eight, (4,), "per_channel_affine", scales, (0, 0, 0, 0), 0),
        "nested": NestedView("w", values, _int64([1, 1], (2, 1)), _int64([1, 1], (2, 1)), (0, 1)),
        "meta": MetaView("w", ScalarType.FLOAT, (2, 3), (3, 1)),
        "meta parameter": MetaView("w", ScalarType.FLOAT, (2, 3), (3, 1), is_param=True),
        "object": OpaquePayload("w", storage(), "torchbind"),
        "pickle": OpaquePayload("w", storage(), "pickle"),
        "other pickle": OpaquePayload("w", storage(b"x"), "pickle"),
        "dense": view(),
    }


def test_every_kind_of_payload_has_a_digest_of_its_own() -> None:
    """Sparse, quantized, nested and meta tensors, objects and pickles."""
    found = compound()
    hasher = Hasher(list(found.values()), no_progress)
    assert len({hasher.leaf(payload) for payload in found.values()}) == len(found)


def test_what_is_no_payload_is_refused() -> None:
    """A value of another kind."""
    with pytest.raises(UnsupportedError, match="expected a tensor or an object of the archive, got str"):
        Hasher(["w"], no_progress)  # type: ignore[list-item]
