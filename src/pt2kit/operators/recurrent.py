"""Recurrent network rows of the operator table: weights of all layers against input and states."""

from __future__ import annotations

from collections.abc import Sequence

from pt2kit.operators.facts import Mismatch, Tensor, agree, expect, like, require_rank, unlike_strides
from pt2kit.operators.vocabulary import free, if_contiguous
from pt2kit.symbols.polynomials import Size


def _check_weights(
    params: Sequence[Tensor], gates: int, data: Tensor, states: Sequence[Tensor], biases: bool, layers: int, both: bool
) -> tuple[Size, int]:
    """Check the weights of all layers against input and states.

    Args:
        params: the weights of each layer and direction, in order.
        gates: how many gates a cell has: its weights have so many rows per element of the state.
        data: the input.
        states: the hidden states, and those of the cells of an LSTM.
        biases: whether each cell has two biases.
        layers: how many layers there are.
        both: whether each layer runs in both directions.

    Returns:
        The size of a result for one direction, and the number of directions.

    Raises:
        Mismatch: a weight or state does not fit.
    """
    directions = 2 if both else 1
    for state in states:
        require_rank(state, (3,), "hx")
        agree(state.sizes[0], layers * directions, "expected a state for each layer and direction")
    given, inner = states[0].sizes[2], states[-1].sizes[2]
    cells = layers * directions
    is_projected = len(states) > 1 and len(params) == cells * (3 + 2 * biases)
    each = 2 + 2 * biases + is_projected
    expect(len(params) == cells * each, f"params: expected {cells * each} weights, got {len(params)}")
    for cell in range(cells):
        weights = params[cell * each : (cell + 1) * each]
        features = data.sizes[-1] if cell < directions else given * directions
        expected: list[tuple[Size, ...]] = [(gates * inner, features), (gates * inner, given)]
        expected += [(gates * inner,)] * (2 * biases) + [(given, inner)] * is_projected
        for weight, sizes in zip(weights, expected, strict=True):
            require_rank(weight, (len(sizes),), "params")
            for got, wanted in zip(weight.sizes, sizes, strict=True):
                agree(got, wanted, "params: expected weights that fit input and states")
    return given, directions


def over_steps(
    data: Tensor,
    states: Sequence[Tensor],
    gates: int,
    params: Sequence[Tensor],
    biases: bool,
    layers: int,
    both: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Return the results of a network over sequences of one length."""
    require_rank(data, (3,), "input")
    width, directions = _check_weights(params, gates, data, states, biases, layers, both)
    batch = data.sizes[0 if batch_first else 1]
    for state in states:
        agree(state.sizes[1], batch, "hx: expected a state for each sequence of the batch")
    result = if_contiguous(like(data, (*data.sizes[:2], width * directions)), data, *states)
    if batch_first:
        result = unlike_strides(result)  # Steps may be first in memory.
    return (result, *(if_contiguous(like(state), data, *states) for state in states))


def packed(
    data: Tensor,
    states: Sequence[Tensor],
    gates: int,
    params: Sequence[Tensor],
    biases: bool,
    layers: int,
    both: bool,
) -> tuple[Tensor, ...]:
    """Return the results of a network over packed sequences."""
    require_rank(data, (2,), "data")
    width, directions = _check_weights(params, gates, data, states, biases, layers, both)
    return (free(data, (data.sizes[0], width * directions)), *map(free, states))


def cell_states(gates: int, data: Tensor, states: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor) -> tuple[Tensor, ...]:
    """Return the states of a cell after one step."""
    for weight, source in ((w_ih, data), (w_hh, states[0])):
        require_rank(weight, (2,), "weight")
        if not source.rank:
            raise Mismatch("expected inputs with features, got a scalar tensor", "sizes")
        agree(weight.sizes[1], source.sizes[-1], "expected weights that fit input and state")
        agree(weight.sizes[0], gates * states[0].sizes[-1], f"expected {gates} gates for each element of the state")
    return tuple([if_contiguous(like(state), data, *states) for state in states])


def weights_flops(params: Sequence[Tensor], rows: Size) -> Size:
    """Count two operations for each weight and row of the input; biases and gates are not counted."""
    flops: Size = 0
    for weight in params:
        if weight.rank == 2:
            flops = flops + 2 * rows * weight.numel
    return flops
