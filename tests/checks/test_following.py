"""One graph, call by call: what is written, what shares memory, and for how long numbers are known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.memory import Call, ints, made, number, of, ones, said
from tests.checks.mutations import tensor

SIZES: dict[str, tuple[int, ...]] = {"w": (), "q": (4,), "v": (2, 2), "p": (2, 2), "t": (1,), "u": (1,)}
E, Q = made("e", 2), made("q", 4)
ADD = of("add_.Scalar", "a", "m", other=number(1))
HALF = [E, ("aten.full.default", "w", {"size": ints(), "fill_value": number(1)}), ones("r", 2)]
HALF += [of("select_scatter.default", "s", "e", src=tensor("w"), dim=number(0), index=number(1))]
RANGE: Call = ("aten.arange.default", "n", {"end": number(2)})
CHOICE = [
    of("eq.Scalar", "c", "n", other=number(0)),
    ("aten.where.self", "f", {"condition": tensor("c"), "self": tensor("r"), "other": tensor("s")}),
]
LONG = {"as_scalar_type": 5}

WRITTEN: dict[str, tuple[list[Call], str]] = {
    "in two halves": (
        [
            Q,
            *(
                of("narrow.default", name, "q", dim=number(0), start=number(start), length=number(2))
                for name, start in (("g", 0), ("h", 2))
            ),
            of("zero_.default", "i", "g"),
            of("fill_.Scalar", "j", "h", value=number(1)),
        ],
        "q",
    ),
    "through a view": ([Q, of("view.default", "v", "q", size=ints(2, 2)), of("zero_.default", "p", "v")], "q"),
    "by `out`": (
        [E, ones("r", 2), ("aten.add.out", "f", {"self": tensor("r"), "other": tensor("r"), "out": tensor("e")})],
        "e",
    ),
    "chosen by a known mask": ([*HALF, RANGE, *CHOICE], "f"),
    "a mask and a write beside it": ([*HALF, RANGE, of("clone.default", "m", "r"), ADD, *CHOICE], "f"),
    "a mask and a write to its copy": ([*HALF, RANGE, of("clone.default", "m", "n"), ADD, *CHOICE], "f"),
    "a mask that was detached": (
        [
            *HALF,
            RANGE,
            of("clone.default", "m", "n"),
            of("detach_.default", "d", "m"),
            of("eq.Scalar", "c", "d", other=number(0)),
            CHOICE[1],
        ],
        "f",
    ),
}
UNWRITTEN: dict[str, tuple[list[Call], str]] = {
    "one half": (
        [
            Q,
            of("narrow.default", "g", "q", dim=number(0), start=number(0), length=number(2)),
            of("zero_.default", "i", "g"),
        ],
        "q",
    ),
    "sizes by unwritten numbers": ([E, of("add.Tensor", "f", "e", other=tensor("e"))], "f"),
    "written to with what was not": ([E, ones("r", 2), of("copy_.default", "f", "r", src=tensor("e"))], "r"),
    "a resized tensor": ([E, of("zero_.default", "f", "e"), of("resize_.default", "q", "e", size=ints(4))], "q"),
    "of the other half": ([*HALF, RANGE, of("ne.Scalar", "c", "n", other=number(0)), CHOICE[1]], "f"),
}
ALIASES: dict[str, list[Call]] = {
    "itself": [of("alias.default", "m", "n")],
    "a view": [of("view.default", "m", "n", size=ints(2))],
    "a view of a view": [of("view.default", "k", "n", size=ints(2)), of("slice.Tensor", "m", "k")],
    "perhaps itself": [of("contiguous.default", "m", "n")],
    "perhaps itself, twice": [of("contiguous.default", "k", "n"), of("to.dtype", "m", "k", dtype=LONG)],
    "by its shape": [of("reshape.default", "m", "n", shape=ints(2))],
    "by a flag": [
        ("aten.dropout.default", "m", {"input": tensor("n"), "p": {"as_float": 0.5}, "train": {"as_bool": False}})
    ],
    "by its type": [of("type_as.default", "m", "n", other=tensor("n"))],
    "detached": [of("detach_.default", "m", "n")],
    "by a library": [("mine.same.default", "m", {"x": tensor("n")})],
}


@pytest.mark.parametrize(("calls", "returned"), WRITTEN.values(), ids=WRITTEN)
def test_written(calls: list[Call], returned: str) -> None:
    """All elements of what is returned were written."""
    assert said(SIZES, *calls, returned=returned) == []


@pytest.mark.parametrize(("calls", "returned"), UNWRITTEN.values(), ids=UNWRITTEN)
def test_unwritten(calls: list[Call], returned: str) -> None:
    """Some element of what is returned never was, or comes from one that was not."""
    (message,) = said(SIZES, *calls, returned=returned)
    assert "whose memory nothing was written to" in message


@pytest.mark.parametrize("calls", ALIASES.values(), ids=ALIASES)
def test_numbers_are_known_until_something_is_written_to_them(calls: list[Call]) -> None:
    """A mask is made of numbers as they are: what may be another name of theirs may change them."""
    (message,) = said(SIZES, *HALF, RANGE, *calls, ADD, *CHOICE, returned="f")
    assert message == "returns 'f', whose memory nothing was written to (it comes from 'e')"


def test_many_that_may_be_one() -> None:
    """Of a value that may be any of many, a write is a write to each."""
    ranges = [("aten.arange.default", f"n{place}", {"end": number(2)}) for place in range(70)]
    sums: list[Call] = [of("minimum.default", "m0", "n0", other=tensor("n0"))]
    sums += [of("minimum.default", f"m{at}", f"m{at - 1}", other=tensor(f"n{at}")) for at in range(1, 70)]
    mask: Any = [of("eq.Scalar", "c", "n0", other=number(0)), CHOICE[1]]
    write = of("add_.Scalar", "a", "m69", other=number(1))
    (message,) = said(SIZES, *HALF, *ranges, *sums, write, *mask, returned="f")
    assert "whose memory nothing was written to" in message
