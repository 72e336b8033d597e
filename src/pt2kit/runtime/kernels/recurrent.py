"""Kernels: LSTM, GRU and plain recurrent networks, and their cells."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import Array, require, running, wide
from pt2kit.runtime.kernels.activations import relu, sigmoid
from pt2kit.runtime.kernels.products import linear
from pt2kit.runtime.table import kernel

State = tuple[Array, ...]
Cell = Callable[[Array, State, Array, Any], State]


def _lstm_cell(gates: Array, state: State, weight: Array, bias: Any) -> State:
    hidden, memory = state
    i, f, g, o = np.split(gates + linear(hidden, weight, bias), 4, -1)
    memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(memory), memory


def _gru_cell(gates: Array, state: State, weight: Array, bias: Any) -> State:
    (hidden,) = state
    r, z, n = np.split(gates, 3, -1)
    hr, hz, hn = np.split(linear(hidden, weight, bias), 3, -1)
    reset, update = sigmoid(r + hr), sigmoid(z + hz)
    new = np.tanh(n + reset * hn)
    return (new + update * (hidden - new),)


def _plain_cell(function: Callable[[Array], Array]) -> Cell:
    def cell(gates: Array, state: State, weight: Array, bias: Any) -> State:
        return (function(gates + linear(state[0], weight, bias)),)

    return cell


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
    x: Array, sizes: Sequence[int], states: Sequence[Array], params: Sequence[Array], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool, cell: Cell,
) -> tuple[Array, list[Array]]:  # fmt: skip
    """Run all layers and directions over packed sequences; returns outputs and the last states."""
    directions, biases = 2 if bidirectional else 1, 2 if has_biases else 0
    each, rest = divmod(len(params), max(1, num_layers * directions))
    projections = each - 2 - biases
    if rest or projections not in (0, 1) or (projections and cell is not _lstm_cell):
        raise OperatorError(f"expected {num_layers * directions * (2 + biases)} weights, got {len(params)}")
    parts = [wide(one) for one in params]
    found: list[list[Array]] = [[] for _ in states]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            weights: list[Any] = parts[number * each : (number + 1) * each]
            weights[2:2] = [None] * (2 - biases)
            weights += [None] * (1 - projections)
            state = tuple(wide(one)[number] for one in states)
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
    x = wide(input).swapaxes(0, 1) if batch_first else wide(input)
    steps, batch, features = x.shape
    return x.reshape(steps * batch, features), [batch] * steps


def _unpacked(rows: Array, sizes: Sequence[int], batch: int, batch_first: bool) -> Array:
    x = rows.reshape(len(sizes), batch, rows.shape[-1])
    return x.swapaxes(0, 1) if batch_first else x


def _register(name: str, cell: Cell) -> None:
    """Register the kernels of a kind of network: over whole and packed sequences, and of one step."""

    def listed(hx: Any) -> Sequence[Array]:
        return hx if name == "lstm" else [hx]

    def add_axis(hx: Any) -> Any:
        return [one[:, None] for one in hx] if name == "lstm" else hx[:, None]

    @kernel(f"aten.{name}.input")
    def whole(input: Array, hx: Any, batch_first: bool, **options: Any) -> Any:
        if input.ndim == 2:
            output, *states = whole(input[:, None], add_axis(hx), batch_first=False, **options)
            return output[:, 0], *(one[:, 0] for one in states)
        rows, sizes = _packed(input, batch_first)
        output, states = _network(rows, sizes, listed(hx), cell=cell, **options)
        return _unpacked(output, sizes, listed(hx)[0].shape[1], batch_first), *states

    @kernel(f"aten.{name}.data")
    def packed(data: Array, batch_sizes: Array, hx: Any, **options: Any) -> Any:
        output, states = _network(wide(data), batch_sizes.tolist(), listed(hx), cell=cell, **options)
        return output, *states

    @kernel(f"aten.{name}_cell.default")
    def one(input: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Any = None, b_hh: Any = None) -> Any:
        state = cell(linear(input, w_ih, b_ih), tuple(map(wide, listed(hx))), w_hh, b_hh)
        return state if name == "lstm" else state[0]


_register("lstm", _lstm_cell)
_register("gru", _gru_cell)
_register("rnn_tanh", _plain_cell(np.tanh))
_register("rnn_relu", _plain_cell(relu))


@kernel("aten.mkldnn_rnn_layer.default")
def mkldnn_rnn_layer(
    input: Array, weight0: Array, weight1: Array, weight2: Array, weight3: Array, hx_: Array, cx_: Array,
    reverse: bool, batch_sizes: Sequence[int], mode: int, hidden_size: int, num_layers: int, has_biases: bool,
    bidirectional: bool, batch_first: bool, train: bool,
) -> Any:  # fmt: skip
    require(mode == 2, f"expected the mode 2 (LSTM), got {mode}")
    rows, sizes = _packed(input, batch_first)
    weights = [wide(weight0), wide(weight1), *(map(wide, (weight2, weight3)) if has_biases else (None, None)), None]
    state = tuple(wide(one).reshape(-1, hidden_size) for one in (hx_, cx_))
    output, (hidden, memory) = _layer(rows, sizes, state, weights, _lstm_cell, reverse)
    result = _unpacked(output, sizes, len(hidden), batch_first)
    return result, hidden.reshape(hx_.shape), memory.reshape(hx_.shape), np.zeros(0, np.uint8)
