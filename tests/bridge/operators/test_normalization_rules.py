"""Result rules of normalizations and losses compared with torch's fake tensors."""

from __future__ import annotations

import torch
from tests.bridge.operators.drawers import choose, tensor
from tests.bridge.operators.fake_calls import FLOATS, INTS, Drawer, agreement

REAL = (torch.float32, torch.float64)
ANY_REAL = (*REAL, torch.int64, torch.uint8)
DATA = tensor("245", "2456", "24566", "24", "4", dtypes=FLOATS)
CHANNEL = tensor("4", "4", "4", "4", "5", like="input", dtypes=REAL)
NONE = choose(None)
STATS = {"input": DATA, "weight": CHANNEL, "bias": CHANNEL, "running_mean": CHANNEL, "running_var": CHANNEL}
LAST = {
    "input": tensor("245", "2345", dtypes=FLOATS),
    "normalized_shape": choose([5], [4, 5], [5], [3], []),
    "weight": tensor("5", "45", like="input", dtypes=REAL),
    "bias": NONE,
}
REDUCTION = choose(0, 1, 2)
PAIR = {
    "self": tensor("245", "45", "5", "", dtypes=REAL),
    "target": tensor("245", "45", like="self"),
    "reduction": REDUCTION,
}
LABELS = (torch.int64, torch.int64, torch.int64, torch.int32)
SCORES = {
    "self": tensor("45", "45", "245", "2453", "5", dtypes=REAL),
    "target": tensor("4", "4", "25", "253", "", dtypes=LABELS),
    "weight": tensor("5", "4", like="self"),
    "reduction": REDUCTION,
    "ignore_index": choose(-100),
}
CASES: list[tuple[str, dict[str, Drawer]]] = [
    ("aten.batch_norm.default", STATS),
    (
        "aten.batch_norm.default",
        {**STATS, "weight": NONE, "bias": NONE, "running_mean": NONE, "running_var": NONE, "training": choose(True)},
    ),
    (
        "aten.instance_norm.default",
        {**STATS, "running_mean": NONE, "running_var": NONE, "use_input_stats": choose(True)},
    ),
    ("aten.native_batch_norm.default", STATS),
    ("aten._native_batch_norm_legit_no_training.default", STATS),
    ("aten._native_batch_norm_legit_functional.default", STATS),
    ("aten._native_batch_norm_legit.no_stats", STATS),
    (
        "aten.native_batch_norm_backward.default",
        {
            "grad_out": tensor("2456", dtypes=REAL),
            "input": tensor("2456", like="grad_out"),
            "weight": tensor("4", like="grad_out"),
            "running_mean": NONE,
            "running_var": NONE,
            "save_mean": tensor("4", like="grad_out"),
            "save_invstd": tensor("4", like="grad_out"),
            "train": choose(True),
            "output_mask": choose([True, True, True], [True, False, False]),
        },
    ),
    ("aten.layer_norm.default", LAST),
    ("aten.native_layer_norm.default", LAST),
    ("aten.rms_norm.default", LAST),
    (
        "aten.native_layer_norm_backward.default",
        {
            "grad_out": tensor("245", dtypes=REAL),
            "input": tensor("245", like="grad_out"),
            "normalized_shape": choose([5]),
            "mean": tensor("241", like="grad_out"),
            "rstd": tensor("241", like="grad_out"),
            "weight": tensor("5", like="grad_out"),
            "bias": NONE,
            "output_mask": choose([True, True, True], [True, False, False]),
        },
    ),
    (
        "aten.group_norm.default",
        {"input": DATA, "num_groups": choose(1, 2, 4, 3, 0, -1), "weight": CHANNEL, "bias": NONE},
    ),
    (
        "aten.native_group_norm.default",
        {
            "input": tensor("2456", dtypes=REAL),
            "weight": tensor("4", like="input"),
            "bias": NONE,
            "N": choose(2),
            "C": choose(4, 4, 8),
            "HxW": choose(30),
            "group": choose(1, 2, 3),
        },
    ),
    (
        "aten._weight_norm.default",
        {"v": tensor("45", "456", dtypes=REAL), "g": tensor("41", "411", like="v"), "dim": choose(0)},
    ),
    (
        "aten._weight_norm_interface.default",
        {"v": tensor("45", dtypes=REAL), "g": tensor("41", like="v"), "dim": choose(0)},
    ),
    (
        "aten.norm_except_dim.default",
        {"v": tensor("45", "456", dtypes=REAL), "pow": choose(2), "dim": choose(0, 1, -1)},
    ),
    (
        "aten.renorm.default",
        {
            "self": tensor("45", "456", "4", dtypes=REAL),
            "p": choose(2.0),
            "dim": choose(0, 1, 5),
            "maxnorm": choose(1.0),
        },
    ),
    *(
        (
            f"aten.{name}",
            {
                "self": tensor("45", "2456", "5", "", dtypes=FLOATS),
                "dim": lambda draw: draw.dim(),
                "half_to_float": choose(False),
            },
        )
        for name in (
            "softmax.int",
            "log_softmax.int",
            "_safe_softmax.default",
            "_softmax.default",
            "_log_softmax.default",
        )
    ),
    *(
        (
            f"aten.{name}_backward_data.default",
            {
                "grad_output": tensor("456", dtypes=REAL),
                "output": tensor("456", like="grad_output"),
                "dim": choose(-1, 0),
                "input_dtype": lambda draw: draw.given["grad_output"].dtype,
            },
        )
        for name in ("_softmax", "_log_softmax")
    ),
    *(
        (f"aten.{name}.default", {**PAIR, "self": tensor("245", "45", "5", "", dtypes=ANY_REAL)})
        for name in ("mse_loss", "l1_loss", "kl_div", "soft_margin_loss", "hinge_embedding_loss")
    ),
    ("aten.smooth_l1_loss.default", {**PAIR, "beta": choose(1.0, 0.0, -1.0)}),
    ("aten.huber_loss.default", {**PAIR, "delta": choose(1.0, 0.0)}),
    ("aten.binary_cross_entropy.default", {**PAIR, "target": lambda draw: draw.like("self"), "weight": NONE}),
    ("aten.binary_cross_entropy_with_logits.default", {**PAIR, "weight": NONE}),
    (
        "aten.poisson_nll_loss.default",
        {**PAIR, "input": tensor("245", "45", dtypes=ANY_REAL), "target": tensor("245", "45", like="input")},
    ),
    (
        "aten.poisson_nll_loss.default",
        {**PAIR, "input": tensor("245", dtypes=INTS), "target": tensor("245", dtypes=FLOATS)},
    ),
    *((f"aten.{name}.default", SCORES) for name in ("nll_loss", "nll_loss_nd", "cross_entropy_loss")),
    ("aten.nll_loss_forward.default", SCORES),
    (
        "aten.nll_loss2d_forward.default",
        {**SCORES, "self": tensor("2453", dtypes=REAL), "target": tensor("253", dtypes=LABELS)},
    ),
    (
        "aten.cross_entropy_loss.default",
        {**SCORES, "target": tensor("45", "245", like="self"), "label_smoothing": choose(0.0, 0.1)},
    ),
    ("aten.multi_margin_loss.default", {**SCORES, "p": choose(1), "margin": choose(1)}),
    (
        "aten.multilabel_margin_loss.default",
        {**SCORES, "self": tensor("45", "5", dtypes=REAL), "target": tensor("45", "5", dtypes=LABELS)},
    ),
    (
        "aten.margin_ranking_loss.default",
        {
            "input1": tensor("45", "5", dtypes=ANY_REAL),
            "input2": tensor("45", "5", like="input1"),
            "target": tensor("45", "5", like="input1"),
        },
    ),
    (
        "aten.cosine_embedding_loss.default",
        {
            "input1": tensor("45", "5", dtypes=ANY_REAL),
            "input2": tensor("45", "5", like="input1"),
            "target": tensor("4", "", like="input1"),
        },
    ),
    (
        "aten.triplet_margin_loss.default",
        {
            "anchor": tensor("45", "5", dtypes=ANY_REAL),
            "positive": tensor("45", like="anchor"),
            "negative": tensor("45", like="anchor"),
        },
    ),
    (
        "aten.cosine_similarity.default",
        {"x1": tensor("45", "245", dtypes=REAL), "x2": tensor("45", "245", like="x1"), "dim": choose(0, 1, -1, 3)},
    ),
    (
        "aten.mse_loss_backward.default",
        {
            "grad_output": tensor("45", "", dtypes=REAL),
            "self": tensor("45", like="grad_output"),
            "target": tensor("45", like="grad_output"),
        },
    ),
    (
        "aten.ctc_loss.IntList",
        {
            "log_probs": tensor("526", "56", dtypes=REAL),
            "targets": tensor("23", dtypes=(torch.int64,)),
            "input_lengths": choose([5, 5]),
            "target_lengths": choose([3, 3]),
            "blank": choose(0),
            "reduction": REDUCTION,
        },
    ),
]
test_rules_agree_with_fake_tensors = agreement(CASES, 12, refused=True)
