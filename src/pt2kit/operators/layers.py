"""Normalization, attention and loss rows of the operator table: statistics, masks, reductions, FLOPs."""

from __future__ import annotations

from typing import Final

from pt2kit.operators.facts import (
    Sizes,
    Tensor,
    Unknown,
    agree,
    axis,
    broadcast,
    expect,
    like,
    may_be,
    new,
    require,
    require_rank,
    shape_text,
    unlike_strides,
)
from pt2kit.operators.pointwise import common_device, new_like, preserved_strides
from pt2kit.operators.promotion import category, integer_sum_type
from pt2kit.operators.vocabulary import if_contiguous, one_dtype, require_one_dtype, typed
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, same

_ACCUMULATED: Final = (ScalarType.FLOAT, ScalarType.DOUBLE)
"""Dtypes whose statistics are of the same dtype in every release and on every device."""


def preserved(tensor: Tensor, dtype: ScalarType | None = None) -> Tensor:
    """Return a new tensor of the sizes and the memory order of another one."""
    return new_like(tensor, dtype or tensor.dtype, preserved_strides(tensor))


def statistics(tensor: Tensor, sizes: Sizes, dtype: ScalarType | None = None) -> Tensor:
    """Return means or deviations of a tensor: of its dtype, or of one that depends on release and device."""
    own = tensor.dtype if dtype is None else dtype
    return new(sizes, own if own in _ACCUMULATED else None, tensor.device)


def channels(input: Tensor, *others: Tensor | None) -> Size:
    """Return the number of channels, which each of the other tensors has an element for."""
    expect(input.rank > 0, "input: expected a batch and channels, got a scalar tensor", "sizes")
    if input.rank == 1:
        raise Unknown("an input without channels")
    for one in others:
        if one is not None:
            require(one.rank == 1, "sizes", "expected one dimension per channel", one)
            agree(one.sizes[0], input.sizes[1], "expected an element for each channel")
    return input.sizes[1]


def outer_sizes(input: Tensor, normalized_shape: Sizes, *others: Tensor | None) -> tuple[Size, ...]:
    """Return the sizes in front of the normalized ones.

    Raises:
        Mismatch: `normalized_shape` is not how the input's sizes end, or another tensor is not of these sizes.
    """
    count = len(normalized_shape)
    is_end = 0 < count <= input.rank and may_be(input.sizes[-count:], normalized_shape)
    require(is_end, "sizes", f"normalized_shape: expected how {shape_text(input.sizes)} ends", normalized_shape)
    expected = f"expected a weight of sizes {shape_text(normalized_shape)}"
    for one in others:
        require(one is None or may_be(one.sizes, normalized_shape), "sizes", expected, one)
    return input.sizes[:-count]


def softened(tensor: Tensor, dim: int, dtype: ScalarType | None) -> Tensor:
    """Return a softmax along a dimension, or its gradient."""
    axis(dim, tensor.rank)
    return if_contiguous(like(tensor, dtype=dtype), tensor)


def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_grouped: bool = False) -> Tensor:
    """Return the result of attention over the last but one dimension of key and value.

    Raises:
        Mismatch: sizes, dtypes or devices do not fit one another.
    """
    for name, one in (("query", query), ("key", key), ("value", value)):
        require(one.rank >= 2, "sizes", f"{name}: expected 2 dimensions or more", one)
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
        fits = same(size, 1) is not False or same(size, wanted)
        require(fits, "sizes", f"attn_mask: expected to expand to {shape_text(scores)}", mask)


def sums(query: Tensor, sizes: Sizes) -> Tensor:
    """Return the logarithms of the sums of exponentials: float32, or float64 for such queries."""
    dtype = query.dtype if query.dtype is ScalarType.DOUBLE else ScalarType.FLOAT
    return Tensor(tuple(sizes), None if query.dtype is None else dtype, None, query.device)


def attention_flops(query: Tensor, key: Tensor, value: Tensor, of_scores: int, of_values: int) -> Size:
    """Count products for each head: of scores, and of weighted values; a gradient computes scores again."""
    rows = query.numel // query.sizes[-1] if query.sizes[-1] != 0 else 0
    return rows * key.sizes[-2] * (of_scores * query.sizes[-1] + of_values * value.sizes[-1])


def reduced(losses: Tensor, reduction: int) -> Tensor:
    """Return losses, or their mean (1) or sum (2); most kernels take any other number for 0."""
    return new((), losses.dtype, losses.device) if reduction in (1, 2) else losses


def summed(losses: Tensor, reduction: int) -> Tensor:
    """Return losses, or their mean (1) or sum (2), as `aten.sum` adds them: integers as int64."""
    result = reduced(losses, reduction)
    return typed(result, integer_sum_type(result.dtype)) if reduction == 2 and result.dtype is not None else result


def has_sizes_of(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same sizes and strides."""
    return one.sizes == other.sizes and one.strides == other.strides


def _rest(scores: Tensor) -> tuple[Size, ...]:
    """Return the sizes of scores without the classes: those of dimension 1, or the only one."""
    return (*scores.sizes[:1], *scores.sizes[2:]) if scores.rank > 1 else ()


def _check_classes(scores: Tensor, weight: Tensor | None) -> None:
    """Refuse scores without classes, and weights that are not one for each class."""
    expect(scores.rank > 0, "self: expected dimensions, got a scalar tensor", "sizes")
    if weight is not None:
        require_rank(weight, (1,), "weight")
        agree(weight.sizes[0], scores.sizes[min(1, scores.rank - 1)], "expected a weight for each class")


def likelihood(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """Return the negative log-likelihood of the target classes, which are numbers."""
    _check_classes(self, weight)
    require_one_dtype(self, weight)
    rest = _rest(self)
    require_rank(target, (len(rest),) if len(rest) else (0, 1), "target")
    if target.dtype is not None:
        is_index = target.dtype in (ScalarType.LONG, ScalarType.BYTE)
        expect(is_index, f"target: expected int64 or uint8, got {target.dtype.name}", "dtype")
    pairs = zip(rest, target.sizes, strict=False)
    sizes = [agree(one, other, "expected a target for each row") for one, other in pairs]
    return reduced(if_contiguous(like(self, sizes), self, target), reduction)


def of_probabilities(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """Return the cross entropy of scores, by probabilities of classes."""
    _check_classes(self, weight)
    for one, other in zip(self.sizes, target.sizes, strict=True):
        agree(one, other, "expected a probability for each score")
    losses = if_contiguous(like(self, _rest(self)), self, target)
    return reduced(losses if target.dtype is self.dtype else typed(unlike_strides(losses), None), reduction)
