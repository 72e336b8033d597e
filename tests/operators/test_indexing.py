"""Result rules of indexing: golden calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.cases import BOOL, F64, I32, I64, S, refusals, results, t

from pt2kit.operators.facts import Tensor, Unknown
from pt2kit.operators.table import infer
from pt2kit.symbols.polynomials import Polynomial

INDEX = t(5, dtype=I64)
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("aten.index.Tensor", {"self": t(2, S, 4), "indices": (None, INDEX)}, t(2, 5, 4)),
    ("aten.index.Tensor", {"self": t(2, S, 4), "indices": (INDEX, None, t(3, 1, dtype=I32))}, t(3, 5, S)),
    ("aten.index_put.default", {"self": t(S, 4), "indices": (INDEX,), "values": t(4)}, t(S, 4)),
    ("aten.index_select.default", {"self": t(2, S), "dim": 1, "index": INDEX}, t(2, 5)),
    ("aten.index_add_.default", {"self": t(S, 2), "dim": 0, "index": INDEX, "source": t(5, 2)}, t(S, 2)),
    ("aten.gather.default", {"self": t(S, 8), "dim": 1, "index": t(S, 3, dtype=I64)}, t(S, 3)),
    ("aten.scatter.src", {"self": t(3, 8), "dim": 1, "index": t(2, 5, dtype=I64), "src": t(2, 5)}, t(3, 8)),
    ("aten.take_along_dim.default", {"self": t(1, 8), "indices": t(3, 2, dtype=I64), "dim": 1}, t(3, 2)),
    ("aten.embedding.default", {"weight": t(100, 16), "indices": t(2, S, dtype=I64)}, t(2, S, 16)),
    ("aten.one_hot.default", {"self": t(S, dtype=I64), "num_classes": 7}, t(S, 7, dtype=I64)),
    ("aten.nonzero_static.default", {"self": t(3, 4), "size": 5}, t(5, 2, dtype=I64)),
    ("aten.slice_scatter.default", {"self": t(S, 4), "src": t(2, 4), "dim": 0, "end": 2}, t(S, 4)),
    (
        "aten._embedding_bag.default",
        {"weight": t(9, 4), "indices": t(6, dtype=I64), "offsets": t(S, dtype=I64), "include_last_offset": True},
        (t(S - 1, 4), None, None, None),
    ),
]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "aten.select_backward.default",
        {"grad_output": t(3, 5), "input_sizes": (3, 4), "dim": 0, "index": 0},
        "sizes",
        "expected",
    ),
    (
        "aten.slice_backward.default",
        {"grad_output": t(2, 4), "input_sizes": (3, 4), "dim": 0, "start": 0, "end": 3, "step": 1},
        "sizes",
        "",
    ),
    (
        "aten.diagonal_backward.default",
        {"grad_output": t(3), "input_sizes": (3, 4), "offset": 2, "dim1": 0, "dim2": 1},
        "sizes",
        "",
    ),
    ("aten.index_select.default", {"self": t(), "dim": 0, "index": t(2, dtype=I64)}, "sizes", "index"),
    (
        "aten.as_strided_scatter.default",
        {"self": t(4), "src": t(2), "size": (2,), "stride": (1, 1)},
        "dimension",
        "stride: expected 1 entry, got [1, 1]",
    ),
    (
        "aten.masked_scatter_backward.default",
        {"grad_output": t(4), "mask": t(4, dtype=I64), "sizes": (4,)},
        "dtype",
        "mask: expected",
    ),
    (
        "aten.repeat_interleave.self_Tensor",
        {"self": t(2, 3), "repeats": t(2, dtype=I64), "dim": 1},
        "sizes",
        "repeats",
    ),
    ("aten.index.Tensor", {"self": t(2, 3), "indices": (t(2),)}, "dtype", "indices: expected i64 or i32"),
    ("aten.index.Tensor", {"self": t(3), "indices": (INDEX, INDEX)}, "sizes", "at most 1, got 2"),
    ("aten.index.Tensor", {"self": t(3, 4), "indices": (t(2, dtype=BOOL),)}, "sizes", "a mask of the sizes of self"),
    ("aten.index.Tensor", {"self": t(3, 4), "indices": (INDEX, t(4, dtype=I64))}, "sizes", "broadcast"),
    ("aten.index_put_.default", {"self": t(3), "indices": (INDEX,), "values": t(4)}, "sizes", "expanded"),
    ("aten.index_put.default", {"self": t(3), "indices": (INDEX,), "values": t(dtype=F64)}, "dtype", "values"),
    ("aten.index_select.default", {"self": t(2, 3), "dim": 1, "index": t(2)}, "dtype", "index: expected i64 or i32"),
    ("aten.index_select.default", {"self": t(2), "dim": 1, "index": INDEX}, "dimension", "got 1"),
    ("aten.index_add.default", {"self": t(2), "dim": 0, "index": INDEX, "source": t(4)}, "sizes", "one slice"),
    ("aten.gather.default", {"self": t(2, 3), "dim": 0, "index": INDEX}, "sizes", "expected 2 dimensions, got [5]"),
    ("aten.gather.default", {"self": t(2, 3), "dim": 0, "index": t(2, 4, dtype=I64)}, "sizes", "at most 3"),
    (
        "aten.scatter_reduce.two",
        {"self": t(5), "dim": 0, "index": INDEX, "src": t(5), "reduce": "max"},
        "value",
        "'amin', got 'max'",
    ),
    (
        "aten.scatter.reduce",
        {"self": t(5), "dim": 0, "index": INDEX, "src": t(5), "reduce": "sum"},
        "value",
        "'multiply', got 'sum'",
    ),
    ("aten.embedding.default", {"weight": t(9), "indices": INDEX}, "sizes", "weight: expected 2 dimensions"),
    ("aten.embedding.default", {"weight": t(9, 2), "indices": t(3)}, "dtype", "indices: expected i64 or i32"),
    ("aten.one_hot.default", {"self": t(3)}, "dtype", "self: expected i64"),
    ("aten.masked_scatter.default", {"self": t(3), "mask": t(3), "source": t(3)}, "dtype", "mask: expected"),
    (
        "aten.select_scatter.default",
        {"self": t(3, 4), "src": t(3), "dim": 0, "index": 0},
        "sizes",
        "expected sizes [4]",
    ),
    ("aten.take.default", {"self": t(3), "index": t(2)}, "dtype", "index: expected i64"),
]
test_results = results(RESULTS)
test_refused = refusals(REFUSED)


@pytest.mark.parametrize(
    ("name", "arguments", "rest"),
    [
        ("aten.index.Tensor", {"self": t(3, 4, 6), "indices": (t(3, 4, dtype=BOOL),)}, (6,)),
        ("aten.masked_select.default", {"self": t(3, 4), "mask": t(4, dtype=BOOL)}, ()),
        ("aten.nonzero.default", {"self": t(3, S)}, (2,)),
    ],
)
def test_a_size_that_elements_decide_is_a_fresh_unknown(
    name: str, arguments: dict[str, Any], rest: tuple[int, ...]
) -> None:
    one, other = infer(name, arguments, is_strict=True), infer(name, arguments, is_strict=True)
    assert isinstance(one, Tensor)
    assert isinstance(other, Tensor)
    assert isinstance(one.sizes[0], Polynomial)
    assert one.sizes[0].is_unknown
    assert one.sizes[0] != other.sizes[0]
    assert one.sizes[1:] == rest


def test_an_index_of_unknown_dtype_is_unknown() -> None:
    with pytest.raises(Unknown) as caught:
        infer("aten.index.Tensor", {"self": t(3), "indices": (t(2, dtype=None),)}, is_strict=True)
    assert str(caught.value), "expected a reason"
