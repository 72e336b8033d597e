"""Normalization rows of the operator table: channels, statistics, the dimensions that are normalized."""

from __future__ import annotations

from typing import Any, Final

from pt2kit.operators.facts import Mismatch, Sizes, Tensor, Unknown, agree, axis, expect, like, may_be, new, shape_text
from pt2kit.operators.pointwise import new_like, preserved_strides
from pt2kit.operators.vocabulary import if_contiguous
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size

_ACCUMULATED: Final = (ScalarType.FLOAT, ScalarType.DOUBLE)
"""Dtypes whose statistics are of the same dtype in every release and on every device."""


def preserved(tensor: Tensor, dtype: ScalarType | None = None) -> Tensor:
    """Return a new tensor of the sizes and the memory order of another one."""
    return new_like(tensor, dtype or tensor.dtype, preserved_strides(tensor))


def unknown_dtype() -> ScalarType:
    """Return a dtype whose statistics are of an unknown one."""
    return ScalarType.UNKNOWN


def statistics(tensor: Tensor, sizes: Sizes, dtype: ScalarType | None = None) -> Tensor:
    """Return means or deviations of a tensor: of its dtype, or of one that depends on release and device."""
    own = tensor.dtype if dtype is None else dtype
    return new(sizes, own if own in _ACCUMULATED else None, tensor.device)


def channels(input: Tensor, *others: Tensor | None) -> Size:
    """Return the number of channels, which each of the other tensors has an element for."""
    if not input.rank:
        raise Mismatch("input: expected a batch and channels, got a scalar tensor", "sizes")
    if input.rank == 1:
        raise Unknown("an input without channels")
    for one in others:
        if one is not None:
            expect(one.rank == 1, f"expected one dimension per channel, got {shape_text(one.sizes)}", "sizes")
            agree(one.sizes[0], input.sizes[1], "expected an element for each channel")
    return input.sizes[1]


def normalized(input: Tensor, training: Any, *others: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result and the statistics; kernels without training return none on the CPU."""
    count = channels(input, *others)
    is_plain = all(one is None or one.dtype is input.dtype for one in others)
    saved = statistics(input, (count if training else 0,), input.dtype if is_plain else ScalarType.UNKNOWN)
    return preserved(input), saved, saved


def outer_sizes(input: Tensor, normalized_shape: Sizes, *others: Tensor | None) -> tuple[Size, ...]:
    """Return the sizes in front of the normalized ones.

    Raises:
        Mismatch: `normalized_shape` is not how the input's sizes end, or another tensor is not of these sizes.
    """
    count = len(normalized_shape)
    message = f"normalized_shape: expected how {shape_text(input.sizes)} ends, got {shape_text(normalized_shape)}"
    expect(0 < count <= input.rank and may_be(input.sizes[-count:], normalized_shape), message, "sizes")
    for one in others:
        if one is not None and not may_be(one.sizes, normalized_shape):
            got = shape_text(one.sizes)
            raise Mismatch(f"expected a weight of sizes {shape_text(normalized_shape)}, got {got}", "sizes")
    return input.sizes[:-count]


def softened(tensor: Tensor, dim: int, dtype: ScalarType | None) -> Tensor:
    """Return a softmax along a dimension, or its gradient."""
    axis(dim, tensor.rank)
    return if_contiguous(like(tensor, dtype=dtype), tensor)
