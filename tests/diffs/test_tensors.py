"""Differences between tensors: descriptions, shared storages, and how far numbers are apart."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.digests.test_payloads import compound, storage, view

from pt2kit.diffs.tensors import PIECE, compare_payloads, compare_values
from pt2kit.schema import Device, ScalarType
from pt2kit.tensors import OpaquePayload, Storage, TensorView
from pt2kit.zip.source import no_progress


def tensor(values: Any, dtype: str = "<f4", scalar_type: ScalarType = ScalarType.FLOAT, name: str = "w") -> TensorView:
    """A tensor of some numbers."""
    array = np.ascontiguousarray(np.array(values, dtype))
    strides = tuple(step // array.itemsize for step in array.strides)
    return TensorView(
        name, scalar_type, array.shape, strides, 0, Storage("r", array.nbytes, lambda: memoryview(array.tobytes()))
    )


def found(old: dict[str, Any], new: dict[str, Any], **options: Any) -> list[tuple[str, ...]]:
    """Changes in short."""
    options = {"renamed": {}, "values": True, "progress": no_progress, **options}
    changes = compare_payloads(old, new, "weight", "model", **options)
    return [(one.kind, one.name, *(detail.what for detail in one.details)) for one in changes]


def test_equal_tensors_are_equal() -> None:
    """In other storages, at other places, in other strides."""
    one = view(storage(bytes(range(24))))
    assert compare_values(one, view(storage(bytes(8) + bytes(range(24))), storage_offset=2)) is None
    by_columns = TensorView(
        "w",
        ScalarType.INT,
        (2, 3),
        (1, 2),
        0,
        storage(b"".join(bytes(range(4 * n, 4 * n + 4)) for n in (0, 3, 1, 4, 2, 5))),
    )
    assert compare_values(one, by_columns) is None


def test_renamed_tensors_are_compared() -> None:
    """With the one of the old name, if that is gone; a name that stayed is compared with itself."""
    old, same, other = {"a.w": tensor([1.0, 2.0])}, tensor([1.0, 2.0]), tensor([1.0, 3.0])
    assert found(old, {"b.w": same}, renamed={"b.w": "a.w"}) == [("modified", "b.w", "name")]
    assert found(old, {"b.w": other}, renamed={"b.w": "a.w"}) == [("modified", "b.w", "name", "values")]
    both = {"a.w": other, "b.w": same}
    assert found(old, both, renamed={"b.w": "a.w"}) == [("modified", "a.w", "values"), ("added", "b.w", "type")]


def test_numbers_are_compared() -> None:
    """How many differ, by how much at most, and how much that is of all."""
    old, new = tensor([3.0, 4.0, 0.0, 5.0]), tensor([3.0, 4.5, 0.0, 4.0])
    difference = compare_values(old, new)
    assert difference is not None
    assert (difference.elements, difference.changed, difference.max_difference) == (4, 2, 1.0)
    assert difference.relative_norm == pytest.approx(math.sqrt(1.25 / 50))


COMPLEX, BFLOAT, HALVES = ScalarType.COMPLEXFLOAT, ScalarType.BFLOAT16, ScalarType.COMPLEXHALF
CASES: list[tuple[TensorView, TensorView, tuple[Any, ...]]] = [
    (tensor([math.nan, 1.0]), tensor([1.0, 1.0]), (1, None)),
    (tensor([math.inf, 1.0]), tensor([math.inf, 2.0]), (1, 1.0)),
    (tensor([0.0]), tensor([-0.0]), (1, 0.0)),
    (tensor(2.0), tensor(2.5), (1, 0.5)),
    (tensor([2**60], "<i8", ScalarType.LONG), tensor([2**60 + 1], "<i8", ScalarType.LONG), (1, 0.0)),
    (tensor([True, False], "?", ScalarType.BOOL), tensor([True, True], "?", ScalarType.BOOL), (1, 1.0)),
    (tensor([1 + 1j], "<c8", COMPLEX), tensor([1 - 1j], "<c8", COMPLEX), (1, 2.0)),
    (tensor([1.5, 2.0]), tensor([1.5, 3.0], "<f8", ScalarType.DOUBLE), (1, 1.0)),
    (
        tensor([0x3F80, 0x4000], "<u2", ScalarType.BFLOAT16),
        tensor([0x3F80, 0x4040], "<u2", ScalarType.BFLOAT16),
        (1, 1.0),
    ),
    (
        tensor([0x3C003C00], "<u4", ScalarType.COMPLEXHALF),
        tensor([0x3C004000], "<u4", ScalarType.COMPLEXHALF),
        (1, 1.0),
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), CASES, ids=str)
def test_numbers_of_all_kinds_are_compared(old: TensorView, new: TensorView, expected: tuple[Any, ...]) -> None:
    """Nan, infinities, signed zeros, scalars, large integers, bools, complex numbers, other types."""
    difference = compare_values(old, new)
    assert difference is not None
    assert (difference.changed, difference.max_difference) == expected


def test_large_tensors_are_compared_in_pieces() -> None:
    """Along whichever dimension they must be cut."""
    base = np.zeros((3, PIECE + 7), "<f4")
    other = base.copy()
    other[1, PIECE + 3] = 2.0
    other[2, 5] = -3.0
    difference = compare_values(tensor(base), tensor(other))
    assert difference is not None
    assert (difference.elements, difference.changed, difference.max_difference) == (base.size, 2, 3.0)
    assert difference.relative_norm is None


def test_what_is_said_of_tensors_is_compared() -> None:
    """Types, shapes, flags, devices; tensors that came and went."""
    one = view()
    same = dict.fromkeys(("dtype", "sizes", "strides", "device", "is_param"), one)
    other = {
        "dtype": view(dtype=ScalarType.FLOAT),
        "sizes": view(sizes=(3, 2), strides=(2, 1)),
        "strides": view(strides=(4, 1)),
        "device": view(device=Device("cuda", 0)),
        "is_param": view(is_param=True),
        "new": one,
    }
    assert found({**same, "gone": one}, other, values=False)[0] == ("removed", "gone", "type")
    apart = [found({name: view()}, {name: other[name]}, values=False)[0] for name in same]
    assert [row[2] for row in apart] == ["dtype", "sizes", "strides", "device", "is_param"]
    assert found({}, {"new": one}) == [("added", "new", "type")]
    assert found({"w": one}, {"w": OpaquePayload("w", storage(), "pickle")}) == [("modified", "w", "type")]


def test_what_tensors_share_is_compared() -> None:
    """Tied weights that are not tied any more, or overlap elsewhere."""
    one, two = storage(), storage(record="other")
    tied = {"a": view(one, name="a"), "b": view(one, name="b")}
    apart = {"a": view(one, name="a"), "b": view(two, name="b")}
    shifted = {"a": view(one, name="a"), "b": view(one, name="b", storage_offset=1)}
    assert found(tied, apart) == [("modified", "a", "shares memory with"), ("modified", "b", "shares memory with")]
    assert found(tied, shifted, values=False) == found(tied, apart)
    assert found(tied, {"b": view(two, name="b"), "a": view(two, name="a")}) == []


def test_many_tensors_of_one_record_list_a_few() -> None:
    """A change of what thousands of tensors share lists a few names for each, not all for all."""
    one, two = storage(), storage(record="other")
    old = {f"w{n}": view(one, name=f"w{n}") for n in range(300)}
    new = {**old, "w7": view(two, name="w7")}
    changes = list(compare_payloads(old, new, "weight", "model", renamed={}, values=False, progress=lambda *_: None))
    assert {change.details[0].what for change in changes} == {"shares memory with"}
    assert len(changes) == len(old)
    assert max(len(side or ()) for change in changes for side in (change.details[0].old, change.details[0].new)) == 20


def test_every_kind_of_payload_is_compared() -> None:
    """Each with itself, and with every other kind."""
    kinds, again = compound(), compound()
    for name, payload in kinds.items():
        assert found({"w": payload}, {"w": again[name]}) == []
        for other, changed in again.items():
            if other != name:
                assert found({"w": payload}, {"w": changed}), (name, other)


def test_bytes_are_read_only_where_asked_and_reported() -> None:
    """Nothing is read without `values`; progress ends at all."""

    def refuse() -> memoryview:
        raise AssertionError("read")

    unread = replace(view(), storage=Storage("r", 64, refuse))
    assert found({"w": unread}, {"w": unread}, values=False) == []
    seen: list[tuple[int, int]] = []
    found({"w": view()}, {"w": view()}, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(24, 24)]
