"""Loss rows of the operator table: reductions, scores of classes."""

from __future__ import annotations

from typing import Any

from pt2kit.operators.facts import Mismatch, Sizes, Tensor, agree, expect, like, new, require_rank
from pt2kit.operators.normalization import preserved as preserved
from pt2kit.operators.promotion import integer_sum_type
from pt2kit.operators.vocabulary import if_contiguous, is_number, require_one_dtype, typed
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size


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
    if not scores.rank:
        raise Mismatch("self: expected dimensions, got a scalar tensor", "sizes")
    if weight is not None:
        require_rank(weight, (1,), "weight")
        agree(weight.sizes[0], scores.sizes[min(1, scores.rank - 1)], "expected a weight for each class")


def _losses(scores: Tensor, target: Tensor, weight: Tensor | None) -> Sizes:
    """Return the sizes of the losses of scores of classes, by targets that are numbers of classes."""
    _check_classes(scores, weight)
    require_one_dtype(scores, weight)
    rest = _rest(scores)
    require_rank(target, (len(rest),) if len(rest) else (0, 1), "target")
    if target.dtype is not None:
        is_index = target.dtype in (ScalarType.LONG, ScalarType.BYTE)
        expect(is_index, f"target: expected int64 or uint8, got {target.dtype.name}", "dtype")
    pairs = zip(rest, target.sizes, strict=False)
    return tuple([agree(one, other, "expected a target for each row") for one, other in pairs])


def likelihood(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """Return the negative log-likelihood of the target classes."""
    return reduced(if_contiguous(like(self, _losses(self, target, weight)), self, target), reduction)


def cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, label_smoothing: Any = 0
) -> Tensor:
    """Return the cross entropy of scores, by numbers of classes or by probabilities of classes."""
    is_valid = not is_number(label_smoothing) or 0 <= label_smoothing <= 1
    expect(is_valid, f"label_smoothing: expected a number from 0 to 1, got {label_smoothing}")
    if target.rank != self.rank:
        return likelihood(self, target, weight, reduction)
    _check_classes(self, weight)
    for one, other in zip(self.sizes, target.sizes, strict=True):
        agree(one, other, "expected a probability for each score")
    losses = if_contiguous(like(self, _rest(self)), self, target)
    if target.dtype is not self.dtype:
        losses = Tensor(losses.sizes, None, None, losses.device)
    return reduced(losses, reduction)
