"""Result rules of attention and recurrent networks compared with torch's fake tensors, and FLOPs with its counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.bridge.operators.drawers import choose, tensor
from tests.bridge.operators.fake_calls import FLOATS, Draw, Drawer, agreement, overload, to_facts
from tests.operators.cases import flops
from torch.utils.flop_counter import FlopCounterMode

from pt2kit.operators.symbolic import call_rule
from pt2kit.operators.table import find

F32 = (torch.float32,)
NO, YES = choose(False), choose(True)
QKV = {
    "query": tensor("2436", "236", "36", "2436", dtypes=FLOATS),
    "key": tensor("2456", "256", "56", "2457", like="query"),
    "value": tensor("2456", "2457", "256", "56", like="query"),
    "dropout_p": choose(0.0),
    "is_causal": choose(False),
    "scale": choose(None),
}
HEADS = {
    **QKV,
    "query": tensor("2436", dtypes=F32),
    "key": tensor("2456", dtypes=F32),
    "value": tensor("2456", dtypes=F32),
}
MASK = tensor("35", "45", "2435", "15", "36", dtypes=(torch.bool, torch.float32, torch.int64))
CASES: list[tuple[str, dict[str, Drawer]]] = [
    ("aten.scaled_dot_product_attention.default", {**QKV, "attn_mask": choose(None), "enable_gqa": NO}),
    ("aten.scaled_dot_product_attention.default", {**HEADS, "attn_mask": MASK, "enable_gqa": NO}),
    (
        "aten.scaled_dot_product_attention.default",
        {
            **HEADS,
            "key": tensor("2256", "2356", dtypes=F32),
            "value": tensor("2256", dtypes=F32),
            "attn_mask": choose(None),
            "enable_gqa": YES,
        },
    ),
    (
        "aten._scaled_dot_product_attention_math.default",
        {**QKV, "attn_mask": choose(None), "dropout_mask": choose(None), "enable_gqa": NO},
    ),
    ("aten._scaled_dot_product_flash_attention_for_cpu.default", {**HEADS, "attn_mask": choose(None)}),
    ("aten._scaled_dot_product_flash_attention.default", {**HEADS, "return_debug_mask": NO}),
    ("aten._scaled_dot_product_efficient_attention.default", {**HEADS, "attn_bias": choose(None)}),
    (
        "aten._native_multi_head_attention.default",
        {
            "query": tensor("356", dtypes=F32),
            "key": lambda draw: draw.given["query"],
            "value": lambda draw: draw.given["query"],
            "embed_dim": choose(6),
            "num_head": choose(2, 3, 4),
            "qkv_weight": lambda draw: draw.tensor(18, 6, dtypes=F32),
            "qkv_bias": lambda draw: draw.tensor(18, dtypes=F32),
            "proj_weight": tensor("66", dtypes=F32),
            "proj_bias": tensor("6", dtypes=F32),
            "mask": choose(None),
            "mask_type": choose(None),
        },
    ),
]


def _params(gates: int, layers: int, directions: int, biases: bool, projected: int = 0) -> list[tuple[int, ...]]:
    """Return the sizes of the weights of a network of 5 features and 4 elements of state."""
    sizes: list[tuple[int, ...]] = []
    given = projected or 4
    for layer in range(layers):
        for _ in range(directions):
            sizes += [(gates * 4, 5 if layer == 0 else given * directions), (gates * 4, given)]
            sizes += [(gates * 4,)] * (2 * biases) + ([(projected, 4)] if projected else [])
    return sizes


def _network(gates: int, layers: int, directions: int, batch_first: bool, projected: int = 0) -> dict[str, Drawer]:
    biases = layers == 1

    def made(*sizes: int) -> Any:
        return lambda draw: draw.tensor(*sizes, dtypes=F32)

    def states(draw: Draw) -> Any:
        hidden = made(layers * directions, draw.rng.choice((2, 2, 3)) if gates != 4 else 2, projected or 4)(draw)
        cell = made(layers * directions, 2, 4)(draw)
        return [hidden, cell] if gates == 4 else hidden

    return {
        "input": made(2, 3, 5) if batch_first else made(3, 2, 5),
        "hx": states,
        "params": lambda draw: [made(*sizes)(draw) for sizes in _params(gates, layers, directions, biases, projected)],
        "has_biases": choose(biases),
        "num_layers": choose(layers),
        "dropout": choose(0.0),
        "train": NO,
        "bidirectional": choose(directions == 2),
        "batch_first": choose(batch_first),
    }


for _layers, _directions, _first in ((1, 1, False), (2, 2, True), (2, 1, True)):
    CASES += [
        ("aten.lstm.input", _network(4, _layers, _directions, _first)),
        ("aten.gru.input", _network(3, _layers, _directions, _first)),
        ("aten.rnn_tanh.input", _network(1, _layers, _directions, _first)),
    ]
CASES.append(("aten.lstm.input", _network(4, 1, 1, False, projected=3)))
_CELL = {"input": tensor("35", dtypes=F32), "hx": tensor("34", dtypes=F32), "b_ih": choose(None), "b_hh": choose(None)}


def made_bias(draw: Draw) -> Any:
    """Draw a bias of 16 elements."""
    return draw.tensor(16, dtypes=F32)


def _matrix(rows: int, columns: int) -> Drawer:
    return lambda draw: draw.tensor(draw.rng.choice((rows, rows, rows, 7)), columns, dtypes=F32)


CASES += [
    (
        "aten.lstm_cell.default",
        {
            **_CELL,
            "hx": lambda draw: [draw.tensor(3, 4, dtypes=F32)] * 2,
            "w_ih": _matrix(16, 5),
            "w_hh": _matrix(16, 4),
        },
    ),
    ("aten.gru_cell.default", {**_CELL, "w_ih": _matrix(12, 5), "w_hh": _matrix(12, 4)}),
    ("aten.rnn_relu_cell.default", {**_CELL, "w_ih": _matrix(4, 5), "w_hh": _matrix(4, 4)}),
    (
        "aten._thnn_fused_lstm_cell.default",
        {
            "input_gates": _matrix(3, 16),
            "hidden_gates": _matrix(3, 16),
            "cx": tensor("34", dtypes=F32),
            "input_bias": made_bias,
            "hidden_bias": made_bias,
        },
    ),
]
test_rules_agree_with_fake_tensors = agreement(CASES, 6, refused=True)


def zeros(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes)


Q, K, V = zeros(2, 4, 3, 6), zeros(2, 4, 5, 6), zeros(2, 4, 5, 7)


@pytest.mark.parametrize(
    "arguments", [(Q, K, V), (Q, K, zeros(2, 4, 5, 6)), (zeros(2, 3, 6), zeros(2, 5, 6), zeros(2, 5, 7))]
)
def test_attention_flops(arguments: tuple[Any, ...]) -> None:
    """Attention counts as the two products of which it consists."""
    query, key, value = arguments
    with FlopCounterMode(display=False) as counter:
        torch.matmul(torch.matmul(query, key.transpose(-1, -2)), value)
    facts = {"query": to_facts(query), "key": to_facts(key), "value": to_facts(value)}
    assert flops("aten.scaled_dot_product_attention.default", facts) == counter.get_total_flops()


def test_backward_flops() -> None:
    """The gradient of attention counts as torch counts it."""
    from torch.utils.flop_counter import sdpa_backward_flop_count

    row = find("aten._scaled_dot_product_flash_attention_backward.default")
    assert row is not None
    assert row.flops is not None
    facts = {"query": to_facts(Q), "key": to_facts(K), "value": to_facts(V)}
    grad = (*Q.shape[:-1], V.shape[-1])
    assert call_rule(row.flops, facts, is_strict=True) == sdpa_backward_flop_count(grad, Q.shape, K.shape, V.shape)


def test_network_flops() -> None:
    """A recurrent network counts as the products of which torch's own kernels consist."""
    network = torch.nn.GRU(5, 4, num_layers=2, bidirectional=True)
    data, state = zeros(3, 2, 5), zeros(4, 2, 4)
    params = list(network._flat_weights)
    arguments = {
        "input": data,
        "hx": state,
        "params": params,
        "has_biases": True,
        "num_layers": 2,
        "dropout": 0.0,
        "train": False,
        "bidirectional": True,
        "batch_first": False,
    }
    with FlopCounterMode(display=False) as counter:
        overload("aten.gru.input")(**arguments)
    facts = {key: to_facts(value) for key, value in arguments.items()}
    assert flops("aten.gru.input", facts) == counter.get_total_flops()
