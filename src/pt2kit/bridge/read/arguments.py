"""`schema.Argument` -> what stands in `fx.Node.args`: nodes, numbers, texts, dtypes, devices, lists and dicts of these.

`READERS` has an entry for each arm. Nothing else in this room knows what an arm means as an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from msgspec import UNSET
from torch import fx

from pt2kit import schema
from pt2kit.bridge.read.names import check_variable
from pt2kit.bridge.read.scope import Scope
from pt2kit.bridge.scalars import DTYPES, LAYOUTS, MEMORY_FORMATS
from pt2kit.errors import GraphError, LimitError, OperatorError, UnsupportedError
from pt2kit.graph.argument_values import MAX_ARGUMENT_DEPTH

_NUMBERS: Final = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)
Reader = Callable[[Any, Scope], Any]


def read_argument(argument: schema.Argument, scope: Scope) -> Any:
    """What a node's argument stands for.

    Raises:
        GraphError: a value that is not defined.
        UnsupportedError: something that torch has no live form of.
    """
    arm = argument.type
    return READERS[arm](getattr(argument, arm), scope)


def _tensor(value: schema.TensorArgument, scope: Scope) -> fx.Node:
    node = scope.use(value.name)
    if not isinstance(node.meta["val"], torch.Tensor):
        raise GraphError(f"{scope.place}: expected a tensor, got {value.name}, which is none")
    return node


def _tensors(values: list[schema.TensorArgument], scope: Scope) -> list[fx.Node]:
    return [scope.use(value.name) for value in values]


def _optional_tensor(value: schema.OptionalTensorArgument, scope: Scope) -> fx.Node | None:
    return None if value.as_tensor is UNSET else scope.use(value.as_tensor.name)


def _symbolic(value: Any, scope: Scope) -> Any:
    if value.as_name is not UNSET:
        node = scope.use(value.as_name)
        if not isinstance(node.meta["val"], _NUMBERS):
            raise GraphError(f"{scope.place}: expected a number, got {value.as_name}, which is none")
        return node
    constant = value.value
    return float(constant) if isinstance(constant, float) else constant


def _enum(table: Mapping[Any, Any]) -> Reader:
    def read(value: Any, scope: Scope) -> Any:
        if value not in table:
            raise UnsupportedError(f"{scope.place}: expected a {type(value).__name__} that torch has, got {value.name}")
        return table[value]

    return read


def _graph(value: schema.GraphArgument, scope: Scope) -> fx.Node:
    """A subgraph becomes a submodule of that name, and the argument a node that refers to it.

    A subgraph that several calls share is stored with each of them; it is built once.
    """
    name = value.name
    known = scope.subgraphs.get(name)
    if known is None:
        check_variable(name, f"{scope.place}: name of a subgraph", OperatorError)
        if hasattr(scope.module, name):
            raise GraphError(f"{scope.place}: expected a free name for a subgraph, got {name}, which modules have")
        where = f"{scope.place}: subgraph {name}"
        module = scope.shared.read_graph(value.graph, scope.shared, where, scope.depth + 1)
        scope.module.add_module(name, module)
        scope.subgraphs[name] = value.graph
    elif known is not value.graph and known != value.graph:
        raise GraphError(f"{scope.place}: expected one subgraph of the name {name}, got two that differ")
    return scope.graph.create_node("get_attr", name, name=name)


def _operator(value: str, scope: Scope) -> Any:
    found = scope.shared.operators.get(value)
    if found is None:
        raise OperatorError(f"{scope.place}: expected an operator, got {value[:80]!a}")
    return found.target


def _custom_object(value: schema.CustomObjArgument, scope: Scope) -> Any:
    node = scope.nodes.get(value.name)
    if node is not None:
        return node
    if value.name not in scope.shared.constants:
        raise GraphError(f"{scope.place}: expected a custom object of the constants, got {value.name[:80]!a}")
    scope.shared.inner.add(value.name)
    return scope.shared.constants[value.name]


def _entries(values: dict[str, schema.Argument], scope: Scope, depth: int = 1) -> dict[str, Any]:
    if depth > MAX_ARGUMENT_DEPTH:
        raise LimitError(f"{scope.place}: expected dicts nested at most {MAX_ARGUMENT_DEPTH} levels deep, got more")
    found = {}
    for key, argument in values.items():
        inner = argument.as_string_to_argument
        found[key] = read_argument(argument, scope) if inner is UNSET else _entries(inner, scope, depth + 1)
    return found


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
