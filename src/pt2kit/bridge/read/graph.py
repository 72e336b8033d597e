"""Build a `torch.fx.GraphModule` from a `schema.Graph`: placeholders, nodes, the output node, and unbacked symbols.

fx nodes have one value each. A call with several results has a tuple, or a list, and each result that the file names is
an `operator.getitem` node on it. The value of the call itself then holds the descriptions of all of them.
"""

from __future__ import annotations

import operator as functions
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from torch import fx

from pt2kit import schema
from pt2kit.bridge.callables import StoredName
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.graph_reader import GraphReader, Shared, is_unpacked, read_argument, value_name
from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.read.names import argument_target, check_variable
from pt2kit.bridge.read.on_demand import hold_source
from pt2kit.bridge.read.values import Shapes, Values
from pt2kit.bridge.torch_export_names import constrain_for_size, unbacked_bindings
from pt2kit.bridge.torch_names import append_call, called_name, rename
from pt2kit.errors import GraphError

_ASSERT: Final = torch.ops.aten._assert_scalar.default
_FOR_SIZE: Final = torch.ops.aten.sym_constrain_range_for_size.default


@dataclass(frozen=True, slots=True)
class Readers(Shared):
    """Tables that the graphs of one program share, and readers with their caches."""

    shapes: Shapes
    values: Values
    metadata: Metadata


def read_graph(
    source: schema.Graph, shared: Readers, where: str, depth: int = 0, constant_names: Sequence[str] = ()
) -> FxReader:
    """Build a graph.

    Args:
        source: the graph to build.
        shared: what the program's graphs share.
        where: its place, for messages.
        depth: 0 for the root.
        constant_names: for each input, its name if it is a constant; the signature has them. Short for subgraphs.

    Returns:
        The reader with the finished graph, the root's with its source held, and the module that owns its subgraphs.

    Raises:
        Pt2Error: as `GraphReader.read`; GraphError for a symbol that no value defines.
    """
    shapes = shared.shapes
    outer, shapes.pending = shapes.pending, set()
    built = FxReader(source, shared, where, depth)
    built.constant_names = constant_names
    if depth == 0:
        hold_source(built.graph)
    _output(built.read(), built)
    _bind_symbols(built.graph, shapes, where)
    shapes.pending = outer
    return built


