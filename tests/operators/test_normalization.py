"""Result rules of normalizations and losses: golden calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.cases import BF16, F32, F64, I32, I64, S, refusals, results, t

from pt2kit.operators.facts import Unknown
from pt2kit.operators.table import infer

IMAGE = t(2, 4, 8, 8)
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    (
        "aten.batch_norm.default",
        {"input": IMAGE, "weight": t(4), "bias": t(4), "running_mean": t(4), "running_var": t(4)},
        IMAGE,
    ),
    (
        "aten._native_batch_norm_legit_no_training.default",
        {"input": IMAGE, "weight": None, "bias": None, "running_mean": t(4), "running_var": t(4)},
        (IMAGE, t(0), t(0)),
    ),
    ("aten.layer_norm.default", {"input": t(S, 5), "normalized_shape": (5,), "weight": t(5)}, t(S, 5)),
    (
        "aten.native_layer_norm.default",
        {"input": t(3, S, 5), "normalized_shape": (5,), "weight": None, "bias": None},
        (t(3, S, 5), t(3, S, 1), t(3, S, 1)),
    ),
    ("aten.rms_norm.default", {"input": t(3, 5, dtype=BF16), "normalized_shape": (5,)}, t(3, 5, dtype=BF16)),
    ("aten.group_norm.default", {"input": IMAGE, "num_groups": 2}, IMAGE),
    (
        "aten.native_group_norm.default",
        {"input": IMAGE, "weight": None, "bias": None, "N": 2, "C": 4, "HxW": 64, "group": 2},
        (IMAGE, t(2, 2), t(2, 2)),
    ),
    ("aten.softmax.int", {"self": t(S, 5, dtype=BF16), "dim": -1, "dtype": F32}, t(S, 5)),
    ("aten._softmax.default", {"self": t(2, 5), "dim": 1, "half_to_float": False}, t(2, 5)),
    ("aten.mse_loss.default", {"self": t(2, 5), "target": t(5, dtype=F64), "reduction": 0}, t(2, 5, dtype=F64)),
    ("aten.mse_loss.default", {"self": t(S, 5), "target": t(S, 5)}, t()),
    ("aten.nll_loss.default", {"self": t(S, 5), "target": t(S, dtype=I64), "reduction": 0}, t(S)),
    ("aten.cross_entropy_loss.default", {"self": t(2, 5, 7), "target": t(2, 7, dtype=I64), "reduction": 0}, t(2, 7)),
    ("aten.cross_entropy_loss.default", {"self": t(2, 5, 7), "target": t(2, 5, 7), "reduction": 0}, t(2, 7)),
    ("aten.cosine_similarity.default", {"x1": t(2, 5), "x2": t(1, 5)}, t(2)),
    ("aten.cosine_similarity.default", {"x1": t(3), "x2": t(dtype=F64), "dim": 0}, t(dtype=F64)),
]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("aten.instance_norm.default", {"input": t(2, 3, 4), "running_mean": t(2)}, "sizes", "for each channel"),
    ("aten.renorm.default", {"self": t(2, 3), "p": 0, "dim": 0, "maxnorm": 1.0}, "value", "p"),
    ("aten.mse_loss.default", {"self": t(3), "target": t(3), "reduction": 7}, "value", "reduction: expected one of"),
    ("aten.multi_margin_loss.default", {"self": t(2, 3), "target": t(2, dtype=I64), "p": 3}, "value", "p"),
    (
        "aten.multilabel_margin_loss.default",
        {"self": t(2, 3), "target": t(2, 4, dtype=I64)},
        "sizes",
        "target: expected sizes [2, 3]",
    ),
    (
        "aten.nll_loss_backward.default",
        {"grad_output": t(2), "self": t(3, 4), "target": t(3, dtype=I64), "weight": None, "reduction": 0},
        "sizes",
        "grad_output: expected sizes [3], got [2]",
    ),
    (
        "aten.binary_cross_entropy_backward.default",
        {"grad_output": t(2), "self": t(3), "target": t(3)},
        "sizes",
        "broadcast",
    ),
    ("aten.batch_norm.default", {"input": IMAGE, "weight": t(5)}, "sizes", "an element for each channel"),
    ("aten.layer_norm.default", {"input": t(2, 5), "normalized_shape": (4,)}, "sizes", "how [2, 5] ends, got [4]"),
    ("aten.layer_norm.default", {"input": t(2, 5), "normalized_shape": ()}, "sizes", "normalized_shape"),
    (
        "aten.layer_norm.default",
        {"input": t(2, 5), "normalized_shape": (5,), "weight": t(4)},
        "sizes",
        "a weight of sizes [5]",
    ),
    ("aten.group_norm.default", {"input": IMAGE, "num_groups": 0}, "value", "num_groups: expected 1 or more"),
    (
        "aten.group_norm.default",
        {"input": IMAGE, "num_groups": 3},
        "value",
        "a multiple of num_groups, got count = 4, num_groups = 3",
    ),
    ("aten.softmax.int", {"self": t(2, 5), "dim": 2}, "dimension", "from -2 to 1, got 2"),
    ("aten.mse_loss.default", {"self": t(2, 5), "target": t(4)}, "sizes", "broadcast"),
    ("aten.nll_loss.default", {"self": t(2, 5), "target": t(3, dtype=I64)}, "sizes", "a target for each row"),
    ("aten.nll_loss.default", {"self": t(2, 5), "target": t(2, dtype=I32)}, "dtype", "expected int64 or uint8"),
    (
        "aten.nll_loss.default",
        {"self": t(2, 5), "target": t(2, dtype=I64), "weight": t(4)},
        "sizes",
        "a weight for each class",
    ),
    ("aten.huber_loss.default", {"self": t(2), "target": t(2), "delta": 0.0}, "value", "delta: expected more than 0"),
]
test_results = results(RESULTS)
test_refused = refusals(REFUSED)


def test_unknown() -> None:
    """Torch describes the unreduced `nll_loss_nd` in two ways."""
    with pytest.raises(Unknown) as caught:
        infer("aten.nll_loss_nd.default", {"self": t(2, 5), "target": t(2, dtype=I64), "reduction": 0})
    assert str(caught.value), "expected a reason"
