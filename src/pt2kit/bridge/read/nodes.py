"""`schema.Node` -> a `call_function` node: target, arguments by place and by name, results, metadata."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

import torch
from msgspec import UNSET
from torch import fx

from pt2kit import schema
from pt2kit.bridge.operators import Operator, Parameter
from pt2kit.bridge.read.arguments import READERS, read_argument
from pt2kit.bridge.read.names import check_variable
from pt2kit.bridge.read.outputs import name_outputs, single_name
from pt2kit.bridge.read.scope import Scope, append_call
from pt2kit.bridge.torch_names import constrain_for_size
from pt2kit.errors import OperatorError, Pt2Error
from pt2kit.schema import ArgumentKind

_POSITIONAL: Final = ArgumentKind.POSITIONAL
_KEYWORD: Final = ArgumentKind.KEYWORD

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
    if operator.kind == "operator":
        args, kwargs = _by_schema(node.inputs, operator, scope)
        _check_outputs(node.outputs, operator, scope)
    elif operator.kind == "symbolic":
        args, kwargs = tuple(_by_place(node.inputs, scope)), {}
        least, most = operator.counts
        if not least <= len(args) <= most:
            raise OperatorError(f"{scope.place}: expected {least} to {most} arguments, got {len(args)}")
    else:
        args, kwargs = _without_schema(node.inputs, scope)
    meta = scope.shared.metadata.read(node.metadata)
    if operator.kind == "higher_order":
        _lend_metadata(args, kwargs, meta)
    made = append_call(scope.graph, operator.target, args, kwargs, _name(node, operator))
    unpack = operator.kind == "higher_order" and not node.is_hop_single_tensor_return and _is_one_value(node.outputs)
    name_outputs(scope, made, node.outputs, meta, unpack=unpack, stored=node.name)
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


def _is_one_value(outputs: Sequence[schema.Argument]) -> bool:
    return len(outputs) == 1 and outputs[0].as_none is UNSET


def _by_schema(
    inputs: Sequence[schema.NamedArgument], operator: Operator, scope: Scope
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of an operator with a schema.

    An argument goes where the file says it went. Files before 8.6 do not say: then required ones go by place, the
    others by name. A name that is a keyword of Python can only go by place.
    """
    given = _in_order(inputs, operator, scope)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for named, parameter in given:
        value = _read(named, parameter, scope)
        kind = named.kind
        by_place = parameter.reserved or kind is _POSITIONAL
        if not by_place and kind is not _KEYWORD:
            by_place = parameter.required and not parameter.keyword_only
        if by_place and len(args) == parameter.index and not kwargs:
            args.append(value)
        elif parameter.reserved:
            raise OperatorError(f"{scope.place}: argument {named.name!r}: expected the arguments before it by place")
        else:
            kwargs[named.name] = value
    return tuple(args), kwargs


def _in_order(
    inputs: Sequence[schema.NamedArgument], operator: Operator, scope: Scope
) -> list[tuple[schema.NamedArgument, Parameter]]:
    """Each argument with its parameter, in the schema's order."""
    parameters = operator.parameters
    given = []
    last = -1
    sort = False
    for named in inputs:
        parameter = parameters.get(named.name)
        if parameter is None:
            raise OperatorError(
                f"{scope.place}: argument {named.name[:80]!a}: expected one of {', '.join(parameters) or 'none'}"
            )
        sort |= parameter.index <= last
        last = parameter.index
        given.append((named, parameter))
    if sort:
        given.sort(key=lambda pair: pair[1].index)
        for (named, parameter), (_, following) in itertools.pairwise(given):
            if parameter is following:
                raise OperatorError(f"{scope.place}: argument {named.name!r}: expected it once, got it twice")
    if len(given) < len(operator.required) or not operator.required.issubset(named.name for named in inputs):
        missing = sorted(operator.required - {named.name for named in inputs})
        if missing:
            raise OperatorError(f"{scope.place}: expected the argument(s) {', '.join(missing)}, got none of that name")
    return given


def _read(named: schema.NamedArgument, parameter: Parameter, scope: Scope) -> Any:
    argument = named.arg
    arm = argument.type
    if parameter.arms is not None and arm not in parameter.arms:
        raise OperatorError(
            f"{scope.place}: argument {named.name!r}: expected a value of the type {parameter.type}, got {arm}"
        )
    try:
        return READERS[arm](getattr(argument, arm), scope)
    except Pt2Error as error:
        _raise_in_argument(error, repr(named.name), scope)


def _raise_in_argument(error: Pt2Error, label: str, scope: Scope) -> NoReturn:
    """Raise the error with the argument after the node; as it is where it lies in a subgraph, which it names itself."""
    before, place, rest = str(error).partition(f"{scope.place}: ")
    if before or not place:
        raise error
    placed = type(error)(f"{place}argument {label}: {rest}")
    placed.rule = error.rule
    raise placed from error


def _by_place(inputs: Sequence[schema.NamedArgument], scope: Scope) -> Iterator[Any]:
    """Arguments of a function over numbers: all go by place, whatever they are called."""
    for index, named in enumerate(inputs):
        try:
            yield read_argument(named.arg, scope)
        except Pt2Error as error:
            _raise_in_argument(error, repr(named.name) if named.name else str(index), scope)


def _without_schema(inputs: Sequence[schema.NamedArgument], scope: Scope) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a higher-order operator or a function: those without a name, or marked so, go by place."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for index, named in enumerate(inputs):
        try:
            value = read_argument(named.arg, scope)
        except Pt2Error as error:
            _raise_in_argument(error, repr(named.name) if named.name else str(index), scope)
        if named.kind is _POSITIONAL or not named.name:
            if kwargs:
                raise OperatorError(f"{scope.place}: expected arguments by place before those by name")
            args.append(value)
            continue
        check_variable(named.name, f"{scope.place}: name of an argument", OperatorError)
        if named.name in kwargs:
            raise OperatorError(f"{scope.place}: argument {named.name!r}: expected it once, got it twice")
        kwargs[named.name] = value
    return tuple(args), kwargs


def _lend_metadata(args: Sequence[Any], kwargs: dict[str, Any], meta: dict[str, Any]) -> None:
    """The file has no metadata for the nodes that refer to subgraphs: they get that of the call."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, fx.Node) and value.op == "get_attr":
            value.meta.update(meta)


def _check_outputs(outputs: Sequence[schema.Argument], operator: Operator, scope: Scope) -> None:
    """Refuse a number of results that the operator does not have."""
    if len(outputs) != len(operator.returns):
        raise OperatorError(f"{scope.place}: expected {len(operator.returns)} output(s), got {len(outputs)}")


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
