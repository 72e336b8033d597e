"""Result rules of convolutions, pools and resampling: golden calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.cases import F64, I64, S, flops, refusals, results, t

from pt2kit.operators.facts import Unknown
from pt2kit.operators.table import infer

IMAGE, WEIGHT = t(2, 4, 8, 8), t(6, 4, 3, 3)
LAST = t(2, 4, 8, 8, strides=(256, 1, 32, 4))
"""An image in channels_last."""
NONE = {"bias": None, "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("aten.conv2d.default", {"input": IMAGE, "weight": WEIGHT}, t(2, 6, 6, 6)),
    ("aten.conv2d.default", {"input": LAST, "weight": WEIGHT}, t(2, 6, 6, 6, strides=(216, 1, 36, 6))),
    (
        "aten.conv2d.default",
        {"input": t(2, 4, S, S), "weight": WEIGHT, "stride": (2, 2), "padding": (1, 1)},
        t(2, 6, (S - 1) // 2 + 1, (S - 1) // 2 + 1),
    ),
    ("aten.conv2d.padding", {"input": IMAGE, "weight": WEIGHT, "padding": "same"}, t(2, 6, 8, 8)),
    ("aten.conv1d.default", {"input": t(4, 9), "weight": t(6, 2, 3), "groups": 2}, t(6, 7)),
    ("aten.conv_transpose2d.input", {"input": IMAGE, "weight": t(4, 6, 3, 3), "stride": (2, 2)}, t(2, 6, 17, 17)),
    (
        "aten.convolution.default",
        {"input": IMAGE, "weight": WEIGHT, **NONE, "transposed": False, "output_padding": (0, 0)},
        t(2, 6, 6, 6),
    ),
    ("aten.unfold.default", {"self": t(2, 8), "dimension": 1, "size": 3, "step": 2}, t(2, 3, 3, strides=(8, 2, 1))),
    (
        "aten.im2col.default",
        {"self": IMAGE, "kernel_size": (2, 2), "dilation": (1, 1), "padding": (0, 0), "stride": (2, 2)},
        t(2, 16, 16),
    ),
    ("aten.max_pool2d.default", {"self": t(2, 4, 7, 7), "kernel_size": (2, 2)}, t(2, 4, 3, 3)),
    ("aten.max_pool2d.default", {"self": t(2, 4, 7, 7), "kernel_size": (2,), "ceil_mode": True}, t(2, 4, 4, 4)),
    (
        "aten.max_pool2d_with_indices.default",
        {"self": IMAGE, "kernel_size": (2, 2)},
        (t(2, 4, 4, 4), t(2, 4, 4, 4, dtype=I64)),
    ),
    ("aten.avg_pool1d.default", {"self": t(4, S), "kernel_size": (3,), "stride": (1,)}, t(4, S - 2)),
    ("aten.adaptive_avg_pool2d.default", {"self": LAST, "output_size": (3, 3)}, t(2, 4, 3, 3, strides=(36, 1, 12, 4))),
    (
        "aten.upsample_nearest2d.vec",
        {"input": t(2, 4, S, 8), "output_size": None, "scale_factors": (2.0, 1.5)},
        t(2, 4, 2 * S, 12),
    ),
    (
        "aten.upsample_bilinear2d.vec",
        {"input": IMAGE, "output_size": (5, 6), "align_corners": False, "scale_factors": None},
        t(2, 4, 5, 6),
    ),
    (
        "aten.grid_sampler_2d.default",
        {"input": IMAGE, "grid": t(2, 5, 6, 2), "interpolation_mode": 0, "padding_mode": 0},
        t(2, 4, 5, 6),
    ),
]
_POOL_ARGUMENTS = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "ceil_mode": False}
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "aten.conv_transpose1d.default",
        {"input": t(1, 3, 5), "weight": t(3, 2, 3), "groups": 2},
        "value",
        "groups: expected a divisor of 3, got 2",
    ),
    (
        "aten.upsample_bilinear2d_backward.default",
        {"grad_output": t(1, 2, 5, 6), "output_size": (6, 6), "input_size": (1, 2, 3, 3), "align_corners": False},
        "sizes",
        "grad_output: expected sizes [1, 2, 6, 6], got [1, 2, 5, 6]",
    ),
    (
        "aten.upsample_nearest1d_backward.default",
        {"grad_output": t(1, 2, 6), "output_size": (), "input_size": (1, 2, 3)},
        "value",
        "output_size: expected 1 sizes",
    ),
    ("aten.upsample_nearest1d.default", {"self": t(1, 2, 0), "output_size": (6,)}, "sizes", "sizes of 1 or more"),
    (
        "aten.avg_pool2d_backward.default",
        {"grad_output": t(1, 2, 3, 4), "self": t(1, 2, 6, 6), **_POOL_ARGUMENTS},
        "sizes",
        "grad_output: expected sizes [1, 2, 3, 3]",
    ),
    (
        "aten.max_pool2d_with_indices_backward.default",
        {"grad_output": t(1, 2, 3, 4), "self": t(1, 2, 6, 6), "dilation": (1, 1), **_POOL_ARGUMENTS},
        "sizes",
        "grad_output: expected sizes [1, 2, 3, 3]",
    ),
    (
        "aten.fractional_max_pool2d_backward.default",
        {"grad_output": t(1, 2, 3, 4), "self": t(1, 2, 6, 6), "kernel_size": (2, 2), "output_size": (3, 3)},
        "sizes",
        "grad_output: expected sizes [1, 2, 3, 3]",
    ),
    ("aten.adaptive_max_pool2d.default", {"self": t(1, 2, 6, 6), "output_size": (3,)}, "value", "expected 2 sizes"),
    (
        "aten.max_unpool3d.default",
        {
            "self": t(1, 2, 2, 2, 2),
            "indices": t(1, 2, 2, 2, 2, dtype=I64),
            "output_size": (4, 4, 4),
            "stride": (2, 0, 2),
        },
        "value",
        "stride",
    ),
    (
        "aten.convolution_backward.default",
        {
            "grad_output": t(1, 3, 5, 4),
            "input": t(1, 2, 6, 6),
            "weight": t(3, 2, 3, 3),
            "bias_sizes": (3,),
            "stride": (1, 1),
            "padding": (0, 0),
            "dilation": (1, 1),
            "transposed": False,
            "output_padding": (0, 0),
            "groups": 1,
            "output_mask": (True, True, True),
        },
        "sizes",
        "grad_output: expected sizes [1, 3, 4, 4]",
    ),
    (
        "aten.grid_sampler_2d.default",
        {"input": t(1, 2, 0, 3), "grid": t(1, 4, 4, 2), "interpolation_mode": 0, "padding_mode": 0},
        "sizes",
        "input: expected a window that fits",
    ),
    (
        "aten.upsample_bilinear2d.default",
        {"self": t(1, 3, 4, 4), "output_size": (0, 4), "align_corners": False},
        "sizes",
        "sizes of 1 or more, got [0, 4]",
    ),
    ("aten.conv2d.default", {"input": IMAGE, "weight": t(6, 3, 3, 3)}, "sizes", "input channels, got 4 and 3"),
    (
        "aten.conv2d.default",
        {"input": IMAGE, "weight": WEIGHT, "stride": (0, 1)},
        "value",
        "stride: expected numbers of 1 or more",
    ),
    ("aten.conv2d.default", {"input": IMAGE, "weight": t(6, 4, 9, 9)}, "sizes", "a window that fits"),
    (
        "aten.conv2d.default",
        {"input": IMAGE, "weight": WEIGHT, "groups": 0},
        "value",
        "groups: expected 1 or more, got 0",
    ),
    ("aten.conv2d.default", {"input": IMAGE, "weight": t(6, 4, 3, 3, dtype=F64)}, "dtype", "one dtype"),
    (
        "aten.conv2d.default",
        {"input": IMAGE, "weight": WEIGHT, "bias": t(5)},
        "sizes",
        "a bias for each output channel",
    ),
    ("aten.conv2d.padding", {"input": IMAGE, "weight": WEIGHT, "padding": "full"}, "value", "'same' or 'valid'"),
    (
        "aten.conv2d.padding",
        {"input": IMAGE, "weight": WEIGHT, "padding": "same", "stride": 2},
        "value",
        "strides of 1",
    ),
    ("aten.conv1d.default", {"input": IMAGE, "weight": WEIGHT}, "sizes", "weight: expected 3 dimensions"),
    (
        "aten.max_pool2d.default",
        {"self": IMAGE, "kernel_size": (2, 2), "padding": (2, 2)},
        "value",
        "at most half of the window",
    ),
    (
        "aten.max_pool2d.default",
        {"self": IMAGE, "kernel_size": (2, 2, 2)},
        "value",
        "kernel_size: expected 2 numbers, got 3",
    ),
    ("aten.avg_pool2d.default", {"self": t(8, 8), "kernel_size": (2, 2)}, "sizes", "expected 3 or 4 dimensions"),
    ("aten.unfold.default", {"self": t(2, 8), "dimension": 1, "size": 9, "step": 1}, "sizes", "at most 8, got 9"),
    (
        "aten.upsample_nearest2d.vec",
        {"input": IMAGE, "output_size": (3,), "scale_factors": None},
        "value",
        "expected 2 sizes",
    ),
    (
        "aten.upsample_nearest2d.vec",
        {"input": IMAGE, "output_size": None, "scale_factors": None},
        "value",
        "either output_size or",
    ),
    (
        "aten.grid_sampler_2d.default",
        {"input": IMAGE, "grid": t(2, 5, 6, 3), "interpolation_mode": 0, "padding_mode": 0},
        "sizes",
        "coordinates",
    ),
]
test_results = results(RESULTS)
test_refused = refusals(REFUSED)


def test_flops() -> None:
    """Two operations for each element of the weight and each place of the window."""
    assert flops("aten.conv2d.default", {"input": IMAGE, "weight": WEIGHT}) == 2 * 2 * 36 * 6 * 4 * 9
    assert flops("aten.conv2d.default", {"input": t(S, 4, 8, 8), "weight": WEIGHT}) == 2 * 36 * 6 * 4 * 9 * S


def test_no_channels() -> None:
    """torch gives no channels for none, whatever the weight has."""
    with pytest.raises(Unknown, match="channels"):
        infer("aten.conv1d.default", {"input": t(0, 3), "weight": t(2, 0, 1)})


def test_unknown_strides() -> None:
    """Strides in channels_last_3d are not known."""
    video = t(2, 4, 8, 8, 8, strides=(2048, 1, 256, 32, 4))
    result = infer("aten.max_pool3d.default", {"self": video, "kernel_size": (2,)}, is_strict=True)
    assert getattr(result, "strides", ()) is None
    with pytest.raises(Unknown) as caught:
        infer("aten.conv2d.nothing", {})
    assert str(caught.value), "expected a reason"
