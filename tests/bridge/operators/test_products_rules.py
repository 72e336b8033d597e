"""Result rules of matrix products compared with torch's fake tensors, and their FLOPs with torch's counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.drawers import choose, tensor, tensors
from tests.bridge.operators.fake_calls import FLOATS, Drawer, agreement, overload, to_facts
from tests.operators.cases import flops
from torch.utils.flop_counter import FlopCounterMode

from pt2kit.operators.facts import Mismatch
from pt2kit.operators.table import infer

MATRIX, BATCH = tensor("nm"), tensor("bnm")
CASES: list[tuple[str, dict[str, Drawer]]] = [
    ("aten.mm.default", {"self": MATRIX, "mat2": tensor("nm", "nm", "nm", "bnm", like="self")}),
    ("aten.bmm.default", {"self": BATCH, "mat2": tensor("bnm", "bnm", "nm", like="self")}),
    (
        "aten.addmm.default",
        {"self": tensor("nm", "m", "1", ""), "mat1": tensor("nm", like="self"), "mat2": tensor("nm", like="self")},
    ),
    (
        "aten.baddbmm.default",
        {"self": tensor("bnm", "nm", "m"), "batch1": tensor("bnm", like="self"), "batch2": tensor("bnm", like="self")},
    ),
    (
        "aten.addbmm.default",
        {"self": tensor("nm", "m"), "batch1": tensor("bnm", like="self"), "batch2": tensor("bnm", like="self")},
    ),
    ("aten.mv.default", {"self": MATRIX, "vec": tensor("m", "m", "nm", like="self")}),
    (
        "aten.addmv.default",
        {"self": tensor("m", ""), "mat": tensor("nm", like="self"), "vec": tensor("m", like="self")},
    ),
    ("aten.dot.default", {"self": tensor("m"), "tensor": tensor("m", "m", "nm", like="self")}),
    ("aten.vdot.default", {"self": tensor("m"), "other": tensor("m", like="self")}),
    ("aten.outer.default", {"self": tensor("m", "m", "nm"), "vec2": tensor("m")}),
    (
        "aten.addr.default",
        {"self": tensor("nm", "m"), "vec1": tensor("n", like="self"), "vec2": tensor("m", like="self")},
    ),
    (
        "aten.matmul.default",
        {"self": tensor("m", "nm", "bnm", "abnm"), "other": tensor("m", "nm", "bnm", "", like="self")},
    ),
    (
        "aten.linear.default",
        {"input": tensor("m", "nm", "bnm"), "weight": tensor("nm", "nm", "m", like="input"), "bias": choose(None)},
    ),
    (
        "aten.linear.default",
        {"input": tensor("nm", "bnm"), "weight": tensor("nm", like="input"), "bias": tensor("n", like="input")},
    ),
    (
        "aten.bilinear.default",
        {
            "input1": tensor("nm", "bnm", dtypes=FLOATS),
            "input2": tensor("nm", "bnm", like="input1"),
            "weight": tensor("amn", like="input1"),
            "bias": choose(None),
        },
    ),
    ("aten.inner.default", {"self": tensor("m", "nm", ""), "other": tensor("m", "nm", "bnm", like="self")}),
    (
        "aten.tensordot.default",
        {
            "self": tensor("nm", "bnm", "abnm"),
            "other": tensor("nm", "bnm", like="self"),
            "dims_self": choose([0], [1], [-1, 0], []),
            "dims_other": choose([0], [1], [0, 1], []),
        },
    ),
    ("aten.kron.default", {"self": tensor("m", "nm", "bnm", ""), "other": tensor("nm", "bnm")}),
    ("aten.linalg_multi_dot.default", {"tensors": tensors("nm", "nm", "nm", "m", counts=(1, 2, 3, 4))}),
    ("aten.chain_matmul.default", {"matrices": tensors("nm")}),
    (
        "aten.linalg_vecdot.default",
        {"x": tensor("m", "nm", "bnm"), "y": tensor("nm", "bnm", like="x"), "dim": choose(-1, 0, 1)},
    ),
    ("aten.linalg_vecdot.default", {"x": tensor("m"), "y": tensor("m", like="x"), "dim": choose(0, 7)}),
    (
        "aten._int_mm.default",
        {
            "self": tensor("nm", dtypes=(torch.int8, torch.uint8)),
            "mat2": tensor("nm", dtypes=(torch.int8, torch.int32)),
        },
    ),
    *(
        ("aten.einsum.default", {"equation": choose(equation), "tensors": tensors(*shapes, counts=(len(shapes),))})
        for equation, *shapes in (
            ("ij,jk->ik", "nm", "nm"),
            ("bij,bjk", "bnm", "bnm"),
            ("...ij,...jk->...ik", "bnm", "abnm"),
            ("ii->i", "nm"),
            ("ij,cd->xy", "nm", "nm"),
            ("i,j->ij", "n", "m"),
            ("...a->...", "bnm"),
            ("ij->ijj", "nm"),
            (" ij -> ji ", "nm"),
            ("bhid,bhjd->bhij", "abnm", "abnm"),
            ("a...,...b->...ab", "nm", "bnm"),
            ("ij,ij", "nm", "nm"),
            ("", ""),
        )
    ),
]
test_rules_agree_with_fake_tensors = agreement(CASES, 15, refused=True)


def zeros(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes)


COUNTED: list[tuple[str, dict[str, Any]]] = [
    ("aten.mm.default", {"self": zeros(3, 4), "mat2": zeros(4, 5)}),
    ("aten.bmm.default", {"self": zeros(2, 3, 4), "mat2": zeros(2, 4, 5)}),
    ("aten.addmm.default", {"self": zeros(5), "mat1": zeros(3, 4), "mat2": zeros(4, 5)}),
    ("aten.baddbmm.default", {"self": zeros(5), "batch1": zeros(2, 3, 4), "batch2": zeros(2, 4, 5)}),
    ("aten.linear.default", {"input": zeros(2, 3, 4), "weight": zeros(5, 4), "bias": zeros(5)}),
    ("aten.matmul.default", {"self": zeros(7, 3, 4), "other": zeros(7, 4, 5)}),
    ("aten.matmul.default", {"self": zeros(7, 3, 4), "other": zeros(4, 5)}),
    ("aten.einsum.default", {"equation": "bij,bjk->bik", "tensors": [zeros(2, 3, 4), zeros(2, 4, 5)]}),
    ("aten.tensordot.default", {"self": zeros(3, 4), "other": zeros(4, 5), "dims_self": [1], "dims_other": [0]}),
]


@pytest.mark.parametrize(("name", "arguments"), COUNTED, ids=[f"{case[0]}-{n}" for n, case in enumerate(COUNTED)])
def test_flops(name: str, arguments: dict[str, Any]) -> None:
    """Operations are counted as torch counts those of the operators that it runs."""
    with FlopCounterMode(display=False) as counter:
        overload(name)(**arguments)
    facts = {key: to_facts(value) for key, value in arguments.items()}
    assert flops(name, facts) == counter.get_total_flops()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.float16])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("i->", [(3,)]),
        ("ij", [(3, 2)]),
        ("...i->...", [(3, 2)]),
        ("ii->", [(3, 3)]),
        ("i,j->i", [(2,), (3,)]),
        ("i,i,i->", [(3,), (3,), (3,)]),
    ],
)
def test_einsum_of_small_integers(equation: str, shapes: list[tuple[int, ...]], dtype: torch.dtype) -> None:
    """Sums over a dimension of one operand are int64, products keep the dtype."""
    values = [torch.ones(shape, dtype=dtype) for shape in shapes]
    found: Any = infer("aten.einsum.default", {"equation": equation, "tensors": to_facts(values)}, is_strict=True)
    assert found.dtype is to_facts(torch.einsum(equation, values)).dtype


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("i,j->ij", [(3,), (4,)]),
        ("ij,ij->ij", [(3, 2), (3, 2)]),
        ("ij,jk->ik", [(2, 1), (1, 4)]),
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,k->i", [(2, 3), (4,)]),
        ("i,", [(3,), ()]),
        ("i,j,ij->", [(2,), (3,), (2, 3)]),
    ],
)
@pytest.mark.parametrize("dtypes", [(torch.int64, torch.float32), (torch.float16, torch.float64)], ids=str)
def test_einsum_of_several_dtypes(
    equation: str, shapes: list[tuple[int, ...]], dtypes: tuple[torch.dtype, ...]
) -> None:
    """Products without a sum promote their operands, as those of positions and frequencies; others refuse them."""
    values = [torch.ones(shape, dtype=dtypes[place % 2]) for place, shape in enumerate(shapes)]
    arguments = {"equation": equation, "tensors": to_facts(values)}
    try:
        wanted = torch.ops.aten.einsum(equation, values)
    except RuntimeError:
        with pytest.raises(Mismatch, match="expected operands of one dtype"):
            infer("aten.einsum.default", arguments, is_strict=True)
    else:
        found: Any = infer("aten.einsum.default", arguments, is_strict=True)
        assert found.dtype is to_facts(wanted).dtype
