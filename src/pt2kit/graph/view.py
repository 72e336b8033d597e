"""Views of nodes and operator names for printing: outputs, arguments by name, namespaces."""

from __future__ import annotations

from collections import Counter
from typing import Final

from pt2kit import schema
from pt2kit.graph.argument_values import defined
from pt2kit.graph.traversal import Source, walk

HIGHER_ORDER: Final = "higher_order"
"""The namespace of operators that take subgraphs."""

BUILTIN_NAMESPACES: Final = frozenset(
    {"_operator", "math", "torch", "aten", "prim", "prims", "debugprims", "rngprims", "higher_order", "export"}
    | {"quantized", "_quantized", "quantized_decomposed", "quantization", "sparse", "profiler", "debug_mode_ops"}
    | {"inductor", "inductor_prims", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "prepacked", "xnnpack", "metal"}
    | {"vulkan", "onnx", "symm_mem", "streams", "fsdp", "c10d", "c10d_functional", "_c10d_functional"}
    | {"_c10d_functional_autograd", "_dtensor", "static_runtime", "tensorexpr", "_native", "_test", "_inductor_test"}
    | {"flex_lib", "flex_gemm", "onnx_symbolic", "_native_aot", "coor", "cuda", "mempool"}
)
"""The namespaces that torch itself registers; an operator of any other one is a custom operator.

Source: the dispatchers of torch 2.1 to 2.15 and `torch.library` definitions in their sources.
"""

_DISPATCHER = "torch.ops."
_EARLY_HIGHER_ORDER = "torch._higher_order_ops."


def node_outputs(node: schema.Node) -> tuple[str, ...]:
    """Return the names of the values that a node defines, in order; lists are flattened, None and constants are
    omitted.

    Raises:
        GraphError: an output is a subgraph (G10).
        LimitError: dicts of arguments nest too deep (G11).
    """
    return tuple(name for output in node.outputs for name in defined(output))


def input_by_name(node: schema.Node, name: str) -> schema.Argument | None:
    """Return the argument that the operator's schema calls `name`; None if the node leaves it to its default."""
    return next((named.arg for named in node.inputs if named.name == name), None)


def operator_namespace(target: str) -> str:
    """Return the namespace of an operator.

    Args:
        target: what a node calls.

    Returns:
        The dispatcher's namespace ("aten" of "torch.ops.aten.add.Tensor"), "higher_order" also for what torch 2.1 to
        2.4 wrote, the module of a plain function ("_operator", "math", "torch"), and the name of an extension with
        its "#" ("#ext" of "#ext:op").
    """
    if target.startswith("#"):
        return target.partition(":")[0]
    if target.startswith(_DISPATCHER):
        namespace, dot, _ = target.removeprefix(_DISPATCHER).partition(".")
        # Torch 2.1 wrote torch.ops.cond: a higher-order operator without its namespace.
        return namespace if dot else HIGHER_ORDER
    if target.startswith(_EARLY_HIGHER_ORDER):
        return HIGHER_ORDER
    return target.partition(".")[0]


def operator_name(target: str) -> str:
    """Shorten what a node calls for printing: "aten.add.Tensor", "higher_order.cond", "_operator.mul"."""
    if target.startswith(_EARLY_HIGHER_ORDER):
        return f"{HIGHER_ORDER}.{target.rpartition('.')[2]}"
    short = target.removeprefix(_DISPATCHER)
    return f"{HIGHER_ORDER}.{short}" if short != target and "." not in short else short


def is_custom(target: str) -> bool:
    """Return whether an operator is custom: torch does not include it, and somebody has to register it."""
    return operator_namespace(target) not in BUILTIN_NAMESPACES


def operator_counts(source: Source) -> Counter[str]:
    """Count the calls of each operator by target, subgraphs included.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    return Counter(step.node.target for step in walk(source))
