"""Kernels: LSTM, GRU and plain recurrent networks, and their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, asarray, running, wide
from pt2kit.runtime.table import kernel

State = tuple[Array, ...]
Cell = Callable[[Array, State, Array, Any], State]


def _sigmoid(x: Array) -> Array:
    return asarray(1 / (1 + np.exp(-x)))


def _lstm_cell(gates: Array, state: State, weight: Array, bias: Any) -> State:
    hidden, memory = state
    total = gates + hidden @ weight.T
    if bias is not None:
        total = total + bias
    i, f, g, o = np.split(total, 4, -1)
    memory = _sigmoid(f) * memory + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(memory), memory


def _gru_cell(gates: Array, state: State, weight: Array, bias: Any) -> State:
    (hidden,) = state
    inner = hidden @ weight.T
    if bias is not None:
        inner = inner + bias
    r, z, n = np.split(gates, 3, -1)
    hr, hz, hn = np.split(inner, 3, -1)
    reset, update = _sigmoid(r + hr), _sigmoid(z + hz)
    new = np.tanh(n + reset * hn)
    return (new + update * (hidden - new),)


def _plain_cell(function: Callable[[Array], Array]) -> Cell:
    def cell(gates: Array, state: State, weight: Array, bias: Any) -> State:
        total = gates + state[0] @ weight.T
        return (function(total if bias is None else total + bias),)

    return cell


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def _layer(x: Array, state: State, weights: Sequence[Any], cell: Cell, reverse: bool) -> tuple[Array, State]:
    """Run one direction of one layer over [time, batch, features]."""
    inner, recurrent, bias, recurrent_bias = weights
    gates = x @ inner.T
    if bias is not None:
        gates = gates + bias
    outputs: list[Any] = [None] * len(x)
    for step in reversed(range(len(x))) if reverse else range(len(x)):
        state = cell(gates[step], state, recurrent, recurrent_bias)
        outputs[step] = state[0]
    return np.stack(outputs) if outputs else np.zeros((0, *state[0].shape), x.dtype), state


def _network(
    x: Array, states: Sequence[Array], params: Sequence[Array], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, cell: Cell, lengths: Any = None,
) -> tuple[Array, list[Array]]:  # fmt: skip
    """Run all layers and directions over [time, batch, features]; returns outputs and the last states."""
    directions, each = 2 if bidirectional else 1, 4 if has_biases else 2
    projected = len(params) // max(1, num_layers * directions) - each
    if projected or len(params) != num_layers * directions * each:
        raise OperatorError(f"expected {num_layers * directions * each} weights without projections, got {len(params)}")
    parts = [wide(one) for one in params]
    found: list[list[Array]] = [[] for _ in states]
    run = _layer if lengths is None else _packed_layer(lengths)
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            weights: list[Any] = parts[number * each : (number + 1) * each]
            weights += [None] * (4 - each)
            state = tuple(wide(one)[number] for one in states)
            output, state = run(x, state, weights, cell, direction == 1)
            outputs.append(output)
            for kept, one in zip(found, state, strict=True):
                kept.append(one)
        x = outputs[0] if directions == 1 else np.concatenate(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            x = x * (running().random.random(x.shape) >= dropout).astype(x.dtype) / x.dtype.type(1 - dropout)
    return x, [np.stack(one) for one in found]


def _packed_layer(batch_sizes: Array) -> Any:
    """Return what runs one direction of one layer over packed sequences."""
    sizes = [int(size) for size in batch_sizes]
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()

    def run(x: Array, state: State, weights: Sequence[Any], cell: Cell, reverse: bool) -> tuple[Array, State]:
        inner, recurrent, bias, recurrent_bias = weights
        gates = x @ inner.T if bias is None else x @ inner.T + bias
        last = tuple(one.copy() for one in state)
        output = np.zeros_like(x, shape=(len(x), state[0].shape[-1]))
        for step in reversed(range(len(sizes))) if reverse else range(len(sizes)):
            count = sizes[step]
            new = cell(
                gates[starts[step] : starts[step + 1]], tuple(one[:count] for one in last), recurrent, recurrent_bias
            )
            for kept, one in zip(last, new, strict=True):
                kept[:count] = one
            output[starts[step] : starts[step + 1]] = new[0]
        return output, last

    return run


def _sequence(input: Array, batch_first: bool) -> tuple[Array, bool]:
    x = wide(input)
    return (x.swapaxes(0, 1), True) if batch_first and x.ndim == 3 else (x, False)


def _register(name: str, cell: Cell) -> None:
    """Register the kernels of a kind of network: over whole and packed sequences, and of one step."""

    def listed(hx: Any) -> Sequence[Array]:
        return hx if name == "lstm" else [hx]

    @kernel(f"aten.{name}.input")
    def whole(input: Array, hx: Any, batch_first: bool, **options: Any) -> Any:
        x, swapped = _sequence(input, batch_first)
        output, states = _network(x, listed(hx), cell=cell, **options)
        return output.swapaxes(0, 1) if swapped else output, *states

    @kernel(f"aten.{name}.data")
    def packed(data: Array, batch_sizes: Array, hx: Any, **options: Any) -> Any:
        output, states = _network(wide(data), listed(hx), cell=cell, lengths=batch_sizes, **options)
        return output, *states

    @kernel(f"aten.{name}_cell.default")
    def one(input: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Any = None, b_hh: Any = None) -> Any:
        gates = wide(input) @ wide(w_ih).T
        if b_ih is not None:
            gates = gates + wide(b_ih)
        state = cell(gates, tuple(map(wide, listed(hx))), wide(w_hh), None if b_hh is None else wide(b_hh))
        return state if name == "lstm" else state[0]


_register("lstm", _lstm_cell)
_register("gru", _gru_cell)
_register("rnn_tanh", _plain_cell(np.tanh))
_register("rnn_relu", _plain_cell(_relu))


@kernel("aten.mkldnn_rnn_layer.default")
def mkldnn_rnn_layer(
    input: Array, weight0: Array, weight1: Array, weight2: Array, weight3: Array, hx_: Array, cx_: Array,
    reverse: bool, batch_sizes: Sequence[int], mode: int, hidden_size: int, num_layers: int, has_biases: bool,
    bidirectional: bool, batch_first: bool, train: bool,
) -> Any:  # fmt: skip
    if mode != 2:
        raise OperatorError(f"expected the mode 2 (LSTM), got {mode}")
    x, swapped = _sequence(input, batch_first)
    weights = (
        [wide(one) for one in (weight0, weight1, weight2, weight3)]
        if has_biases
        else [wide(weight0), wide(weight1), None, None]
    )
    shape = hx_.shape
    state = tuple(wide(one).reshape(-1, hidden_size) for one in (hx_, cx_))
    output, (hidden, memory) = _layer(x, state, weights, _lstm_cell, reverse)
    result = output.swapaxes(0, 1) if swapped else output
    return result, hidden.reshape(shape), memory.reshape(shape), np.zeros(0, np.uint8)
