"""State of writing a graph: its values so far, the names its nodes go by, and what the program shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch.fx import Node

from pt2kit.bridge.callables import target_text
from pt2kit.bridge.extensions import find_type
from pt2kit.bridge.operators import Operator, of_overload, with_schema
from pt2kit.bridge.torch_names import OpOverload
from pt2kit.bridge.write.metadata import Metadata
from pt2kit.bridge.write.values import Values
from pt2kit.errors import GraphError, LimitError, UnsupportedError
from pt2kit.schema import (
    Argument,
    CustomObjArgument,
    Graph,
    SymBool,
    SymBoolArgument,
    SymFloat,
    SymFloatArgument,
    SymInt,
    SymIntArgument,
    TensorArgument,
    TensorMeta,
)
from pt2kit.schema import Node as SchemaNode

_NONE: Mapping[str, Any] = MappingProxyType({})
MAX_SUBGRAPHS = 48
"""Limit of nested graphs. Each takes about eight levels of JSON, of which readers allow 512."""


class Shared:
    """Tables that the graphs of one program share; made for one call of save.

    Args:
        write_graph: fx GraphModule and the depth of its graph -> Graph.
        constants: of the program; objects that stand in the graph may be among them, as they are after loading.
    """

    def __init__(self, write_graph: Callable[[Any, Shared, int], Graph], constants: Mapping[str, Any] = _NONE) -> None:
        self.values = Values()
        self.metadata = Metadata()
        self.objects: dict[str, Any] = {}
        """Script and opaque objects in the graph itself, by their names there."""
        self._write_graph = write_graph
        self._operators: dict[Any, Operator] = {}
        self._graphs: dict[int, tuple[Any, Graph]] = {}
        self._constants: dict[tuple[type, Any], Argument] = {}
        self._taken = constants.keys()
        self._named = {id(value): name for name, value in constants.items() if not isinstance(value, torch.Tensor)}

    def operator(self, target: Any) -> Operator:
        """Return the facts of an OpOverload's schema, or of an operator of an extension."""
        operator = self._operators.get(target)
        if operator is None:
            extension = None if isinstance(target, OpOverload) else find_type(type(target))
            if extension is not None:
                operator = with_schema(extension.target(target), target, extension.schema(target))
            else:
                operator = of_overload(target_text(target), target)
            self._operators[target] = operator
        return operator

    def graph(self, module: Any, depth: int) -> Graph:
        """Return a subgraph; one that is called twice is written once and shared.

        Raises:
            LimitError: graphs inside graphs, too deep.
        """
        if depth > MAX_SUBGRAPHS:
            raise LimitError(f"expected at most {MAX_SUBGRAPHS} graphs inside each other, got more")
        entry = self._graphs.get(id(module))
        if entry is None:
            entry = self._graphs[id(module)] = (module, self._write_graph(module, self, depth))
        return entry[1]

    def constant(self, value: Any) -> Argument:
        """Return a bool, int or str as an argument, made once."""
        key = (type(value), value)
        argument = self._constants.get(key)
        if argument is None:
            kind = "as_bool" if key[0] is bool else "as_int" if key[0] is int else "as_string"
            argument = self._constants[key] = make(kind, value)
        return argument

    def add_object(self, value: Any) -> str:
        """Name a script or opaque object that is in the graph itself."""
        if id(value) in self._named:
            return self._named[id(value)]
        number = len(self.objects)
        while (name := f"_custom_obj_{number}") in self._taken or name in self.objects:
            number += 1
        self.objects[name] = value
        return name


@dataclass(slots=True)
class Scope:
    """Graph that is being written.

    Args:
        module: the fx GraphModule.
        shared: what the program's graphs share.
        depth: how many graphs this one is inside of.
        uses: the argument for an fx node where it is used.
        renamed: names of fx nodes that go by another node's name, because they take the same result again.
    """

    module: Any
    shared: Shared
    depth: int = 0
    inputs: list[Argument] = field(default_factory=list)
    outputs: list[Argument] = field(default_factory=list)
    nodes: list[SchemaNode] = field(default_factory=list)
    tensor_values: dict[str, TensorMeta] = field(default_factory=dict)
    sym_int_values: dict[str, SymInt] = field(default_factory=dict)
    sym_float_values: dict[str, SymFloat] = field(default_factory=dict)
    sym_bool_values: dict[str, SymBool] = field(default_factory=dict)
    custom_obj_values: dict[str, CustomObjArgument] = field(default_factory=dict)
    is_single_tensor_return: bool = False
    uses: dict[Node, Argument] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def define(self, name: str, value: Any) -> Argument:
        """Define a value of an input or a node; returns its argument.

        Args:
            name: its name in the graph.
            value: fx's metadata of it (`node.meta["val"]`).

        Raises:
            GraphError: the name is taken.
            UnsupportedError: a value of a kind that the format cannot define.
        """
        values = self.shared.values
        if isinstance(value, torch.Tensor):
            self._enter(self.tensor_values, name, values.tensor_meta(value))
            return Argument(as_tensor=TensorArgument(name))
        if isinstance(value, (bool, torch.SymBool)):
            self._enter(self.sym_bool_values, name, values.sym_bool(value))
            return Argument(as_sym_bool=SymBoolArgument(as_name=name))
        if isinstance(value, (int, torch.SymInt)):
            self._enter(self.sym_int_values, name, values.sym_int(value))
            return Argument(as_sym_int=SymIntArgument(as_name=name))
        if isinstance(value, (float, torch.SymFloat)):
            self._enter(self.sym_float_values, name, values.sym_float(value))
            return Argument(as_sym_float=SymFloatArgument(as_name=name))
        if value is None:
            return NONE
        if isinstance(value, torch.export.graph_signature.CustomObjArgument):
            self._enter(self.custom_obj_values, name, CustomObjArgument(value.name, value.class_fqn))
            return Argument(as_custom_obj=CustomObjArgument(name, value.class_fqn))
        raise UnsupportedError(f"expected a tensor, a number or None as result {name!r}, got {type(value).__name__}")

    def graph(self) -> Graph:
        """Return the finished graph."""
        return Graph(
            self.inputs,
            self.outputs,
            self.nodes,
            self.tensor_values,
            self.sym_int_values,
            self.sym_bool_values,
            self.is_single_tensor_return,
            self.custom_obj_values,
            self.sym_float_values,
        )

    def _enter(self, table: dict[str, Any], name: str, value: Any) -> None:
        if name in table:
            raise GraphError(f"expected one value of the name {name!r}, got two")
        table[name] = value


NONE = Argument(as_none=True)


def make(arm: str, value: Any) -> Argument:
    """Return an argument of the kind `arm` ("as_ints")."""
    argument: Argument = Argument.create(**{arm: value})
    return argument
