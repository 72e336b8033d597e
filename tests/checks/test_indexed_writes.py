"""Writes where an index or a mask says: elements count as written where the file tells the numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.memory import Call, ints, made, number, of, ones, said
from tests.checks.mutations import tensor

SIZES: dict[str, tuple[int, ...]] = {"e": (2, 3), "a": (2, 3), "b": (2, 3), "r": (2, 3), "w": (), "k": (2, 1)}
E, W = made("e", 2, 3), ones("w")
N: Call = ("aten.arange.default", "n", {"end": number(2)})
LATE: Call = ("aten.arange.start", "l", {"start": number(1), "end": number(3)})
NEGATIVE: Call = ("aten.arange.start", "o", {"start": number(-2), "end": number(0)})
MASK: Call = of("lt.Scalar", "c", "n", other=number(2))
HALF: Call = of("lt.Scalar", "h", "n", other=number(1))
COLUMN: Call = of("unsqueeze.default", "k", "c", dim=number(1))


def places(*names: str | None) -> dict[str, Any]:
    """An argument that is a list of indices, some of which may be left out."""
    if None not in names:
        return {"as_tensors": [{"name": name} for name in names]}
    return {"as_optional_tensors": [tensor(name) if name else {"as_none": True} for name in names]}


def fill(name: str, index: str, dim: int = 0, self: str = "e") -> Call:
    return of(name, "a" if self == "e" else "b", self, dim=number(dim), index=tensor(index), value=number(1))


def put(name: str, indices: dict[str, Any], self: str = "e", **more: Any) -> Call:
    return of(name, "a" if self == "e" else "b", self, indices=indices, values=tensor("w"), **more)


FIRST: Call = ("aten.arange.default", "f", {"end": number(1)})
WRITTEN: dict[str, tuple[list[Call], str]] = {
    "rows": ([N, fill("index_fill_.int_Scalar", "n")], "e"),
    "rows from behind": ([NEGATIVE, fill("index_fill_.int_Scalar", "o")], "e"),
    "rows of a copy": ([N, fill("index_fill.int_Scalar", "n")], "a"),
    "columns": ([N, LATE, fill("index_fill_.int_Scalar", "n", 1), fill("index_fill_.int_Scalar", "l", -1, "a")], "e"),
    "rows of another": (
        [N, ones("r", 2, 3), of("index_copy_.default", "a", "e", dim=number(0), index=tensor("n"), source=tensor("r"))],
        "e",
    ),
    "by an index": ([N, put("index_put_.default", places("n"))], "e"),
    "by an index, of a copy": ([N, put("index_put.default", places("n"))], "a"),
    "by an index of columns": (
        [N, LATE, put("index_put_.default", places(None, "n")), put("index_put_.default", places(None, "l"), "a")],
        "b",
    ),
    "by a mask of rows": ([N, MASK, put("index_put_.default", places("c"))], "e"),
    "where a mask is true": (
        [N, MASK, COLUMN, of("masked_fill_.Scalar", "a", "e", mask=tensor("k"), value=number(1))],
        "e",
    ),
}
UNWRITTEN: dict[str, tuple[list[Call], str]] = {
    "a row": ([FIRST, fill("index_fill_.int_Scalar", "f")], "e"),
    "a row of a copy": ([FIRST, fill("index_fill.int_Scalar", "f")], "a"),
    "what was copied": ([N, fill("index_fill.int_Scalar", "n")], "e"),
    "some columns": ([N, fill("index_fill_.int_Scalar", "n", 1)], "e"),
    "a dimension that is none": ([N, fill("index_fill_.int_Scalar", "n", 2)], "e"),
    "places beyond": ([LATE, fill("index_fill_.int_Scalar", "l")], "e"),
    "two of six": ([N, put("index_put_.default", places("n", "n"))], "e"),
    "added to": ([N, put("index_put_.default", places("n"), accumulate={"as_bool": True})], "e"),
    "by numbers of the caller": (
        [of("to.dtype", "n", "x", dtype={"as_scalar_type": 5}), put("index_put_.default", places("n"))],
        "e",
    ),
    "by a mask of one row": ([N, HALF, put("index_put_.default", places("h"))], "e"),
    "by an index that was changed": ([N, of("zero_.default", "z", "n"), put("index_put_.default", places("n"))], "e"),
    "with what was not written": (
        [N, made("r", 2, 3), of("index_copy_.default", "a", "e", dim=number(0), index=tensor("n"), source=tensor("r"))],
        "e",
    ),
    "through an expanded view": (
        [
            N,
            made("q", 1, 3),
            of("expand.default", "r", "q", size=ints(2, 3)),
            fill("index_fill_.int_Scalar", "n", 0, "r"),
        ],
        "q",
    ),
}
SIZES |= {"f": (1,), "q": (1, 3), "n": (2,), "z": (2,)}


@pytest.mark.parametrize(("calls", "returned"), WRITTEN.values(), ids=WRITTEN)
def test_written(calls: list[Call], returned: str) -> None:
    """An index that names every place writes everything."""
    assert said(SIZES, E, W, *calls, returned=returned) == []


@pytest.mark.parametrize(("calls", "returned"), UNWRITTEN.values(), ids=UNWRITTEN)
def test_unwritten(calls: list[Call], returned: str) -> None:
    """One that leaves a place out, or may, does not."""
    (message,) = said(SIZES, E, W, *calls, returned=returned)
    assert "whose memory nothing was written to" in message
