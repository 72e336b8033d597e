"""Result rules of matrix products: golden calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.cases import BF16, F32, F64, I32, S, flops, refusals, results, t

from pt2kit.operators.linalg import einsum_terms
from pt2kit.schema import ScalarType

I8 = ScalarType.CHAR
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("aten.mm.default", {"self": t(2, 3), "mat2": t(3, 4)}, t(2, 4)),
    ("aten.mm.default", {"self": t(S, 3), "mat2": t(3, S)}, t(S, S)),
    ("aten.bmm.default", {"self": t(S, 2, 3), "mat2": t(S, 3, 4)}, t(S, 2, 4)),
    ("aten.addmm.default", {"self": t(4), "mat1": t(S, 3), "mat2": t(3, 4)}, t(S, 4)),
    ("aten.matmul.default", {"self": t(5, 1, 2, 3), "other": t(S, 3, 4)}, t(5, S, 2, 4)),
    ("aten.matmul.default", {"self": t(3), "other": t(3)}, t()),
    ("aten.linear.default", {"input": t(S, 7, 3), "weight": t(4, 3), "bias": t(4)}, t(S, 7, 4)),
    ("aten.linear.default", {"input": t(3, dtype=BF16), "weight": t(4, 3, dtype=BF16)}, t(4, dtype=BF16)),
    ("aten.outer.default", {"self": t(S), "vec2": t(3, dtype=F64)}, t(S, 3, dtype=F64)),
    (
        "aten.tensordot.default",
        {"self": t(2, 3, 4), "other": t(4, 3, 5), "dims_self": (1, 2), "dims_other": (1, 0)},
        t(2, 5),
    ),
    ("aten.kron.default", {"self": t(2, 3), "other": t(S)}, t(2, 3 * S)),
    ("aten.einsum.default", {"equation": "bhid,bhjd->bhij", "tensors": (t(2, 4, S, 8), t(2, 4, 6, 8))}, t(2, 4, S, 6)),
    ("aten.einsum.default", {"equation": "...ij,...jk", "tensors": (t(5, 2, 3), t(7, 1, 3, 4))}, t(7, 5, 2, 4)),
    ("aten._int_mm.default", {"self": t(2, 3, dtype=I8), "mat2": t(3, 4, dtype=I8)}, t(2, 4, dtype=I32)),
    (
        "transformers.grouped_mm_fallback.default",
        {"input": t(S, 3), "weight": t(4, 3, 5), "offs": t(4, dtype=I32)},
        t(S, 5),
    ),
]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("aten.mm.default", {"self": t(2, 3), "mat2": t(4, 4)}, "sizes", "one size k, got 3 and 4"),
    ("aten.mm.default", {"self": t(2, 3), "mat2": t(3, 4, dtype=F64)}, "dtype", "one dtype"),
    ("aten.mm.default", {"self": t(2, 3), "mat2": t(3)}, "sizes", "mat2: expected 2 dimensions"),
    ("aten.bmm.default", {"self": t(2, 2, 3), "mat2": t(5, 3, 4)}, "sizes", "one size b"),
    ("aten.addmm.default", {"self": t(5), "mat1": t(2, 3), "mat2": t(3, 4)}, "sizes", "broadcast"),
    ("aten.matmul.default", {"self": t(), "other": t(3)}, "sizes", "scalar tensor"),
    ("aten.linear.default", {"input": t(2, 3), "weight": t(4, 5)}, "sizes", "one inner size"),
    ("aten.einsum.default", {"equation": "ab,cd->xy", "tensors": (t(2, 3), t(3, 4))}, "value", "expected 'x' among"),
    (
        "aten.einsum.default",
        {"equation": "ab->a", "tensors": (t(2, 3), t(3, 4))},
        "value",
        "expected 2 operands, got 1",
    ),
    ("aten.einsum.default", {"equation": "abc->a", "tensors": (t(2, 3),)}, "sizes", "expected 2 dimensions"),
    ("aten.einsum.default", {"equation": "ab,bc->ac", "tensors": (t(2, 3), t(4, 5))}, "sizes", "dimension 'b'"),
    *(
        ("aten.einsum.default", {"equation": "a,a,a->", "tensors": (t(2),) * 3, "path": path}, "value", text)
        for path, text in (
            ([0, 1], "path: expected 4 places, got"),
            ([0, 3, 0, 1], "path: expected places of two operands, got 0 and 3"),
            ([0, 0, 0, 1], "path: expected places of two operands, got 0 and 0"),
        )
    ),
    ("aten.einsum.default", {"equation": "ab->aa", "tensors": (t(2, 3),)}, "value", "once in the result"),
    (
        "aten.tensordot.default",
        {"self": t(2, 3), "other": t(3), "dims_self": (5,), "dims_other": (0,)},
        "dimension",
        "dims_self",
    ),
    ("aten._int_mm.default", {"self": t(2, 3), "mat2": t(3, 4)}, "dtype", "self: expected u8 or i8"),
]
test_results = results(RESULTS)
test_refused = refusals(REFUSED)


def test_flops() -> None:
    """Two operations for each element of the result and of the inner dimension."""
    assert flops("aten.linear.default", {"input": t(S, 3), "weight": t(4, 3)}) == 24 * S
    assert flops("aten.einsum.default", {"equation": "ij,jk->ik", "tensors": (t(2, 3), t(3, 4))}) == 48
    assert flops("aten.einsum.default", {"equation": "ij,jk,kl->il", "tensors": (t(2, 3), t(3, 4), t(4, 5))}) == 48 + 80


@pytest.mark.parametrize(
    ("equation", "sizes", "path", "count"),
    [
        ("ij,ij->ij", [(2, 3), (2, 3)], None, 0),
        ("ijk,j->ij", [(2, 3, 4), (3,)], None, 0),
        ("ij,jk->ik", [(2, 1), (4, 5)], None, 0),
        ("i,ij,ijk->", [(2,), (2, 3), (2, 3, 5)], None, 12),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], [1, 2, 0, 1], 120 + 60),
        ("ij,jk,kl,lm->im", [(2, 3), (3, 5), (5, 7), (7, 11)], [2, 3, 0, 2, 0, 1], 770 + 660),
    ],
    ids=["no sum", "sum of one", "size of one", "later operand", "path", "outer product"],
)
def test_flops_of_equations(equation: str, sizes: list[tuple[int, ...]], path: list[int] | None, count: int) -> None:
    """Only products with a sum count, in the order of the path; expected are the counts of torch 2.13."""
    tensors = tuple(t(*each) for each in sizes)
    assert flops("aten.einsum.default", {"equation": equation, "tensors": tensors, "path": path}) == count


def test_terms_of_equations() -> None:
    """Dimensions of an ellipsis are counted from the last one, so that they broadcast."""
    assert einsum_terms("...i,i->...", [3, 1]) == ([["...1", "...0", "i"], ["i"]], ["...1", "...0"])
    assert einsum_terms("ba", [2]) == ([["b", "a"]], ["a", "b"])
    assert F32 is not F64
