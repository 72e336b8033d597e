"""Result rules of reductions, scans and sorts: golden calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.cases import BOOL, F32, F64, I32, I64, S, refusals, results, t

from pt2kit.operators.facts import Unknown
from pt2kit.operators.table import infer
from pt2kit.schema import ScalarType

C64 = ScalarType.COMPLEXFLOAT
U8 = ScalarType.BYTE
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("aten.sum.default", {"self": t(2, S, dtype=I32)}, t(dtype=I64)),
    ("aten.sum.dim_IntList", {"self": t(2, S, 4), "dim": (0, -1)}, t(S)),
    ("aten.sum.dim_IntList", {"self": t(2, S), "dim": (1,), "keepdim": True, "dtype": F64}, t(2, 1, dtype=F64)),
    ("aten.mean.dim", {"self": t(2, S), "dim": ()}, t()),
    ("aten.any.dim", {"self": t(2, S), "dim": 1}, t(2, dtype=BOOL)),
    ("aten.all.default", {"self": t(2, dtype=U8)}, t(dtype=U8)),
    ("aten.amax.default", {"self": t(2, S, dtype=I32), "dim": (0,)}, t(S, dtype=I32)),
    ("aten.argmax.default", {"self": t(2, S), "keepdim": True}, t(1, 1, dtype=I64)),
    ("aten.max.dim", {"self": t(2, S), "dim": 0}, (t(S), t(S, dtype=I64))),
    ("aten.var.correction", {"self": t(2, S, dtype=C64), "dim": (0,)}, t(S)),
    ("aten.var_mean.correction", {"self": t(2, S, dtype=C64), "dim": (0,)}, (t(S), t(S, dtype=C64))),
    ("aten.logsumexp.default", {"self": t(2, S, dtype=I64), "dim": (0,)}, t(S)),
    ("aten.linalg_vector_norm.default", {"self": t(2, S, dtype=C64), "dim": (0,)}, t(S)),
    ("aten.quantile.default", {"self": t(2, S), "q": t(3), "dim": 1}, t(3, 2)),
    ("aten.cdist.default", {"x1": t(1, S, 3), "x2": t(5, 7, 3)}, t(5, S, 7)),
    ("aten.cov.default", {"self": t(3, S)}, t(3, 3)),
    ("aten.cov.default", {"self": t(1, S)}, t()),
    ("aten.corrcoef.default", {"self": t(1, S)}, t()),
    ("aten.diff.default", {"self": t(4, S), "dim": 0, "prepend": t(2, S)}, t(5, S)),
    ("prims.sum.default", {"inp": t(2, S), "dims": ()}, t(2, S)),
    ("aten.cumsum.default", {"self": t(2, S, dtype=BOOL), "dim": 1}, t(2, S, dtype=I64)),
    ("aten.cumsum_.default", {"self": t(dtype=BOOL), "dim": 0}, t(dtype=BOOL)),
    ("aten.cummax.default", {"self": t(2, S), "dim": 1}, (t(2, S), t(2, S, dtype=I64))),
    ("aten.sort.default", {"self": t(2, 3, strides=(1, 2))}, (t(2, 3, strides=(1, 2)), t(2, 3, dtype=I64))[:1]),
    ("aten.topk.default", {"self": t(2, S), "k": 2}, (t(2, 2), t(2, 2, dtype=I64))),
    ("aten.kthvalue.default", {"self": t(2, S), "k": 2}, (t(2), t(2, dtype=I64))),
    ("aten.searchsorted.Tensor", {"sorted_sequence": t(9), "self": t(2, S), "out_int32": True}, t(2, S, dtype=I32)),
]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("aten.cdist.default", {"x1": t(2, 3), "x2": t(2, 3), "compute_mode": 9}, "value", "compute_mode"),
    ("aten.cdist.default", {"x1": t(2, 3, dtype=C64), "x2": t(2, 3)}, "dtype", "floating-point"),
    ("aten.pdist.default", {"self": t(2, 3), "p": -1.0}, "value", "p"),
    ("aten.histc.default", {"self": t(3), "min": 2, "max": 1}, "value", "min"),
    ("aten.histogram.bin_ct", {"self": t(3), "weight": t(2)}, "sizes", "weight: expected sizes [3], got [2]"),
    ("aten.histogram.bins_tensor", {"self": t(3), "bins": t(4, dtype=F64)}, "dtype", "one dtype"),
    ("aten.histogramdd.TensorList_bins", {"self": t(3, 2), "bins": (t(4),)}, "sizes", "bins"),
    (
        "aten.searchsorted.Tensor",
        {"sorted_sequence": t(9), "self": t(2), "sorter": t(8, dtype=I64)},
        "sizes",
        "sorter: expected sizes [9]",
    ),
    ("aten.linalg_norm.ord_str", {"self": t(2, 3), "ord": "max"}, "value", "ord"),
    ("aten.linalg_matrix_norm.str_ord", {"self": t(2, 3), "ord": "max", "dim": (0, 1)}, "value", "ord"),
    ("aten.linalg_matrix_norm.default", {"self": t(2, 3), "ord": 0, "dim": (0, 1)}, "value", "ord"),
    ("aten.trapezoid.x", {"y": t(2, 3), "x": t(4, 3)}, "sizes", "broadcast"),
    ("aten._chunk_cat.default", {"tensors": (t(2, 3, 4), t(2, 3)), "dim": 2, "num_chunks": 2}, "dimension", "dim"),
    ("aten.trapezoid.dx", {"y": t()}, "sizes", "got a scalar tensor"),
    ("aten.allclose.default", {"self": t(2), "other": t(3)}, "sizes", "broadcast"),
    ("aten.allclose.default", {"self": t(2), "other": t(2), "atol": -1.0}, "value", "atol: expected 0 or more"),
    ("aten.bernoulli_.float", {"self": t(3), "p": float("nan")}, "value", "p"),
    ("aten.geometric_.default", {"self": t(3), "p": 1.0}, "value", "p"),
    ("aten.exponential_.default", {"self": t(3), "lambd": 0.0}, "value", "lambd: expected more than 0"),
    ("aten.log_normal_.default", {"self": t(3), "std": -1.0}, "value", "std: expected more than 0"),
    ("aten.normal_.default", {"self": t(3), "std": -1.0}, "value", "std: expected 0 or more"),
    ("aten.cauchy_.default", {"self": t(3), "sigma": 0.0}, "value", "sigma: expected more than 0"),
    ("aten.sum.dim_IntList", {"self": t(2, 3), "dim": (2,)}, "dimension", "from -2 to 1, got 2"),
    ("aten.sum.dim_IntList", {"self": t(2, 3), "dim": (1, -1)}, "dimension", "each dimension once"),
    ("aten.mean.default", {"self": t(2, dtype=I64)}, "dtype", "a float or complex dtype, got i64"),
    ("aten.amax.default", {"self": t(0, 3), "dim": (0,)}, "sizes", "elements along dimension 0"),
    ("aten.argmax.default", {"self": t(3, dtype=C64)}, "dtype", "a real dtype"),
    ("aten.var.correction", {"self": t(2, dtype=I64)}, "dtype", "floating-point or complex elements"),
    ("aten.topk.default", {"self": t(2, 3), "k": 4}, "value", "k: expected at most 3, got 4"),
    ("aten.kthvalue.default", {"self": t(3), "k": 0}, "value", "k: expected 1 or more, got 0"),
    ("aten.cdist.default", {"x1": t(2, 3), "x2": t(2, 4)}, "sizes", "one size k, got 3 and 4"),
    ("aten.histc.default", {"self": t(3), "bins": 0}, "value", "bins: expected 1 or more"),
    ("aten.quantile.default", {"self": t(3), "q": t(2, dtype=F64)}, "dtype", "one dtype, got DOUBLE and FLOAT"),
    ("aten.quantile.scalar", {"self": t(3), "q": 2.0}, "value", "q"),
    ("aten.quantile.scalar", {"self": t(3), "q": 0.5, "interpolation": "cubic"}, "value", "one of 'linear', 'lower'"),
    ("aten.cdist.default", {"x1": t(2, 3), "x2": t(2, 3), "p": -1.0}, "value", "p"),
    ("aten.bernoulli.p", {"self": t(3), "p": 2.0}, "value", "p"),
    ("aten.rrelu.default", {"self": t(3), "lower": 0.5, "upper": 0.1}, "value", "lower"),
    (
        "aten.cross_entropy_loss.default",
        {"self": t(3, 4), "target": t(3, dtype=I64), "label_smoothing": 2.0},
        "value",
        "label_smoothing: expected 0 to 1, got 2.0",
    ),
    ("aten.cumsum.default", {"self": t(3), "dim": 1}, "dimension", "from -1 to 0, got 1"),
    (
        "aten.searchsorted.Tensor",
        {"sorted_sequence": t(3), "self": t(2), "side": "middle"},
        "value",
        "one of None, 'left', 'right'",
    ),
    ("aten.bucketize.Tensor", {"self": t(3), "boundaries": t(2, 2)}, "sizes", "boundaries: expected 1 dimension,"),
]
test_results = results(RESULTS)
test_refused = refusals(REFUSED)


@pytest.mark.parametrize("name", ["aten.any.dims", "aten.nansum.default", "aten.logsumexp.default"])
def test_an_empty_list_of_dimensions_is_unknown_where_torch_disagrees_with_itself(name: str) -> None:
    with pytest.raises(Unknown) as caught:
        infer(name, {"self": t(2, 3, dtype=F32), "dim": ()}, is_strict=True)
    assert str(caught.value), "expected a reason"
