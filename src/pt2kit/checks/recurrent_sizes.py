"""Sizes that kernels of recurrent networks take on trust -> what does not fit in one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit.checks.shapes import Call, Rule, Shape, fit

_GATES: Final = 4
"""Of a cell of an LSTM: its weights have this many rows for each number of the state."""


def _layer(call: Call) -> Iterator[str]:
    """A layer of a recurrent network: weights, states and inputs agree on their features."""
    data, hidden = call.get("input"), call.get("hidden_size")
    if data is None or hidden is None:
        return
    if len(data) != 3 or 0 in data:
        yield "input of 3 dimensions, with elements"
        return
    batch = data[0] if call.get("batch_first") else data[1]
    gates = _GATES * hidden
    expected: dict[str, tuple[int | None, ...]] = {"weight0": (gates, data[2]), "weight1": (gates, hidden)}
    if call.get("has_biases"):
        expected |= {"weight2": (gates,), "weight3": (gates,)}
    for name, sizes in expected.items():
        if not fit(call.get(name), sizes):
            yield f"{name} that fits hidden_size and input"
    for name in ("hx_", "cx_"):
        state = call.get(name)
        if state is not None and not fit(tuple(state[-2:]), (batch, hidden)):
            yield f"{name} that fits hidden_size and input"


def _lstm(call: Call) -> Iterator[str]:
    """An LSTM over sequences of one length."""
    data = call.get("input")
    if data is None:
        yield from _states_and_weights(call, None, None)
        return
    if len(data) != 3:
        yield "input of 3 dimensions"
        return
    steps, batch, features = (data[1], data[0], data[2]) if call.get("batch_first") else data
    if 0 in (steps, features):  # a batch may be empty
        yield "input with steps and features"
        return
    yield from _states_and_weights(call, batch, features)


def _packed(call: Call) -> Iterator[str]:
    """A network over sequences of several lengths: how many there are at each step."""
    sizes = call.get("batch_sizes")
    if sizes is not None and (len(sizes) != 1 or 0 in sizes):
        yield "batch_sizes of 1 dimension, with elements"


def _packed_lstm(call: Call) -> Iterator[str]:
    """An LSTM over sequences of several lengths."""
    data = call.get("data")
    if data is not None and len(data) != 2:
        yield "data of 2 dimensions"
        return
    yield from _packed(call)
    yield from _states_and_weights(call, None, None if data is None else data[1])


def _states_and_weights(call: Call, batch: int | None, features: int | None) -> Iterator[str]:
    """Two states for each layer and direction, and weights that take inputs and give states of their sizes.

    Args:
        call: what the LSTM gets.
        batch: how many sequences there are.
        features: numbers of each step.
    """
    states, layers, is_bidirectional = call.get("hx"), call.get("num_layers"), call.get("bidirectional")
    if states is None or layers is None or is_bidirectional is None:
        return
    if len(states) != 2:
        yield "hx with two states"
        return
    hidden, cell = states
    directions = 2 if is_bidirectional else 1
    for state in (hidden, cell):
        if not fit(state, (layers * directions, batch, None)) or (state is not None and 0 in (state[0], state[2])):
            yield "states in hx with numbers, for each layer and direction and each sequence of the batch"
            return
    if hidden is None or cell is None or not fit(hidden[1:2], cell[1:2]):
        if hidden is not None and cell is not None:
            yield "states in hx for the same batch"
        return
    yield from _weights(call, hidden[2], cell[2], features, directions)


def _weights(call: Call, given: int | None, size: int | None, features: int | None, directions: int) -> Iterator[str]:
    """Weights of all layers, in order.

    Args:
        call: what the LSTM gets.
        given: numbers that a layer gives for each step, and gets from the one before.
        size: numbers of its inner state.
        features: numbers of each step of the input.
        directions: 1 or 2.
    """
    weights: list[Shape | None] | None = call.get("params")
    if weights is None or None in (given, size):
        return
    gates = None if size is None else _GATES * size
    of_one: list[tuple[int | None, ...]] = [(gates, None), (gates, given)]
    if call.get("has_biases"):
        of_one += [(gates,), (gates,)]
    if given != size:
        of_one.append((given, size))
    cells = call["num_layers"] * directions
    if len(weights) != cells * len(of_one):
        yield f"params with {cells * len(of_one)} tensors, {len(of_one)} for each layer and direction"
        return
    for position, weight in enumerate(weights):
        cell, place = divmod(position, len(of_one))
        expected = of_one[place]
        if place == 0:
            inner = None if given is None else given * directions
            expected = (gates, features if cell < directions else inner)
        if not fit(weight, expected):
            yield f"params[{position}] that fits the states in hx and the input"
            return


RECURRENT: Final[Mapping[str, Rule]] = MappingProxyType(
    {"recurrent": _layer, "lstm": _lstm, "packed": _packed, "packed lstm": _packed_lstm}
)
"""Name in the table -> rule."""
