"""Read the inputs of a `schema.Node` as positional and keyword arguments, checked against the operator's schema.

`READERS` has an entry for each arm of `schema.Argument`. Nothing else in this subpackage interprets an arm as an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import DTYPES, LAYOUTS, MEMORY_FORMATS, Operator
from pt2kit.bridge.read.names import check_value_names, check_variable
from pt2kit.bridge.read.tensors import Devices
from pt2kit.checks.calls import singles
from pt2kit.checks.operators import (
    INT64,
    argument_problems,
    exceeds,
    function_problems,
    is_by_place,
    misfit,
    result_problems,
)
from pt2kit.errors import GraphError, LimitError, OperatorError, Pt2Error, UnsupportedError
from pt2kit.graph.argument_values import ARMS, MAX_ARGUMENT_DEPTH, ValueKind
from pt2kit.schema.operators import Operator as Signature


@dataclass(frozen=True, slots=True)
class Shared:
    """Tables that the graphs of one program share.

    Args:
        operators: target -> operator, for every target in the program.
        devices: where its tensors go.
        constants: name -> live object, for custom objects that are in the graph itself.
        inner: names of the constants that were found in the graph itself; grows.
    """

    operators: Mapping[str, Operator]
    devices: Devices
    constants: Mapping[str, Any]
    inner: set[str] = field(default_factory=set, kw_only=True)


class Values:
    """The values of a graph while it is read, by name: nodes of a live graph, or whatever its builder makes of them.

    Args:
        source: the graph.
        shared: what the program's graphs share.
        where: the place of the graph, for messages.

    Raises:
        GraphError: a name that is no variable, or that has two descriptions.
    """

    def __init__(self, source: schema.Graph, shared: Shared, where: str) -> None:
        self.source = source
        self.shared = shared
        self.where = where
        self.place = where
        """Position of the builder, for messages; set before each step."""
        self.kinds = check_value_names(source, where)
        self.nodes: dict[str, Any] = {}

    def use(self, name: str, kind: ValueKind | None = None) -> Any:
        """Return a value by its name.

        Args:
            name: the name.
            kind: what the value has to be; None for any.

        Raises:
            GraphError: no graph input and no earlier node defines it, or it is none.
        """
        if name not in self.nodes:
            raise GraphError(f"{self.place}: expected a value that is defined before, got {name[:80]!a}")
        if kind is not None and self.kinds[name] != kind:
            raise GraphError(f"{self.place}: expected a {kind} value, got {name}, which is a {self.kinds[name]} value")
        return self.nodes[name]

    def subgraph(self, value: schema.GraphArgument) -> Any:
        """Return a subgraph."""
        raise NotImplementedError


Reader = Callable[[Any, Values], Any]


def read_argument(argument: schema.Argument, scope: Values) -> Any:
    """Return the live form of a node's argument.

    Raises:
        GraphError: a value that is not defined.
        UnsupportedError: something that torch has no live form of.
    """
    arm = argument.type
    return READERS[arm](getattr(argument, arm), scope)


def _tensors(values: list[schema.TensorArgument], scope: Values) -> list[Any]:
    return [scope.use(value.name) for value in values]  # Numbers that a while_loop carries are written so, too.


def _optional_tensor(value: schema.OptionalTensorArgument, scope: Values) -> Any:
    return None if value.as_tensor is UNSET else scope.use(value.as_tensor.name, "tensor")


def _symbolic(kind: ValueKind) -> Reader:
    def read(value: Any, scope: Values) -> Any:
        if value.as_name is not UNSET:
            return scope.use(value.as_name, kind)
        constant = value.value
        return float(constant) if isinstance(constant, float) else constant

    return read


def _enum(table: Mapping[Any, Any]) -> Reader:
    def read(value: Any, scope: Values) -> Any:
        if value not in table:
            raise UnsupportedError(f"{scope.place}: expected a {type(value).__name__} that torch has, got {value.name}")
        return table[value]

    return read


def _operator(value: str, scope: Values) -> Any:
    operator = scope.shared.operators.get(value)
    if operator is None:
        raise OperatorError(f"{scope.place}: expected an operator, got {value[:80]!a}")
    return operator.target


def _custom_object(value: schema.CustomObjArgument, scope: Values) -> Any:
    if value.name in scope.nodes:
        return scope.use(value.name, "custom_obj")
    if value.name not in scope.shared.constants:
        raise GraphError(f"{scope.place}: expected a custom object of the constants, got {value.name[:80]!a}")
    scope.shared.inner.add(value.name)
    return scope.shared.constants[value.name]


def _entries(values: dict[str, schema.Argument], scope: Values, depth: int = 1) -> dict[str, Any]:
    if depth > MAX_ARGUMENT_DEPTH:
        raise LimitError(f"{scope.place}: expected dicts nested at most {MAX_ARGUMENT_DEPTH} levels deep, got more")
    entries = {}
    for key, argument in values.items():
        inner = argument.as_string_to_argument
        entries[key] = read_argument(argument, scope) if inner is UNSET else _entries(inner, scope, depth + 1)
    return entries


def _each(read: Reader) -> Reader:
    return lambda values, scope: [read(value, scope) for value in values]


_SINGLE: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "as_none": lambda value, scope: None,
        "as_tensor": lambda value, scope: scope.use(value.name, "tensor"),
        "as_int": lambda value, scope: value,
        "as_float": lambda value, scope: float(value),
        "as_string": lambda value, scope: value,
        "as_sym_int": _symbolic("sym_int"),
        "as_scalar_type": _enum(DTYPES),
        "as_memory_format": _enum(MEMORY_FORMATS),
        "as_layout": _enum(LAYOUTS),
        "as_device": lambda value, scope: scope.shared.devices.find(value, scope.place),
        "as_bool": lambda value, scope: value,
        "as_sym_bool": _symbolic("sym_bool"),
        "as_graph": lambda value, scope: scope.subgraph(value),
        "as_custom_obj": _custom_object,
        "as_operator": _operator,
        "as_sym_float": _symbolic("sym_float"),
        "as_optional_tensor": _optional_tensor,
        "as_complex": lambda value, scope: complex(value.real, value.imag),
        "as_string_to_argument": _entries,
    }
)
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        **_SINGLE,
        **{f"{arm}s": _each(read) for arm, read in _SINGLE.items() if f"{arm}s" in ARMS},
        **{f"{arm}_lists": _each(_each(read)) for arm, read in _SINGLE.items() if f"{arm}_lists" in ARMS},
        "as_tensors": _tensors,
        "as_nested_tensors": _each(_tensors),
    }
)
"""Reader for each arm of `schema.Argument`: makes the live argument of the arm's value."""


