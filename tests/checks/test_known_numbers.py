"""Numbers that calls make of numbers of the file: as torch has them, or not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pt2kit.checks.known_numbers import MAX_ELEMENTS, filled, made, restrided
from pt2kit.schema import ScalarType

FIVE = np.arange(5)
KNOWN: dict[str, tuple[str, dict[str, Any], list[Any], list[Any]]] = {
    "a range": ("aten.arange", {"start": 1, "end": 8, "step": 3}, [], [1, 4, 7]),
    "a range by its length": ("prims.iota", {"start": 2, "length": 3, "step": 2}, [], [2, 4, 6]),
    "a comparison": ("aten.eq", {}, [FIVE, 2], [False, False, True, False, False]),
    "of two arrays": ("aten.lt", {}, [FIVE, FIVE[::-1]], [True, True, False, False, False]),
    "a remainder has the sign of the divisor": ("aten.remainder", {}, [-FIVE, 3], [0, 2, 1, 0, 2]),
    "another has that of the number": ("aten.fmod", {}, [-FIVE, 3], [0, -1, -2, 0, -1]),
    "not": ("aten.bitwise_not", {}, [FIVE > 2], [True, True, True, False, False]),
    "chosen": ("aten.where", {}, [FIVE > 2, FIVE, 9], [9, 9, 9, 3, 4]),
    "as truth values": ("aten._to_copy", {"dtype": ScalarType.BOOL}, [FIVE], [False, True, True, True, True]),
}
UNKNOWN: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "a range of floats": ("aten.arange", {"end": 3.5}, []),
    "a range without steps": ("aten.arange", {"end": 3, "step": 0}, []),
    "a range that is long": ("aten.arange", {"end": MAX_ELEMENTS + 1}, []),
    "something that is not known": ("aten.eq", {}, [FIVE, None]),
    "another operator": ("aten.sin", {}, [FIVE]),
    "times a factor": ("aten.add", {"alpha": 2}, [FIVE, FIVE]),
    "as a type that rounds": ("aten._to_copy", {"dtype": ScalarType.FLOAT}, [FIVE]),
    "shapes that do not fit": ("aten.add", {}, [FIVE, np.arange(4)]),
    "a division by zero": ("aten.remainder", {}, [FIVE, 0]),
    "numbers near the limit of their type": ("aten.mul", {}, [FIVE, 1 << 23]),
}


@pytest.mark.parametrize(("operator", "call", "operands", "expected"), KNOWN.values(), ids=KNOWN)
def test_known(operator: str, call: dict[str, Any], operands: list[Any], expected: list[Any]) -> None:
    """What can be computed exactly is what torch computes."""
    assert made(operator, call, operands).tolist() == expected


@pytest.mark.parametrize(("operator", "call", "operands"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown(operator: str, call: dict[str, Any], operands: list[Any]) -> None:
    """What cannot, or not in bounds, is not known."""
    assert made(operator, call, operands) is None


def test_filled() -> None:
    """One number in a shape, with one element for a symbol."""
    assert filled(3, [2, None]).tolist() == [[3], [3]]
    assert filled(True, []).tolist() is True
    assert filled(0.5, [2]) is None
    assert filled(3, None) is None
    assert filled(3, [MAX_ELEMENTS + 1]) is None


def test_restrided() -> None:
    """Other strides over numbers in a row; nothing beyond their end."""
    windows = {"size": [3, 2], "stride": [1, 1], "storage_offset": 1}
    assert restrided(np.arange(5), windows).tolist() == [[1, 2], [2, 3], [3, 4]]
    for wrong in ({"storage_offset": 2}, {"size": [4, 2]}, {"stride": [-1, 1]}, {"size": [0, 2]}, {"stride": [1]}):
        assert restrided(np.arange(5), {**windows, **wrong}) is None
    assert restrided(np.arange(10)[::2], windows) is None
