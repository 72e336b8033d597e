"""`schema.Node` -> a `call_function` node: target, arguments by place and by name, results, metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import fx

from pt2kit import schema
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.append import append_call
from pt2kit.bridge.read.calls import is_unpacked, read_call
from pt2kit.bridge.read.outputs import name_outputs
from pt2kit.bridge.read.results import single_name
from pt2kit.bridge.read.scope import Scope
from pt2kit.bridge.torch_export_names import constrain_for_size

# Operators whose results torch writes as one value although their schema leaves the kind open.
_ITEM: Final = "torch.ops.aten.item.default"


def read_node(node: schema.Node, number: int, scope: Scope) -> None:
    """Append a node, and its getitem nodes, to the graph.

    Args:
        node: the node to build.
        number: its place in the graph, from 0.
        scope: the graph.

    Raises:
        GraphError: it contradicts the graph.
        OperatorError: it calls its operator wrongly.
        UnsupportedError: an argument that torch has no live form of.
    """
    operator = scope.shared.operators[node.target]
    scope.place = f"{scope.where}.nodes[{number}]: node {node.name or single_name(node.outputs)} ({node.target})"
    args, kwargs = read_call(node, operator, scope)
    meta = scope.shared.metadata.read(node.metadata)
    if operator.kind == "higher_order":
        _propagate_metadata(args, kwargs, meta)
    made = append_call(scope.graph, operator.target, args, kwargs, _name(node, operator))
    name_outputs(scope, made, node.outputs, meta, unpack=is_unpacked(node, operator), stored=node.name)
    made.meta.update(meta)
    made.meta.setdefault("nn_module_stack", {})
    if operator.schema is not None:
        _note_assertion(made, operator, scope)


def _name(node: schema.Node, operator: Operator) -> str | None:
    """What to call the node: its own name; before torch 2.11, which wrote none, the name of its one value."""
    if node.name:
        return node.name
    if operator.kind == "higher_order" and not node.is_hop_single_tensor_return:
        return None
    return single_name(node.outputs)


def _propagate_metadata(args: Sequence[Any], kwargs: dict[str, Any], meta: dict[str, Any]) -> None:
    """The file has no metadata for the nodes that refer to subgraphs: they get that of the call."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, fx.Node) and value.op == "get_attr":
            value.meta.update(meta)


def _note_assertion(node: fx.Node, operator: Operator, scope: Scope) -> None:
    """Tell the ShapeEnv what an assertion in the graph promises about symbolic values."""
    env = scope.shared.shapes.env
    if operator.target is torch.ops.aten._assert_scalar.default:
        value = node.args[0].meta["val"] if isinstance(node.args[0], fx.Node) else None
        if isinstance(value, torch.SymBool):
            env.guard_or_defer_runtime_assert(value.node.expr, "", node)
    elif operator.target is torch.ops.aten.sym_constrain_range_for_size.default:
        value = node.args[0].meta["val"] if isinstance(node.args[0], fx.Node) else None
        if isinstance(value, torch.SymInt):
            constrain_for_size(env, value.node.expr)
