"""Result rules of linear algebra, Fourier transforms and torchvision's operators: golden calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.cases import F64, I32, I64, S, refusals, results, t

from pt2kit.operators.facts import Unknown
from pt2kit.operators.table import infer
from pt2kit.schema import ScalarType

C64, C128 = ScalarType.COMPLEXFLOAT, ScalarType.COMPLEXDOUBLE
ROIS = t(7, 5)
DEFORMED = {"stride_h": 1, "stride_w": 1, "pad_h": 0, "pad_w": 0, "dilation_h": 1, "dilation_w": 1}
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("aten.linalg_inv.default", {"A": t(2, 3, 3)}, t(2, 3, 3, strides=(9, 1, 3))),
    ("aten.linalg_cholesky_ex.default", {"self": t(S, 3, 3)}, (t(S, 3, 3), t(S, dtype=I32))),
    ("aten.linalg_qr.default", {"A": t(5, 3)}, (t(5, 3, strides=(1, 5)), t(3, 3, strides=(1, 3)))),
    ("aten.linalg_qr.default", {"A": t(5, 3), "mode": "complete"}, (t(5, 5, strides=(1, 5)), t(5, 3, strides=(1, 5)))),
    (
        "aten.linalg_svd.default",
        {"A": t(5, 3, dtype=C64), "full_matrices": False},
        (t(5, 3, dtype=C64, strides=(1, 5)), t(3), None),
    ),
    ("aten.linalg_eigh.default", {"self": t(3, 3, dtype=C128)}, (t(3, dtype=F64), None)),
    ("aten.linalg_eigvals.default", {"self": t(3, 3, dtype=F64)}, t(3, dtype=C128)),
    ("aten.linalg_solve.default", {"A": t(2, 3, 3), "B": t(2, 3)}, t(2, 3)),
    ("aten.linalg_solve.default", {"A": t(2, 3, 3), "B": t(3, 4)}, t(2, 3, 4)),
    ("aten.linalg_slogdet.default", {"A": t(2, 3, 3)}, (t(2), t(2))),
    ("aten.linalg_pinv.atol_rtol_float", {"self": t(S, 5, 3)}, t(S, 3, 5)),
    ("aten.linalg_pinv.atol_rtol_tensor", {"self": t(2, 5, 3), "rtol": t(4, 1)}, t(4, 2, 3, 5)),
    ("aten.linalg_tensorinv.default", {"self": t(6, 2, 3), "ind": 1}, t(2, 3, 6)),
    ("aten.fft_fft.default", {"self": t(S, 6, dtype=F64)}, t(S, 6, dtype=C128)),
    ("aten.fft_rfft.default", {"self": t(4, S)}, t(4, S // 2 + 1, dtype=C64)),
    ("aten.fft_irfft2.default", {"self": t(4, 6, dtype=C64)}, t(4, 10)),
    ("aten.fft_rfftn.default", {"self": t(4, 5, 6), "s": (8, 8)}, t(4, 8, 5, dtype=C64)),
    ("aten.fft_fftshift.default", {"self": t(4, 5), "dim": (0, 0)}, t(4, 5)),
    (
        "aten.stft.center",
        {"self": t(2, 400), "n_fft": 64, "hop_length": 16, "return_complex": True},
        t(2, 33, 26, dtype=C64),
    ),
    ("aten.stft.default", {"self": t(400), "n_fft": 64, "onesided": False, "return_complex": False}, t(64, 22, 2)),
    ("aten.istft.default", {"self": t(2, 33, 26, dtype=C64), "n_fft": 64}, t(2, 400)),
    ("torchvision.nms.default", {"dets": t(7, 4), "scores": t(7), "iou_threshold": 0.5}, None),
    (
        "torchvision.roi_align.default",
        {"input": t(2, 3, 8, 8), "rois": ROIS, "pooled_height": 4, "pooled_width": 5},
        t(7, 3, 4, 5),
    ),
    (
        "torchvision.ps_roi_pool.default",
        {"input": t(2, 12, 8, 8), "rois": ROIS, "pooled_height": 2, "pooled_width": 2},
        (t(7, 3, 2, 2), t(7, 3, 2, 2, dtype=I32)),
    ),
    (
        "torchvision.deform_conv2d.default",
        {"input": t(2, 3, 8, 8), "weight": t(6, 3, 3, 3), "offset": t(2, 18, 6, 6), **DEFORMED},
        t(2, 6, 6, 6),
    ),
]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("aten.linalg_householder_product.default", {"input": t(4, 3), "tau": t(4)}, "sizes", "n >= k and k >= m"),
    ("aten.orgqr.default", {"self": t(4, 3), "input2": t(3, dtype=F64)}, "dtype", "one dtype"),
    ("aten.ormqr.default", {"self": t(4, 3), "input2": t(2), "input3": t(4, 2)}, "sizes", "r: expected 3, got 2"),
    (
        "aten.linalg_lu_solve.default",
        {"LU": t(3, 3), "pivots": t(4, dtype=I32), "B": t(3, 2)},
        "sizes",
        "pivots: expected sizes [3], got [4]",
    ),
    ("aten.lu_solve.default", {"self": t(3, 2), "LU_data": t(3, 3), "LU_pivots": t(3, dtype=I64)}, "dtype", "pivots"),
    ("aten.linalg_ldl_solve.default", {"LD": t(3, 3), "B": t(3, 2, dtype=F64)}, "dtype", "one dtype"),
    ("aten.linalg_tensorsolve.default", {"self": t(6, 6), "other": t(6, dtype=F64)}, "dtype", "one dtype"),
    (
        "aten.linalg_lstsq.default",
        {"self": t(4, 3), "b": t(4, 2), "driver": "gelx"},
        "value",
        "driver: expected one of",
    ),
    ("aten.linalg_cross.default", {"self": t(2, 2), "other": t(2, 2)}, "sizes", "3"),
    ("aten.linalg_inv.default", {"A": t(3, 4)}, "sizes", "A [*b, n, n]: expected one size n, got 3 and 4"),
    ("aten.linalg_inv.default", {"A": t(3)}, "sizes", "2 dimensions or more"),
    ("aten.linalg_inv.default", {"A": t(3, 3, dtype=I64)}, "dtype", "expected floating-point or complex elements"),
    (
        "aten.linalg_qr.default",
        {"A": t(5, 3), "mode": "full"},
        "value",
        "mode: expected one of 'reduced', 'complete', 'r'",
    ),
    ("aten.linalg_eigh.default", {"self": t(3, 3), "UPLO": "X"}, "value", "UPLO: expected one of 'L', 'U'"),
    ("aten.linalg_solve.default", {"A": t(3, 3), "B": t(4, 2)}, "sizes", "a right side that fits"),
    ("aten.fft_fft.default", {"self": t(4), "n": 0}, "sizes", "1 element or more"),
    ("aten.fft_fft.default", {"self": t(4), "norm": "unitary"}, "value", "norm: expected 'forward'"),
    ("aten.fft_rfft.default", {"self": t(4, dtype=C64)}, "dtype", "expected real numbers"),
    ("aten.fft_fft2.default", {"self": t(4, 4), "dim": (0, 0)}, "dimension", "each dimension once"),
    (
        "aten.stft.center",
        {"self": t(400), "n_fft": 64, "window": t(60), "return_complex": True},
        "sizes",
        "win_length elements",
    ),
    ("aten.istft.default", {"self": t(33, 26), "n_fft": 64}, "dtype", "expected complex elements"),
    ("torchvision.nms.default", {"dets": t(7, 5), "scores": t(7)}, "sizes", "dets: expected a size of 4"),
    (
        "torchvision.roi_align.default",
        {"input": t(2, 3, 8, 8), "rois": t(7, 4), "pooled_height": 4, "pooled_width": 5},
        "sizes",
        "5 numbers",
    ),
]
test_results = results(RESULTS)
test_refused = refusals(REFUSED)


def test_unknown() -> None:
    """Symbols may decide between vectors and matrices on the right side; an STFT may be complex or not."""
    with pytest.raises(Unknown) as caught:
        infer("aten.linalg_solve.default", {"A": t(S, 3, 3), "B": t(8, 3)})
    assert str(caught.value), "expected a reason"
    with pytest.raises(Unknown) as caught:
        infer("aten.stft.default", {"self": t(400), "n_fft": 64})
    assert str(caught.value), "expected a reason"
