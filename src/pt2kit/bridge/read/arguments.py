"""`schema.Argument` -> what stands in `fx.Node.args`: nodes, numbers, texts, dtypes, devices, lists and dicts of these.

`READERS` has an entry for each arm. Nothing else in this room knows what an arm means as an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.scalars import DTYPES, LAYOUTS, MEMORY_FORMATS
from pt2kit.errors import GraphError, LimitError, OperatorError, UnsupportedError
from pt2kit.graph.argument_values import MAX_ARGUMENT_DEPTH


class Shared(Protocol):
    """What arguments take from the whole program."""

    @property
    def operators(self) -> Mapping[str, Operator]:
        """Target -> operator."""

    @property
    def devices(self) -> Devices:
        """Where the program's tensors go."""

    @property
    def constants(self) -> Mapping[str, Any]:
        """Name -> live object, for custom objects that stand in the graph itself."""

    @property
    def inner(self) -> set[str]:
        """The names of those that were found to; grows."""


class Values(Protocol):
    """What stands for the values of a graph while it is read: nodes of a live graph, or whatever its builder makes."""

    @property
    def place(self) -> str:
        """Where the builder is, for messages."""

    @property
    def nodes(self) -> Mapping[str, Any]:
        """Name of a value -> what stands for it."""

    @property
    def shared(self) -> Shared:
        """What the program's graphs share."""

    def use(self, name: str) -> Any:
        """What stands for a value; raises GraphError where none is defined."""

    def tensor(self, name: str) -> Any:
        """The same, of a tensor."""

    def number(self, name: str) -> Any:
        """The same, of a number or truth value."""

    def subgraph(self, value: schema.GraphArgument) -> Any:
        """What stands for a subgraph."""


Reader = Callable[[Any, Values], Any]


def read_argument(argument: schema.Argument, scope: Values) -> Any:
    """What a node's argument stands for.

    Raises:
        GraphError: a value that is not defined.
        UnsupportedError: something that torch has no live form of.
    """
    arm = argument.type
    return READERS[arm](getattr(argument, arm), scope)


def _tensor(value: schema.TensorArgument, scope: Values) -> Any:
    return scope.tensor(value.name)


def _tensors(values: list[schema.TensorArgument], scope: Values) -> list[Any]:
    return [scope.use(value.name) for value in values]


def _optional_tensor(value: schema.OptionalTensorArgument, scope: Values) -> Any:
    return None if value.as_tensor is UNSET else scope.use(value.as_tensor.name)


def _symbolic(value: Any, scope: Values) -> Any:
    if value.as_name is not UNSET:
        return scope.number(value.as_name)
    constant = value.value
    return float(constant) if isinstance(constant, float) else constant


def _enum(table: Mapping[Any, Any]) -> Reader:
    def read(value: Any, scope: Values) -> Any:
        if value not in table:
            raise UnsupportedError(f"{scope.place}: expected a {type(value).__name__} that torch has, got {value.name}")
        return table[value]

    return read


def _graph(value: schema.GraphArgument, scope: Values) -> Any:
    return scope.subgraph(value)


def _operator(value: str, scope: Values) -> Any:
    operator = scope.shared.operators.get(value)
    if operator is None:
        raise OperatorError(f"{scope.place}: expected an operator, got {value[:80]!a}")
    return operator.target


def _custom_object(value: schema.CustomObjArgument, scope: Values) -> Any:
    node = scope.nodes.get(value.name)
    if node is not None:
        return node
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


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "as_none": lambda value, scope: None,
        "as_tensor": _tensor,
        "as_tensors": _tensors,
        "as_int": lambda value, scope: value,
        "as_ints": lambda value, scope: list(value),
        "as_float": lambda value, scope: float(value),
        "as_floats": lambda value, scope: [float(item) for item in value],
        "as_string": lambda value, scope: value,
        "as_strings": lambda value, scope: list(value),
        "as_sym_int": _symbolic,
        "as_sym_ints": lambda value, scope: [_symbolic(item, scope) for item in value],
        "as_scalar_type": _enum(DTYPES),
        "as_memory_format": _enum(MEMORY_FORMATS),
        "as_layout": _enum(LAYOUTS),
        "as_device": lambda value, scope: scope.shared.devices.find(value, scope.place),
        "as_bool": lambda value, scope: value,
        "as_bools": lambda value, scope: list(value),
        "as_sym_bool": _symbolic,
        "as_sym_bools": lambda value, scope: [_symbolic(item, scope) for item in value],
        "as_graph": _graph,
        "as_optional_tensors": lambda value, scope: [_optional_tensor(item, scope) for item in value],
        "as_custom_obj": _custom_object,
        "as_operator": _operator,
        "as_sym_float": _symbolic,
        "as_sym_floats": lambda value, scope: [_symbolic(item, scope) for item in value],
        "as_optional_tensor": _optional_tensor,
        "as_complex": lambda value, scope: complex(value.real, value.imag),
        "as_nested_tensors": lambda value, scope: [_tensors(row, scope) for row in value],
        "as_int_lists": lambda value, scope: [list(row) for row in value],
        "as_string_to_argument": _entries,
        "as_float_lists": lambda value, scope: [[float(item) for item in row] for row in value],
    }
)
"""Arm of `schema.Argument` -> what makes the live argument of what the arm holds."""
