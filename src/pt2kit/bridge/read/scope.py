"""What is known while a graph is built: its nodes by the names of their values, and what the whole program shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx

from pt2kit import schema
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.read.names import check_variable
from pt2kit.bridge.read.shapes import Shapes
from pt2kit.bridge.read.values import Values
from pt2kit.checks.memory_findings import Assumed
from pt2kit.errors import GraphError, OperatorError

_NUMBERS: Final = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the graphs of one program share.

    Args:
        operators: target -> operator, for every target in the program.
        shapes, values, metadata, devices: readers with their caches.
        constants: name -> live object, for custom objects that stand in the graph itself.
        read_graph: builds a subgraph: graph, its place, its depth -> module.
        assumed: id of a graph -> the values whose declared sizes something depends on.
        inner: names of the constants that were found to stand in the graph itself; grows.
    """

    operators: Mapping[str, Operator]
    shapes: Shapes
    values: Values
    metadata: Metadata
    devices: Devices
    constants: Mapping[str, Any]
    read_graph: Callable[[schema.Graph, Shared, str, int], fx.GraphModule]
    assumed: Mapping[int, Assumed] = field(default_factory=dict)
    inner: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Scope:
    """One graph while it is built; only its builder holds it.

    Args:
        source: the graph to build.
        shared: what the program's graphs share.
        where: the place of the graph, for messages.
        depth: 0 for the root.
        graph: the live graph, growing.
        module: owns the subgraphs.
        nodes: name of a value -> the node that it is.
        place: where the builder is, for messages; set before each step.
    """

    source: schema.Graph
    shared: Shared
    where: str
    depth: int
    graph: fx.Graph = field(default_factory=fx.Graph)
    module: torch.nn.Module = field(default_factory=torch.nn.Module)
    nodes: dict[str, fx.Node] = field(default_factory=dict)
    subgraphs: dict[str, schema.Graph] = field(default_factory=dict)
    place: str = ""

    def use(self, name: str) -> fx.Node:
        """The node of a value.

        Raises:
            GraphError: no graph input and no earlier node defines it.
        """
        node = self.nodes.get(name)
        if node is None:
            raise GraphError(f"{self.place}: expected a value that is defined before, got {name[:80]!a}")
        return node

    def tensor(self, name: str) -> fx.Node:
        """The node of a value that is a tensor.

        Raises:
            GraphError: it is none, or not defined.
        """
        node = self.use(name)
        if not isinstance(node.meta["val"], torch.Tensor):
            raise GraphError(f"{self.place}: expected a tensor, got {name}, which is none")
        return node

    def number(self, name: str) -> fx.Node:
        """The node of a value that is a number or a truth value.

        Raises:
            GraphError: it is none, or not defined.
        """
        node = self.use(name)
        if not isinstance(node.meta["val"], _NUMBERS):
            raise GraphError(f"{self.place}: expected a number, got {name}, which is none")
        return node

    def subgraph(self, value: schema.GraphArgument) -> fx.Node:
        """A subgraph becomes a submodule of that name, and the argument a node that refers to it.

        A subgraph that several calls share is stored with each of them; it is built once.

        Raises:
            GraphError: the name is taken.
            OperatorError: it is no name of an attribute.
        """
        name = value.name
        known = self.subgraphs.get(name)
        if known is None:
            check_variable(name, f"{self.place}: name of a subgraph", OperatorError)
            if hasattr(self.module, name):
                raise GraphError(f"{self.place}: expected a free name for a subgraph, got {name}, which modules have")
            where = f"{self.place}: subgraph {name}"
            module = self.shared.read_graph(value.graph, self.shared, where, self.depth + 1)
            self.module.add_module(name, module)
            self.subgraphs[name] = value.graph
        elif known is not value.graph and known != value.graph:
            raise GraphError(f"{self.place}: expected one subgraph of the name {name}, got two that differ")
        return self.graph.create_node("get_attr", name, name=name)

    def define(self, name: str, node: fx.Node) -> Any:
        """Let a node be a value: gives it the name and the value's description, which is returned.

        Raises:
            GraphError: the name is taken, or the graph says nothing of the value.
        """
        if name in self.nodes:
            raise GraphError(f"{self.place}: expected a value that is defined once, got {name[:80]!a} again")
        if node.name != name:
            node.name = name
        self.nodes[name] = node
        value = node.meta["val"] = self.describe(name)
        return value

    def describe(self, name: str) -> Any:
        """What the graph says of a value: a new fake tensor, a symbolic or plain number, or a custom object's class.

        Raises:
            GraphError: the graph says nothing of it, or what it says is no value.
        """
        source = self.source
        tensor = source.tensor_values.get(name)
        if tensor is not None:
            return self.shared.values.tensor(tensor, f"{self.where}.tensor_values.{name}")
        shapes = self.shared.shapes
        integer = source.sym_int_values.get(name)
        if integer is not None:
            return shapes.integer(integer, f"{self.where}.sym_int_values.{name}")
        truth = source.sym_bool_values.get(name)
        if truth is not None:
            return shapes.truth(truth, f"{self.where}.sym_bool_values.{name}")
        number = source.sym_float_values.get(name)
        if number is not None:
            return shapes.number(number, f"{self.where}.sym_float_values.{name}")
        custom = source.custom_obj_values.get(name)
        if custom is not None:
            return torch.export.graph_signature.CustomObjArgument(name=custom.name, class_fqn=custom.class_fqn)
        raise GraphError(f"{self.place}: expected a value that the graph describes, got {name[:80]!a}")
