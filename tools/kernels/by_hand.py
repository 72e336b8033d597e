"""Valid calls of operators that neither torch's test databases reach nor chance meets, by schema. Needs torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from tools.kernels import packed
from tools.kernels.packed import Args, channels, mkldnn, nested, quantized, whole
from torch import ones


def _sparse() -> torch.Tensor:
    return torch.eye(3).to_sparse()


def _rows() -> torch.Tensor:
    return torch.eye(4).to_sparse_csr()


def _bytes(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=torch.uint8)


def _small(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=torch.int8)


def _halves(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=torch.bfloat16)


def _float8(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes).to(torch.float8_e4m3fn)


def _ctc_gradient(inputs: Any, targets: Any) -> dict[str, Any]:
    scores = torch.randn(5, 2, 7).log_softmax(-1)
    labels = torch.ones(2, 3, dtype=torch.int64)
    given = {"log_probs": scores, "targets": labels, "input_lengths": inputs, "target_lengths": targets, "blank": 0}
    loss, alpha = torch.ops.aten._ctc_loss(scores, labels, inputs, targets, 0, False)
    return {**given, "grad": torch.ones_like(loss), "neg_log_likelihood": loss, "log_alpha": alpha}


def _weights(gates: int) -> list[torch.Tensor]:
    """Of a recurrent layer of 4 features and 5 states."""
    return [ones(5 * gates, 4), ones(5 * gates, 5), ones(5 * gates), ones(5 * gates)]


def _packed(states: int, gates: int) -> Args:
    """A recurrent layer over sequences of 3 and 2 steps that are packed."""
    state = [torch.zeros(1, 2, 5)] * states
    hidden = state if states > 1 else state[0]
    return ones(5, 4), whole(2, 2, 1), hidden, _weights(gates), True, 1, 0.0, False, False


def _layer(states: int, gates: int) -> Args:
    """A recurrent layer over 3 steps of 2 sequences."""
    state = [torch.zeros(1, 2, 5)] * states
    hidden = state if states > 1 else state[0]
    return ones(3, 2, 4), hidden, _weights(gates), True, 1, 0.0, False, False, False


def _cell(states: int, gates: int) -> Args:
    state = [torch.zeros(2, 5)] * states
    return ones(2, 4), state if states > 1 else state[0], *_weights(gates)


def _convolution() -> dict[str, Any]:
    numbers = {"kernel_size": [3, 3], "stride": [1, 1], "padding": [0, 0]}
    return {"self": ones(1, 2, 5, 5), "weight": ones(4, 2, 3, 3), "bias": ones(4), **numbers}


def _upsampled(axes: int, *flags: bool) -> Args:
    """Resampling from 4 to 6 in some dimensions."""
    return torch.ones(1, 2, *[4] * axes), [6] * axes, *flags, None


def _upsampled_gradient(axes: int, *flags: bool) -> Args:
    return torch.ones(1, 2, *[6] * axes), [6] * axes, [1, 2, *[4] * axes], *flags


def _norm(statistics: bool) -> Args:
    channels = (ones(2), ones(2), ones(2), ones(2)) if statistics else (None,) * 4
    return (ones(1, 2, 4, 4), *channels)


def _scattered(name: str, value: Any) -> dict[str, Any]:
    index = torch.zeros(2, 4, dtype=torch.int64)
    return {"self": ones(3, 4), "dim": 0, "index": index, name: value, "reduce": "add"}


def _lists(scalars: Any) -> Args:
    return [ones(3, 4), ones(2)], [ones(3, 4), ones(2)], [ones(3, 4), ones(2)], scalars


def _compressed(*more: Any) -> Args:
    return whole(0, 1, 2), whole(0, 1), ones(2), *more


_CONVOLVED: Final = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
_POOLED: Final = ([2, 2], [2, 2], [0, 0], [1, 1], False)


def _quantized_norm(*sizes: int) -> Args:
    return quantized(*sizes), *(ones(sizes[1]) for _ in range(4)), 1e-5, 0.1, 0


def _bag_gradient() -> Args:
    weight, indices, offsets = ones(5, 4), whole(0, 1, 2), whole(0, 2)
    _, rows, sizes, _ = torch.ops.aten.embedding_bag(weight, indices, offsets)
    return ones(2, 4), indices, offsets, rows, sizes, 5, False, 0, None


def _weights_of_four_bits() -> torch.Tensor:
    return torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.ones(16, 64, dtype=torch.int32), 2)


def _rows_of_bytes() -> torch.Tensor:
    return torch.ops.quantized.embedding_bag_byte_prepack(ones(5, 4))


def _pointwise(tail: Args) -> Args:
    weight = torch.ops.onednn.qconv_prepack(
        _small(4, 2, 3, 3), ones(4), 0.1, 0, [1, 1], [0, 0], [1, 1], 1, [1, 2, 5, 5]
    )
    head = (_bytes(1, 2, 5, 5), 0.1, 0, weight, ones(4), torch.zeros(4, dtype=torch.int64))
    return *head, *tail


_QUANTIZED_TAIL: Final[Args] = (None, [1, 1], [0, 0], [1, 1], 1, 0.1, 0, torch.uint8, "none", [], "")

CALLS: Final[dict[str, Callable[[], Args]]] = {
    "aten::_batch_norm_impl_index_backward": lambda: (
        0,
        ones(1, 2, 4, 4),
        ones(1, 2, 4, 4),
        ones(2),
        ones(2),
        ones(2),
        ones(2),
        ones(2),
        True,
        1e-5,
        [True] * 3,
        _bytes(0),
    ),
    "aten::_batch_norm_with_update_functional": lambda: (*_norm(True), 0.1, 1e-5),
    "aten::_convolution": lambda: (
        ones(1, 2, 5, 5),
        ones(4, 2, 3, 3),
        ones(4),
        *_CONVOLVED,
        False,
        False,
        False,
        False,
    ),
    "aten::_convolution_double_backward": lambda: (
        ones(1, 2, 5, 5),
        ones(4, 2, 3, 3),
        ones(4),
        ones(1, 4, 3, 3),
        ones(4, 2, 3, 3),
        ones(1, 2, 5, 5),
        *_CONVOLVED,
        [True] * 3,
    ),
    "aten::_convolution_mode": lambda: (
        ones(1, 2, 5, 5),
        ones(4, 2, 3, 3),
        ones(4),
        [1, 1],
        "same",
        [1, 1],
        1,
    ),
    "aten::_ctc_loss_backward": lambda: _ctc_gradient([5, 5], [3, 2]),
    "aten::_ctc_loss_backward.Tensor": lambda: _ctc_gradient(whole(5, 5), whole(3, 2)),
    "aten::_embedding_bag_sparse_backward": _bag_gradient,
    "aten::_empty_per_channel_affine_quantized": lambda: {
        "size": [3, 4],
        "scales": ones(3),
        "zero_points": whole(0, 0, 0),
        "axis": 0,
        "dtype": torch.qint8,
    },
    "aten::_empty_affine_quantized": lambda: {"size": [3, 4], "dtype": torch.qint8},
    "aten::_foreach_addcdiv.Tensor": lambda: _lists(ones(2)),
    "aten::_foreach_addcmul.Tensor": lambda: _lists(ones(2)),
    "aten::_grid_sampler_2d_cpu_fallback": lambda: (ones(1, 2, 4, 4), ones(1, 3, 3, 2), 0, 0, False),
    "aten::_grid_sampler_2d_cpu_fallback_backward": lambda: (
        ones(1, 2, 3, 3),
        ones(1, 2, 4, 4),
        ones(1, 3, 3, 2),
        0,
        0,
        False,
    ),
    "aten::_grouped_mm": lambda: (_halves(8, 16), _halves(2, 16, 8), torch.tensor([4, 8], dtype=torch.int32)),
    "aten::_int_mm": lambda: (_small(32, 16), _small(16, 8)),
    "aten::_jagged_to_padded_dense_forward": lambda: (ones(5, 4), [whole(0, 2, 5)], [3]),
    "aten::_padded_dense_to_jagged_forward": lambda: (ones(2, 3, 4), [whole(0, 2, 5)], 5),
    "aten::_make_per_channel_quantized_tensor": lambda: (
        _small(3, 4),
        torch.ones(3, dtype=torch.float64),
        whole(0, 0, 0),
        0,
    ),
    "aten::_native_batch_norm_legit_functional": lambda: (*_norm(True), True, 0.1, 1e-5),
    "aten::_nested_from_padded": lambda: (ones(2, 3, 4), torch.tensor([[2, 4], [3, 4]])),
    "aten::_nested_from_padded_and_nested_example": lambda: (ones(2, 3, 4), nested()),
    "aten::_nested_select_backward": lambda: (ones(2, 4), nested(), 0, 0),
    "aten::_nested_tensor_from_mask": lambda: (ones(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)),
    "aten::_nested_tensor_from_mask_left_aligned": lambda: (ones(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)),
    "aten::_nested_tensor_softmax_with_shape": lambda: (ones(2, 2, 3, 3), nested()),
    "aten::_pad_enum": lambda: (ones(1, 3, 4), [0, 0], 1),
    "aten::_pack_padded_sequence": lambda: (ones(3, 2, 4), whole(3, 2), False),
    "aten::_pack_padded_sequence_backward": lambda: (ones(5, 4), [3, 2, 4], whole(2, 2, 1), False),
    "aten::_reshape_from_tensor": lambda: (ones(3, 4), whole(4, 3)),
    "aten::_rowwise_prune": lambda: (ones(3, 4), torch.tensor([True, False, True]), torch.int32),
    "aten::_scaled_mm": lambda: (_float8(16, 16), _float8(16, 16).t(), torch.ones(()), torch.ones(())),
    "aten::_slow_conv2d_forward": _convolution,
    "aten::_slow_conv2d_backward.output_mask": lambda: {
        **{key: value for key, value in _convolution().items() if key != "bias"},
        "grad_output": ones(1, 4, 3, 3),
        "output_mask": [True, True, True],
    },
    "aten::_sparse_coo_tensor_unsafe": lambda: {
        "indices": torch.zeros(2, 3, dtype=torch.int64),
        "values": ones(3),
        "size": [2, 2],
    },
    "aten::_sparse_coo_tensor_with_dims": lambda: {
        "sparse_dim": 2,
        "dense_dim": 0,
        "size": [3, 4],
        "layout": torch.sparse_coo,
    },
    "aten::_sparse_csr_prod.dim_dtype": lambda: (_rows(), [0], True),
    "aten::_sparse_csr_sum.dim_dtype": lambda: (_rows(), [0], True),
    "aten::_sparse_log_softmax": lambda: (_sparse(), 0, False),
    "aten::_sparse_softmax": lambda: (_sparse(), 0, False),
    "aten::_sparse_log_softmax_backward_data": lambda: (_sparse(), _sparse(), 0, _sparse()),
    "aten::_sparse_softmax_backward_data": lambda: (_sparse(), _sparse(), 0, _sparse()),
    "aten::_sparse_mask_projection": lambda: (_sparse(), _sparse()),
    "aten::_sparse_mm.reduce": lambda: (_rows(), ones(4, 3), "sum"),
    "aten::_sparse_sparse_matmul": lambda: (_sparse(), _sparse()),
    "aten::_sparse_sum_backward": lambda: (ones(3).to_sparse(), _sparse(), [0]),
    "aten::_spdiags": lambda: (ones(2, 3), whole(0, 1), [3, 3]),
    "aten::_upsample_bicubic2d_aa.vec": lambda: _upsampled(2, False),
    "aten::_upsample_bicubic2d_aa_backward": lambda: _upsampled_gradient(2, False),
    "aten::_upsample_lanczos2d_aa.vec": lambda: _upsampled(2, False),
    "aten::_upsample_lanczos2d_aa_backward": lambda: _upsampled_gradient(2, False),
    "aten::_upsample_nearest_exact1d.vec": lambda: _upsampled(1),
    "aten::_upsample_nearest_exact2d.vec": lambda: _upsampled(2),
    "aten::_upsample_nearest_exact3d.vec": lambda: _upsampled(3),
    "aten::_upsample_nearest_exact2d_backward": lambda: _upsampled_gradient(2),
    "aten::_upsample_nearest_exact3d_backward": lambda: _upsampled_gradient(3),
    "aten::_validate_compressed_sparse_indices": lambda: (True, whole(0, 1, 2), whole(0, 1), 2, 2, 2),
    "aten::_validate_sparse_csr_tensor_args": lambda: _compressed([2, 2]),
    "aten::_validate_sparse_csc_tensor_args": lambda: _compressed([2, 2]),
    "aten::_validate_sparse_compressed_tensor_args": lambda: _compressed([2, 2], torch.sparse_csr),
    "aten::_weight_int4pack_mm_for_cpu": lambda: (ones(2, 64), _weights_of_four_bits(), 32, ones(2, 16, 2)),
    "aten::_weight_int8pack_mm": lambda: (ones(2, 16), _small(16, 16), ones(16)),
    "aten::affine_grid_generator": lambda: (ones(1, 2, 3), [1, 2, 4, 4], False),
    "aten::affine_grid_generator_backward": lambda: (ones(1, 4, 4, 2), [1, 2, 4, 4], False),
    "aten::ccol_indices": lambda: (torch.eye(3).to_sparse_csc(),),
    "aten::row_indices": lambda: (torch.eye(3).to_sparse_csc(),),
    "aten::chain_matmul": lambda: ([ones(3, 4)],),
    "aten::clip": lambda: (ones(3, 4), 0, 1),
    "aten::clip.Tensor": lambda: (ones(3, 4), ones(4), ones(4)),
    "aten::conv_tbc": lambda: (ones(5, 2, 3), ones(3, 3, 4), ones(4), 0),
    "aten::div.Scalar_mode": lambda: {"self": ones(3), "other": 2, "rounding_mode": "floor"},
    "aten::divide.Scalar_mode": lambda: {"self": ones(3), "other": 2, "rounding_mode": "trunc"},
    "aten::divide.Tensor_mode": lambda: {"self": ones(3), "other": ones(3), "rounding_mode": "trunc"},
    "aten::einsum": lambda: ("ij,jk->ik", [ones(3, 4), ones(4, 2)]),
    "aten::embedding_backward": lambda: (ones(3, 4), whole(0, 1, 2), 5, -1, False, False),
    "aten::embedding_bag.padding_idx": lambda: (
        ones(5, 4),
        whole(0, 1, 2),
        whole(0, 2),
        False,
        0,
        False,
        None,
        False,
        1,
    ),
    "aten::fake_quantize_per_channel_affine_cachemask_backward": lambda: (ones(3, 4), ones(3, 4).bool()),
    "aten::fake_quantize_per_tensor_affine_cachemask_backward": lambda: (ones(3, 4), ones(3, 4).bool()),
    "aten::float_power_.Scalar": lambda: (torch.ones(3, dtype=torch.float64), 2),
    "aten::float_power_.Tensor": lambda: (torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)),
    "aten::fused_moving_avg_obs_fake_quant": lambda: {
        "self": ones(3, 4),
        "observer_on": whole(1),
        "fake_quant_on": whole(1),
        "running_min": ones(1),
        "running_max": ones(1),
        "scale": ones(1),
        "zero_point": torch.zeros(1, dtype=torch.int32),
        "averaging_const": 0.1,
        "quant_min": 0,
        "quant_max": 255,
        "ch_axis": 0,
    },
    "aten::gradient.tensorarray": lambda: {
        "self": ones(4, 3),
        "spacing": [torch.arange(4.0), torch.arange(3.0)],
        "dim": [0, 1],
    },
    "aten::gradient.tensorarrayint": lambda: {"self": ones(4, 3), "spacing": [torch.arange(4.0)], "dim": 0},
    "aten::grid_sampler": lambda: (ones(1, 2, 4, 4), ones(1, 3, 3, 2), 0, 0, False),
    "aten::gru.data": lambda: _packed(1, 3),
    "aten::gru.input": lambda: _layer(1, 3),
    "aten::gru_cell": lambda: _cell(1, 3),
    "aten::hspmm": lambda: (_sparse(), ones(3, 2)),
    "aten::index_select_backward": lambda: (ones(2, 4), [3, 4], 0, whole(0, 2)),
    "aten::instance_norm": lambda: (*_norm(True), True, 0.1, 1e-5, False),
    "aten::inverse": lambda: (torch.eye(3),),
    "aten::linalg_cond.p_str": lambda: (ones(3, 3) + torch.eye(3), "fro"),
    "aten::linalg_matrix_power": lambda: (ones(3, 3), 2),
    "aten::linalg_norm.ord_str": lambda: (ones(3, 3), "fro", [0, 1]),
    "aten::lstm.data": lambda: _packed(2, 4),
    "aten::lstm.input": lambda: _layer(2, 4),
    "aten::lstm_cell": lambda: _cell(2, 4),
    "aten::matrix_power": lambda: (ones(3, 3), 2),
    "aten::mkldnn_convolution": lambda: (
        ones(1, 2, 5, 5),
        ones(4, 2, 3, 3),
        ones(4),
        [0, 0],
        [1, 1],
        [1, 1],
        1,
    ),
    "aten::mkldnn_adaptive_avg_pool2d": lambda: (mkldnn(1, 2, 4, 4), [2, 2]),
    "aten::mkldnn_adaptive_avg_pool2d_backward": lambda: (mkldnn(1, 2, 2, 2), mkldnn(1, 2, 4, 4)),
    "aten::mkldnn_max_pool2d": lambda: (mkldnn(1, 2, 4, 4), *_POOLED),
    "aten::native_norm.ScalarOpt_dim_dtype": lambda: (_sparse(), 2, [0, 1], False, None),
    "aten::nll_loss": lambda: (ones(3, 4), whole(0, 1, 2)),
    "aten::nll_loss2d": lambda: (ones(1, 3, 2, 2), torch.zeros(1, 2, 2, dtype=torch.int64)),
    "aten::nll_loss_nd": lambda: (ones(3, 4), whole(0, 1, 2)),
    "aten::norm.ScalarOpt_dim_dtype": lambda: {
        "self": ones(3, 4),
        "p": 2,
        "dim": [0],
        "keepdim": False,
        "dtype": torch.float64,
    },
    "aten::nuclear_norm.dim": lambda: (ones(3, 4), [0, 1]),
    "aten::orgqr": lambda: (ones(4, 3), ones(3)),
    "aten::q_per_channel_axis": lambda: (channels(3, 4),),
    "aten::q_per_channel_scales": lambda: (channels(3, 4),),
    "aten::q_per_channel_zero_points": lambda: (channels(3, 4),),
    "aten::quantize_per_channel": lambda: (ones(3, 4), ones(3), whole(0, 0, 0), 0, torch.qint8),
    "aten::quantize_per_tensor_dynamic": lambda: (ones(3, 4), torch.quint8, False),
    "aten::quantized_batch_norm": lambda: _quantized_norm(1, 2, 4, 4),
    "aten::rnn_relu.data": lambda: _packed(1, 1),
    "aten::rnn_relu.input": lambda: _layer(1, 1),
    "aten::rnn_relu_cell": lambda: _cell(1, 1),
    "aten::rnn_tanh.data": lambda: _packed(1, 1),
    "aten::rnn_tanh.input": lambda: _layer(1, 1),
    "aten::rnn_tanh_cell": lambda: _cell(1, 1),
    "aten::scatter.reduce": lambda: _scattered("src", ones(2, 4)),
    "aten::scatter.value_reduce": lambda: _scattered("value", 2),
    "aten::segment_reduce": lambda: {
        "data": ones(6, 2),
        "reduce": "sum",
        "lengths": whole(2, 4),
        "axis": 0,
        "unsafe": True,
    },
    "aten::slow_conv3d_forward": lambda: (
        ones(1, 2, 4, 4, 4),
        ones(4, 2, 3, 3, 3),
        [3] * 3,
        ones(4),
        [1] * 3,
        [0] * 3,
    ),
    "aten::slow_conv_transpose2d": lambda: (ones(1, 2, 4, 4), ones(2, 3, 3, 3), [3, 3], ones(3)),
    "aten::slow_conv_transpose3d": lambda: (ones(1, 2, 4, 4, 4), ones(2, 3, 3, 3, 3), [3] * 3, ones(3)),
    "aten::smm": lambda: (_sparse(), ones(3, 3)),
    "aten::sparse_compressed_tensor.comp_plain_value_size": lambda: {
        "compressed_indices": whole(0, 1, 2),
        "plain_indices": whole(0, 1),
        "values": ones(2),
        "size": [2, 2],
        "layout": torch.sparse_csr,
    },
    "aten::sparse_coo_tensor.indices_size": lambda: (torch.zeros(2, 3, dtype=torch.int64), ones(3), [2, 2]),
    "aten::sspaddmm": lambda: (_sparse(), _sparse(), ones(3, 3)),
    "aten::trace_backward": lambda: (torch.ones(()), [3, 4]),
    "aten::unflatten_dense_tensors": lambda: (ones(10), [ones(2, 3), ones(4)]),
    "aten::upsample_bicubic2d.vec": lambda: _upsampled(2, False),
    "aten::upsample_bilinear2d.vec": lambda: _upsampled(2, False),
    "aten::upsample_linear1d.vec": lambda: _upsampled(1, False),
    "aten::upsample_nearest1d.vec": lambda: _upsampled(1),
    "aten::upsample_nearest2d.vec": lambda: _upsampled(2),
    "aten::upsample_nearest3d.vec": lambda: _upsampled(3),
    "aten::upsample_trilinear3d.vec": lambda: _upsampled(3, False),
    "aten::upsample_nearest2d_backward": lambda: _upsampled_gradient(2),
    "aten::upsample_nearest3d_backward": lambda: _upsampled_gradient(3),
    "aten::value_selecting_reduction_backward": lambda: (ones(3), 1, whole(0, 1, 2), [3, 4], False),
    "aten::where.Scalar": lambda: (torch.ones(3, dtype=torch.bool), 1, 2),
    "aten::where.ScalarOther": lambda: (torch.ones(3, dtype=torch.bool), ones(3), 2),
    "aten::where.ScalarSelf": lambda: (torch.ones(3, dtype=torch.bool), 1, ones(3)),
    "mkldnn::_convolution_pointwise": lambda: (
        ones(1, 2, 5, 5),
        ones(4, 2, 3, 3),
        ones(4),
        [0, 0],
        [1, 1],
        [1, 1],
        1,
        "relu",
        [],
        "",
    ),
    "mkldnn::_convolution_pointwise.binary": lambda: (
        ones(1, 2, 5, 5),
        ones(1, 4, 3, 3),
        ones(4, 2, 3, 3),
        ones(4),
        [0, 0],
        [1, 1],
        [1, 1],
        1,
        "add",
        1.0,
        "relu",
        [],
        "",
    ),
    "mkldnn::_convolution_transpose_pointwise": lambda: (
        ones(1, 2, 4, 4),
        ones(2, 3, 3, 3),
        ones(3),
        [0, 0],
        [0, 0],
        [1, 1],
        [1, 1],
        1,
        "relu",
        [],
        "",
    ),
    "mkldnn::_linear_pointwise.binary": lambda: (ones(2, 3), ones(2, 4), ones(4, 3), ones(4), "add"),
    "onednn::qadd.tensor": lambda: (_bytes(2, 3), 0.1, 0, _bytes(2, 3), 0.1, 0, 0.1, 0, torch.uint8),
    "onednn::qmul.tensor": lambda: (_bytes(2, 3), 0.1, 0, _bytes(2, 3), 0.1, 0, 0.1, 0, torch.uint8),
    "onednn::qadd_relu.tensor": lambda: (_bytes(2, 3), 0.1, 0, _bytes(2, 3), 0.1, 0, 0.1, 0, torch.uint8),
    "onednn::qconv2d_pointwise": lambda: _pointwise(_QUANTIZED_TAIL),
    "onednn::qconv_pointwise": lambda: _pointwise(_QUANTIZED_TAIL),
    "onednn::qconv_prepack": lambda: (
        _small(4, 2, 3, 3),
        ones(4),
        0.1,
        0,
        [1, 1],
        [0, 0],
        [1, 1],
        1,
        [1, 2, 5, 5],
    ),
    "onednn::qlinear_prepack": lambda: (_small(4, 3), None),
    "prims::broadcast_in_dim": lambda: (ones(3), [2, 3], [1]),
    "prims::normal": lambda: {
        "shape": [3],
        "mean": 0.0,
        "std": 1.0,
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "requires_grad": False,
    },
    "quantized::batch_norm": lambda: _quantized_norm(1, 2, 4, 4),
    "quantized::batch_norm1d": lambda: _quantized_norm(1, 2, 4),
    "quantized::batch_norm1d_relu": lambda: _quantized_norm(1, 2, 4),
    "quantized::batch_norm2d": lambda: _quantized_norm(1, 2, 4, 4),
    "quantized::batch_norm2d_relu": lambda: _quantized_norm(1, 2, 4, 4),
    "quantized::batch_norm3d": lambda: _quantized_norm(1, 2, 4, 4, 4),
    "quantized::batch_norm3d_relu": lambda: _quantized_norm(1, 2, 4, 4, 4),
    "quantized::batch_norm_relu": lambda: _quantized_norm(1, 2, 4, 4),
    "quantized::cat_out": lambda: ([quantized(2, 3), quantized(2, 3)], 0, quantized(4, 3)),
    "quantized::cat_relu_out": lambda: ([quantized(2, 3), quantized(2, 3)], 0, quantized(4, 3)),
    "quantized::clamp": lambda: (quantized(2, 3), 0.0, 1.0),
    "quantized::embedding_bag_2bit_prepack_with_rowwise_min_max": lambda: (ones(5, 4), ones(5, 2)),
    "quantized::embedding_bag_4bit_prepack_with_rowwise_min_max": lambda: (ones(5, 4), ones(5, 2)),
    "quantized::embedding_bag_byte_prepack_with_rowwise_min_max": lambda: (ones(5, 4), ones(5, 2)),
    "quantized::embedding_bag_byte_unpack": lambda: (_rows_of_bytes(),),
    "quantized::group_norm": lambda: (quantized(1, 4, 3), 2, ones(4), ones(4), 1e-5, 0.1, 0),
    "quantized::instance_norm": lambda: (quantized(1, 4, 3, 3), ones(4), ones(4), 1e-5, 0.1, 0),
    "quantized::layer_norm": lambda: (quantized(2, 4), [4], ones(4), ones(4), 1e-5, 0.1, 0),
    "quantized::max_pool1d": lambda: (quantized(1, 2, 4), [2], [2], [0], [1], False),
    "quantized::max_pool2d": lambda: (_bytes(1, 2, 4, 4), *_POOLED),
}
"""Schema ("aten::lstm.input") -> makes a valid call."""


def calls() -> Iterator[tuple[str, tuple[tuple[Any, ...], dict[str, Any]]]]:
    """Iterate operators ("aten.lstm.input"), each with a valid call, as far as this release has them."""
    for schema, make in (*CALLS.items(), *packed.CALLS.items()):
        base, _, overload = schema.partition(".")
        with contextlib.suppress(AttributeError, RuntimeError):
            args = make()
            name = f"{base.replace('::', '.')}.{overload or 'default'}"
            yield name, (args, {}) if isinstance(args, tuple) else ((), args)
