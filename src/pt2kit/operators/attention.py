"""Attention rows of the operator table: sizes of results, masks, FLOPs."""

from __future__ import annotations

from pt2kit.operators.facts import Mismatch, Sizes, Tensor, agree, broadcast, expect, new, shape_text, unlike_strides
from pt2kit.operators.pointwise import common_device
from pt2kit.operators.promotion import category
from pt2kit.operators.vocabulary import one_dtype
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, same


def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_grouped: bool = False) -> Tensor:
    """Return the result of attention over the last but one dimension of key and value.

    Raises:
        Mismatch: sizes, dtypes or devices do not fit one another.
    """
    for name, one in (("query", query), ("key", key), ("value", value)):
        expect(one.rank >= 2, f"{name}: expected 2 dimensions or more, got {shape_text(one.sizes)}", "sizes")
    dtype = one_dtype(query, key, value)
    agree(query.sizes[-1], key.sizes[-1], "expected query and key of one embedding size")
    agree(key.sizes[-2], value.sizes[-2], "expected as many keys as values")
    if is_grouped:
        expect(query.rank == key.rank == value.rank >= 3, "expected heads in query, key and value, got none", "sizes")
        for one in (key, value):
            rest = query.sizes[-3] % one.sizes[-3]
            expect(same(rest, 0), "expected a multiple of the key's heads in query, got others", "sizes")
        batch: Sizes = (*broadcast(query.sizes[:-3], key.sizes[:-3], value.sizes[:-3]), query.sizes[-3])
    else:
        batch = broadcast(query.sizes[:-2], key.sizes[:-2], value.sizes[:-2])
    if mask is not None:
        _check_mask(mask, (*batch, query.sizes[-2], key.sizes[-2]))
    result = new((*batch, query.sizes[-2], value.sizes[-1]), dtype, common_device([query, key, value]))
    return unlike_strides(result)


def _check_mask(mask: Tensor, scores: Sizes) -> None:
    """Refuse a mask of integers, or one that does not expand to the scores."""
    is_mask = mask.dtype is None or mask.dtype is ScalarType.BOOL or category(mask.dtype) >= 2
    expect(is_mask, "attn_mask: expected bools or floats, got integers", "dtype")
    for size, wanted in zip(reversed(mask.sizes), reversed(scores), strict=False):
        if same(size, 1) is False and same(size, wanted) is False:
            raise Mismatch(
                f"attn_mask: expected to expand to {shape_text(scores)}, got {shape_text(mask.sizes)}", "sizes"
            )


def sums(query: Tensor, sizes: Sizes) -> Tensor:
    """Return the logarithms of the sums of exponentials: float32, or float64 for such queries."""
    dtype = query.dtype if query.dtype is ScalarType.DOUBLE else ScalarType.FLOAT
    return Tensor(tuple(sizes), None if query.dtype is None else dtype, None, query.device)


def attention_flops(query: Tensor, key: Tensor, value: Tensor, of_scores: int, of_values: int) -> Size:
    """Count products for each head: of scores, and of weighted values; a gradient computes scores again."""
    rows = query.numel // query.sizes[-1] if query.sizes[-1] != 0 else 0
    return rows * key.sizes[-2] * (of_scores * query.sizes[-1] + of_values * value.sizes[-1])


def packed_attention_flops(query: Tensor, key: Tensor, value: Tensor, max_k: Size | None = None) -> Size:
    """Count as attention, with heads behind the sequence; each part of a packed batch has the longest length."""
    rows = query.numel // query.sizes[-1]
    length = max_k if query.rank == 3 and max_k is not None else key.sizes[-3]
    return 2 * rows * length * (query.sizes[-1] + value.sizes[-1])


def encoder_flops(src: Tensor, embed_dim: int, ffn_weight_1: Tensor) -> Size:
    """Count multi-head attention, and a network of two layers."""
    rows = src.sizes[0] * src.sizes[1]
    attention = 8 * rows * embed_dim * embed_dim + 4 * rows * src.sizes[1] * embed_dim
    return attention + 4 * rows * ffn_weight_1.numel
