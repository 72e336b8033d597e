"""Result rules of convolutions, pools and resampling compared with torch's fake tensors, and FLOPs with its counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.drawers import choose, tensor
from tests.bridge.operators.fake_calls import FLOATS, Drawer, compare_calls, overload, to_facts
from tests.operators.cases import flops
from torch.utils.flop_counter import FlopCounterMode

F32 = (torch.float32,)
IMAGES = {1: ("245", "45"), 2: ("2456", "456", "1411", "2416"), 3: ("24566", "4566")}
WEIGHTS = {1: ("643", "623", "641"), 2: ("6432", "6233", "6411", "4133"), 3: ("64322", "62111")}
TRANSPOSED = {1: ("463", "423"), 2: ("4632", "4611"), 3: ("46322",)}
LIST = {count: choose([1] * count, [2] * count, [1], [2]) for count in (1, 2, 3)}
ZEROS = {count: choose([0] * count, [1] * count, [1]) for count in (1, 2, 3)}


def _convolution(count: int, **more: Drawer) -> dict[str, Drawer]:
    return {
        "input": tensor(*IMAGES[count], dtypes=(torch.float32, torch.float64)),
        "weight": tensor(*WEIGHTS[count], like="input", dtypes=FLOATS),
        "bias": tensor("6", "6", "4", like="input", dtypes=FLOATS),
        "stride": LIST[count],
        "padding": ZEROS[count],
        "dilation": LIST[count],
        "groups": choose(1, 1, 2, 4, 0),
        **more,
    }


def _transposed(count: int) -> dict[str, Drawer]:
    return {
        **_convolution(count),
        "weight": tensor(*TRANSPOSED[count], like="input"),
        "output_padding": choose([0], [0] * count),
    }


CASES: list[tuple[str, dict[str, Drawer]]] = [
    *((f"aten.conv{count}d.default", _convolution(count)) for count in (1, 2, 3)),
    *((f"aten.conv{count}d.padding", _convolution(count, padding=choose("same", "valid", "x"))) for count in (1, 2, 3)),
    ("aten.conv_transpose1d.default", _transposed(1)),
    ("aten.conv_transpose2d.input", _transposed(2)),
    ("aten.conv_transpose3d.input", _transposed(3)),
    (
        "aten.convolution.default",
        _convolution(2, input=tensor("2456", dtypes=F32), transposed=choose(False), output_padding=choose([0, 0])),
    ),
    (
        "aten.convolution_backward.default",
        {
            "grad_output": tensor("2665", dtypes=F32),
            "input": tensor("2456", dtypes=F32),
            "weight": tensor("6432", dtypes=F32),
            "bias_sizes": choose([6], None),
            "stride": choose([1, 1]),
            "padding": choose([1, 0]),
            "dilation": choose([1, 1]),
            "transposed": choose(False),
            "output_padding": choose([0, 0]),
            "groups": choose(1),
            "output_mask": choose([True, True, True], [True, False, True], [False, True, False]),
        },
    ),
    (
        "aten.conv_tbc.default",
        {
            "self": tensor("524", dtypes=F32),
            "weight": tensor("346", "356", dtypes=F32),
            "bias": tensor("6", dtypes=F32),
            "pad": choose(0, 1),
        },
    ),
    (
        "aten.unfold.default",
        {"dimension": lambda draw: draw.dim(), "size": choose(0, 1, 2, 3, -1), "step": choose(1, 2, 0)},
    ),
    ("aten.unfold_copy.default", {"dimension": lambda draw: draw.dim(), "size": choose(1, 2), "step": choose(1, 2)}),
    (
        "aten.im2col.default",
        {
            "self": tensor("2456", "456", "56", dtypes=F32),
            "kernel_size": choose([2, 2], [3, 1], [0, 1]),
            "dilation": choose([1, 1], [2, 1]),
            "padding": choose([0, 0], [1, 1]),
            "stride": choose([1, 1], [2, 2], [0, 1]),
        },
    ),
    (
        "aten.col2im.default",
        {
            "self": tensor("286", "286", "86", "285", dtypes=F32),
            "output_size": choose([3, 4]),
            "kernel_size": choose([2, 2], [2, 2], [3, 1]),
            "dilation": choose([1, 1]),
            "padding": choose([0, 0]),
            "stride": choose([1, 1]),
        },
    ),
]
for _count in (1, 2, 3):
    _pool = {
        "self": tensor(*IMAGES[_count], dtypes=(*FLOATS, torch.int64)),
        "kernel_size": choose([2] * _count, [3], [2], [3] * _count),
        "stride": choose([], [1], [2] * _count),
        "padding": choose([0], [1] * _count, [2]),
        "dilation": choose([1], [1], [2] * _count),
        "divisor_override": choose(None, 3),
    }
    _adaptive = {"self": _pool["self"], "output_size": choose([1] * _count, [2] * _count, [3] * _count)}
    CASES += [
        (f"aten.max_pool{_count}d.default", _pool),
        (f"aten.avg_pool{_count}d.default", _pool),
        (f"aten.adaptive_avg_pool{_count}d.default", _adaptive),
        (f"aten.adaptive_max_pool{_count}d.default", _adaptive),
    ]
    if _count > 1:
        CASES += [
            (f"aten.max_pool{_count}d_with_indices.default", _pool),
            (f"aten._adaptive_avg_pool{_count}d.default", _adaptive),
        ]
    else:
        CASES.append(("aten.max_pool1d_with_indices.default", _pool))
_TWO = {"self": tensor("2456", "456", dtypes=F32)}
CASES += [
    (
        "aten.fractional_max_pool2d.default",
        {
            **_TWO,
            "kernel_size": choose([2, 2], [3, 2]),
            "output_size": choose([2, 3], [5, 6]),
            "random_samples": tensor("242", dtypes=F32),
        },
    ),
    (
        "aten.max_unpool2d.default",
        {**_TWO, "indices": tensor("2456", "456", dtypes=(torch.int64, torch.int32)), "output_size": choose([8, 9])},
    ),
    (
        "aten.avg_pool2d_backward.default",
        {
            "grad_output": tensor("2423", dtypes=F32),
            "self": tensor("2456", dtypes=F32),
            "kernel_size": choose([2, 2]),
            "stride": choose([2, 2]),
            "padding": choose([0, 0]),
            "ceil_mode": choose(False),
            "divisor_override": choose(None),
        },
    ),
]
_SAMPLED = {"1d": ("245",), "2d": ("2456", "2456", "1411", "456"), "3d": ("24566",)}
for _kind, _dims in (
    *(("nearest1d", "1d"), ("nearest2d", "2d"), ("nearest3d", "3d"), ("linear1d", "1d"), ("bilinear2d", "2d")),
    *(("trilinear3d", "3d"), ("bicubic2d", "2d")),
):
    _number = int(_dims[0])
    _data = tensor(*_SAMPLED[_dims], dtypes=F32)
    _sizes, _factors = choose([7] * _number, [3] * _number, [0] * _number), choose([2.0] * _number, [1.5] * _number)
    CASES += [
        (f"aten.upsample_{_kind}.default", {"self": _data, "output_size": _sizes}),
        (f"aten.upsample_{_kind}.vec", {"input": _data, "output_size": _sizes, "scale_factors": choose(None)}),
        (f"aten.upsample_{_kind}.vec", {"input": _data, "output_size": choose(None), "scale_factors": _factors}),
    ]
_MODES = {"interpolation_mode": choose(0, 0, 1, 2), "padding_mode": choose(0, 1, 2)}
CASES += [
    (
        "aten._upsample_bilinear2d_aa.vec",
        {"input": tensor("2456", dtypes=F32), "output_size": choose([7, 7]), "scale_factors": choose(None)},
    ),
    ("aten._upsample_nearest_exact2d.default", {"self": tensor("2456", dtypes=F32), "output_size": choose([7, 7])}),
    (
        "aten.grid_sampler_2d.default",
        {"input": tensor("2456", dtypes=F32), "grid": tensor("2332", "2333", "1332", dtypes=F32), **_MODES},
    ),
    (
        "aten.grid_sampler_3d.default",
        {"input": tensor("24566", dtypes=F32), "grid": tensor("22233", dtypes=F32), **_MODES},
    ),
    (
        "aten.grid_sampler.default",
        {"input": tensor("2456", "24566", dtypes=F32), "grid": tensor("2332", "22233", dtypes=F32), **_MODES},
    ),
    (
        "aten.affine_grid_generator.default",
        {"theta": tensor("223", "234", dtypes=F32), "size": choose([2, 3, 4, 5], [2, 3, 4, 5, 6])},
    ),
]


@pytest.mark.parametrize(("name", "drawers"), CASES, ids=[f"{case[0]}-{place}" for place, case in enumerate(CASES)])
def test_rules_agree_with_fake_tensors(name: str, drawers: dict[str, Any]) -> None:
    """No rule contradicts torch or refuses what torch computes, and it answers some calls."""
    parameters = {argument.name for argument in overload(name)._schema.arguments}
    given: dict[str, Any] = {key: drawer for key, drawer in drawers.items() if key in parameters}
    report = compare_calls(name, 8, symbolic=1, **given)
    assert report.answered or report.refused, report


X, W = torch.zeros(2, 4, 8, 8), torch.zeros(6, 2, 3, 3)
_PLAIN = {"input": X, "weight": W, "bias": None, "stride": [2, 2], "padding": [1, 1], "dilation": [1, 1]}
COUNTED: list[tuple[str, dict[str, Any]]] = [
    ("aten.conv2d.default", {**_PLAIN, "groups": 2}),
    ("aten.convolution.default", {**_PLAIN, "transposed": False, "output_padding": [0, 0], "groups": 2}),
    ("aten.conv1d.default", {"input": torch.zeros(2, 4, 9), "weight": torch.zeros(6, 4, 3)}),
    ("aten.conv_transpose2d.input", {"input": X, "weight": torch.zeros(4, 6, 3, 3), "stride": [2, 2]}),
    *(
        (
            "aten.convolution_backward.default",
            {
                **_PLAIN,
                "weight": torch.zeros(6, 4, 3, 3),
                "grad_output": torch.zeros(2, 6, 4, 4),
                "bias_sizes": [6],
                "transposed": False,
                "output_padding": [0, 0],
                "groups": 1,
                "output_mask": mask,
            },
        )
        for mask in ([True, True, True], [False, True, False], [True, False, False])
    ),
    (
        "aten.convolution_backward.default",
        {
            "grad_output": torch.zeros(2, 6, 17, 17),
            "input": X,
            "weight": torch.zeros(4, 6, 3, 3),
            "bias_sizes": None,
            "stride": [2, 2],
            "padding": [0, 0],
            "dilation": [1, 1],
            "transposed": True,
            "output_padding": [0, 0],
            "groups": 1,
            "output_mask": [True, True, False],
        },
    ),
]


@pytest.mark.parametrize(("name", "arguments"), COUNTED, ids=[f"{case[0]}-{n}" for n, case in enumerate(COUNTED)])
def test_flops(name: str, arguments: dict[str, Any]) -> None:
    """Operations are counted as torch counts those of the operators that it runs."""
    call = {
        key: value for key, value in arguments.items() if name != "aten.convolution_backward.default" or key != "bias"
    }
    with FlopCounterMode(display=False) as counter:
        overload(name)(**call)
    facts = {key: to_facts(value) for key, value in call.items()}
    assert flops(name, facts) == counter.get_total_flops()
