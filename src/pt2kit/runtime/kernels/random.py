"""Kernels: random operators. Their results follow the distributions of torch's, but not its generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import ARRAYS, BOOL, FLOAT32, FLOAT64, INT64, Array, cast, require, reserve, running, wide
from pt2kit.runtime.table import kernel, write


def _drawn(size: Sequence[int], dtype: Any, draw: Callable[[Any, Any], Any]) -> Any:
    shape = reserve(size, np.float64)
    if dtype is not None and np.dtype(dtype).kind == "c":
        return (draw(running().random, shape) + 1j * draw(running().random, shape)) / 2**0.5
    return cast(np.asarray(draw(running().random, shape)), dtype or FLOAT32)


Draw = Callable[[Any, Any], Any]
"""Draws numbers with a generator: of the sizes that are its second argument."""


def _filling(draw: Draw) -> Callable[..., Any]:
    """Return the kernel of random numbers in given sizes, or those of an array."""
    return lambda size, dtype=None: (
        _drawn(size.shape, dtype or size.dtype, draw) if isinstance(size, ARRAYS) else _drawn(size, dtype, draw)
    )


@kernel("aten.randint.default .low .generator .low_generator")
def randint(high: int, size: Sequence[int], low: int = 0, dtype: Any = None) -> Any:
    return _drawn(size, dtype or INT64, lambda random, shape: random.integers(low, high, shape))


@kernel("aten.randint_like.default .low_dtype")
def randint_like(self: Array, high: int, low: int = 0, dtype: Any = None) -> Any:
    return randint(high, self.shape, low, dtype or self.dtype)


@kernel("aten.randperm.default .generator")
def randperm(n: int) -> Any:
    reserve((n,), INT64)
    return running().random.permutation(n)


@kernel("aten.bernoulli.default .p .Tensor")
def bernoulli(self: Array, p: Any = None) -> Any:
    chance = wide(self if p is None else np.asarray(p))
    require(np.all((chance >= 0) & (chance <= 1)), "expected probabilities from 0 to 1")
    return cast(np.asarray(running().random.random(self.shape) < chance), self.dtype)


@kernel("aten.normal.Tensor_Tensor .Tensor_float .float_Tensor")
def normal(mean: Any, std: Any = 1.0) -> Any:
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    reserve(shape, np.float64)
    return wide(np.asarray(mean)) + wide(np.asarray(std)) * running().random.standard_normal(shape)


@kernel("aten.normal.float_float")
def normal_of_size(mean: float, std: float, size: Sequence[int], dtype: Any = None) -> Any:
    return _drawn(size, dtype, lambda r, s: r.normal(mean, std, s))


def _sampled(self: Array, draw: Draw) -> Any:
    return _drawn(self.shape, FLOAT64, draw)


@kernel("aten.random_.default .to .from")
def random_(self: Array, to: int | None = None, from_: int = 0) -> Any:
    high = to if to is not None else (2 if self.dtype == BOOL else 2 ** min(24, self.dtype.itemsize * 8 - 1))
    return write(self, _drawn(self.shape, INT64, lambda r, s: r.integers(from_, high, s)))


@kernel("aten.multinomial.default")
def multinomial(self: Array, num_samples: int, replacement: bool) -> Any:
    rows = np.atleast_2d(wide(self)).astype(np.float64)
    totals = rows.sum(-1, keepdims=True)
    if not np.all(rows >= 0) or not np.all(totals > 0) or not num_samples > 0:
        raise OperatorError("expected weights of at least 0 that are not all 0, and at least one sample")
    reserve((len(rows), num_samples), INT64)
    found = [
        running().random.choice(rows.shape[1], num_samples, replacement, row / total)
        for row, total in zip(rows, totals, strict=True)
    ]
    return np.stack(found) if self.ndim > 1 else found[0]


# Dropout.


@kernel("aten.dropout.default")
def dropout(input: Array, p: float, train: bool) -> Any:
    return native_dropout(input, p, train)[0] if train and p else input


@kernel("aten.native_dropout.default")
def native_dropout(input: Array, p: float, train: bool | None) -> Any:
    if not train and train is not None:
        return input.copy(), np.ones(input.shape, BOOL)
    x, kept = wide(input), _kept(input.shape, p)
    return np.where(kept, x / (1 - p) if p < 1 else 0, 0), kept


def _kept(shape: Sequence[int], p: float) -> Array:
    """Return which elements are not dropped."""
    return np.asarray(running().random.random(shape) >= p)


def _of_features(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes with one element for each channel."""
    return (*shape[:2], *(1,) * (len(shape) - 2))


@kernel("aten.feature_dropout.default")
def feature_dropout(input: Array, p: float, train: bool) -> Any:
    if not train or not p:
        return input
    return np.where(_kept(_of_features(input.shape), p), wide(input) / (1 - p) if p < 1 else 0, 0)


def _alpha_dropout(input: Array, p: float, train: bool, shape: Sequence[int]) -> Any:
    if not train or not p:
        return input
    alpha, keep = 1.7580993408473766, 1 - p
    scale = 1 / (alpha * alpha * p * keep + keep) ** 0.5
    return (np.where(_kept(shape, p), wide(input), -alpha) * scale) + alpha * scale * p


KERNELS: Final = {
    "aten.uniform.default": lambda self, from_, to: _sampled(self, lambda r, s: r.uniform(from_, to, s)),
    "aten.exponential.default": lambda self, lambd: _sampled(self, lambda r, s: r.exponential(1 / lambd, s)),
    "aten.cauchy.default": lambda self, median, sigma: _sampled(
        self, lambda r, s: median + sigma * r.standard_cauchy(s)
    ),
    "aten.log_normal.default": lambda self, mean, std: _sampled(self, lambda r, s: r.lognormal(mean, std, s)),
    "aten.geometric.default": lambda self, p: _sampled(self, lambda r, s: r.geometric(p, s)),
    "aten.normal_.default": lambda self, mean, std: write(self, _sampled(self, lambda r, s: r.normal(mean, std, s))),
    "aten.normal_functional.default": lambda self, mean, std: _drawn(
        self.shape, self.dtype, lambda r, s: r.normal(mean, std, s)
    ),
    "aten.rand.default .generator aten.rand_like.default": _filling(lambda random, shape: random.random(shape)),
    "aten.randn.default .generator aten.randn_like.default": _filling(
        lambda random, shape: random.standard_normal(shape)
    ),
    "aten.alpha_dropout.default": lambda input, p, train: _alpha_dropout(input, p, train, input.shape),
    "aten.feature_alpha_dropout.default": (
        lambda input, p, train: _alpha_dropout(input, p, train, _of_features(input.shape))
    ),
    "aten.bernoulli_.float .Tensor": lambda self, p=0.5: write(self, bernoulli(self, p)),
    "aten.poisson.default": lambda self: running().random.poisson(wide(self)),
}
