"""Valid calls of operators on quantized, packed, nested and MKL-DNN tensors, which torch's databases do not reach."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import torch
from torch import ones

Q: Final = torch.ops.quantized
Args = tuple[Any, ...] | dict[str, Any]
"""Arguments by place, or by name."""


def quantized(*sizes: int, dtype: torch.dtype = torch.quint8) -> torch.Tensor:
    """Return ones, quantized."""
    return torch.quantize_per_tensor(torch.ones(sizes), 0.1, 0, dtype)


def _weight(*sizes: int) -> torch.Tensor:
    return quantized(*sizes, dtype=torch.qint8)


def channels(*sizes: int) -> torch.Tensor:
    """Return ones, quantized by channel."""
    scales, zeros = torch.ones(sizes[0]), torch.zeros(sizes[0], dtype=torch.int64)
    return torch.quantize_per_channel(torch.ones(sizes), scales, zeros, 0, torch.qint8)


def whole(*numbers: int) -> torch.Tensor:
    """Return a tensor of integers."""
    return torch.tensor(numbers)


def _convolution(count: int, *, is_transposed: bool = False) -> Args:
    """Return a weight and what packs it."""
    numbers = ([1] * count, [0] * count, *([[0] * count] if is_transposed else []), [1] * count, 1)
    return _weight(*((2, 3) if is_transposed else (3, 2)), *[3] * count), ones(3), *numbers


def _packed_convolution(count: int, *, is_transposed: bool = False) -> Any:
    name = f"conv_transpose{count}d_prepack" if is_transposed else f"conv{count}d_prepack"
    return getattr(Q, name)(*_convolution(count, is_transposed=is_transposed))


def _alone(count: int) -> Args:
    return (_packed_convolution(count, is_transposed=True),)


def _convolved(count: int, *, is_transposed: bool = False) -> Args:
    return quantized(1, 2, *[5] * count), _packed_convolution(count, is_transposed=is_transposed), 0.1, 0


def _dynamic(count: int, *, is_transposed: bool = False) -> Args:
    return ones(1, 2, *[5] * count), _packed_convolution(count, is_transposed=is_transposed)


def _linear(features: int = 4, outputs: int = 3) -> Any:
    return Q.linear_prepack(_weight(outputs, features), ones(outputs))


def _half(features: int = 4, outputs: int = 3) -> Any:
    return Q.linear_prepack_fp16(ones(outputs, features), ones(outputs))


def _rows(bits: int) -> Any:
    zeros = torch.zeros(5)
    dtype = torch.quint8 if bits == 8 else torch.quint4x2
    weight = torch.quantize_per_channel(ones(5, 8), torch.ones(5), zeros, 0, dtype)
    return Q.embedding_bag_prepack(weight)


def _cell(gates: int, state: Any) -> Args:
    inner, outer = _linear(4, 5 * gates), _linear(5, 5 * gates)
    return ones(2, 4), state, inner, outer, ones(5 * gates), ones(5 * gates)


def nested(features: int = 4) -> torch.Tensor:
    """Return a nested tensor of two parts."""
    return torch.nested.nested_tensor([torch.ones(2, features), torch.ones(3, features)])


def mkldnn(*sizes: int) -> torch.Tensor:
    """Return ones in MKL-DNN's layout."""
    return torch.ones(sizes).to_mkldnn()


def _attention(*tail: Any) -> Args:
    x = ones(2, 3, 8)
    return x, x.clone(), x.clone(), 8, 2, ones(24, 8), ones(24), ones(8, 8), ones(8), *tail


def _encoder() -> Args:
    norm = (ones(8), ones(8))
    weights = (ones(24, 8), ones(24), ones(8, 8), ones(8))
    feed = (ones(16, 8), ones(16), ones(8, 16), ones(8))
    return ones(2, 3, 8), 8, 2, *weights, True, False, 1e-5, *norm, *norm, *feed


def _observed() -> Args:
    return {
        "self": ones(3, 4),
        "observer_on": whole(1),
        "fake_quant_on": whole(1),
        "running_min": ones(3),
        "running_max": ones(3),
        "scale": ones(3),
        "zero_point": torch.zeros(3, dtype=torch.int32),
        "averaging_const": 0.1,
        "quant_min": 0,
        "quant_max": 255,
        "ch_axis": 0,
        "per_row_fake_quant": True,
    }


