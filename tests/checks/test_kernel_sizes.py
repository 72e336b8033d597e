"""Sizes that kernels take on trust: calls that keep a rule, and what is said of those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from pt2kit.checks.kernel_sizes import MAX_REPEATED, RULES
from pt2kit.checks.shapes import Call, Shape


def dense(*sizes: int | None) -> Shape:
    """A tensor whose elements lie side by side."""
    strides: list[int | None] = []
    step: int | None = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step = None if step is None or size is None else step * size
    return Shape(sizes, strides)


HEADS = dense(2, 3, 4, 8)
POOLED: dict[str, Any] = {"self": dense(1, 4, 8, 8), "grad_output": dense(1, 4, 4, 4)}
LAYER: dict[str, Any] = {"input": dense(5, 2, 7), "hidden_size": 3, "weight0": dense(12, 7), "weight1": dense(12, 3)}
PAIR = [dense(3, 4), dense(5)]
STEPS = [dense(), dense()]
STATES: dict[str, Any] = {
    "hx": [dense(4, 2, 3), dense(4, 2, 5)], "num_layers": 2, "bidirectional": True, "has_biases": True,
    "params": [
        dense(20, inner) if place == 0 else one
        for inner in (7, 7, 6, 6)
        for place, one in enumerate([dense(), dense(20, 3), dense(20), dense(20), dense(3, 5)])
    ],
}  # fmt: skip
LSTM: dict[str, Any] = {"input": dense(9, 2, 7), "batch_first": False, **STATES}
PACKED: dict[str, Any] = {"data": dense(14, 7), "batch_sizes": dense(9), **STATES}
FOUR_BITS: dict[str, Any] = {
    "self": dense(2, 64), "mat2": dense(16, 32), "qGroupSize": 32, "qScaleAndZeros": dense(2, 16, 2)
}  # fmt: skip
SOUND: list[tuple[str, Call]] = [
    ("attention", {"query": HEADS, "key": dense(2, 3, 5, 8), "value": dense(2, 3, 5, 8), "attn_mask": dense(4, 5)}),
    ("attention", {"query": dense(None, 3, 4, 8), "key": HEADS, "value": HEADS}),
    ("attention gradient", {"query": HEADS, "key": HEADS, "value": HEADS, "logsumexp": dense(2, 3, 4)}),
    ("bags", {"grad": dense(3, 4), "bag_size": dense(3), "num_weights": 9, "made.weight": dense(9, 4)}),
    ("batch norm", {"input": dense(2, 4, 3), "weight": dense(4), "running_mean": dense(4), "training": True}),
    ("copied lists", {"self": [dense(2)], "src": [dense(2)]}),
    ("dimensions", {"self": dense(2, 3), "dim": [1, 0]}),
    ("distances", {"x1": dense(5, 3), "x2": dense(4, 3), "grad": dense(5, 4), "cdist": dense(5, 4)}),
    ("few", {"self": dense(2, None)}),
    ("fused", {"self": PAIR, "grads": PAIR, "max_exp_avg_sqs": [], "state_steps": STEPS, "amsgrad": False}),
    ("fused", {"self": [Shape((2, 3), (1, 2))], "momentum_buffer_list": []}),
    ("fused", {"self": [dense(0, 3)], "grads": [dense(0, 3)]}),
    ("grid 2d", {"input": dense(1, 3, 8, 8), "grid": dense(1, 4, 5, 2), "grad_output": dense(1, 3, 4, 5)}),
    ("group norm", {"weight": dense(4)}),
    ("half", {"self": dense(5), "dim": [0], "last_dim_size": 9}),
    ("half", {"self": dense(None), "dim": [0], "last_dim_size": 9}),
    ("layer norm", {"input": dense(2, 3), "normalized_shape": [3], "mean": dense(2, 1), "rstd": dense(2, 1)}),
    ("padded 2d", {"self": dense(3, 4, 5), "grad_output": dense(3, 6, 6), "padding": [0, 1, 1, 1]}),
    ("pivots", {"LU_data": dense(2, 4, 3), "LU_pivots": dense(2, 3)}),
    ("pool 2d", POOLED),
    ("recurrent", {**LAYER, "hx_": dense(1, 2, 3)}),
    ("scaled", {"self": dense(1, 2, 4, 4), "output_size": [8, 8], "scales_h": 2.0, "scales_w": None}),
    ("weight norm", {"v": dense(4, 3), "g": dense(4, 1), "dim": 0}),
    ("lstm", LSTM),
    ("lstm", {**LSTM, "input": dense(2, 9, 7), "batch_first": True}),
    ("lstm", {**LSTM, "input": dense(None, None, 7), "hx": [dense(4, None, 3), dense(4, None, 5)]}),
    ("lstm", {**LSTM, "hx": [None, None]}),
    ("lstm", {**LSTM, "input": dense(9, 0, 7), "hx": [dense(4, 0, 3), dense(4, 0, 5)]}),
    ("packed", PACKED),
    ("packed lstm", PACKED),
    ("four bits", FOUR_BITS),
    ("four bits", {**FOUR_BITS, "self": dense(None, None), "qGroupSize": None}),
    ("diagonals", {"shape": [3, 0, None]}),
]
ODD: list[tuple[str, Call, str]] = [
    ("lstm", {**LSTM, "input": dense(9, 3, 7)}, "states in hx with numbers, for each layer"),
    ("lstm", {**LSTM, "batch_first": True}, "each sequence of the batch"),
    ("lstm", {**LSTM, "input": dense(1, 9, 2, 7)}, "input of 3 dimensions"),
    ("lstm", {**LSTM, "hx": [dense(4, 2, 3), dense(3, 2, 5)]}, "for each layer and direction"),
    ("lstm", {**LSTM, "hx": [dense(4, 2, 3)]}, "hx with two states"),
    ("lstm", {**LSTM, "params": [dense(0), *STATES["params"][1:]]}, "params[0] that fits"),
    (
        "lstm",
        {**LSTM, "params": [*STATES["params"][:10], dense(20, 7), *STATES["params"][11:]]},
        "params[10] that fits",
    ),
    ("lstm", {**LSTM, "params": STATES["params"][:-1]}, "params with 20 tensors, 5 for each layer"),
    ("packed", {"batch_sizes": dense(0)}, "batch_sizes of 1 dimension, with elements"),
    ("packed lstm", {**PACKED, "batch_sizes": dense(0)}, "batch_sizes of 1 dimension, with elements"),
    ("packed lstm", {**PACKED, "data": dense(14, 1, 7)}, "data of 2 dimensions"),
    ("packed lstm", {**PACKED, "hx": [dense(5, 2, 3), dense(4, 2, 5)]}, "for each layer and direction"),
    ("packed lstm", {**PACKED, "hx": [dense(4, 1, 3), dense(4, 2, 5)]}, "states in hx for the same batch"),
    ("four bits", {**FOUR_BITS, "qScaleAndZeros": dense(1, 16, 2)}, "two numbers for each group"),
    ("four bits", {**FOUR_BITS, "qScaleAndZeros": dense(0, 16, 2), "self": None}, "two numbers for each group"),
    ("four bits", {**FOUR_BITS, "qScaleAndZeros": Shape((2, 16, 2), (0, 0, 0))}, "whose elements lie in order"),
    ("diagonals", {"shape": [3, -1]}, "sizes that are not negative"),
    ("attention", {"query": HEADS, "key": dense(2, 3, 5, 8), "value": dense(2, 3, 4, 8)}, "key and value in one shape"),
    ("attention", {"query": HEADS, "key": dense(4, 8), "value": HEADS}, "of 4 dimensions"),
    ("attention", {"query": HEADS, "key": HEADS, "value": HEADS, "attn_mask": dense(9, 9)}, "attn_mask that fits"),
    ("attention", {"query": dense(2, 0, 4, 8), "key": dense(2, 0, 4, 8), "value": dense(2, 0, 4, 8)}, "with elements"),
    (
        "attention gradient",
        {"query": HEADS, "key": HEADS, "value": HEADS, "logsumexp": dense(1, 3, 4)},
        "logsumexp that",
    ),
    (
        "attention gradient",
        {"query": HEADS, "key": HEADS, "value": HEADS, "grad_out": dense(8)},
        "grad_out in the shape",
    ),
    ("bags", {"grad": dense(2, 4), "bag_size": dense(3)}, "grad with a row for each bag"),
    ("bags", {"grad": dense(3, 4), "num_weights": 1, "made.weight": dense(9, 4)}, "num_weights as many as weight had"),
    (
        "batch norm",
        {"input": dense(2, 4, 3), "running_mean": dense(0), "training": True},
        "running_mean of one element",
    ),
    ("batch norm", {"input": dense(2, 4, 3), "training": False}, "running_mean and running_var, or training"),
    ("batch norm", {"input": dense(2)}, "input of 2 dimensions or more"),
    ("copied lists", {"self": [], "src": []}, "self with tensors"),
    ("copied lists", {"self": [dense(2)], "src": [dense(2), dense(2)]}, "src as many as self"),
    ("dimensions", {"self": dense(2, 3), "dim": [-2]}, "from 0 to 1"),
    ("dimensions", {"self": dense(2, 3), "dim": [1, 1]}, "each once"),
    ("distances", {"x1": dense(5, 3), "x2": dense(4, 9)}, "with the same features"),
    ("distances", {"x1": dense(5, 3), "x2": dense(4, 3), "grad": dense(1, 4)}, "grad with an element"),
    ("few", {"self": dense(1 << 40)}, f"at most {MAX_REPEATED:,} elements"),
    ("fused", {"self": []}, "self with tensors"),
    ("fused", {"self": [Shape((4,), (0,))], "grads": [Shape((4,), (0,))]}, "the elements of each side by side"),
    ("fused", {"self": [Shape((1 << 40,), (0,))]}, "the elements of each side by side"),
    ("fused", {"self": PAIR, "grads": [dense(3, 4)]}, "grads as many as self"),
    ("fused", {"self": PAIR, "exp_avgs": [dense(3, 4), dense(0)]}, "exp_avgs as many as self"),
    ("fused", {"self": [dense(3, 4)], "state_sums": [Shape((3, 4), (1, 3))]}, "state_sums as many as self"),
    ("fused", {"self": PAIR, "max_exp_avg_sqs": [], "amsgrad": True}, "max_exp_avg_sqs as many as self"),
    ("fused", {"self": PAIR, "state_steps": [dense()]}, "state_steps as many as self"),
    ("fused", {"self": PAIR, "found_inf": dense(0)}, "found_inf with elements"),
    ("grad like output", {"grad_output": dense(9), "output": dense(3)}, "grad_output in the shape of output"),
    ("grid 2d", {"input": dense(1, 3, 8, 8), "grid": dense(1, 9, 5, 2), "grad_output": dense(1, 3, 4, 5)}, "of grid"),
    ("group norm", {"weight": Shape((4,), (0,))}, "weight without repeated elements"),
    ("half", {"self": dense(5), "dim": [0], "last_dim_size": 10}, "last_dim_size of at most 9"),
    ("layer norm", {"input": dense(2, 3), "normalized_shape": [3], "mean": dense(1, 1)}, "mean that fits input"),
    ("padded 2d", {"self": dense(3, 4, 5), "grad_output": dense(3, 9, 6), "padding": [0, 1, 1, 1]}, "padded sizes"),
    ("padded 2d", {"self": dense(3, 4, 5), "padding": []}, "4 numbers below"),
    ("padded 2d", {"self": dense(3, 4, 5), "padding": [1 << 62] * 4}, "4 numbers below"),
    ("pivots", {"LU_data": dense(2, 4, 3), "LU_pivots": dense(0)}, "a pivot for each row or column"),
    ("pool 2d", {**POOLED, "grad_output": dense(2, 4, 4, 4)}, "the batches and channels of self"),
    ("pool 2d", {**POOLED, "self": dense(1, 4, 0, 8)}, "none of them 0"),
    ("recurrent", {**LAYER, "weight0": dense(0)}, "weight0 that fits"),
    ("recurrent", {**LAYER, "hx_": dense(1, 9, 3)}, "hx_ that fits"),
    ("scaled", {"self": dense(1, 2, 4, 4), "output_size": [100, 100], "scales_w": 2.0}, "the scale 2.0"),
    ("weight norm", {"v": dense(4, 3), "g": dense(0), "dim": 0}, "g with an element for each entry"),
]


@pytest.mark.parametrize(("rule", "call"), SOUND)
def test_sound(rule: str, call: Call) -> None:
    """A call that fits, as far as its sizes are known, keeps the rule."""
    assert list(RULES[rule](call)) == []


@pytest.mark.parametrize(("rule", "call", "expected"), ODD)
def test_odd(rule: str, call: Call, expected: str) -> None:
    """A call that does not fit breaks the rule, which says what would."""
    found = list(RULES[rule](call))
    assert any(expected in text for text in found), found


def test_unknown() -> None:
    """Where nothing is known of a call, nothing is said of it."""
    for rule in RULES.values():
        assert list(rule({})) == []