def read_call(node: schema.Node, operator: Operator, scope: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a node's call.

    Args:
        node: the node.
        operator: what it calls.
        scope: the representations of the values of its graph; its place is that of the node.

    Raises:
        GraphError: it uses what is not defined.
        OperatorError: it calls its operator wrongly, or names another number of results.
        UnsupportedError: an argument that torch has no live form of.
    """
    if operator.signature is not None:
        return _by_schema(node, operator, operator.signature, scope)
    for problem in function_problems(node, scope.place):
        raise OperatorError(f"{scope.place}: {problem.message}", rule=problem.rule)
    if operator.kind == "symbolic":  # All by place, regardless of their names.
        for named in filter(lambda one: one.name and not one.name.isidentifier(), node.inputs):
            raise GraphError(f"{scope.place}: expected an identifier, got {named.name[:80]!a}", rule="G15")
        return tuple(_untyped(node.inputs, scope)), {}
    return _without_schema(node.inputs, scope)


def is_unpacked(node: schema.Node, operator: Operator) -> bool:
    """Return whether the one output that a node declares is inside a tuple."""
    if operator.kind != "higher_order" or node.is_hop_single_tensor_return:
        return False
    return len(node.outputs) == 1 and node.outputs[0].as_none is UNSET


def _by_schema(
    node: schema.Node, operator: Operator, signature: Signature, scope: Values
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of an operator with a schema.

    An argument is passed as the file states. Files before 8.6 do not state it: then required ones are positional,
    the others keyword arguments. A name that is a keyword of Python can only be passed by position.
    """
    by_name = {named.name: named for named in node.inputs}
    fits = len(by_name) == len(node.inputs) and by_name.keys() <= signature.parameters.keys()
    fits = fits and len(node.outputs) == len(operator.result_arms)
    fits = fits and all(
        arms is None or output.type in arms for output, arms in zip(node.outputs, operator.result_arms, strict=True)
    )
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        named = by_name.get(name)
        if named is None:
            fits = fits and not parameter.is_required
            continue
        is_placed, arms, arm = is_by_place(parameter, named.kind), operator.arms[name], named.arg.type
        fits = fits and (arms is None or arm in arms)
        is_element = parameter.type.base != "Tensor" and arm in ("as_tensor", "as_tensors")
        if is_element or exceeds(named.arg, INT64):
            fits = fits and misfit(named.arg, parameter.type, singles(scope.source), numbers_as_tensors=True) is None
        if not fits or (is_placed and (parameter.is_keyword_only or len(args) < index)):
            raise _misfit(node, signature, scope)
        value = _live(named, index, scope)
        if is_placed:
            args.append(value)
        else:
            kwargs[name] = value
    if not fits:
        raise _misfit(node, signature, scope)
    return tuple(args), kwargs


def _misfit(node: schema.Node, signature: Signature, scope: Values) -> OperatorError:
    """Return the error of a call that the schema of its operator does not allow, as `check` words it."""
    found = chain(
        argument_problems(node, scope.place, signature, singles(scope.source)),
        result_problems(node, scope.place, signature),
    )
    for problem in found:
        return OperatorError(f"{scope.place}: {problem.message}", rule=problem.rule)
    return OperatorError(f"{scope.place}: expected arguments and results that fit {signature.name}, got others")


def _live(named: schema.NamedArgument, index: int, scope: Values) -> Any:
    """Return the live form of an argument; an error names it after the node, unless it is in a subgraph."""
    try:
        return read_argument(named.arg, scope)
    except Pt2Error as error:
        before, place, rest = error.message.partition(f"{scope.place}: ")
        if before or not place:
            raise
        label = repr(named.name) if named.name else index
        raise type(error)(f"{place}argument {label}: {rest}", rule=error.rule) from error


def _untyped(inputs: Sequence[schema.NamedArgument], scope: Values) -> Iterator[Any]:
    """Yield the arguments of a call without a schema, in their order."""
    for index, named in enumerate(inputs):
        yield _live(named, index, scope)


def _without_schema(inputs: Sequence[schema.NamedArgument], scope: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a higher-order operator or a function: unnamed ones, or marked so, are positional.

    `function_problems` has checked their order, and that no name stands twice.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for named, value in zip(inputs, _untyped(inputs, scope), strict=True):
        if named.is_placed:
            args.append(value)
            continue
        check_variable(named.name, f"{scope.place}: name of an argument", OperatorError)
        kwargs[named.name] = value
    return tuple(args), kwargs
