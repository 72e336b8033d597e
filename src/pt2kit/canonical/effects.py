"""A node -> whether it may change what other nodes see: it writes into its arguments, or acts on the world.

Arguments and results do not show such a change, so the order in which such nodes are stored is part of what the program
does. The format has no field for it; the operators' names tell. What is known to compute only is listed; everything
unknown counts as writing.
"""

from __future__ import annotations

import re
from typing import Final

from pt2kit import schema
from pt2kit.graph.argument_values import graph_arguments
from pt2kit.graph.traversal import walk
from pt2kit.graph.view import input_by_name, operator_name, operator_namespace

KNOWN: Final = frozenset(
    ("aten", "prim", "prims", "_operator", "math", "torch", "export", "higher_order", "quantized_decomposed")
)
"""The namespaces whose operators write only where this file says so."""

IN_PLACE: Final = re.compile(r"__i\w+__|(?!__)\w*[^_]_|\w+_inplace")
"""Names of operators that write into arguments: `add_`, `__iand__`, `_flash_attention_forward_no_dropout_inplace`."""

OUT_OVERLOAD: Final = re.compile(
    r"(\w+_)?out\d*(_\w*)?|Out\w+|output|L|Q|U|X|(names_)?dim_(max|min|values)|eigenvalues|eigvals|grad_input|inverse"
    r"|result|sign|(dimname_)?values(_stable)?"
)
"""Overloads of aten that write into arguments made for it: `add.out`, `max.dim_max`."""

WRITING: Final = frozenset(
    {
        *(
            "aten._batch_norm_with_update",
            "aten._cummax_helper",
            "aten._cummin_helper",
            "aten._native_batch_norm_legit",
        ),
        *("aten._fused_moving_avg_obs_fq_helper", "aten.fused_moving_avg_obs_fake_quant", "aten.geqrf.a"),
        *("aten.record_stream", "aten.retain_grad", "aten.rrelu_with_noise", "aten.set_data", "prims.copy_to"),
        *("prims.resize", "higher_order.invoke_leaf_function", "higher_order.register_hook"),
        *(
            "_operator.setitem",
            "higher_order.call_torchbind",
            "higher_order.print",
            "higher_order.triton_kernel_wrapper_mutation",
        ),
    }
)
"""Operators whose names do not show that they write."""

TRAINING: Final = ("training", "train", "use_input_stats")
"""Arguments with which a normalization updates its running statistics, without a word of it in its schema."""


def writes(node: schema.Node) -> bool:
    """Whether a node may write, leaving aside what the subgraphs that it carries do.

    Source: the operators' schemas of torch 2.1 to 2.15.
    """
    target = node.target
    if operator_namespace(target) not in KNOWN:
        return True
    namespace, _, rest = operator_name(target).partition(".")
    name, _, overload = rest.partition(".")
    return (
        IN_PLACE.fullmatch(name) is not None
        or not WRITING.isdisjoint((f"{namespace}.{name}", f"{namespace}.{rest}"))
        or (namespace == "aten" and OUT_OVERLOAD.fullmatch(overload) is not None)
        or ("norm" in name and not name.endswith("functional") and _trains(node))
    )


def writes_inside(node: schema.Node) -> bool:
    """Whether a node may write, or carries a subgraph with a node that may.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    return writes(node) or any(
        writes(step.node)
        for named in node.inputs
        for _, subgraph in graph_arguments(named.arg)
        for step in walk(subgraph.graph)
    )


def _trains(node: schema.Node) -> bool:
    return any((argument := input_by_name(node, name)) is not None and argument.as_bool is True for name in TRAINING)