@cache
def objects(kind: str) -> dict[str, Any]:
    """Return packed parameters of a class, of other sizes, schemes and uses."""
    if "Linear" in kind:
        found = {
            "much wider": _linear(400, 3),
            "narrower": _linear(1, 3),
            "longer": _linear(4, 400),
            "half": _half(),
            "half, wider": _half(400, 3),
            "no bias": Q.linear_prepack(_weight(3, 4), None),
            "per channel": Q.linear_prepack(channels(3, 4), ones(3)),
        }
    elif "Conv" in kind:
        found = {
            f"{count}d{' transposed' * flag}": _packed_convolution(count, is_transposed=flag)
            for count in ((3,) if "Conv3d" in kind else (1, 2))
            for flag in (False, True)
        }
        count = 3 if "Conv3d" in kind else 2
        ends = ([1] * count, [0] * count, [1] * count)
        prepack = getattr(Q, f"conv{count}d_prepack")
        found["more channels"] = prepack(_weight(3, 20, *[3] * count), None, *ends, 1)
        found["groups"] = prepack(_weight(4, 1, *[3] * count), ones(4), *ends, 2)
        found["per channel"] = prepack(channels(3, 2, *[3] * count), ones(3), *ends, 1)
        found["large kernel"] = prepack(_weight(3, 2, *[9] * count), ones(3), *ends, 1)
    elif "Embedding" in kind:
        found = {"8 bits": _rows(8), "4 bits": _rows(4)}
    else:
        found = {}
    return found


def _faked(zeros: torch.dtype = torch.int32) -> dict[str, Any]:
    return {
        "self": ones(3, 4),
        "scale": ones(3),
        "zero_point": torch.zeros(3, dtype=zeros),
        "axis": 0,
        "quant_min": 0,
        "quant_max": 255,
    }


def _dilated(count: int) -> Args:
    numbers = ([3] * count, ones(3), [1] * count, [0] * count, [2] * count)
    return ones(1, 2, *[6] * count), ones(3, 2, *[3] * count), *numbers


def _groups_of_tensors() -> Args:
    return [ones(3, 4), ones(2)], [2.0, 3.0]


_LINEAR_TAIL: Final = (0.1, 0)
_BINARY: Final = tuple(f"quantized::{name}{relu}" for name in ("add", "mul") for relu in ("", "_relu"))

