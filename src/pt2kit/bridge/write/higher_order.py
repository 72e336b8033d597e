"""Calls of higher-order operators -> Node. They have no schema: arguments are written by what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import CustomObjArgument
from torch.fx import Node

from pt2kit.bridge.callables import target_text
from pt2kit.bridge.serialized_names import stored_name
from pt2kit.bridge.torch_export_names import aoti_call_delegate, triton_kernel_wrapper_functional
from pt2kit.bridge.write.arguments import write_argument
from pt2kit.bridge.write.outputs import define_results, define_untyped
from pt2kit.bridge.write.scope import Scope
from pt2kit.bridge.write.triton_kernels import kernel_call
from pt2kit.errors import GraphError, Pt2Error, at
from pt2kit.schema import ArgumentKind, NamedArgument
from pt2kit.schema import Node as SchemaNode


def write_higher_order(node: Node, scope: Scope) -> SchemaNode:
    """Write a call of a higher-order operator.

    Raises:
        Pt2Error: an argument or a result that the format cannot hold.

    Source: `handle_call_function` in torch/_export/serde/serialize.py, 2.13.
    """
    if node.target is aoti_call_delegate:
        inputs = write_untyped(_delegate_arguments(node, scope), node.kwargs, scope)
    elif node.target is triton_kernel_wrapper_functional:
        positional, keywords = kernel_call(node)
        inputs = [_named(name, value, ArgumentKind.POSITIONAL, scope) for name, value in positional.items()]
        inputs += [_named(name, value, ArgumentKind.KEYWORD, scope) for name, value in keywords.items()]
    else:
        inputs = write_untyped(node.args, node.kwargs, scope)
    value = _value(node)
    if node.target is aoti_call_delegate:
        outputs = define_results(node, list(value), ("Tensor[]",), scope)
    else:
        outputs = define_untyped(node, value, scope)
    return SchemaNode(
        target_text(node.target),
        inputs,
        outputs,
        scope.shared.metadata.of_node(node),
        isinstance(value, torch.Tensor) and node.target is not aoti_call_delegate,
        stored_name(node),
    )


def write_untyped(args: Sequence[Any], kwargs: Mapping[str, Any], scope: Scope) -> list[NamedArgument]:
    """Write arguments for which there is no schema: positional ones get the empty name.

    Source: `serialize_hoo_inputs` in torch/_export/serde/serialize.py, 2.13.
    """
    inputs = []
    for index, value in enumerate(args):
        try:
            inputs.append(NamedArgument("", write_argument(value, scope), ArgumentKind.POSITIONAL))
        except Pt2Error as error:
            raise at(f"argument {index}", error) from error
    inputs.extend(_named(name, value, ArgumentKind.KEYWORD, scope) for name, value in kwargs.items())
    return inputs


def _named(name: str, value: Any, kind: ArgumentKind, scope: Scope) -> NamedArgument:
    try:
        return NamedArgument(name, write_argument(value, scope), kind)
    except Pt2Error as error:
        raise at(f"argument {name!r}", error) from error


def _value(node: Node) -> Any:
    if "val" not in node.meta:
        raise GraphError("expected a value in its metadata ('val'), got none")
    return node.meta["val"]


def _delegate_arguments(node: Node, scope: Scope) -> list[Any]:
    """The arguments of a call into code that AOTInductor compiled: the module's path in place of the module.

    The graph it was compiled from is left out, and so are weights that are no tensors: the format has no list for them.
    """
    args = list(node.args)
    lowered = getattr(scope.module, args[0].name, None)
    if lowered is None:
        raise GraphError(f"expected a compiled module {args[0].name!r}, got none")
    args[0], args[1] = lowered.aoti_path, None
    if isinstance(args[2], (list, tuple)):
        args[2] = [weight for weight in args[2] if not _is_object(weight)]
    return args


def _is_object(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), CustomObjArgument)
