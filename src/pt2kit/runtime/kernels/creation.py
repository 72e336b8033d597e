"""Kernels: tensors created from sizes, numbers and random generators; dropout; copies in another type or memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import (
    ARRAYS,
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    ArraySpec,
    DType,
    asarray,
    cast,
    compute_type,
    in_order,
    kind,
    order_of,
    require,
    reserve,
    running,
    wide,
)
from pt2kit.runtime.table import kernel, write
from pt2kit.schema import MemoryFormat
from pt2kit.schema.operators import RELEASES


@kernel("aten.full.default aten.full_like.default aten.new_full.default")
def full(fill_value: Any, result: ArraySpec, **options: Any) -> Any:
    if not isinstance(fill_value, ARRAYS) and repr(fill_value) in ("0", "0.0", "False"):  # -0.0 has a sign
        return np.zeros(result.sizes, result.dtype)
    return np.full(result.sizes, cast(fill_value, result.dtype), result.dtype)


@kernel("aten.arange.default .start .start_step")
def arange(end: Any, start: Any = 0, step: Any = 1, dtype: Any = None, release: str = RELEASES[-1]) -> Any:
    integer = all(isinstance(number, int) for number in (start, end, step))
    made = dtype or (INT64 if integer else FLOAT32)
    if made == INT64 and RELEASES.index(release) < RELEASES.index("2.14"):
        integer, start, end, step = True, int(start), int(end), int(step)  # torch counted in the type of the result
    if step == 0 or (end - start) / step < 0:
        raise OperatorError(f"expected a step that leads from {start} to {end}, got {step}")
    count = -((end - start) // -step) if integer else math.ceil((end - start) / step)
    (count,) = reserve((count,), made)
    if kind(made) == 1:
        return (int(start) + np.arange(count, dtype=INT64) * int(step)).astype(made)
    return cast(start + np.arange(count, dtype=FLOAT64) * step, made)


def _spaced(start: Any, end: Any, steps: int, dtype: Any) -> Any:
    first, last = (one.item() if isinstance(one, ARRAYS) else one for one in (start, end))
    if dtype is not None and kind(dtype) == 1:
        first, last = int(first), int(last)
    if steps == 1:
        return np.array([first])
    step: Any = (last - first) / (steps - 1) if steps else 0
    place: Any = np.arange(steps)
    # From both ends, as torch does, so that both are exact.
    if dtype is not None and dtype != compute_type(dtype):  # torch keeps the step and the way in the narrow type
        step = wide(cast(step, dtype))
        ways = [wide(cast(step * one, dtype)) for one in (place, steps - 1 - place)]
        return np.where(place < steps // 2, first + ways[0], last - ways[1])
    return np.where(place < steps / 2, first + step * place, last - step * (steps - 1 - place))


def _window(
    function: Callable[..., Any],
    window_length: int,
    periodic: bool = True,
    *numbers: Any,
    dtype: Any = None,
    **options: Any,
) -> Any:
    """Return a window that a function of NumPy makes; a periodic one is a longer one without its end."""
    (length,) = reserve((window_length,), FLOAT64)
    if length < 2:
        return np.ones(length, dtype or FLOAT32)
    named = {key: value for key, value in options.items() if key in ("alpha", "beta")}
    return function(length + periodic, *numbers, **named)[:length]


_WINDOWS: dict[str, Callable[..., Any]] = {
    "hann": np.hanning,
    "bartlett": np.bartlett,
    "blackman": np.blackman,
    "hamming": lambda count, alpha=0.54, beta=0.46: alpha - beta + 2 * beta * np.hanning(count),
    "kaiser": lambda count, beta=12.0: np.kaiser(count, beta),
}
_OVERLOADS = {"kaiser": ("beta",), "hamming": ("periodic_alpha", "periodic_alpha_beta")}
for _name, _function in _WINDOWS.items():
    for _overload in ("default", "periodic", *_OVERLOADS.get(_name, ())):
        kernel(f"aten.{_name}_window.{_overload}")(partial(_window, _function))


# The same tensor, and copies in another type or order.


@kernel("aten.alias.default aten.detach.default aten.lift_fresh.default")
@kernel("aten.detach_.default aten.positive.default aten.to_dense.default aten._to_dense.default")
def alias(self: Array) -> Any:
    return self


def _ordered(self: Array, memory_format: Any) -> Array:
    """Copy an array in a memory format."""
    if memory_format in (MemoryFormat.ChannelsLast, MemoryFormat.ChannelsLast3d):
        return np.moveaxis(np.moveaxis(self, 1, -1).copy(order="C"), -1, 1)
    return self.copy(order="C" if memory_format is MemoryFormat.ContiguousFormat else "K")


@kernel("aten.contiguous.default")
def contiguous(self: Array, memory_format: Any = MemoryFormat.ContiguousFormat) -> Any:
    if memory_format is MemoryFormat.ContiguousFormat and self.flags.c_contiguous:
        return self
    return _ordered(self, memory_format)


@kernel("aten.to.dtype .dtype_layout .device .prim_Device .prim_dtype .prim_other")
def to(self: Array, dtype: DType | None = None, copy: bool = False, memory_format: Any = None) -> Any:
    array = self if dtype is None else cast(self, dtype)
    array = array.copy(order="K") if copy and array is self else array
    is_moved = memory_format in (MemoryFormat.ChannelsLast, MemoryFormat.ChannelsLast3d)
    return _ordered(array, memory_format) if is_moved else array


# Random numbers, whose distributions are those of torch's; its generator is another one.


def _drawn(result: ArraySpec, draw: Callable[[Any, Any], Any]) -> Any:
    """Return random numbers.

    Args:
        result: their sizes and type.
        draw: draws them with a generator, of the sizes that are its second argument.
    """
    shape, random = reserve(result.sizes, FLOAT64), running().random
    if result.dtype.kind == "c":
        return (draw(random, shape) + 1j * draw(random, shape)) / 2**0.5
    return cast(np.asarray(draw(random, shape)), result.dtype)


@kernel("aten.randint.default .low .generator .low_generator aten.randint_like.default .low_dtype")
def randint(high: int, result: ArraySpec, low: int = 0, **options: Any) -> Any:
    return _drawn(result, lambda random, shape: random.integers(low, high, shape))


@kernel("aten.bernoulli.default .p .Tensor")
def bernoulli(self: Array, p: Any = None) -> Any:
    chance = wide(self if p is None else np.asarray(p))
    require(np.all((chance >= 0) & (chance <= 1)), "expected probabilities from 0 to 1")
    return cast(np.asarray(running().random.random(self.shape) < chance), self.dtype)


@kernel("aten.normal.Tensor_Tensor .Tensor_float .float_Tensor .float_float aten.normal_functional.default")
def normal(mean: Any, std: Any, result: ArraySpec, **options: Any) -> Any:
    numbers = [wide(asarray(one)) for one in (mean, std)]
    return _drawn(result, lambda random, shape: random.normal(*numbers, shape))


@kernel("aten.random.default .to .from")
def random(self: Array, to: int | None = None, from_: int = 0) -> Any:
    high = to if to is not None else (2 if self.dtype == BOOL else 2 ** min(24, self.dtype.itemsize * 8 - 1))
    return running().random.integers(from_, high, reserve(self.shape, INT64))


@kernel("aten.multinomial.default")
def multinomial(self: Array, num_samples: int, replacement: bool) -> Any:
    rows = np.atleast_2d(wide(self)).astype(np.float64)
    totals = rows.sum(-1, keepdims=True)
    require(np.all(rows >= 0) and np.all(totals > 0), "expected weights of at least 0 that are not all 0")
    return np.stack([running().random.choice(len(row), num_samples, replacement, row) for row in rows / totals])


# Dropout.


def dropped(input: Array, p: float, shape: Sequence[int]) -> tuple[Array, Array]:
    """Return elements that are kept, scaled, and the others times 0; and which are, in sizes that are broadcast."""
    kept = _kept(shape, p)
    return wide(input) * kept / (1 - p if p < 1 else 1), kept


def _kept(shape: Sequence[int], p: float) -> Array:
    """Return which elements are not dropped."""
    require(0 <= p <= 1, f"expected a probability of 0 to 1, got {p}")
    return np.asarray(running().random.random(shape) >= p)


def _of_features(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes with one element for each channel."""
    return (*shape[:2], *(1,) * (len(shape) - 2))


