"""Result rules of attention and recurrent networks: golden calls."""

from __future__ import annotations

from typing import Any

from tests.operators.cases import BOOL, F64, I64, S, flops, refusals, results, t

SDPA = "aten.scaled_dot_product_attention.default"
Q, K, V = t(2, 4, S, 8), t(2, 4, 6, 8), t(2, 4, 6, 5)
PARAMS = (t(16, 5), t(16, 4), t(16), t(16))
LSTM = {
    "input": t(3, S, 5),
    "hx": (t(1, S, 4), t(1, S, 4)),
    "params": PARAMS,
    "has_biases": True,
    "num_layers": 1,
    "bidirectional": False,
    "batch_first": False,
}
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    (SDPA, {"query": Q, "key": K, "value": V}, t(2, 4, S, 5)),
    (SDPA, {"query": Q, "key": K, "value": V, "attn_mask": t(S, 6, dtype=BOOL)}, t(2, 4, S, 5)),
    (SDPA, {"query": Q, "key": t(2, 2, 6, 8), "value": t(2, 2, 6, 8), "enable_gqa": True}, t(2, 4, S, 8)),
    ("aten._scaled_dot_product_flash_attention_for_cpu.default", {"query": Q, "key": K, "value": K}, (Q, t(2, 4, S))),
    ("aten.lstm.input", LSTM, (t(3, S, 4), t(1, S, 4), t(1, S, 4))),
    (
        "aten.lstm_cell.default",
        {"input": t(3, 5), "hx": (t(3, 4), t(3, 4)), "w_ih": t(16, 5), "w_hh": t(16, 4)},
        (t(3, 4), t(3, 4)),
    ),
    ("aten.gru_cell.default", {"input": t(3, 5), "hx": t(3, 4), "w_ih": t(12, 5), "w_hh": t(12, 4)}, t(3, 4)),
    ("aten._pack_padded_sequence.default", {"input": t(3, 2, 5), "batch_first": False}, (None, None)),
]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "aten.gru_cell.default",
        {"input": t(3, 5), "hx": t(3, 4), "w_ih": t(12, 5), "w_hh": t(12, 4), "b_ih": t(11)},
        "sizes",
        "",
    ),
    (
        "aten.lstm_cell.default",
        {"input": t(3, 5), "hx": (t(3, 4), t(2, 4)), "w_ih": t(16, 5), "w_hh": t(16, 4)},
        "sizes",
        "states of the input's batch size, got 2 and 3",
    ),
    (
        "aten.gru_cell.default",
        {"input": t(S, 5), "hx": t(S + 1, 4), "w_ih": t(12, 5), "w_hh": t(12, 4)},
        "sizes",
        "states of the input's batch size",
    ),
    (
        "aten.rnn_tanh_cell.default",
        {"input": t(3, 5), "hx": t(3, 4), "w_ih": t(4, 5), "w_hh": t(4, 4, dtype=I64)},
        "dtype",
        "one dtype",
    ),
    (
        "aten.gru.input",
        {
            "input": t(5, 3, 4),
            "hx": t(2, 3, 4),
            "params": (t(12, 4), t(12, 4)) * 2,
            "has_biases": False,
            "num_layers": 2,
            "bidirectional": False,
            "batch_first": False,
            "train": True,
            "dropout": 1.5,
        },
        "value",
        "dropout",
    ),
    (
        "aten.scaled_dot_product_attention.default",
        {"query": t(1, 2, 3, 4), "key": t(1, 2, 3, 4), "value": t(1, 2, 3, 4), "dropout_p": 2.0},
        "value",
        "dropout_p",
    ),
    (SDPA, {"query": Q, "key": t(2, 4, 6, 7), "value": V}, "sizes", "one embedding size, got 8 and 7"),
    (SDPA, {"query": Q, "key": K, "value": t(2, 4, 7, 5)}, "sizes", "as many keys as values"),
    (SDPA, {"query": Q, "key": K, "value": t(2, 4, 6, 5, dtype=F64)}, "dtype", "one dtype"),
    (SDPA, {"query": Q, "key": K, "value": V, "attn_mask": t(S, 6, dtype=I64)}, "dtype", "bools or floats"),
    (SDPA, {"query": Q, "key": K, "value": V, "attn_mask": t(S, 5)}, "sizes", "attn_mask: expected to expand"),
    (SDPA, {"query": t(8), "key": K, "value": V}, "sizes", "query: expected 2 dimensions or more"),
    ("aten.lstm.input", {**LSTM, "params": PARAMS[:3]}, "value", "params: expected 4 weights, got 3"),
    ("aten.lstm.input", {**LSTM, "params": (t(16, 6), *PARAMS[1:])}, "sizes", "weights that fit"),
    ("aten.lstm.input", {**LSTM, "hx": (t(1, S, 4),)}, "value", "hx: expected 2 entries, got 1 entry"),
    ("aten.lstm.input", {**LSTM, "input": t(3, 5)}, "sizes", "input: expected 3 dimensions"),
    (
        "aten.gru_cell.default",
        {"input": t(3, 5), "hx": t(3, 4), "w_ih": t(16, 5), "w_hh": t(16, 4)},
        "sizes",
        "expected 3 gates",
    ),
    (
        "aten._native_multi_head_attention.default",
        {"query": t(3, 5, 6), "embed_dim": 6, "num_head": 0},
        "value",
        "embed_dim % num_head == 0, got embed_dim = 6, num_head = 0",
    ),
]
test_results = results(RESULTS)
test_refused = refusals(REFUSED)


def test_flops() -> None:
    """Attention counts as two products, a network as the products with its weights."""
    assert flops(SDPA, {"query": Q, "key": K, "value": V}) == 2 * 8 * 6 * (8 + 5) * S
    assert flops("aten.lstm.input", LSTM) == 2 * 3 * S * (16 * 5 + 16 * 4)
