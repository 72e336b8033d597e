"""Kernels: scaled dot-product attention and its variants."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from pt2kit.runtime.arrays import BOOL, Array, require, reserve, running, wide
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


KERNELS: Final = {
    "aten.scaled_dot_product_attention.default": first(attend),
    "aten._scaled_dot_product_attention_math.default": lambda query, key, value, dropout_mask, **options: attend(
        query, key, value, **options
    )[::2],
}
