"""Recurrent network rows of the operator table: results, and weights of all layers, which fit input and states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pt2kit.operators.facts import Tensor, agree, expect, like, require_rank, unlike_strides
from pt2kit.operators.views import expand
from pt2kit.operators.vocabulary import free, if_contiguous, is_number, one_dtype
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
    expected = weight_sizes(gates, data.sizes[-1], given, inner, biases, is_projected, cells, directions)
    for weight, sizes in zip(params, expected, strict=True):
        require_rank(weight, (len(sizes),), "params")
        for got, wanted in zip(weight.sizes, sizes, strict=True):
            agree(got, wanted, "params: expected weights that fit input and states")
    return given, directions


def weight_sizes(
    gates: int, features: Any, given: Any, inner: Any, biases: bool, is_projected: bool, cells: int, directions: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the sizes of the weights of all cells, in order.

    Args:
        gates: how many a cell has.
        features: numbers of each step of the input; None if unknown.
        given: numbers of each step that a cell returns, to the next layer together with the other direction.
        inner: numbers of its inner state.
        biases: whether it has two biases.
        is_projected: whether its inner state is projected to what it returns.
        cells: how many there are in all layers and directions; a file may say any number.
        directions: 1 or 2.
    """
    rows = gates * inner
    for cell in range(cells):
        yield (rows, features if cell < directions else given * directions)
        yield (rows, given)
        yield from [(rows,)] * (2 * biases)
        yield from [(given, inner)] * is_projected


def over_steps(
    data: Tensor,
    states: Sequence[Tensor],
    gates: int,
    params: Sequence[Tensor],
    biases: bool,
    layers: int,
    both: bool,
    batch_first: bool | None = None,
) -> tuple[Tensor, ...]:
    """Return the results of a network over sequences of one length; over packed ones, if `batch_first` is None."""
    is_packed = batch_first is None
    require_rank(data, (2 if is_packed else 3,), "data" if is_packed else "input")
    width, directions = _check_weights(params, gates, data, states, biases, layers, both)
    result = like(data, (*data.sizes[:-1], width * directions))
    if is_packed:
        return (unlike_strides(result), *map(free, states))
    batch = data.sizes[0 if batch_first else 1]
    for state in states:
        agree(state.sizes[1], batch, "hx: expected a state for each sequence of the batch")
    # Of a batch that is first, steps may be first in memory.
    result = unlike_strides(result) if batch_first else if_contiguous(result, data, *states)
    return (result, *(if_contiguous(like(state), data, *states) for state in states))


def cell_states(
    gates: int,
    data: Tensor,
    states: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Return the states of a cell after one step."""
    for weight, source, bias in ((w_ih, data, b_ih), (w_hh, states[0], b_hh)):
        one_dtype(weight, source, bias)
        require_rank(weight, (2,), "weight")
        expect(source.rank > 0, "expected inputs with features, got a scalar tensor", "sizes")
        agree(weight.sizes[1], source.sizes[-1], "expected weights that fit input and state")
        agree(weight.sizes[0], gates * states[0].sizes[-1], f"expected {gates} gates for each element of the state")
        if bias is not None:
            expand(bias, (*source.sizes[:-1], weight.sizes[0]))
    for state in states:
        agree(state.sizes[0], data.sizes[0], "expected states of the input's batch size")
    return tuple([if_contiguous(like(state), data, *states) for state in states])


def require_dropout(num_layers: int, train: Any, dropout: Any) -> None:
    """Refuse a probability out of range; one layer, or a network that is not trained, ignores it.

    Raises:
        Mismatch: it is less than 0, or more than 1.
    """
    if num_layers != 1 and train and is_number(dropout):
        expect(0 <= dropout <= 1, f"dropout: expected 0 to 1, got {dropout}")


def weights_flops(params: Sequence[Tensor], rows: Size) -> Size:
    """Count two operations for each weight and row of the input; biases and gates are not counted."""
    return sum(2 * rows * weight.numel for weight in params if weight.rank == 2)
