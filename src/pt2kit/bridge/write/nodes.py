"""One fx node -> an input, the outputs, or a `Node` of the graph being written."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Node

from pt2kit.bridge.callables import SYMBOLIC_FUNCTIONS, describe, parameter_names, target_text
from pt2kit.bridge.extensions import find_type
from pt2kit.bridge.serialized_names import stored_name
from pt2kit.bridge.torch_names import HigherOrderOperator, OpOverload
from pt2kit.bridge.write.arguments import write_argument
from pt2kit.bridge.write.higher_order import write_higher_order, write_untyped
from pt2kit.bridge.write.outputs import define_one, define_results, define_untyped
from pt2kit.bridge.write.scope import Scope
from pt2kit.errors import GraphError, Pt2Error, UnsupportedError, at
from pt2kit.schema import ArgumentKind, NamedArgument
from pt2kit.schema import Node as SchemaNode

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_CONSTANTS = (bool, int, float, str, type(None))


def write_node(node: Node, scope: Scope) -> None:
    """Enter one fx node into the graph that is being written.

    Raises:
        Pt2Error: what the format cannot hold, with the node, its operator and the argument.
    """
    write = _BY_OP.get(node.op)
    try:
        if write is None:
            raise UnsupportedError(f"expected a graph of function calls, got a node of kind {node.op!r}")
        write(node, scope)
    except Pt2Error as error:
        place = f" ({describe(node.target)})" if node.op == "call_function" else ""
        raise at(f"node {node.name}{place}", error) from error


def _placeholder(node: Node, scope: Scope) -> None:
    if "val" not in node.meta:
        raise GraphError("expected a value in its metadata ('val'), got none")
    value = node.meta["val"]
    if isinstance(value, _CONSTANTS):  # a constant of the calling convention: it has no name in the graph
        argument = write_argument(value, scope)
        scope.uses[node] = argument
    else:
        argument = define_one(node, value, scope)
    scope.inputs.append(argument)


def _output(node: Node, scope: Scope) -> None:
    results = node.args[0]
    if isinstance(results, Node):
        scope.is_single_tensor_return = True
        scope.outputs = [write_argument(results, scope)]
    elif isinstance(results, (list, tuple)):
        scope.outputs = [write_argument(result, scope) for result in results]
    else:
        raise GraphError(f"expected a tuple of results, got {type(results).__name__}")


def _call(node: Node, scope: Scope) -> None:
    target = node.target
    if isinstance(target, OpOverload):
        scope.nodes.append(_operator_call(node, scope))
    elif target is operator.getitem:
        _check_taken(node, scope)
    elif isinstance(target, HigherOrderOperator):
        scope.nodes.append(write_higher_order(node, scope))
    elif find_type(type(target)) is not None:
        scope.nodes.append(_operator_call(node, scope))
    elif callable(target):
        scope.nodes.append(_function_call(node, scope))
    else:
        raise UnsupportedError(f"expected an operator or a function, got {type(target).__name__}")


def _operator_call(node: Node, scope: Scope) -> SchemaNode:
    """A call of an operator that has a schema."""
    called = scope.shared.operator(node.target)
    inputs = []
    kwargs: Mapping[str, Any] = node.kwargs
    args = node.args
    for index, parameter in enumerate(called.parameters):
        name = parameter.name
        if name in kwargs:
            value, kind = kwargs[name], ArgumentKind.KEYWORD
        elif index < len(args) and not parameter.keyword_only:
            value, kind = args[index], ArgumentKind.POSITIONAL
        else:  # it has its default value, which is not written
            continue
        try:
            inputs.append(NamedArgument(name, write_argument(value, scope, parameter.element), kind))
        except Pt2Error as error:
            raise at(f"argument {name!r}", error) from error
    if called.returns and "val" not in node.meta:
        raise GraphError("expected a value in its metadata ('val'), got none")
    outputs = define_results(node, node.meta.get("val"), called.returns, scope)
    return SchemaNode(called.target, inputs, outputs, scope.shared.metadata.of_node(node), None, node.name)


def _function_call(node: Node, scope: Scope) -> SchemaNode:
    """A call of a plain function: arithmetic on symbolic numbers, or one of the wrappers that export leaves in place.

    Arithmetic has its parameters named, as far as Python knows them; wrappers are written like higher-order operators.
    """
    function: Any = node.target
    value = node.meta.get("val")
    if function in SYMBOLIC_FUNCTIONS or isinstance(value, _SYMBOLIC):
        if node.kwargs:
            raise UnsupportedError(f"expected no keyword arguments, got {', '.join(node.kwargs)}")
        inputs = write_untyped(node.args, {}, scope)
        names = parameter_names(function)
        inputs = [
            NamedArgument(names[index] if index < len(names) else "", item.arg, ArgumentKind.POSITIONAL)
            for index, item in enumerate(inputs)
        ]
        outputs = [define_one(node, value, scope)]
    else:
        if "val" not in node.meta:
            raise GraphError("expected a value in its metadata ('val'), got none")
        inputs = write_untyped(node.args, node.kwargs, scope)
        outputs = define_untyped(node, value, scope)
    metadata = scope.shared.metadata.of_node(node)
    return SchemaNode(target_text(function), inputs, outputs, metadata, None, stored_name(node))


def _check_taken(node: Node, scope: Scope) -> None:
    """A getitem node is no node of the format: writing the node whose result it takes has accounted for it."""
    if node in scope.uses or _is_taken_list(node):
        return
    raise UnsupportedError(f"expected it to take one result of a node with several, got {node.args}")


def _is_taken_list(node: Node) -> bool:
    """Whether it takes a result that is a list, whose entries further getitem nodes take."""
    owner = node.args[0]
    value = owner.meta.get("val") if isinstance(owner, Node) else None
    return isinstance(value, (list, tuple)) and isinstance(value[node.args[1]], (list, tuple))


_BY_OP: Mapping[str, Callable[[Node, Scope], None]] = {
    "placeholder": _placeholder,
    "get_attr": lambda node, scope: None,  # written where it is used
    "call_function": _call,
    "output": _output,
}
