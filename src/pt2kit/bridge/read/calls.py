"""The inputs of a `schema.Node` -> the arguments of its call, by place and by name, checked against its operator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import Operator, Parameter
from pt2kit.bridge.read.arguments import READERS, Values, read_argument
from pt2kit.bridge.read.names import check_variable
from pt2kit.errors import OperatorError, Pt2Error
from pt2kit.schema import ArgumentKind

_POSITIONAL: Final = ArgumentKind.POSITIONAL
_KEYWORD: Final = ArgumentKind.KEYWORD


def read_call(node: schema.Node, operator: Operator, scope: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that a node calls its operator with.

    Args:
        node: the node.
        operator: what it calls.
        scope: what stands for the values of its graph; its place is that of the node.

    Raises:
        GraphError: it uses what is not defined.
        OperatorError: it calls its operator wrongly, or names another number of results.
        UnsupportedError: an argument that torch has no live form of.
    """
    if operator.kind == "operator":
        args, kwargs = _by_schema(node.inputs, operator, scope)
        _check_outputs(node.outputs, operator, scope)
        return args, kwargs
    if operator.kind == "symbolic":
        args = tuple(_by_place(node.inputs, scope))
        least, most = operator.counts
        if not least <= len(args) <= most:
            raise OperatorError(f"{scope.place}: expected {least} to {most} arguments, got {len(args)}")
        return args, {}
    return _without_schema(node.inputs, scope)


def is_unpacked(node: schema.Node, operator: Operator) -> bool:
    """Whether the one output that a node declares stands inside a tuple."""
    if operator.kind != "higher_order" or node.is_hop_single_tensor_return:
        return False
    return len(node.outputs) == 1 and node.outputs[0].as_none is UNSET


def _by_schema(
    inputs: Sequence[schema.NamedArgument], operator: Operator, scope: Values
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of an operator with a schema.

    An argument goes where the file says it went. Files before 8.6 do not say: then required ones go by place, the
    others by name. A name that is a keyword of Python can only go by place.
    """
    pairs = _in_order(inputs, operator, scope)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for named, parameter in pairs:
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
    inputs: Sequence[schema.NamedArgument], operator: Operator, scope: Values
) -> list[tuple[schema.NamedArgument, Parameter]]:
    """Each argument with its parameter, in the schema's order."""
    parameters = operator.parameters
    pairs = []
    last = -1
    sort = False
    missing = len(operator.required)
    for named in inputs:
        parameter = parameters.get(named.name)
        if parameter is None:
            raise OperatorError(
                f"{scope.place}: argument {named.name[:80]!a}: expected one of {', '.join(parameters) or 'none'}"
            )
        missing -= parameter.required
        sort |= parameter.index <= last
        last = parameter.index
        pairs.append((named, parameter))
    if sort:
        pairs.sort(key=lambda pair: pair[1].index)
        for (named, parameter), (_, following) in itertools.pairwise(pairs):
            if parameter is following:
                raise OperatorError(f"{scope.place}: argument {named.name!r}: expected it once, got it twice")
    if missing:
        names = ", ".join(sorted(operator.required.difference(named.name for named in inputs)))
        raise OperatorError(f"{scope.place}: expected the argument(s) {names}, got none of that name")
    return pairs


def _read(named: schema.NamedArgument, parameter: Parameter, scope: Values) -> Any:
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


def _raise_in_argument(error: Pt2Error, label: str, scope: Values) -> NoReturn:
    """Raise the error with the argument after the node; as it is where it lies in a subgraph, which it names itself."""
    before, place, rest = str(error).partition(f"{scope.place}: ")
    if before or not place:
        raise error
    placed = type(error)(f"{place}argument {label}: {rest}")
    placed.rule = error.rule
    raise placed from error


def _by_place(inputs: Sequence[schema.NamedArgument], scope: Values) -> Iterator[Any]:
    """Arguments of a function over numbers: all go by place, whatever they are called."""
    for index, named in enumerate(inputs):
        try:
            yield read_argument(named.arg, scope)
        except Pt2Error as error:
            _raise_in_argument(error, repr(named.name) if named.name else str(index), scope)


def _without_schema(inputs: Sequence[schema.NamedArgument], scope: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
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


def _check_outputs(outputs: Sequence[schema.Argument], operator: Operator, scope: Values) -> None:
    """Refuse a number of results that the operator does not have."""
    if len(outputs) != len(operator.returns):
        raise OperatorError(f"{scope.place}: expected {len(operator.returns)} output(s), got {len(outputs)}")
