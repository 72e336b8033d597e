"""Kernels: layers of networks: normalization, attention, fused encoder layers, recurrent networks and their cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import ml_dtypes
import numpy as np

from pt2kit.runtime.arrays import (
    BOOL,
    Array,
    Keep,
    computed,
    double,
    flattened,
    mapped,
    require,
    reserve,
    rounding,
    running,
    wide,
)
from pt2kit.runtime.kernels.convolutions import masked
from pt2kit.runtime.kernels.creation import dropped
from pt2kit.runtime.kernels.elementwise import gelu, relu, sigmoid
from pt2kit.runtime.kernels.products import linear
from pt2kit.runtime.kernels.reductions import logsumexp, norm_except_dim, safe_softmax
from pt2kit.runtime.table import first, functional, kernel, write

# Normalization.


def _channels(values: Any, x: Array) -> Any:
    """Return one number per channel, shaped for a batch [n, channels, ...]."""
    return wide(values).reshape(-1, *(1,) * (x.ndim - 2))


def _scaled(x: Array, weight: Any, bias: Any) -> Array:
    if weight is not None:
        x = x * wide(weight)
    return x if bias is None else x + wide(bias)


_EMPTY = np.zeros(0, np.float32)


@kernel("aten.native_batch_norm.default aten._native_batch_norm_legit.default .no_stats")
@kernel("aten._native_batch_norm_legit_no_training.default")
def batch_norm(
    input: Array,
    weight: Any,
    bias: Any,
    running_mean: Any = None,
    running_var: Any = None,
    training: bool = False,
    *,
    momentum: float,
    eps: float,
    **options: Any,
) -> Any:
    """Return the normalized batch, and its mean and inverse deviation if these are used; running ones are updated."""
    if input.ndim < 2:
        require(not input.size, "expected a batch with channels, got one dimension")
        return input, _EMPTY, _EMPTY
    x, axes = wide(input), (0, *range(2, input.ndim))
    if not training and running_mean is not None:
        inverse = 1 / np.sqrt(wide(running_var) + wide(running_var).dtype.type(eps))
        return _normalized(x, wide(running_mean), inverse, weight, bias), _EMPTY, _EMPTY
    mean, var, count = x.mean(axes), x.var(axes), x.size // max(1, x.shape[1])
    stored = next(one.dtype for one in (weight, bias, running_mean, input) if one is not None)
    # As torch keeps them; squares of bfloat16 are summed in this type.
    rounded = (var * count).astype(stored) / stored.type(count) if stored == ml_dtypes.bfloat16 else var
    inverse = 1 / np.sqrt(rounded.astype(x.dtype) + var.dtype.type(eps))
    inverse = np.where(np.isinf(inverse), 0, inverse)  # equal elements are 0, as in torch, also if eps is
    centers, factors = (one.astype(stored).astype(x.dtype) for one in (mean, inverse))
    result = _normalized(x, centers, factors, weight, bias)
    for kept, new in ((running_mean, mean), (running_var, var * (count / max(1, count - 1)))):
        if kept is not None:
            write(kept, wide(kept) * (1 - momentum) + new * momentum)
    return result, mean, inverse


def _normalized(x: Array, mean: Array, inverse: Array, weight: Any, bias: Any) -> Array:
    return _by_channel((x - _channels(mean, x)) * _channels(inverse, x), weight, bias)


@kernel("aten.instance_norm.default")
def instance_norm(
    input: Array, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, **options: Any
) -> Any:
    # Each channel of each example is a channel of one batch.
    batch, channels = input.shape[:2]
    w, b, mean, var = (
        None if one is None else np.tile(one, batch) for one in (weight, bias, running_mean, running_var)
    )
    x = input.reshape(1, batch * channels, *input.shape[2:])
    result, *_ = batch_norm(x, w, b, mean, var, use_input_stats, **options)
    for kept, new in ((running_mean, mean), (running_var, var)):
        if use_input_stats and new is not None:
            write(kept, new.reshape(batch, channels).mean(0))
    return result.reshape(input.shape)


def _over(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """Return a tensor without mean and with deviation 1 over some dimensions, and both."""
    mean = x.mean(axes, keepdims=True)
    centered = x - mean
    inverse = 1 / np.sqrt((centered * centered).mean(axes, keepdims=True) + x.dtype.type(eps))
    centered *= inverse
    return centered, mean, inverse


@kernel("aten.native_layer_norm.default", adapt=computed)
def native_layer_norm(input: Array, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    result, mean, inverse = _over(input, axes, eps)
    return _scaled(result, weight, bias), mean, inverse


@kernel("aten._fused_rms_norm.default", adapt=computed)
def fused_rms_norm(input: Array, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    small = input.dtype.type(float(ml_dtypes.finfo(input.dtype).eps) if eps is None else eps)
    inverse = 1 / np.sqrt((input * input).mean(axes, keepdims=True) + small)
    return _scaled(input * inverse, weight, None), inverse


@kernel("aten.native_layer_norm_backward.default", adapt=computed)
def native_layer_norm_backward(
    grad_out: Array,
    input: Array,
    normalized_shape: Sequence[int],
    mean: Array,
    rstd: Array,
    weight: Any,
    bias: Any,
    output_mask: Sequence[bool],
) -> Any:
    first = input.ndim - len(normalized_shape)
    outer, axes = tuple(range(first)), tuple(range(first, input.ndim))
    normal = (input - mean) * rstd
    inner = grad_out if weight is None else grad_out * weight
    centered = inner - inner.mean(axes, keepdims=True) - normal * (inner * normal).mean(axes, keepdims=True)
    return masked((centered * rstd, (grad_out * normal).sum(outer), grad_out.sum(outer)), output_mask)


def _by_channel(result: Array, weight: Any, bias: Any) -> Array:
    return _scaled(result, *(None if one is None else _channels(one, result) for one in (weight, bias)))


@kernel("aten.native_group_norm.default", adapt=computed)
def native_group_norm(input: Array, group: int, weight: Any, bias: Any, eps: float) -> tuple[Array, Array, Array]:
    batch, channels, *sizes = input.shape
    result, mean, inverse = _over(input.reshape(batch, group, channels // group * math.prod(sizes)), (2,), eps)
    return _by_channel(result.reshape(input.shape), weight, bias), mean[..., 0], inverse[..., 0]


@kernel("aten._weight_norm.default aten._weight_norm_interface.default", adapt=computed)
def weight_norm(v: Array, g: Array, dim: int) -> Any:
    norm = norm_except_dim(v, 2, dim)
    return v * (g / norm), norm


# Attention.


def attend(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    is_flash: bool = False,
) -> tuple[Array, Array, Array]:
    """Return attention, and its weights before and after softmax.

    Flash attention, of four dimensions, stores exponentials in the type of the queries and divides by their sum last.
    """
    q, k, v = map(wide, (query, key, value))
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
    weights = safe_softmax(scores, -1)
    if dropout_p > 0:
        weights = dropped(weights, dropout_p, weights.shape)[0].astype(q.dtype)
    elif is_flash and q.ndim == 4 and query.dtype != q.dtype:
        most = weights.max(-1, keepdims=True, initial=0)
        return np.matmul(rounding(query.dtype)(weights / np.where(most == 0, 1, most)), v) * most, scores, weights
    return np.matmul(weights, v), scores, weights


@kernel("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention_for_cpu(query: Array, key: Array, value: Array, **options: Any) -> Any:
    grouped = query.ndim > 2 and query.shape[-3] != key.shape[-3]
    result, scores, _ = attend(query, key, value, enable_gqa=grouped, is_flash=True, **options)
    return result, logsumexp(scores, -1)


@kernel("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_attention_for_cpu_backward(
    grad_out: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any = None,
    scale: float | None = None,
) -> Any:
    grad, q, k, v = map(double, (grad_out, query, key, value))
    require(q.shape[:-2] == k.shape[:-2], "expected as many heads of keys and values as of queries")
    weights = attend(q, k, v, attn_mask, 0.0, is_causal, scale)[2]
    of_scores = weights * (grad @ v.swapaxes(-1, -2) - (grad * double(out)).sum(-1, keepdims=True))
    of_scores *= 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return of_scores @ k, of_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ grad


@kernel("aten._scaled_dot_product_efficient_attention.default")
def efficient_attention(
    query: Array, key: Array, value: Array, attn_bias: Any, compute_log_sumexp: bool, **options: Any
) -> Any:
    result, scores, _ = attend(query, key, value, attn_bias, **options)
    sums, nothing = logsumexp(scores, -1), np.zeros((), np.int64)
    return result, sums if compute_log_sumexp else sums[..., :0], nothing, nothing


@kernel("aten._native_multi_head_attention.default")
def native_multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    embed_dim: int,
    num_head: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """Project queries, keys and values, attend in each head, project the result; True in a mask leaves a place out."""
    parts = zip((query, key, value), np.split(qkv_weight, 3), np.split(qkv_bias, 3), strict=True)
    heads = [
        linear(*part).reshape(*part[0].shape[:2], num_head, embed_dim // num_head).swapaxes(1, 2) for part in parts
    ]
    if mask is not None:
        mask = ~(mask[:, None, None] if mask_type == 1 and mask.ndim == 2 else mask).astype(bool)
    result, _, weights = attend(heads[0], heads[1], heads[2], mask)
    result = linear(result.swapaxes(1, 2).reshape(query.shape), proj_weight, proj_bias)
    return result, (weights.mean(1) if average_attn_weights else weights) if need_weights else None


@kernel("aten._transformer_encoder_layer_fwd.default")
def transformer_encoder_layer(
    src: Array, embed_dim: int, num_heads: int, use_gelu: bool, norm_first: bool, eps: float, **options: Any
) -> Any:
    """Attend and apply two linear layers, with a norm before or behind each of both."""
    norms, linears = (
        [(options.pop(f"{name}_weight_{number}"), options.pop(f"{name}_bias_{number}")) for number in (1, 2)]
        for name in ("norm", "ffn")
    )
    activate = partial(gelu, approximate="none") if use_gelu else relu
    layers: Any = (
        lambda x: native_multi_head_attention(x, x, x, embed_dim, num_heads, need_weights=False, **options)[0],
        lambda x: linear(activate(linear(x, *linears[0])), *linears[1]),
    )
    x = src
    for layer, norm in zip(layers, norms, strict=True):
        given = native_layer_norm(x, [embed_dim], *norm, eps)[0] if norm_first else x
        x = x + layer(given)
        x = x if norm_first else native_layer_norm(x, [embed_dim], *norm, eps)[0]
    return x


# Recurrent networks.


State = tuple[Array, ...]
Cell = Callable[[Array, State, Array, Any], State]


def _lstm_cell(keep: Keep, gates: Array, state: State, weight: Array, bias: Any) -> State:
    hidden, memory = state
    i, f, g, o = np.split(keep(keep(gates) + keep(linear(hidden, weight, bias))), 4, -1)
    memory = keep(keep(keep(sigmoid(f)) * memory) + keep(keep(sigmoid(i)) * keep(np.tanh(g))))
    return keep(keep(sigmoid(o)) * keep(np.tanh(memory))), memory


def _gru_cell(keep: Keep, gates: Array, state: State, weight: Array, bias: Any) -> State:
    (hidden,) = state
    r, z, n = np.split(keep(gates), 3, -1)
    hr, hz, hn = np.split(keep(linear(hidden, weight, bias)), 3, -1)
    reset, update = (keep(sigmoid(keep(one))) for one in (r + hr, z + hz))
    new = keep(np.tanh(keep(n + keep(reset * hn))))
    return (keep(new + keep(update * keep(hidden - new))),)


def _plain_cell(
    function: Callable[[Array], Array], keep: Keep, gates: Array, state: State, weight: Array, bias: Any
) -> State:
    return (keep(function(keep(keep(gates) + keep(linear(state[0], weight, bias))))),)


def _layer(
    x: Array, sizes: Sequence[int], state: State, weights: Sequence[Any], cell: Cell, reverse: bool
) -> tuple[Array, State]:
    """Run one direction of one layer over packed sequences.

    Args:
        x: the rows of all steps, [sum(sizes), features].
        sizes: how many sequences each step has; the others have ended, or have not begun if the direction is reversed.
        state: of all sequences.
        weights: of the input, of the state, both biases, and of the projection of an LSTM; None for those it lacks.
        cell: computes a step.
        reverse: begin with the last step.
    """
    inner, recurrent, bias, recurrent_bias, projection = weights
    gates = linear(x, inner, bias)
    starts = [0, *itertools.accumulate(sizes)]
    outputs: list[Any] = [None] * len(sizes)
    for step in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        count = sizes[step]
        now = gates[starts[step] : starts[step + 1]]
        new = cell(now, tuple(one[:count] for one in state), recurrent, recurrent_bias)
        if projection is not None:
            new = (new[0] @ projection.T, *new[1:])
        outputs[step] = new[0]
        state = tuple(
            one if count == len(old) else np.concatenate([one, old[count:]])
            for one, old in zip(new, state, strict=True)
        )
    return np.concatenate(outputs) if outputs else np.zeros((0, state[0].shape[-1]), x.dtype), state


def _network(
    x: Array,
    sizes: Sequence[int],
    states: Sequence[Array],
    params: Sequence[Array],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    cell: Cell,
) -> tuple[Array, list[Array]]:
    """Run all layers and directions over packed sequences; returns outputs and the last states."""
    directions, biases = 2 if bidirectional else 1, 2 if has_biases else 0
    each = len(params) // (num_layers * directions)
    found: list[list[Array]] = [[] for _ in states]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            weights: list[Any] = [*params[number * each : (number + 1) * each]]
            weights[2:2] = [None] * (2 - biases)
            weights += [None] * (5 - len(weights))
            state = tuple(one[number] for one in states)
            output, state = _layer(x, sizes, state, weights, cell, direction == 1)
            outputs.append(output)
            for kept, one in zip(found, state, strict=True):
                kept.append(one)
        x = outputs[0] if directions == 1 else np.concatenate(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            x = x * (running().random.random(x.shape) >= dropout).astype(x.dtype) / x.dtype.type(1 - dropout)
    return x, [np.stack(one) for one in found]


def _packed(input: Array, batch_first: bool) -> tuple[Array, list[int]]:
    """Return a batch of whole sequences as packed ones, and how many each step has."""
    x = input.swapaxes(0, 1) if batch_first else input
    steps, batch, features = x.shape
    return x.reshape(steps * batch, features), [batch] * steps


def _unpacked(rows: Array, sizes: Sequence[int], batch: int, batch_first: bool) -> Array:
    x = rows.reshape(len(sizes), batch, rows.shape[-1])
    return x.swapaxes(0, 1) if batch_first else x


def _register(name: str, function: Callable[..., State]) -> None:
    """Register the kernels of a kind of network: over whole and packed sequences, and of one step."""

    def cell_of(input: Array, is_one: bool = False) -> Cell:
        is_fused = name == "lstm" and input.dtype == ml_dtypes.bfloat16 and not is_one  # computed by oneDNN
        return partial(function, wide if is_fused else rounding(input.dtype))

    @kernel(f"aten.{name}.data")
    def packed(data: Array, batch_sizes: Array, hx: Any, params: Any, **options: Any) -> Any:
        x, *states = map(wide, (data, *flattened(hx)))
        output, last = _network(x, batch_sizes.tolist(), states, mapped(params, wide), cell=cell_of(data), **options)
        return output, *last

    @kernel(f"aten.{name}.input")
    def whole(input: Array, hx: Any, params: Any, batch_first: bool, **options: Any) -> Any:
        rows, sizes = _packed(input, batch_first)
        output, *last = packed(rows, np.asarray(sizes, int), hx, params, **options)
        return _unpacked(output, sizes, last[0].shape[1], batch_first), *last

    @kernel(f"aten.{name}_cell.default")
    def one(input: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Any = None, b_hh: Any = None) -> Any:
        state = cell_of(input, True)(linear(input, w_ih, b_ih), tuple(map(wide, flattened(hx))), w_hh, b_hh)
        return state if name == "lstm" else state[0]


_register("lstm", _lstm_cell)
_register("gru", _gru_cell)
_register("rnn_tanh", partial(_plain_cell, np.tanh))
_register("rnn_relu", partial(_plain_cell, relu))


@kernel("aten.mkldnn_rnn_layer.default", adapt=computed)
def mkldnn_rnn_layer(
    input: Array,
    weight0: Array,
    weight1: Array,
    weight2: Array,
    weight3: Array,
    hx_: Array,
    cx_: Array,
    reverse: bool,
    mode: int,
    hidden_size: int,
    has_biases: bool,
    batch_first: bool,
    **options: Any,
) -> Any:
    require(mode == 2, f"expected the mode 2 (LSTM), got {mode}")
    cell = partial(_lstm_cell, wide)
    rows, sizes = _packed(input, batch_first)
    weights = [weight0, weight1, *((weight2, weight3) if has_biases else (None, None)), None]
    state = tuple(one.reshape(-1, hidden_size) for one in (hx_, cx_))
    output, (hidden, memory) = _layer(rows, sizes, state, weights, cell, reverse)
    result = _unpacked(output, sizes, len(hidden), batch_first)
    return result, hidden.reshape(hx_.shape), memory.reshape(hx_.shape), np.zeros(0, np.uint8)


KERNELS: Final = {
    "aten.batch_norm.default": first(batch_norm),
    "aten._native_batch_norm_legit_functional.default": functional(batch_norm, "running_mean", "running_var"),
    "aten._batch_norm_with_update.default": lambda input, weight, bias, running_mean, running_var, momentum, eps: (
        *batch_norm(input, weight, bias, running_mean, running_var, True, momentum=momentum, eps=eps),
        np.zeros(0, np.uint8),
    ),
    "aten.layer_norm.default": first(native_layer_norm),
    "aten.rms_norm.default": first(fused_rms_norm),
    "aten.group_norm.default": first(native_group_norm),
    "aten.scaled_dot_product_attention.default": first(partial(attend, is_flash=True)),
    "aten._scaled_dot_product_attention_math.default": lambda query, key, value, dropout_mask, **options: attend(
        query, key, value, **options
    )[::2],
}
