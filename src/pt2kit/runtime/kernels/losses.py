"""Kernels: losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pt2kit.runtime.arrays import (
    ARRAYS,
    FLOAT32,
    INT64,
    Array,
    Keep,
    cast,
    check_indices,
    computed,
    floating,
    kind,
    mapped,
    require,
    reserve,
    result_type,
    rounding,
    wide,
)
from pt2kit.runtime.kernels.elementwise import log_sigmoid
from pt2kit.runtime.kernels.products import distance
from pt2kit.runtime.kernels.reductions import log_softmax
from pt2kit.runtime.table import first, kernel


def reduced(loss: Any, reduction: int) -> Any:
    """Return losses unchanged (0), their mean (1) or sum (2).

    Raises:
        OperatorError: another reduction.
    """
    require(reduction in (0, 1, 2), f"expected the reduction 0, 1 or 2, got {reduction}")
    if reduction == 0:
        return loss
    return loss.sum() / loss.dtype.type(loss.size) if reduction == 1 else loss.sum()


def _reducing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of losses, which are weighted if it gets weights, and reduced, by default to their mean.

    The function gets what rounds a step, as torch does that computes most losses by several operators, then the
    operands.
    """

    def run(*args: Any, weight: Any = None, reduction: int = 1, **options: Any) -> Any:
        arrays = {name: one for name, one in (*enumerate(args), *options.items()) if isinstance(one, ARRAYS)}
        # Next to half precision, what torch computes of integers is in single precision.
        is_mixed = any(kind(one.dtype) < 2 for name, one in arrays.items() if name != "target")
        keep = rounding(FLOAT32 if is_mixed else result_type(*arrays.values()))
        loss = keep(function(keep, *mapped(args, wide), **mapped(options, wide)))
        return reduced(loss if weight is None else keep(loss * wide(weight)), reduction)

    return run


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of losses of predictions and targets."""
    losses = _reducing(function)

    def run(self: Array, target: Array, **options: Any) -> Any:
        dtype = result_type(self, target)
        return losses(cast(self, dtype), cast(target, dtype), **options)

    return run


def _smooth_l1(_: Keep, a: Array, b: Array, beta: float = 1.0) -> Any:
    size = np.abs(a - b)
    return np.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta) if beta else size


def _divergence(keep: Keep, a: Array, b: Array, log_target: bool = False) -> Any:
    if log_target:
        return keep(np.exp(b)) * keep(b - a)
    return keep(b * keep(np.log(np.where(b == 0, 1, b)))) - keep(b * a)


def _with_logits(keep: Keep, a: Array, b: Array, pos_weight: Any = None) -> Any:
    logs = keep(log_sigmoid(a))
    if pos_weight is not None:
        logs = keep(logs * keep(keep(keep(wide(pos_weight) - 1) * b) + 1))
    return keep(keep(1 - b) * a) - logs


# Classes.


@kernel("aten.nll_loss_forward.default aten.nll_loss2d_forward.default", adapt=computed)
def nll_loss_forward(self: Array, target: Array, weight: Any, reduction: int, ignore_index: int) -> Any:
    scores, classes = (self[None], target.reshape(1)) if self.ndim == 1 else (self, target)
    used = classes != ignore_index
    chosen = check_indices(np.where(used, classes, 0), scores.shape[1])
    factor = np.ones_like(self, shape=scores.shape[1]) if weight is None else wide(weight)
    factors = np.where(used, factor[chosen], 0).astype(self.dtype)
    loss = -np.take_along_axis(scores, chosen[:, None], 1)[:, 0] * factors
    total = factors.sum()
    if reduction == 0:
        return np.where(used, loss, 0).reshape(target.shape), np.zeros((), self.dtype) if self.ndim > 1 else total
    loss = np.where(used, loss, 0).sum()
    return (loss / total if reduction == 1 else loss), total


@kernel("aten.cross_entropy_loss.default")
def cross_entropy_loss(
    self: Array, target: Array, weight: Any, reduction: int, ignore_index: int, label_smoothing: float
) -> Any:
    axis = 0 if self.ndim == 1 else 1
    count = self.shape[axis]
    scores = wide(cast(log_softmax(self, axis), self.dtype))
    factor = np.ones(count, scores.dtype) if weight is None else wide(weight)
    weighted = scores * factor.reshape([-1 if i == axis else 1 for i in range(self.ndim)])
    if kind(target.dtype) == 2:
        wanted = wide(target) * (1 - label_smoothing) + label_smoothing / count
        return reduced(-(weighted * wanted).sum(axis), reduction)
    plain, total = nll_loss_forward(scores, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return plain
    smooth = np.where(target != ignore_index, -weighted.sum(axis), 0).astype(scores.dtype)
    smooth = smooth.sum() / total if reduction == 1 else reduced(smooth, reduction)
    return (1 - label_smoothing) * plain + smooth * (label_smoothing / count)


@kernel("aten.multi_margin_loss.default")
def multi_margin_loss(self: Array, target: Array, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    x = np.atleast_2d(wide(self))
    classes = check_indices(target.reshape(-1), x.shape[1])
    rows = np.arange(len(x))
    loss = np.maximum(margin - x[rows, classes][:, None] + x, 0) ** p
    if weight is not None:
        loss = loss * wide(weight)[classes][:, None]
    loss[rows, classes] = 0
    return reduced((loss.sum(1) / x.shape[1]).reshape(target.shape), reduction)


@kernel("aten.multilabel_margin_loss_forward.default")
def multilabel_margin_loss_forward(self: Array, target: Array, reduction: int = 1) -> Any:
    x, labels = np.atleast_2d(wide(self)), np.atleast_2d(target)
    is_used = np.cumprod(labels >= 0, 1, dtype=INT64) > 0  # up to the first negative one
    chosen = check_indices(np.where(is_used, labels, 0), x.shape[1])
    is_target = np.zeros_like(x)
    np.maximum.at(is_target, (np.arange(len(x))[:, None], chosen), is_used)
    reserve((*x.shape, x.shape[1]), x.dtype)
    margins = np.maximum(1 - np.take_along_axis(x, chosen, 1)[:, :, None] + x[:, None], 0)
    losses = np.where(is_used[:, :, None] & (is_target == 0)[:, None], margins, 0).sum((1, 2)) / x.shape[1]
    return reduced(losses.reshape(self.shape[:-1]), reduction), is_target.reshape(target.shape)


@kernel("aten._ctc_loss.Tensor .default")
def ctc_loss(log_probs: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int) -> Any:
    x = wide(log_probs).astype(np.float64)
    single = x.ndim == 2
    if single:
        x = x[:, None]
    lengths, counts = (np.asarray(one).reshape(-1).astype(INT64) for one in (input_lengths, target_lengths))
    rows, width = np.arange(x.shape[1]), 2 * int(counts.max(initial=0)) + 1
    alphas = np.full(reserve((len(rows), len(x), width), np.float64), -np.inf)
    labels = np.full((len(rows), width), blank, INT64)
    for row, (count, start) in enumerate(zip(counts, np.cumsum(counts) - counts, strict=True)):
        wanted = targets[row, :count] if targets.ndim == 2 else targets[start : start + count]
        labels[row, 1 : 2 * count : 2] = check_indices(wanted, x.shape[2])
    skips = np.zeros(labels.shape, bool)
    skips[:, 1:2] = True  # of what is ahead
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    is_used = np.arange(width) <= 2 * counts[:, None]
    last = np.full((len(rows), width + 2), -np.inf)  # two places ahead of the first label
    last[:, 1] = 0
    for step, scores in enumerate(x):
        ways = np.logaddexp(np.logaddexp(last[:, 2:], last[:, 1:-1]), np.where(skips, last[:, :-2], -np.inf))
        ways = np.where(is_used & (step < lengths[:, None]), ways + np.take_along_axis(scores, labels, -1), -np.inf)
        last = np.where(step < lengths[:, None], np.pad(ways, ((0, 0), (2, 0)), constant_values=-np.inf), last)
        alphas[:, step] = ways
    # At the last label, or the blank behind it.
    losses = -np.logaddexp(last[rows, 2 * counts + 1], last[rows, 2 * counts + 2])
    return (losses.reshape(()), alphas[0]) if single else (losses, alphas)


@kernel("aten.cosine_embedding_loss.default", adapt=_reducing)
def cosine_embedding_loss(keep: Keep, input1: Array, input2: Array, target: Array, margin: float = 0) -> Any:
    sizes = [keep(keep(keep(one * one).sum(-1)) + 1e-12) for one in (input1, input2)]
    cosine = keep(keep(keep(input1 * input2).sum(-1)) / keep(np.sqrt(keep(sizes[0] * sizes[1]))))
    of_others = np.where(target == -1, np.maximum(cosine - keep(margin), 0), 0)
    return np.where(target == 1, 1 - cosine, of_others)


@kernel("aten.triplet_margin_loss.default", adapt=_reducing)
def triplet_margin_loss(
    keep: Keep, anchor: Array, positive: Array, negative: Array, margin: float = 1, swap: Any = 0, **options: float
) -> Any:
    pairs = ((anchor, positive), (anchor, negative), (positive, negative))
    near, far, between = (keep(distance(keep, *pair, **options)) for pair in pairs)
    if swap:
        far = np.minimum(far, between)
    return np.maximum(keep(keep(margin) + near) - far, 0)


@kernel("aten.poisson_nll_loss.default", adapt=_reducing)
def poisson_nll_loss(keep: Keep, input: Array, target: Array, log_input: bool, full: bool, eps: float) -> Any:
    x, t = floating(input), floating(target)
    if log_input:
        loss = keep(np.exp(x)) - keep(target * input)
    else:
        loss = input - keep(target * keep(np.log(keep(x + keep(eps)))))
    if full:
        loss = keep(loss)
        ahead = keep(keep(t * keep(np.log(t))) - t)
        stirling = keep(ahead + keep(0.5 * keep(np.log(keep(2 * np.pi * t)))))
        loss = loss + np.where(target <= 1, 0, stirling)
    return loss


KERNELS: Final = {
    "aten.margin_ranking_loss.default": _reducing(
        lambda keep, input1, input2, target, margin=0: np.maximum(
            keep(-target * keep(input1 - input2)) + keep(margin), 0
        )
    ),
    "aten.hinge_embedding_loss.default": _reducing(
        lambda keep, self, target, margin=1: (
            # In the type of the operands: bytes wrap, and 255 is -1.
            np.where(target != 1, np.maximum(keep(cast(margin, self.dtype)) - self, 0), 0)
            + np.where(target != cast(-1, target.dtype), self, 0)
        )
    ),
    "aten.nll_loss.default aten.nll_loss2d.default aten.nll_loss_nd.default": first(nll_loss_forward),
    "aten.multilabel_margin_loss.default": first(multilabel_margin_loss_forward),
    "aten.mse_loss.default": _loss(lambda keep, a, b: keep(a - b) ** 2),
    "aten.l1_loss.default": _loss(lambda keep, a, b: np.abs(a - b)),
    "aten.soft_margin_loss.default": _loss(lambda keep, a, b: np.log1p(keep(np.exp(keep(-b * a))))),
    "aten.smooth_l1_loss.default": _loss(_smooth_l1),
    "aten.huber_loss.default": _loss(lambda keep, a, b, delta=1.0: delta * _smooth_l1(keep, a, b, delta)),
    "aten.kl_div.default": _loss(_divergence),
    "aten.binary_cross_entropy.default": (
        _loss(
            lambda keep, a, b: (
                keep(keep(b - 1) * np.maximum(keep(np.log1p(-a)), -100)) - keep(b * np.maximum(keep(np.log(a)), -100))
            )
        )
    ),
    "aten.binary_cross_entropy_with_logits.default": _loss(_with_logits),
}