CALLS: dict[str, Callable[[], Args]] = {
    "_quantized::conv2d": lambda: _convolved(2),
    "_quantized::conv2d_relu": lambda: _convolved(2),
    "_quantized::conv_transpose1d": lambda: _convolved(1, is_transposed=True),
    "_quantized::conv_transpose2d": lambda: _convolved(2, is_transposed=True),
    "_quantized::linear": lambda: (quantized(2, 4), _linear(), *_LINEAR_TAIL),
    "_quantized::linear_dynamic": lambda: (ones(2, 4), _linear()),
    "_quantized::wrapped_quantized_linear": lambda: (
        ones(2, 4),
        torch.tensor(0.1),
        torch.tensor(0),
        ones(3, 4),
        torch.tensor(0.1),
        torch.tensor(0),
        ones(3),
        torch.tensor(0.1),
        torch.tensor(0),
        3,
    ),
    "_quantized::_wrapped_linear_prepack": lambda: (ones(3, 4), torch.tensor(0.1), torch.tensor(0), ones(3)),
    "aten::_wrapped_linear_prepack": lambda: (ones(3, 4), torch.tensor(0.1), torch.tensor(0), ones(3)),
    "aten::_addmm_activation": lambda: (ones(4), ones(2, 3), ones(3, 4)),
    "aten::_amp_update_scale": lambda: (ones(1), torch.zeros(1, dtype=torch.int32), ones(1), 2.0, 0.5, 3),
    "aten::_dyn_quant_pack_4bit_weight": lambda: (
        torch.ones(8, 32, dtype=torch.uint8),
        ones(8, 1),
        None,
        64,
        64,
        8,
    ),
    "aten::_fused_moving_avg_obs_fq_helper": _observed,
    "aten::_fused_moving_avg_obs_fq_helper_functional": _observed,
    "aten::fused_moving_avg_obs_fake_quant": _observed,
    "aten::_dimI": lambda: (torch.eye(3).to_sparse(),),
    "aten::_dimV": lambda: (torch.eye(3).to_sparse(),),
    "aten::_to_dense": lambda: (torch.eye(3).to_sparse(),),
    "aten::crow_indices": lambda: (torch.eye(3).to_sparse_csr(),),
    "aten::col_indices": lambda: (torch.eye(3).to_sparse_csr(),),
    "aten::_is_all_true": lambda: (ones(3).bool(),),
    "aten::_is_any_true": lambda: (ones(3).bool(),),
    "aten::_make_per_tensor_quantized_tensor": lambda: (torch.ones(3, 4, dtype=torch.int8), 0.1, 0),
    "aten::_masked_softmax": lambda: (ones(2, 2, 3, 3), torch.ones(2, 3, dtype=torch.bool), 3, 1),
    "aten::_masked_softmax_backward": lambda: (
        ones(2, 2, 3, 3),
        ones(2, 2, 3, 3),
        torch.ones(2, 2, 3, 3, dtype=torch.bool),
        3,
    ),
    "aten::_mkldnn_reshape": lambda: (mkldnn(3, 4), [4, 3]),
    "aten::_mkldnn_transpose": lambda: (mkldnn(3, 4), 0, 1),
    "aten::_native_multi_head_attention": lambda: _attention(),
    "aten::_transformer_encoder_layer_fwd": _encoder,
    "aten::_nested_sum_backward": lambda: (nested(1), nested(), [2], True),
    "aten::_nested_tensor_size": lambda: (nested(),),
    "aten::_nested_tensor_storage_offsets": lambda: (nested(),),
    "aten::_nested_tensor_strides": lambda: (nested(),),
    "aten::nested_to_padded_tensor": lambda: (nested(), 0.0, [2, 3, 4]),
    "aten::to_padded_tensor": lambda: (nested(), 0.0, [2, 3, 4]),
    "aten::linear_backward": lambda: (nested(), nested(3), ones(3, 4), [True] * 3),
    "aten::matmul_backward": lambda: (
        nested(3),
        nested(),
        torch.nested.nested_tensor([ones(4, 3), ones(4, 3)]),
        [True, True],
    ),
    "aten::_scaled_mm_v2": lambda: (
        ones(16, 16).to(torch.float8_e4m3fn),
        ones(16, 16).to(torch.float8_e4m3fn).t(),
        [torch.ones(())],
        [0],
        [0],
        [torch.ones(())],
        [0],
        [0],
        None,
        torch.float32,
    ),
    "aten::_sparse_addmm": lambda: (ones(3, 4), torch.eye(3).to_sparse(), ones(3, 4)),
    "aten::_sparse_broadcast_to": lambda: (torch.eye(3).to_sparse(), [2, 3, 3]),
    "aten::_validate_sparse_bsc_tensor_args": lambda: (whole(0, 1, 2), whole(0, 1), ones(2, 2, 2), [4, 4]),
    "aten::_validate_sparse_bsr_tensor_args": lambda: (whole(0, 1, 2), whole(0, 1), ones(2, 2, 2), [4, 4]),
    "aten::_validate_sparse_coo_tensor_args": lambda: (torch.zeros(2, 3, dtype=torch.int64), ones(3), [2, 2]),
    "aten::sparse_bsr_tensor.crow_col_value": lambda: {
        "crow_indices": whole(0, 1, 2),
        "col_indices": whole(0, 1),
        "values": ones(2, 2, 2),
    },
    "aten::sparse_bsc_tensor.ccol_row_value": lambda: {
        "ccol_indices": whole(0, 1, 2),
        "row_indices": whole(0, 1),
        "values": ones(2, 2, 2),
    },
    "aten::cosine_embedding_loss": lambda: (ones(3, 4), ones(3, 4), ones(3)),
    "aten::dequantize.tensors": lambda: ([quantized(3, 4), quantized(2)],),
    "aten::dequantize.self": lambda: (channels(3, 4),),
    "aten::empty_quantized": lambda: ([3, 4], channels(3, 4)),
    "aten::fbgemm_pack_quantized_matrix.KN": lambda: (torch.ones(3, 4, dtype=torch.int8), 4, 3),
    "aten::glu_jvp": lambda: (ones(3, 2), ones(3, 4), ones(3, 4), 1),
    "aten::glu_backward_jvp": lambda: (ones(3, 4), ones(3, 2), ones(3, 4), ones(3, 2), ones(3, 4), 1),
    "aten::int_repr": lambda: (channels(3, 4),),
    "aten::linalg_tensorinv": lambda: (torch.eye(4).reshape(2, 2, 2, 2), 2),
    "aten::masked_select_backward": lambda: (ones(3), ones(3), torch.ones(3, dtype=torch.bool)),
    "aten::mkldnn_linear": lambda: (mkldnn(2, 4), mkldnn(3, 4), mkldnn(3)),
    "aten::mkldnn_linear_backward_input": lambda: ([2, 4], mkldnn(2, 3), ones(3, 4)),
    "aten::mkldnn_linear_backward_weights": lambda: (mkldnn(2, 3), mkldnn(2, 4), ones(3, 4), True),
    "aten::mkldnn_linear_backward": lambda: (mkldnn(2, 4), mkldnn(2, 3), ones(3, 4), [True] * 3),
    "aten::mkldnn_max_pool3d": lambda: (mkldnn(1, 2, 4, 4, 4), [2] * 3, [2] * 3, [0] * 3, [1] * 3, False),
    "aten::q_scale": lambda: (quantized(3),),
    "aten::q_zero_point": lambda: (quantized(3),),
    "aten::quantize_per_tensor": lambda: (ones(3, 4), 0.1, 0, torch.quint8),
    "aten::quantize_per_tensor.tensor_qparams": lambda: (ones(3, 4), torch.tensor(0.1), torch.tensor(0), torch.quint8),
    "aten::quantize_per_tensor.tensors": lambda: ([ones(3, 4), ones(2)], ones(2), whole(0, 0), torch.quint8),
    "aten::quantized_max_pool2d": lambda: (quantized(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], [1, 1], False),
    "aten::quantized_max_pool3d": lambda: (quantized(1, 2, 4, 4, 4), [2] * 3, [2] * 3, [0] * 3, [1] * 3, False),
    "aten::random_.from": lambda: (ones(3), 0, 5),
    "aten::sparse_resize_": lambda: (torch.eye(3).to_sparse(), [4, 4], 2, 0),
    "aten::sparse_resize_and_clear_": lambda: (torch.eye(3).to_sparse(), [2, 2], 2, 0),
    "aten::resize_as_sparse_": lambda: (torch.eye(3).to_sparse(), torch.eye(4).to_sparse()),
    "aten::copy_sparse_to_sparse_": lambda: (torch.eye(3).to_sparse(), torch.eye(3).to_sparse()),
    "aten::sparse_mask": lambda: (ones(3, 3), torch.eye(3).to_sparse()),
    "aten::coalesce": lambda: (torch.sparse_coo_tensor(torch.zeros(2, 3, dtype=torch.int64), ones(3), (2, 2)),),
    "mkl::_mkl_linear": lambda: (
        ones(2, 4),
        torch.ops.mkl._mkl_reorder_linear_weight(ones(3, 4), 2),
        ones(3, 4),
        ones(3),
        2,
    ),
    "mkldnn::_linear_pointwise": lambda: (ones(2, 4), ones(3, 4), ones(3), "relu", [], ""),
    "mkldnn::_reorder_linear_weight": lambda: (ones(3, 4), 2),
    "mkldnn::_nbytes": lambda: (mkldnn(3, 4),),
    "mkldnn::_get_mkldnn_serialized_md": lambda: (mkldnn(3, 4),),
    "mkldnn_prepacked::conv2d_prepack": lambda: (
        ones(3, 2, 3, 3),
        ones(3),
        [1, 1],
        [0, 0],
        [1, 1],
        1,
        [1, 2, 5, 5],
        "relu",
    ),
    "mkldnn_prepacked::conv2d_run": lambda: (
        ones(1, 2, 5, 5),
        torch.ops.mkldnn_prepacked.conv2d_prepack(
            ones(3, 2, 3, 3), ones(3), [1, 1], [0, 0], [1, 1], 1, [1, 2, 5, 5], "relu"
        ),
    ),
    "onednn::linear_dynamic_fp16": lambda: (ones(2, 4), torch.ops.onednn.linear_prepack_fp16(ones(3, 4), None), None),
    "onednn::qbatch_norm2d": lambda: (
        torch.ones(1, 2, 4, 4, dtype=torch.uint8),
        0.1,
        0,
        ones(2),
        ones(2),
        ones(2),
        ones(2),
        1e-5,
        0.1,
        0,
        torch.uint8,
    ),
    "onednn::qlinear_pointwise": lambda: (
        torch.ones(2, 4, dtype=torch.uint8),
        0.1,
        0,
        torch.ops.onednn.qlinear_prepack(torch.ones(3, 4, dtype=torch.int8), None),
        ones(3),
        whole(0, 0, 0),
        ones(3),
        0.1,
        0,
        torch.uint8,
        "none",
        [],
        "",
    ),
    "prims::iota": lambda: {
        "length": 5,
        "start": 0,
        "step": 1,
        "dtype": torch.int64,
        "device": torch.device("cpu"),
        "requires_grad": False,
    },
    "prims::squeeze": lambda: (ones(3, 1), [1]),
    "quantization::_Bfloat16QuantizedToFloat": lambda: (torch.ops.quantization._FloatToBfloat16Quantized(ones(3, 4)),),
    "aten::slow_conv_dilated2d": lambda: _dilated(2),
    "aten::slow_conv_dilated3d": lambda: _dilated(3),
    "aten::_pad_packed_sequence": lambda: (ones(5, 4), whole(2, 2, 1), False, 0.0, 3),
    "aten::embedding_renorm_": lambda: (ones(5, 4), whole(0, 1, 4), 1.0, 2.0),
    "aten::embedding_sparse_backward": lambda: (ones(3, 4), whole(0, 1, 4), 5, -1, False),
    "aten::cummaxmin_backward": lambda: (ones(3, 4), ones(3, 4), torch.zeros(3, 4, dtype=torch.int64), 1),
    "aten::gather_backward": lambda: (ones(3, 2), ones(3, 4), 1, torch.zeros(3, 2, dtype=torch.int64), False),
    "aten::_gather_sparse_backward": lambda: (ones(3, 4), 1, torch.zeros(3, 2, dtype=torch.int64), ones(3, 2)),
    "aten::_fused_rms_norm": lambda: (ones(3, 4), [4], ones(4), 1e-5),
    "aten::_unsafe_index.Tensor": lambda: (ones(3, 4), [whole(0, 2), None]),
    "aten::_unsafe_index_put": lambda: (ones(3, 4), [whole(0, 2)], ones(2, 4), True),
    "aten::_unsafe_masked_index": lambda: (ones(3), torch.ones(2, dtype=torch.bool), [whole(0, 2)], 0),
    "aten::_unsafe_masked_index_put_accumulate": lambda: (
        ones(3),
        torch.ones(2, dtype=torch.bool),
        [whole(0, 2)],
        ones(2),
    ),
    "aten::_index_put_impl_": lambda: (ones(3, 4), [whole(0, 2)], ones(2, 4), True, True),
    "aten::_index_put_impl": lambda: (ones(3, 4), [whole(0, 2)], ones(2, 4), False, True),
    "aten::_histogramdd_bin_edges": lambda: (ones(5, 2), [3, 3]),
    "aten::_histogramdd_from_bin_cts": lambda: (ones(5, 2), [3, 3]),
    "aten::_histogramdd_from_bin_tensors": lambda: (ones(5, 2), [torch.arange(4.0), torch.arange(4.0)]),
    "aten::histogram.bins_tensor": lambda: {"self": ones(5), "bins": torch.arange(4.0), "weight": ones(5)},
    "aten::bincount": lambda: (whole(0, 1, 4), ones(3), 2),
    "aten::unique_dim": lambda: (ones(3, 4), 1, True, True, True),
    "aten::_unique2": lambda: (whole(1, 1, 2), True, True, True),
    "aten::searchsorted.Tensor": lambda: {
        "sorted_sequence": torch.ones(2, 4),
        "self": ones(2, 3),
        "sorter": torch.zeros(2, 4, dtype=torch.int64),
    },
    "aten::searchsorted.Scalar": lambda: {
        "sorted_sequence": torch.arange(4.0),
        "self": 2.0,
        "sorter": torch.arange(4),
    },
    "aten::bucketize.Tensor": lambda: (ones(3), torch.arange(4.0)),
    "aten::pad_sequence": lambda: ([ones(3, 4), ones(2, 4)], True, 0.0, "left"),
    "aten::_fake_quantize_learnable_per_channel_affine": lambda: {
        **_faked(torch.float32),
        "grad_factor": 1.0,
    },
    "aten::_fake_quantize_learnable_per_channel_affine_backward": lambda: {
        **_faked(torch.float32),
        "grad": ones(3, 4),
        "grad_factor": 1.0,
    },
    "aten::fake_quantize_per_channel_affine": lambda: _faked(),
    "aten::fake_quantize_per_channel_affine_cachemask": lambda: _faked(),
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": lambda: (
        ones(3, 4),
        ones(1),
        torch.zeros(1, dtype=torch.int32),
        whole(1),
        0,
        255,
    ),
    "aten::choose_qparams_optimized": lambda: (ones(64), 64, 200, 0.16, 8),
    "aten::_choose_qparams_per_tensor": lambda: (ones(3, 4), False),
    "aten::binomial": lambda: (ones(3, 4), ones(3, 4)),
    "aten::native_channel_shuffle": lambda: (ones(1, 4, 3, 3), 2),
    "aten::as_strided": lambda: (ones(3, 4), [2, 2], [4, 1], 1),
    "aten::as_strided_copy": lambda: (ones(3, 4), [2, 2], [4, 1], 1),
    "aten::as_strided_": lambda: (ones(3, 4), [2, 2], [4, 1], 1),
    "aten::as_strided_scatter": lambda: (ones(3, 4), ones(2, 2), [2, 2], [4, 1], 1),
    "aten::_nested_tensor_from_tensor_list": lambda: ([ones(2, 4), ones(3, 4)],),
    "aten::_nested_compute_contiguous_strides_offsets": lambda: (torch.tensor([[2, 4], [3, 4]]),),
    "aten::to_sparse_bsr": lambda: (torch.eye(4), [2, 2]),
    "aten::to_sparse_bsc": lambda: (torch.eye(4), [2, 2]),
    "aten::_to_sparse_csr": lambda: (torch.eye(4),),
    "aten::_weight_norm_differentiable_backward": lambda: (ones(3, 4), ones(3, 4), ones(3, 1), ones(3, 1), 0),
    "aten::fbgemm_linear_quantize_weight": lambda: (ones(3, 4),),
    "aten::_saturate_weight_to_fp16": lambda: (ones(3, 4),),
    "aten::unsafe_split_with_sizes": lambda: (ones(5), [2, 3]),
    "aten::split_with_sizes_copy": lambda: (ones(5), [2, 3]),
    "aten::_amp_foreach_non_finite_check_and_unscale_": lambda: ([ones(3, 4), ones(2)], ones(1), ones(1)),
    "aten::_foreach_addcmul_.ScalarList": lambda: (
        [ones(3, 4), ones(2)],
        [ones(3, 4), ones(2)],
        [ones(3, 4), ones(2)],
        [1.0, 2.0],
    ),
    "aten::_foreach_lerp_.ScalarList": lambda: ([ones(3, 4), ones(2)], [ones(3, 4), ones(2)], [1.0, 2.0]),
    "aten::_foreach_norm.Scalar": lambda: ([ones(3, 4), ones(2)], 2),
    "aten::_foreach_pow_.ScalarList": _groups_of_tensors,
    "aten::_foreach_clamp_max_.ScalarList": _groups_of_tensors,
    "aten::_standard_gamma_grad": lambda: (ones(3, 4), ones(3, 4)),
    "aten::_dirichlet_grad": lambda: (ones(3, 4), ones(3, 4), ones(3, 4)),
    "aten::thnn_conv2d": lambda: (ones(1, 2, 5, 5), ones(3, 2, 3, 3), [3, 3], ones(3), [1, 1], [0, 0]),
    "aten::conv_tbc_backward": lambda: (ones(3, 2, 4), ones(5, 2, 3), ones(3, 3, 4), ones(4), 0),
    "aten::_lu_with_info": lambda: (torch.eye(3), True, True),
    "aten::lu_solve": lambda: (ones(3, 2), torch.eye(3), torch.tensor([1, 2, 3], dtype=torch.int32)),
    "aten::linalg_lu_solve": lambda: (torch.eye(3), torch.tensor([1, 2, 3], dtype=torch.int32), ones(3, 2)),
    "aten::linalg_householder_product": lambda: (ones(4, 3), ones(3)),
    "aten::ormqr": lambda: (ones(4, 3), ones(3), ones(4, 2)),
    "aten::cholesky_inverse": lambda: (torch.eye(3),),
    "aten::_cdist_forward": lambda: (ones(3, 4), ones(2, 4), 2.0, 1),
    "aten::_euclidean_dist": lambda: (ones(3, 4), ones(2, 4)),
    "aten::multinomial": lambda: (ones(3, 4), 2, False),
    "aten::take": lambda: (ones(3, 4), whole(0, 11)),
    "aten::put_": lambda: (ones(3, 4), whole(0, 11), ones(2), True),
    "aten::index_reduce_": lambda: (ones(3, 4), 0, whole(0, 2), ones(2, 4), "prod"),
    "aten::scatter_reduce_.two": lambda: (ones(3, 4), 0, torch.zeros(2, 4, dtype=torch.int64), ones(2, 4), "amax"),
    "aten::masked_scatter_": lambda: (ones(3), torch.ones(3, dtype=torch.bool), ones(3)),
    "aten::col2im": lambda: (ones(1, 18, 9), [5, 5], [3, 3], [1, 1], [0, 0], [1, 1]),
    "aten::im2col": lambda: (ones(1, 2, 5, 5), [3, 3], [1, 1], [0, 0], [1, 1]),
    "aten::max_unpool2d": lambda: (ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, dtype=torch.int64), [4, 4]),
    "aten::max_unpool3d": lambda: (
        ones(1, 1, 2, 2, 2),
        torch.zeros(1, 1, 2, 2, 2, dtype=torch.int64),
        [4] * 3,
        [2] * 3,
        [0] * 3,
    ),
    "aten::_sparse_compressed_tensor_with_dims": lambda: {
        "nnz": 2,
        "dense_dim": 0,
        "size": [3, 4],
        "blocksize": [],
        "index_dtype": torch.int64,
        "layout": torch.sparse_csr,
    },
    "aten::to_sparse.sparse_dim": lambda: (torch.eye(3), 1),
    "aten::_coalesced_": lambda: (torch.eye(3).to_sparse(), True),
    "aten::_convert_weight_to_int4pack_for_cpu": lambda: (torch.ones(16, 64, dtype=torch.int32), 2),
    "quantized::embedding_bag_2bit_prepack": lambda: (ones(5, 8),),
    "quantized::embedding_bag_4bit_prepack": lambda: (ones(5, 8),),
    "quantized::embedding_bag_byte_prepack": lambda: (ones(5, 8),),
    "quantized::add_scalar": lambda: (quantized(3, 4), 2.0),
    "quantized::add_scalar_relu": lambda: (quantized(3, 4), 2.0),
    "quantized::add_scalar.Tensor": lambda: (quantized(3, 4), torch.tensor(2.0)),
    "quantized::add_scalar_out": lambda: (quantized(3, 4), 2.0, quantized(3, 4)),
    "quantized::add_scalar_relu_out": lambda: (quantized(3, 4), 2.0, quantized(3, 4)),
    "quantized::mul_scalar": lambda: (quantized(3, 4), 2.0),
    "quantized::mul_scalar_relu": lambda: (quantized(3, 4), 2.0),
    "quantized::mul_scalar_out": lambda: (quantized(3, 4), 2.0, quantized(3, 4)),
    "quantized::mul_scalar_relu_out": lambda: (quantized(3, 4), 2.0, quantized(3, 4)),
    **{name: lambda: (quantized(3, 4), quantized(3, 4), 0.1, 0) for name in _BINARY},
    **{f"{name}.out": lambda: (quantized(3, 4), quantized(3, 4), quantized(3, 4)) for name in _BINARY},
    **{f"{name}_out": lambda: (quantized(3, 4), quantized(3, 4), quantized(3, 4)) for name in _BINARY},
    **{f"{name}.Scalar": lambda: (quantized(3, 4), 2.0) for name in _BINARY},
    "quantized::cat": lambda: ([quantized(2, 3), quantized(2, 3)], 0, 0.1, 0),
    "quantized::cat_relu": lambda: ([quantized(2, 3), quantized(2, 3)], 0, 0.1, 0),
    "quantized::celu": lambda: (quantized(3, 4), 0.1, 0, 1.0),
    "quantized::conv1d": lambda: _convolved(1),
    "quantized::conv1d_relu": lambda: _convolved(1),
    "quantized::conv1d_dynamic": lambda: _dynamic(1),
    "quantized::conv1d_prepack": lambda: _convolution(1),
    "quantized::conv1d_unpack": lambda: (_packed_convolution(1),),
    "quantized::conv2d.new": lambda: _convolved(2),
    "quantized::conv2d_relu.new": lambda: _convolved(2),
    "quantized::conv2d": lambda: (
        quantized(1, 2, 5, 5),
        _packed_convolution(2),
        [1, 1],
        [0, 0],
        [1, 1],
        1,
        0.1,
        0,
    ),
    "quantized::conv2d_dynamic": lambda: _dynamic(2),
    "quantized::conv2d_prepack": lambda: _convolution(2),
    "quantized::conv2d_unpack": lambda: (_packed_convolution(2),),
    "quantized::conv2d_unpack_sizes": lambda: (_packed_convolution(2),),
    "quantized::conv2d_stride": lambda: (_packed_convolution(2),),
    "quantized::conv_prepack": lambda: _convolution(2),
    "quantized::conv_unpack": lambda: (_packed_convolution(2),),
    "quantized::conv3d.new": lambda: _convolved(3),
    "quantized::conv3d_relu.new": lambda: _convolved(3),
    "quantized::conv3d_dynamic": lambda: _dynamic(3),
    "quantized::conv3d_prepack": lambda: _convolution(3),
    "quantized::conv3d_unpack": lambda: (_packed_convolution(3),),
    **{
        f"quantized::conv_transpose{count}d{tail}": partial(make, count, is_transposed=True)
        for count in (1, 2, 3)
        for tail, make in (("", _convolved), ("_dynamic", _dynamic), ("_prepack", _convolution))
    },
    **{f"quantized::conv_transpose{count}d_unpack": partial(_alone, count) for count in (1, 2, 3)},
    "quantized::dropout": lambda: (quantized(3, 4), 0.1, 0, 0.5, True),
    "quantized::elu": lambda: (quantized(3, 4), 0.1, 0, 1, 1, 1),
    "quantized::embedding_byte": lambda: (_rows(8), whole(0, 1, 4)),
    "quantized::embedding_4bit": lambda: (_rows(4), whole(0, 1, 4)),
    "quantized::embedding_bag_byte": lambda: (_rows(8), whole(0, 1, 4), whole(0, 2)),
    "quantized::embedding_bag_4bit": lambda: (_rows(4), whole(0, 1, 4), whole(0, 2)),
    "quantized::embedding_bag_prepack": lambda: (
        torch.quantize_per_channel(ones(5, 8), torch.ones(5), torch.zeros(5), 0, torch.quint8),
    ),
    "quantized::embedding_bag_unpack": lambda: (_rows(8),),
    "quantized::embedding_bag_2bit_unpack": lambda: (torch.ones(5, 8, dtype=torch.uint8),),
    "quantized::embedding_bag_4bit_unpack": lambda: (torch.ones(5, 8, dtype=torch.uint8),),
    "quantized::embedding_bag_2bit_rowwise_offsets": lambda: (
        Q.embedding_bag_2bit_prepack(ones(5, 8)),
        whole(0, 1, 4),
        whole(0, 2),
    ),
    "quantized::embedding_bag_4bit_rowwise_offsets": lambda: (
        Q.embedding_bag_4bit_prepack(ones(5, 8)),
        whole(0, 1, 4),
        whole(0, 2),
    ),
    "quantized::embedding_bag_byte_rowwise_offsets": lambda: (
        Q.embedding_bag_byte_prepack(ones(5, 8)),
        whole(0, 1, 4),
        whole(0, 2),
    ),
    "quantized::hardswish": lambda: (quantized(3, 4), 0.1, 0),
    "quantized::int4mm_packed_weight_cpu": lambda: (
        ones(2, 64),
        torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.ones(16, 64, dtype=torch.int32), 2),
        torch.tensor(32),
        ones(2, 16, 2),
    ),
    "quantized::leaky_relu": lambda: (quantized(3, 4), 0.1, False, 0.1, 0),
    **{f"quantized::{name}": lambda: (quantized(2, 4), _linear(), *_LINEAR_TAIL) for name in ("linear", "linear_relu")},
    "quantized::linear_dynamic": lambda: (ones(2, 4), _linear()),
    "quantized::linear_relu_dynamic": lambda: (ones(2, 4), _linear()),
    "quantized::linear_dynamic_fp16": lambda: (ones(2, 4), _half()),
    "quantized::linear_relu_dynamic_fp16": lambda: (ones(2, 4), _half()),
    "quantized::linear_dynamic_fp16_unpacked_weight": lambda: (ones(2, 4), ones(3, 4), ones(3)),
    "quantized::linear_prepack": lambda: (_weight(3, 4), ones(3)),
    "quantized::linear_prepack_fp16": lambda: (ones(3, 4), ones(3)),
    "quantized::linear_unpack": lambda: (_linear(),),
    "quantized::linear_unpack_fp16": lambda: (_half(),),
    "quantized::linear_with_input_q_dq_qweight_dq_output_fp32": lambda: (ones(2, 4), 0.1, 0, _linear()),
    "quantized::linear_with_input_q_dq_qweight_dq_relu_output_fp32": lambda: (ones(2, 4), 0.1, 0, _linear()),
    "quantized::make_quantized_cell_params_dynamic": lambda: (
        _linear(4, 15),
        _linear(5, 15),
        ones(15),
        ones(15),
    ),
    "quantized::make_quantized_cell_params_fp16": lambda: (_half(4, 15), _half(5, 15)),
    "quantized::matmul": lambda: (quantized(2, 3), quantized(3, 4), 0.1, 0),
    "quantized::prelu": lambda: (quantized(1, 2, 4), quantized(2), 0.1, 0),
    "quantized::quantized_lstm_cell_dynamic": lambda: _cell(4, [torch.zeros(2, 5), torch.zeros(2, 5)]),
    "quantized::quantized_gru_cell_dynamic": lambda: _cell(3, torch.zeros(2, 5)),
    "quantized::quantized_rnn_relu_cell_dynamic": lambda: _cell(1, torch.zeros(2, 5)),
    "quantized::quantized_rnn_tanh_cell_dynamic": lambda: _cell(1, torch.zeros(2, 5)),
    "quantized::relu6": lambda: (quantized(3, 4),),
    "quantized::sigmoid": lambda: (quantized(3, 4), 0.1, 0),
    "quantized::softmax": lambda: (quantized(3, 4), 1, 0.1, 0),
    "quantized::threshold": lambda: (quantized(3, 4), 0.5, 0.0),
}
"""Schema -> makes a valid call."""
