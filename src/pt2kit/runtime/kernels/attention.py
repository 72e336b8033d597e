"""Kernels: scaled dot-product attention and its variants, attention with projections, fused encoder layers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from pt2kit.runtime.arrays import BOOL, Array, require, reserve, running, wide
from pt2kit.runtime.kernels.activations import gelu
from pt2kit.runtime.kernels.normalization import native_layer_norm
from pt2kit.runtime.kernels.products import linear
from pt2kit.runtime.table import first, kernel


def attend(
    query: Array, key: Array, value: Array, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return attention, the logarithm of the sum of each row's exponentials, and the weights."""
    q, k, v = wide(query), wide(key), wide(value)
    require(min(q.ndim, k.ndim, v.ndim) >= 2, "expected queries, keys and values of at least 2 dimensions")
    if enable_gqa and q.shape[-3] != k.shape[-3]:
        k, v = (np.repeat(one, q.shape[-3] // one.shape[-3], -3) for one in (k, v))
    factor = q.dtype.type(1 / math.sqrt(q.shape[-1]) if scale is None else scale) if q.shape[-1] else q.dtype.type(1)
    reserve((*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2]), q.dtype)
    scores = np.matmul(q * factor, np.swapaxes(k, -1, -2))
    if is_causal:
        scores = np.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -np.inf).astype(q.dtype)
    if attn_mask is not None:
        is_bool = attn_mask.dtype == BOOL
        scores = np.where(attn_mask, scores, -np.inf).astype(q.dtype) if is_bool else scores + wide(attn_mask)
    if not scores.shape[-1]:
        return np.zeros((*scores.shape[:-1], v.shape[-1]), q.dtype), np.full(scores.shape[:-1], -np.inf), scores
    most = scores.max(-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0).astype(q.dtype)
    weights = np.exp(scores - most)
    total = weights.sum(-1, keepdims=True)
    logsumexp = (np.log(total) + most)[..., 0]
    weights /= np.where(total == 0, 1, total).astype(q.dtype)
    if dropout_p > 0:
        kept = running().random.random(weights.shape) >= dropout_p
        weights = np.where(kept, weights / (1 - dropout_p), 0).astype(q.dtype)
    return np.matmul(weights, v), logsumexp, weights


@kernel("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention_for_cpu(query: Array, key: Array, value: Array, **options: Any) -> Any:
    grouped = query.ndim > 2 and query.shape[-3] != key.shape[-3]
    return attend(query, key, value, enable_gqa=grouped, **options)[:2]


@kernel("aten._scaled_dot_product_efficient_attention.default")
def efficient_attention(
    query: Array, key: Array, value: Array, attn_bias: Any, compute_log_sumexp: bool, **options: Any
) -> Any:
    result, logsumexp, _ = attend(query, key, value, attn_bias, **options)
    nothing = np.zeros((), np.int64)
    return result, logsumexp if compute_log_sumexp else logsumexp[..., :0], nothing, nothing


@kernel("aten._native_multi_head_attention.default")
def native_multi_head_attention(
    query: Array, key: Array, value: Array, embed_dim: int, num_head: int, qkv_weight: Array, qkv_bias: Array,
    proj_weight: Array, proj_bias: Array, mask: Any = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Project queries, keys and values, attend in each head, project the result; True in a mask leaves a place out."""
    parts = zip((query, key, value), np.split(qkv_weight, 3), np.split(qkv_bias, 3), strict=True)
    heads = [linear(*part).reshape(*part[0].shape[:2], num_head, -1).swapaxes(1, 2) for part in parts]
    if mask is not None:
        mask = ~(mask[:, None, None] if mask_type == 1 and mask.ndim == 2 else mask).astype(bool)
    result, _, weights = attend(heads[0], heads[1], heads[2], mask)
    result = linear(result.swapaxes(1, 2).reshape(query.shape), proj_weight, proj_bias)
    return result, (weights.mean(1) if average_attn_weights else weights) if need_weights else None


@kernel("aten._transformer_encoder_layer_fwd.default")
def transformer_encoder_layer(
    src: Array, embed_dim: int, num_heads: int, qkv_weight: Array, qkv_bias: Array, proj_weight: Array,
    proj_bias: Array, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Array, norm_bias_1: Array,
    norm_weight_2: Array, norm_bias_2: Array, ffn_weight_1: Array, ffn_bias_1: Array, ffn_weight_2: Array,
    ffn_bias_2: Array, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Attend and apply two linear layers, with a norm before or behind each of both."""

    def attended(x: Array) -> Array:
        projections = qkv_weight, qkv_bias, proj_weight, proj_bias
        result: Array = native_multi_head_attention(
            x, x, x, embed_dim, num_heads, *projections, mask, need_weights=False, mask_type=mask_type
        )[0]
        return result

    def forward(x: Array) -> Array:
        inner = linear(x, ffn_weight_1, ffn_bias_1)
        return linear(gelu(inner, "none") if use_gelu else np.maximum(inner, 0), ffn_weight_2, ffn_bias_2)

    x = src
    norms = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    for layer, norm in zip((attended, forward), norms, strict=True):
        given = native_layer_norm(x, [embed_dim], *norm, eps)[0] if norm_first else x
        x = x + layer(given)
        x = x if norm_first else native_layer_norm(x, [embed_dim], *norm, eps)[0]
    return x


KERNELS: Final = {
    "aten.scaled_dot_product_attention.default": first(attend),
    "aten._scaled_dot_product_attention_math.default": lambda query, key, value, dropout_mask, **options: attend(
        query, key, value, **options
    )[::2],
}
