"""Sizes that unchecked kernels trust: rules for batch norm, attention, pooling, padding, FFT and others.

A rule is a function of a `Call` that yields demands (`demands.py`); `rules` makes functions that return such a rule for
some parameters. `SIZES` names them. Recurrent networks are in `recurrent.py`, values of tensors in `kernel_values.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from pt2kit.operators.demands import (
    Call,
    Condition,
    Demand,
    Operand,
    Rule,
    at_least,
    either,
    equal,
    every,
    filled,
    fit,
    known,
    product,
    ranked,
    rules,
    together,
)
from pt2kit.schema import ScalarType

MAX_REPEATED: Final = 1 << 36
"""Elements of one tensor, counted as often as it repeats them."""
MAX_PADDING: Final = 1 << 40
"""Elements that are put before or behind a dimension."""

MAX_STRIDE: Final = 1 << 15
"""Step of a convolution of bfloat16."""


@rules()
def alike(call: Call, first: str, *others: str) -> Iterator[Demand]:
    """Require tensors of one shape."""
    for other in others:
        yield Demand(fit(call.sizes(first), call.sizes(other)), other, f"the shape of {first}")


@rules()
def _each(
    call: Call, condition: Callable[[Operand], Condition], expected: str, *names: str, is_kept: bool = False
) -> Iterator[Demand]:
    """Require tensors that each meet a condition.

    Args:
        condition: whether a tensor meets it, as far as that is known.
        expected: what each tensor has to be.
        names: the tensors.
        is_kept: whether the kernel gets copies.
    """
    for name in names:
        if is_kept:
            call.keep(name)
        if (operand := call.get(name)) is not None:
            yield Demand(condition(operand), name, expected)


def _has_no_repeats(operand: Operand) -> Condition:
    """Return whether a tensor spans as many elements of memory as it has."""
    sizes, strides = operand.sizes, operand.strides
    if strides is None or None in (*sizes, *strides):
        return True
    count = product(sizes)
    return either(equal(count, 0), count <= 1 + sum((size - 1) * by for size, by in zip(sizes, strides, strict=True)))


def _has_adjacent(operand: Operand) -> Condition:
    """Return whether a tensor has the elements of its last dimension next to each other."""
    return not operand.strides or either(equal(operand.sizes[-1], 1), equal(operand.strides[-1], 1))


def _is_contiguous(operand: Operand) -> Condition:
    """Return whether a tensor is contiguous, as kernels need it that walk through memory.

    Steps along a dimension of one element do not matter: they are whatever an earlier operator left.
    """
    sizes, strides = operand.sizes, operand.strides
    steps = [product(sizes[place + 1 :]) for place in range(len(sizes))]
    triples = zip(sizes, strides, steps, strict=True) if strides is not None else ()
    return every(either(equal(size, 1), equal(stride, step)) for size, stride, step in triples)


_filled = partial(_each, lambda operand: filled(operand.sizes), "a tensor with elements")
_dense = partial(_each, _has_no_repeats, "a tensor without repeated elements")
_adjacent = partial(_each, _has_adjacent, "adjacent elements along the last dimension")
# The kernel gets copies: a program that is traced and runs elsewhere may get other strides, which its assertions do not
# compare.
_contiguous = partial(_each, _is_contiguous, "a contiguous tensor", is_kept=True)


@rules()
def _padded(call: Call, count: int) -> Iterator[Demand]:
    """Require sizes that fit, in padding of the last `count` dimensions and its backward kernel."""
    sizes, grad, padding = call.sizes("self"), call.sizes("grad_output"), call.get("padding")
    if padding is None:
        return
    holds = len(padding) == 2 * count and every(
        True if by is None else (by < MAX_PADDING) & (by > -MAX_PADDING) for by in padding
    )
    yield Demand(holds, "padding", f"{2 * count} numbers below {MAX_PADDING:,}")
    if grad is None or sizes is None:
        return
    yield Demand(ranked(sizes, count + 1, count + 2), "self", f"{count + 1} or {count + 2} dimensions")
    padded = [*sizes]
    for axis in range(count):
        size, before, after = sizes[-1 - axis], padding[2 * axis], padding[2 * axis + 1]
        padded[-1 - axis] = None if None in (size, before, after) else size + before + after
    yield Demand(fit(grad, padded), "grad_output", "the padded sizes of self")


@rules("input")
def _per_channel(call: Call, sizes: Any, *names: str) -> Iterator[Demand]:
    """Require tensors with one element for each channel of the input, which dimension 1 counts."""
    yield Demand(len(sizes) >= 2, "input", "2 dimensions or more")
    for name in names:
        yield Demand(fit(call.sizes(name), (sizes[1],)), name, "one element for each channel of input")


def _with_statistics(call: Call) -> Iterator[Demand]:
    if call.get("training") is False and "running_mean" not in call.arguments:
        yield Demand(False, "training", "True, without statistics")
    if call.get("train") is True or call.get("update") is True:
        for name in ("save_mean", "save_invstd", "save_var"):
            yield Demand(name not in call.arguments or call.get(name) is not None, name, "a tensor, in training")
    if False in (call.get("training"), call.get("train"), call.get("update")):
        for name in ("running_mean", "running_var"):
            yield Demand(
                name not in call.arguments or call.get(name) is not None, name, "a tensor, outside of training"
            )


def _dimensions(call: Call) -> Iterator[Demand]:
    """Require that transforms name each dimension once, counted from the front."""
    sizes, dims = call.sizes("self"), call.get("dim")
    if sizes is None or dims is None or None in dims:
        return
    holds = bool(dims) and len(set(dims)) == len(dims) and all(0 <= dim < len(sizes) for dim in dims)
    yield Demand(holds, "dim", f"dimensions of self, each once and from 0 to {len(sizes) - 1}")


def _half(call: Call) -> Iterator[Demand]:
    """Require half of the frequencies, and one, as input of transforms to real numbers."""
    sizes, dims, length = call.sizes("self"), call.get("dim"), call.get("last_dim_size")
    if sizes is None or not dims or None in dims or length is None or sizes[dims[-1]] is None:
        return
    # Programs cut their inputs before; the library takes more frequencies for fewer of another length.
    holds = every((at_least(length, 1), equal(sizes[dims[-1]], length // 2 + 1)))
    yield Demand(holds, "last_dim_size", "a length of which self has half the frequencies, and one")


@known("query", "key", "value")
def _attention(call: Call, query: Any, key: Any, value: Any) -> Iterator[Demand]:
    """Require that batches and heads of attention agree, that keys and values are as many, and that all have
    elements."""
    yield Demand(len(query) == len(key) == len(value) == 4, "query", "4 dimensions, as key and value")
    yield Demand(fit(key, value), "value", "the shape of key")
    expected = "the batches, heads and features of query"
    yield Demand(fit((*query[:2], query[3]), (*key[:2], key[3])), "key", expected)
    mask = call.sizes("attn_mask")
    if mask is not None:
        scores = (query[0], query[1], query[2], key[2])
        padded = (1,) * (4 - len(mask)) + tuple(mask)
        holds = len(padded) == 4 and every(
            either(equal(a, 1), equal(a, b)) for a, b in zip(padded, scores, strict=True)
        )
        yield Demand(holds, "attn_mask", "sizes that fit query and key")


@known("query", "logsumexp")
def _sums(call: Call, query: Any, sums: Any) -> Iterator[Demand]:
    """Require at least one sum for each query: torch's own decompositions pass more dimensions than the kernel
    reads."""
    yield Demand(fit(tuple(sums[:3]), tuple(query[:3])), "logsumexp", "the batches, heads and lengths of query first")


@rules("self", "grad_output")
def pool_gradient(call: Call, sizes: Any, grad: Any, count: int) -> Iterator[Demand]:
    """Require sizes that fit, in backward kernels of pooling over the last `count` dimensions."""
    ranks = f"{count + 1} or {count + 2} dimensions, none of them 0"
    yield Demand(ranked(sizes, count + 1, count + 2) and filled(sizes), "self", ranks)
    yield Demand(len(grad) == len(sizes) and filled(grad), "grad_output", "as many dimensions as self, none of them 0")
    yield Demand(fit(sizes[:-count], grad[:-count]), "grad_output", "the batches and channels of self")
    yield Demand(fit(call.get("output_size"), grad[-count:]), "output_size", "the last sizes of grad_output")
    yield Demand(fit(call.sizes("indices"), grad), "indices", "the shape of grad_output")


@rules("input", "grid", "grad_output")
def grid(call: Call, sizes: Any, points: Any, grad: Any, count: int) -> Iterator[Demand]:
    """Require a gradient for each point, in the channels of the input, in backward kernels of grid sampling."""
    ranks = len(sizes) == len(points) == len(grad) == count + 2
    yield Demand(ranks and filled(sizes), "input", f"{count + 2} dimensions, as grid and grad_output, with elements")
    yield Demand(fit((sizes[0], count), (points[0], points[-1])), "grid", "the batches of input, and a point per row")
    expected = "the batches and channels of input, and the points of grid"
    yield Demand(fit(grad, (*sizes[:2], *points[1:-1])), "grad_output", expected)


@known("input", "normalized_shape")
def _layer_norm(call: Call, sizes: Any, shape: Any) -> Iterator[Demand]:
    """Require one mean for each of the other dimensions in backward kernels over the last dimensions."""
    rest = (*sizes[: len(sizes) - len(shape)], *(1 for _ in shape))
    for name, expected in (("grad_out", sizes), ("mean", rest), ("rstd", rest), ("weight", tuple(shape))):
        yield Demand(fit(call.sizes(name), expected), name, "sizes that fit input and normalized_shape")


@known("LU_data", "LU_pivots")
def _pivots(call: Call, data: Any, pivots: Any) -> Iterator[Demand]:
    """Require a pivot for each row or column, whichever are fewer, to unpack pivots."""
    if len(data) >= 2 and None not in data[-2:]:
        expected = "a pivot for each row or column of LU_data, whichever are fewer"
        yield Demand(fit(pivots, (*data[:-2], min(data[-2:]))), "LU_pivots", expected)


@rules()
def _weight_norm(call: Call, direction: str, *lengths: str) -> Iterator[Demand]:
    """Require one length for each entry of one dimension, of weights that are stored as direction and length."""
    sizes = call.sizes(direction)
    if sizes is None:
        return
    yield Demand(bool(sizes) and filled(sizes), direction, "a tensor with dimensions and elements")
    axis = (call.get("dim") or 0) % max(len(sizes), 1)
    expected = [size if number == axis else 1 for number, size in enumerate(sizes)]
    for name in lengths:
        holds = fit(call.sizes(name), expected)
        yield Demand(holds, name, f"an element for each entry of one dimension of {direction}")


@known("qScaleAndZeros")
def _four_bits(call: Call, scales: Any) -> Iterator[Demand]:
    """Require a scale and a zero for each group of each row, in order, in products with weights of four bits."""
    data, weight, group = call.sizes("self"), call.sizes("mat2"), call.get("qGroupSize")
    rows = weight[0] if weight else None
    groups = data[-1] // group if data and data[-1] is not None and group else None
    expected = "two numbers for each group of each row of mat2"
    yield Demand(every((fit(scales, (groups, rows, 2)), filled(scales))), "qScaleAndZeros", expected)


def _diagonals(call: Call) -> Iterator[Demand]:
    """Require sizes that are not negative, for matrices stored by their diagonals."""
    holds = every(at_least(size, 0) for size in call.get("shape") or ())
    yield Demand(holds, "shape", "sizes that are not negative")


@known("x1", "x2")
def _distances(call: Call, first: Any, second: Any) -> Iterator[Demand]:
    """Require one distance for each pair of rows, which have equally many features, in backward kernels of
    distances."""
    holds = len(first) >= 2 and len(second) >= 2 and equal(first[-1], second[-1])
    yield Demand(holds, "x1", "2 dimensions or more, and the features of x2")
    for name in ("grad", "cdist"):
        sizes = call.sizes(name)
        if sizes is not None:
            yield Demand(fit(tuple(sizes[-2:]), (first[-2], second[-2])), name, "an element for each pair of rows")


def _pairs(call: Call) -> Iterator[Demand]:
    """Require one distance for each pair of rows of one matrix."""
    sizes, rows = call.sizes("self"), None
    if sizes is not None:
        yield Demand(len(sizes) == 2 and filled(sizes), "self", "a matrix with elements")
        rows = sizes[0]
    count = None if rows is None else rows * (rows - 1) // 2
    for name in ("pdist", "grad"):
        yield Demand(fit(call.sizes(name), (count,)), name, "an element for each pair of rows of self")


def _few(call: Call) -> Iterator[Demand]:
    """Require no more elements, repeated ones counted, than any memory has."""
    count = product(size for size in call.sizes("self") or () if size is not None)
    yield Demand(count <= MAX_REPEATED, "self", f"at most {MAX_REPEATED:,} elements")


def _scaled(call: Call) -> Iterator[Demand]:
    """Require the sizes that the scale results in, if resampling has a scale."""
    data = call.sizes("self")
    sizes, output = data if data is not None else call.get("input_size"), call.get("output_size")
    if sizes is None or output is None:
        return
    scales = call.get("scale_factors") or [call.get(name) for name in ("scales_d", "scales_h", "scales_w", "scales")]
    known = [scale for scale in scales if scale is not None]
    for size, resampled, scale in zip(reversed(sizes), reversed(output), reversed(known), strict=False):
        if None not in (size, resampled):
            holds = scale > 0 and (resampled - size * scale <= 1) & (size * scale - resampled <= 1)
            yield Demand(holds, "output_size", "the sizes that the scales make of those of the input")


@known("self")
def _copied_lists(call: Call, tensors: Any) -> Iterator[Demand]:
    """Require lists with tensors: as many in each, in pairs of one shape."""
    yield Demand(bool(tensors), "self", "a list with tensors")
    sources = call.get("src")
    if sources is not None:
        holds = len(sources) == len(tensors) and every(
            fit(one.sizes, two.sizes) for one, two in zip(tensors, sources, strict=True)
        )
        yield Demand(holds, "src", "as many tensors as self, of the same shapes")


_STATES: Final = ("grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_sums", "momentum_buffer_list")


@known("self")
def _fused(call: Call, parameters: Any) -> Iterator[Demand]:
    """Require lists as long as that of the parameters, with tensors of the same strides, in fused optimizers."""
    yield Demand(bool(parameters) and all(map(_is_dense, parameters)), "self", "a list of dense tensors")
    for name in _STATES:
        tensors = call.get(name)
        is_needed = name not in ("max_exp_avg_sqs", "momentum_buffer_list") or call.get("amsgrad") is True
        if tensors is None or not (tensors or is_needed):
            continue
        holds = len(tensors) == len(parameters) and every(map(_same_layout, tensors, parameters))
        yield Demand(holds, name, "as many tensors as self, with the same sizes and strides")
    steps = call.get("state_steps")
    if steps is not None:
        yield Demand(len(steps) == len(parameters), "state_steps", "as many tensors as self")
    yield from _filled("grad_scale", "found_inf")(call)


def _same_layout(one: Operand, other: Operand) -> Condition:
    return every((fit(one.sizes, other.sizes), fit(one.strides, other.strides)))


def _is_dense(operand: Operand) -> bool:
    """Return whether the elements of a tensor may be next to each other, in whatever order."""
    sizes, strides = operand.sizes, operand.strides
    if strides is None or None in sizes or None in strides or 0 in sizes:
        return True
    step = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _heads(call: Call) -> Iterator[Demand]:
    """Require that heads divide the features in fused attention layers."""
    features = call.get("embed_dim")
    for name in ("num_head", "num_heads"):
        heads = call.get(name)
        if heads is not None:
            yield Demand(heads > 0, name, "at least 1")
            if features is not None:
                yield Demand(features > 0 and features % heads == 0, name, "a divisor of embed_dim")
    data, bias = call.get("query") or call.get("src"), call.get("qkv_bias")
    if data is not None and bias is not None:
        yield Demand(equal(data.dtype, bias.dtype), "qkv_bias", "the type of the first argument")


@known("self", "per_row_fake_quant", "ch_axis")
def _observed(call: Call, sizes: Any, is_per_row: Any, axis: Any) -> Iterator[Demand]:
    """Require a minimum and a maximum for each channel, or for all together, in fused observers."""
    yield Demand(not is_per_row or 0 <= axis < len(sizes), "ch_axis", "a dimension of self, counted from the front")
    least, most = call.sizes("running_min"), call.sizes("running_max")
    if least is None or most is None:
        return
    channels = sizes[axis] if is_per_row else 1
    counts = product(least), product(most)
    # The kernel resizes both if the first is empty.
    is_new = equal(counts[0], 0) if is_per_row and counts[0] is not None else False
    for name, count in zip(("running_min", "running_max"), counts, strict=True):
        yield Demand(either(is_new, equal(count, channels)), name, "an element for each channel")


def _grouped(call: Call) -> Iterator[Demand]:
    """Require heads of keys and values, by whose number those of the queries are divided."""
    for name in ("key", "value") if call.get("enable_gqa") else ():
        sizes = call.sizes(name)
        if sizes is not None and len(sizes) >= 3:
            yield Demand(at_least(sizes[-3], 1), name, "at least one head, for enable_gqa")


def _strided(call: Call) -> Iterator[Demand]:
    """Require a last element that memory may have: the kernel computes its address in 64 bits."""
    sizes, strides, start = call.get("size"), call.get("stride"), call.get("storage_offset") or 0
    if sizes is None or strides is None or None in (*sizes, *strides):
        return
    last = start + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))
    yield Demand(either(equal(product(sizes), 0), last < MAX_PADDING), "stride", f"elements before {MAX_PADDING:,}")


def _is_bfloat16(operand: Any) -> bool:
    return getattr(operand, "dtype", None) is ScalarType.BFLOAT16


def _steps(call: Call) -> Iterator[Demand]:
    """Require strides of convolutions of bfloat16 that 16 bits hold, as transposed ones and gradients do."""
    if not _is_bfloat16(call.get("weight")):
        return
    stride = call.get("stride")
    steps = stride if isinstance(stride, (list, tuple)) else [stride]
    holds = every(True if step is None else step < MAX_STRIDE for step in steps)
    yield Demand(holds, "stride", f"steps below {MAX_STRIDE:,}, for bfloat16")


def _bytes_of_rows(call: Call) -> Iterator[Demand]:
    """Require whole vectors of 16 numbers as rows of bfloat16, whose memory is aligned in a copy."""
    call.keep("self")
    data = call.get("self")
    if data is not None and data.sizes and _is_bfloat16(data):
        yield Demand(
            data.sizes[-1] is None or equal(data.sizes[-1] % 16, 0), "self", "a multiple of 16 in the last dimension"
        )


def _masked_softmax(call: Call) -> Iterator[Demand]:
    """Require elements in the dimension of a softmax with a mask."""
    sizes, axis = call.sizes("self"), call.get("dim")
    if sizes:
        axis = len(sizes) - 1 if axis is None else axis
        holds = -len(sizes) <= axis < len(sizes) and at_least(sizes[axis], 1)
        yield Demand(holds, "dim", "a dimension of self with elements")


_CHANNELS: Final = ("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var")

SIZES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "attention": together(_attention, _filled("query", "key", "value"), _adjacent("query", "key", "value")),
        "attention gradient": together(
            _attention,
            _filled("query", "key", "value"),
            alike("query", "out", "grad_out"),
            _sums,
            _adjacent("query", "key", "value", "out"),
        ),
        "contiguous bias": together(_contiguous("bias", "B"), _steps),
        "steps": _steps,
        "contiguous input": _contiguous("input"),
        "int8 product": together(_contiguous("scales"), _bytes_of_rows),
        "grouped heads": _grouped,
        "strided": _strided,
        "batch norm": together(_per_channel(*_CHANNELS), _with_statistics),
        "batch norm gradient": together(
            _per_channel(*_CHANNELS),
            _with_statistics,
            alike("input", "grad_out", "grad_output"),
            _filled("input"),
        ),
        "dimensions": _dimensions,
        "half": together(_dimensions, _half),
        "grad like output": alike("output", "grad", "grad_output"),
        "pairs": _pairs,
        "distances": _distances,
        "few": _few,
        "fused": _fused,
        "heads": _heads,
        "masked softmax": _masked_softmax,
        "observed": together(_observed, _contiguous("running_min", "running_max")),
        "layer norm": _layer_norm,
        "like self": alike("self", "target"),
        "grad like self": alike("self", "target", "grad_output"),
        "pivots": _pivots,
        "four bits": together(_four_bits, _contiguous("qScaleAndZeros")),
        "diagonals": _diagonals,
        "weight norm": together(_weight_norm("v", "g"), _contiguous("v", "g")),
        "weight norm gradient": together(
            _weight_norm("saved_v", "saved_g", "saved_norms"),
            alike("saved_v", "grad_w"),
            _contiguous("grad_w", "saved_v", "saved_g", "saved_norms"),
        ),
        "group norm": _dense("weight", "bias"),
        "noise": together(_dense("noise"), alike("self", "noise")),
        "padded 1d": _padded(1),
        "padded 2d": _padded(2),
        "padded 3d": _padded(3),
        "pool 2d": pool_gradient(2),
        "pool 3d": pool_gradient(3),
        "scaled": _scaled,
        "copied lists": _copied_lists,
    }
)
"""Name in `data/kernels.json` -> rule."""