def _alpha_dropped(input: Array, p: float, shape: Sequence[int]) -> Array:
    """Return elements that are kept, and a number for the others, so that neither mean nor variance change."""
    if p == 1:
        return dropped(input, p, shape)[0]
    alpha, keep = 1.7580993408473766, 1 - p
    scale = 1 / (alpha * alpha * p * keep + keep) ** 0.5
    return (np.where(_kept(shape, p), wide(input), -alpha) * scale) + alpha * scale * p


def _dropout(drop: Callable[..., Array], sizes_of: Callable[[Sequence[int]], Sequence[int]]) -> Callable[..., Any]:
    """Return the kernel of a dropout, of elements or of channels."""
    return lambda input, p, train: drop(input, p, sizes_of(input.shape)) if train and p else input


for _name, _sizes_of in (("", tuple), ("feature_", _of_features)):
    kernel(f"aten.{_name}dropout.default")(_dropout(lambda *args: dropped(*args)[0], _sizes_of))
    kernel(f"aten.{_name}alpha_dropout.default")(_dropout(_alpha_dropped, _sizes_of))


KERNELS: Final = {
    "aten.zeros.default aten.zeros_like.default aten.new_zeros.default": partial(full, fill_value=0),
    "aten.empty.memory_format aten.empty_permuted.default aten.empty_like.default": partial(full, fill_value=0),
    "aten.new_empty.default": partial(full, fill_value=0),
    # Laid out as declared where strides are those of a dense tensor, as `as_strided` may look at it.
    "aten.empty_strided.default aten.new_empty_strided.default": lambda stride, result, **options: in_order(
        np.zeros(result.sizes, result.dtype), order_of(stride)
    ),
    "aten.ones.default aten.ones_like.default aten.new_ones.default": partial(full, fill_value=1),
    "aten.fill.Scalar .Tensor": lambda self, value, result: full(value, result),
    "aten.zero.default": lambda self, result: full(0, result),
    "aten.scalar_tensor.default prims.scalar_tensor.default": lambda s, dtype=None: cast(s, dtype or FLOAT32),
    "aten.eye.default .m": lambda result, **options: np.eye(*result.sizes, dtype=result.dtype),
    "aten.linspace.default .Tensor_Tensor .Tensor_Scalar .Scalar_Tensor": _spaced,
    "aten.logspace.default .Tensor_Tensor .Tensor_Scalar .Scalar_Tensor": lambda start, end, steps, base, dtype=None: (
        np.power(float(base), _spaced(start, end, steps, dtype))
    ),
    "aten.clone.default aten.lift_fresh_copy.default prims.clone.default": (
        lambda self, memory_format=None: _ordered(self, memory_format)
    ),
    "aten._to_copy.default": partial(to, copy=True),
    "aten.to.other": lambda self, other, copy, memory_format: to(self, other.dtype, copy, memory_format),
    "aten.type_as.default": lambda self, other: cast(self, other.dtype),
    "aten.copy_.default": lambda self, src: write(self, np.broadcast_to(src, self.shape)),
    "aten.rand.default .generator aten.rand_like.default": lambda result, **options: _drawn(
        result, lambda random, shape: random.random(shape)
    ),
    "aten.randn.default .generator aten.randn_like.default": lambda result, **options: _drawn(
        result, lambda random, shape: random.standard_normal(shape)
    ),
    "aten.randperm.default .generator": lambda n: running().random.permutation(n),
    "aten.uniform.default": lambda self, from_, to, result: _drawn(result, lambda r, s: r.uniform(from_, to, s)),
    "aten.exponential.default": lambda self, lambd, result: _drawn(result, lambda r, s: r.exponential(1 / lambd, s)),
    "aten.cauchy.default": lambda self, median, sigma, result: _drawn(
        result, lambda r, s: median + sigma * r.standard_cauchy(s)
    ),
    "aten.log_normal.default": lambda self, mean, std, result: _drawn(result, lambda r, s: r.lognormal(mean, std, s)),
    "aten.geometric.default": lambda self, p, result: _drawn(result, lambda r, s: r.geometric(p, s)),
    "aten.normal_.default": lambda self, mean, std, result: write(self, normal(mean, std, result)),
    "aten.bernoulli_.float .Tensor": lambda self, p=0.5: write(self, bernoulli(self, p)),
    "aten.native_dropout_backward.default": lambda grad_output, mask, scale: wide(grad_output) * mask * scale,
    "aten.poisson.default": lambda self: running().random.poisson(wide(self)),
    "aten.copy.default": lambda self, src: np.broadcast_to(cast(src, self.dtype), self.shape).copy(),
    "aten.native_dropout.default": lambda input, p, train: (
        dropped(input, p, input.shape) if train or train is None else (input.copy(), np.ones(input.shape, BOOL))
    ),
}