class FxReader(GraphReader):
    """Reads one graph as nodes of a live one."""

    value_type: ClassVar[type] = fx.Node
    shared: Readers
    constant_names: Sequence[str] = ()

    def __init__(self, source: schema.Graph, shared: Readers, where: str, depth: int) -> None:
        super().__init__(source, shared, where, depth)
        self.graph = fx.Graph()
        self.module = torch.nn.Module()
        """Owner of the subgraphs."""
        self._meta: Mapping[str, Any] = {}
        self._stored: str | None = None

    def add_input(self, name: str, index: int) -> fx.Node:
        """Append a placeholder."""
        return self.graph.create_node("placeholder", argument_target(name), name=name)

    def add_constant_input(self, argument: schema.Argument, index: int) -> None:
        """Append the placeholder of a constant."""
        name = (self.constant_names[index] if index < len(self.constant_names) else "") or f"arg{index}"
        check_variable(name, f"{self.place}: name of a constant input")
        self.add_input(name, index).meta["val"] = read_argument(argument, self)

    def build_subgraph(self, value: schema.GraphArgument, where: str) -> None:
        """Add a subgraph as a submodule of its name."""
        built = read_graph(value.graph, self.shared, where, self.depth + 1)
        self.module.add_module(value.name, fx.GraphModule(built.module, built.graph))

    def refer(self, name: str, made: None) -> fx.Node:
        """Append a node that refers to a subgraph."""
        return self.graph.create_node("get_attr", name, name=name)

    def add_call(
        self, node: schema.Node, label: str, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Append a node, and its getitem nodes."""
        meta = self._meta = self.shared.metadata.read(node.metadata)
        self._stored = node.name
        if operator.kind == "higher_order":
            _propagate_metadata(args, kwargs, meta)
        made = append_call(self.graph, operator.target, args, kwargs, _name(node, operator))
        is_tuple = is_unpacked(node, operator)
        self._step_aside(made, value_name(node.outputs[0]) if len(node.outputs) == 1 and not is_tuple else None)
        if node.outputs or operator.kind != "operator":  # torch requires a value of calls without a schema, "()" too
            self.define_results(made, node.outputs, is_tuple=is_tuple)
        made.meta.update(meta)
        made.meta.setdefault("nn_module_stack", {})
        _note_assertion(made, self.shared.shapes.env)

    def add_item(self, made: fx.Node, index: int, name: str | None) -> fx.Node:
        """Append a getitem node."""
        item = append_call(self.graph, functions.getitem, (made, index), name=name)
        self._step_aside(item, name)
        return item

    def _step_aside(self, node: fx.Node, own: str | None) -> None:
        """Rename a node whose name is that of another value in the file: that value has to get it."""
        while node.name in self.kinds and node.name != own:
            rename(node, f"{node.name}_call")

    def add_none_item(self, made: fx.Node, index: int) -> fx.Node:
        """Append a getitem node for a result that is None."""
        item = self.add_item(made, index, "as_none")
        item.meta["val"] = None
        return item

    def add_parts(self, made: fx.Node, parts: Sequence[fx.Node]) -> None:
        """Describe a node by its parts, which share the metadata of the call."""
        for part in parts:
            part.meta.update(self._meta)
        made.meta["val"] = type(parts)(part.meta["val"] for part in parts)  # type: ignore[call-arg]

    def add_none(self, made: fx.Node) -> None:
        """Name a node without a result after its operator, as torch's reader does, and keep the file's name, too."""
        made.meta["val"] = None
        called, stored = f"{called_name(self.graph, made.target)}_unused", self._stored
        if stored and re.fullmatch(rf"{re.escape(called)}(_\d+)?", stored):
            made.name = stored
        else:
            rename(made, called)
            if stored:
                made.name = StoredName(made.name, stored)

    def define(self, name: str, node: fx.Node) -> None:
        """Define a value as a node: set its name, and its description."""
        super().define(name, node)
        if node.name != name:
            node.name = name
        node.meta["val"] = self._describe(name)

    def _describe(self, name: str) -> Any:
        """Return the description of a value: a new fake tensor, a symbolic or plain number, or a custom object's class.

        Raises:
            Pt2Error: the description is no value.
        """
        field = f"{self.kinds[name]}_values"
        described = getattr(self.source, field)[name]
        if isinstance(described, schema.CustomObjArgument):
            return torch.export.graph_signature.CustomObjArgument(described.name, described.class_fqn)
        return self.shared.values.value(described, f"{self.where}.{field}.{name}")


def _name(node: schema.Node, operator: Operator) -> str | None:
    """Return the name of the node: its own; before torch 2.11, which wrote none, the name of its one value."""
    if node.name:
        return node.name
    if len(node.outputs) != 1 or (operator.kind == "higher_order" and not node.is_hop_single_tensor_return):
        return None
    return value_name(node.outputs[0])


def _propagate_metadata(args: Sequence[Any], kwargs: dict[str, Any], meta: Mapping[str, Any]) -> None:
    """Copy a call's metadata to the nodes that refer to its subgraphs, for which the file has none."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, fx.Node) and value.op == "get_attr":
            value.meta.update(meta)


def _note_assertion(node: fx.Node, env: Any) -> None:
    """Pass what an assertion in the graph promises about symbolic values to the ShapeEnv."""
    if node.target not in (_ASSERT, _FOR_SIZE) or not isinstance(node.args[0], fx.Node):
        return
    value = node.args[0].meta["val"]
    if node.target is _ASSERT and isinstance(value, torch.SymBool):
        env.guard_or_defer_runtime_assert(value.node.expr, "", node)
    elif node.target is _FOR_SIZE and isinstance(value, torch.SymInt):
        constrain_for_size(env, value.node.expr)


def _output(results: list[Any], built: FxReader) -> None:
    """Append the output node."""
    if built.source.is_single_tensor_return:
        built.graph.output(results[0]).meta["val"] = results[0].meta["val"]
        return
    node = built.graph.output(tuple(results))
    node.meta["val"] = tuple(result.meta["val"] if isinstance(result, fx.Node) else result for result in results)


def _bind_symbols(graph: fx.Graph, shapes: Shapes, where: str) -> None:
    """Record at each node which unbacked symbols its value defines, and refuse symbols that no value defines.

    Raises:
        GraphError: a symbol that some value uses but that is no value of its own.
    """
    for node in graph.nodes if shapes.pending else ():
        value = node.meta.get("val")
        if value is not None and shapes.pending:
            bindings = unbacked_bindings(value, shapes.env, shapes.pending)
            if bindings:
                node.meta["unbacked_bindings"] = bindings
    if shapes.pending:
        names = ", ".join(sorted(map(str, shapes.pending)))
        raise GraphError(f"{where}: expected a value that is the symbol {names} itself, got none")
