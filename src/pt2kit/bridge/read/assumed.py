"""Declared sizes that the soundness of a program rests on -> held against those that torch computes on fake tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from pt2kit.bridge.read.refusals import refused
from pt2kit.bridge.read.scope import Scope
from pt2kit.bridge.read.uninitialized import RULE
from pt2kit.bridge.torch_names import HigherOrderOperator, pytree
from pt2kit.checks.memory_findings import Assumed
from pt2kit.errors import OperatorError


def check_assumed(scope: Scope, assumed: Assumed) -> None:
    """Refuse a graph whose memory is only filled if values have sizes that torch does not compute for them.

    Args:
        scope: the graph, finished.
        assumed: the values.

    Raises:
        OperatorError: a value has other sizes, or its sizes cannot be computed (X11).
    """
    # A result in a list has its own node, and the call that made it another.
    pending = [scope.nodes[name] for name in sorted(assumed.sizes) if name in scope.nodes]
    seen = set(pending)
    with scope.shared.shapes.mode, scope.shared.shapes.env.suppress_guards(), torch.no_grad():
        while pending:
            node = pending.pop()
            wrong = _contradiction(node, scope, strides=bool(assumed.strides))
            if wrong is not None:
                raise _unproven(scope, node, wrong)
            pending += [other for other in node.all_input_nodes if other not in seen]
            seen.update(node.all_input_nodes)


def _unproven(scope: Scope, node: fx.Node, wrong: str) -> OperatorError:
    message = f"{scope.where}: node {node.name}: expected sizes that torch computes, {wrong}"
    return refused(OperatorError, f"{message}; memory that nothing was written to may be left in buffers", RULE)


def _contradiction(node: fx.Node, scope: Scope, *, strides: bool) -> str | None:
    """What is wrong with the declared value of a node, given those of its arguments."""
    if node.op == "placeholder":
        return None if not scope.depth else "got those of an argument of a subgraph"
    if node.op != "call_function" or isinstance(node.target, HigherOrderOperator):
        return f"got a {node.op} ({node.target})"
    args, kwargs = pytree.tree_map_only(fx.Node, lambda other: other.meta["val"], (node.args, node.kwargs))
    try:
        made = node.target(*args, **kwargs)
    except Exception as error:  # whatever an operator says of arguments that do not fit it
        raise _unproven(scope, node, f"got an error: {error}") from error
    declared = node.meta.get("val")
    pairs = list(zip(pytree.tree_leaves(made), pytree.tree_leaves(declared), strict=False))
    if len(pytree.tree_leaves(made)) != len(pytree.tree_leaves(declared)):
        return f"got {len(pairs)} values"
    for value, said in pairs:
        if isinstance(value, torch.Tensor) != isinstance(said, torch.Tensor):
            return f"got {type(said).__name__}"
        if isinstance(value, torch.Tensor):
            if value.dtype is not said.dtype or not _are_equal(value.shape, said.shape):
                return f"{value.dtype} {list(value.shape)}, got {said.dtype} {list(said.shape)}"
            if strides and not _are_equal(_steps(value), _steps(said)):
                return f"with the strides {value.stride()}, got {said.stride()}"
        elif isinstance(value, (int, torch.SymInt)) and not _are_equal([value], [said]):
            return f"{value}, got {said}"
    return None


def _steps(tensor: torch.Tensor) -> list[Any]:
    """The strides of dimensions that have several elements; those of others say nothing."""
    return [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if not _are_equal([size], [1])]


def _are_equal(first: Iterable[Any], second: Iterable[Any]) -> bool:
    """Whether sizes are the same numbers, or the same expressions."""
    one, other = list(first), list(second)
    return len(one) == len(other) and all(map(_is_equal, one, other))


def _is_equal(first: Any, second: Any) -> bool:
    if isinstance(first, torch.SymInt) or isinstance(second, torch.SymInt):
        left, right = (value.node.expr if isinstance(value, torch.SymInt) else value for value in (first, second))
        return bool(left == right)
    return bool(first == second)
