"""`schema.Graph` -> `torch.fx.GraphModule`: placeholders, nodes, the output node, and which node binds which symbol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET
from torch import fx

from pt2kit import schema
from pt2kit.bridge.read.arguments import READERS
from pt2kit.bridge.read.assumed import check_assumed
from pt2kit.bridge.read.names import argument_target, check_value_names, check_variable
from pt2kit.bridge.read.nodes import read_node
from pt2kit.bridge.read.on_demand import hold_source
from pt2kit.bridge.read.scope import Scope, Shared
from pt2kit.bridge.torch_export_names import unbacked_bindings
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH

CONSTANTS: Final = frozenset(("as_int", "as_float", "as_bool", "as_none", "as_string"))
"""Arms of inputs and outputs that are constants of the calling convention."""


def read_subgraph(graph: schema.Graph, shared: Shared, where: str, depth: int) -> fx.GraphModule:
    """Build a subgraph as a module.

    Raises:
        GraphError, OperatorError, UnsupportedError: as `read_graph`.
        LimitError: it stands deeper than `MAX_SUBGRAPH_DEPTH`.
    """
    if depth > MAX_SUBGRAPH_DEPTH:
        raise LimitError(f"{where}: expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more")
    scope = read_graph(graph, shared, where, depth, ())
    return fx.GraphModule(scope.module, scope.graph)


def read_graph(graph: schema.Graph, shared: Shared, where: str, depth: int, constant_names: Sequence[str]) -> Scope:
    """Build a graph.

    Args:
        graph: the graph to build.
        shared: what the program's graphs share.
        where: its place, for messages.
        depth: 0 for the root.
        constant_names: for each input, its name if it is a constant; the signature has them. Short for subgraphs.

    Returns:
        The scope with the finished graph, the root's with its source held, and the module that owns its subgraphs.

    Raises:
        GraphError: it contradicts itself.
        OperatorError: a node calls its operator wrongly.
        UnsupportedError: something that torch has no live form of.
        LimitError: subgraphs nest too deep.
    """
    shapes = shared.shapes
    outer, shapes.pending = shapes.pending, set()
    scope = Scope(graph, shared, where, depth)
    if depth == 0:
        hold_source(scope.graph)
    check_value_names(graph, where)
    for index, argument in enumerate(graph.inputs):
        scope.place = f"{where}.inputs[{index}]"
        _placeholder(argument, index, constant_names, scope)
    for number, node in enumerate(graph.nodes):
        read_node(node, number, scope)
    _output(graph, scope)
    _bind_symbols(scope)
    shapes.pending = outer
    if (assumed := shared.assumed.get(id(graph))) is not None:
        check_assumed(scope, assumed)
    return scope


def _placeholder(argument: schema.Argument, index: int, constant_names: Sequence[str], scope: Scope) -> None:
    arm = argument.type
    value = getattr(argument, arm)
    if arm in CONSTANTS:
        name = (constant_names[index] if index < len(constant_names) else "") or f"arg{index}"
        check_variable(name, f"{scope.place}: name of a constant input")
        _append_placeholder(name, scope).meta["val"] = READERS[arm](value, scope)
        return
    if arm in ("as_tensor", "as_custom_obj"):
        name = value.name
    elif arm in ("as_sym_int", "as_sym_float", "as_sym_bool") and value.as_name is not UNSET:
        name = value.as_name
    else:
        raise GraphError(f"{scope.place}: expected a named value or a constant, got {arm}")
    scope.define(name, _append_placeholder(name, scope))


def _append_placeholder(name: str, scope: Scope) -> fx.Node:
    return scope.graph.create_node("placeholder", argument_target(name), name=name)


def _output(graph: schema.Graph, scope: Scope) -> None:
    results = []
    for index, argument in enumerate(graph.outputs):
        scope.place = f"{scope.where}.outputs[{index}]"
        results.append(_result(argument, scope))
    if not graph.is_single_tensor_return:
        node = scope.graph.output(tuple(results))
        node.meta["val"] = tuple(result.meta["val"] if isinstance(result, fx.Node) else result for result in results)
        return
    if len(results) != 1 or not isinstance(results[0], fx.Node):
        raise GraphError(f"{scope.where}.outputs: expected one value, as is_single_tensor_return says")
    scope.graph.output(results[0]).meta["val"] = results[0].meta["val"]


def _result(argument: schema.Argument, scope: Scope) -> Any:
    arm = argument.type
    if arm in ("as_graph", "as_operator", "as_string_to_argument"):
        raise GraphError(f"{scope.place}: expected a value or a constant, got {arm}")
    return READERS[arm](getattr(argument, arm), scope)


def _bind_symbols(scope: Scope) -> None:
    """Note at each node which unbacked symbols its value brings, and refuse symbols that no value brings.

    Raises:
        GraphError: a symbol that stands in some value but is no value of its own.
    """
    shapes = scope.shared.shapes
    if not shapes.pending:
        return
    for node in scope.graph.nodes:
        value = node.meta.get("val")
        if value is not None and shapes.pending:
            bindings = unbacked_bindings(value, shapes.env, shapes.pending)
            if bindings:
                node.meta["unbacked_bindings"] = bindings
    if shapes.pending:
        names = ", ".join(sorted(map(str, shapes.pending)))
        raise GraphError(f"{scope.where}: expected a value that is the symbol {names} itself, got none")
