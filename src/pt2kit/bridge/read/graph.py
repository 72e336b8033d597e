"""Read a `schema.Graph` step by step: inputs, subgraphs, calls with their results, outputs.

`GraphReader` resolves names and arguments, and refuses what contradicts itself. What it reads is emitted by a subclass:
as nodes of a `torch.fx.GraphModule` (`FxReader`), or as steps of a function (`run/build.py`).

fx nodes have one value each. A call with several results has a tuple, or a list, and each result that the file names is
an `operator.getitem` node on it. The value of the call itself then holds the descriptions of all of them.
"""

from __future__ import annotations

import operator as functions
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final

import torch
from msgspec import UNSET
from torch import fx

from pt2kit import schema
from pt2kit.bridge.callables import StoredName
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.calls import READERS, Shared, Values, is_unpacked, read_argument, read_call
from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.read.names import argument_target, check_value_names, check_variable
from pt2kit.bridge.read.on_demand import hold_source
from pt2kit.bridge.read.shapes import Shapes
from pt2kit.bridge.read.values import Values as FakeValues
from pt2kit.bridge.torch_export_names import constrain_for_size, unbacked_bindings
from pt2kit.bridge.torch_names import append_call, called_name, rename
from pt2kit.errors import GraphError, LimitError, OperatorError
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, node_label
from pt2kit.messages import printable, quote
from pt2kit.schema.names import MODULE_ATTRIBUTES

CONSTANTS: Final = frozenset(("as_int", "as_float", "as_bool", "as_none", "as_string"))
"""Arms of inputs that are constants of the calling convention."""
_NO_INPUTS: Final = frozenset(("as_optional_tensor",))
_NO_OUTPUTS: Final = frozenset(("as_graph", "as_operator", "as_string_to_argument"))
_LISTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "as_tensors": "as_tensor",
        "as_sym_ints": "as_sym_int",
        "as_sym_floats": "as_sym_float",
        "as_sym_bools": "as_sym_bool",
        "as_optional_tensors": "as_optional_tensor",
    }
)
"""Arm of a result that is a list -> arm of its entries."""


class GraphReader(Values):
    """Reads one graph. Subclasses emit each step, and choose what represents a value.

    Args:
        source: the graph to read.
        shared: what the program's graphs share.
        where: its place, for messages.
        depth: 0 for the root.

    Raises:
        GraphError: a name that is no variable, or that has two descriptions.
        LimitError: subgraphs nest too deep.
    """

    value_type: ClassVar[type]
    """Class of the objects that represent values."""

    def __init__(self, source: schema.Graph, shared: Shared, where: str, depth: int) -> None:
        if depth > MAX_SUBGRAPH_DEPTH:
            raise LimitError(f"{where}: expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more")
        super().__init__(source, shared, where)
        self.depth = depth
        self._described = check_value_names(source, where)
        self.subgraphs: dict[str, tuple[schema.Graph, Any]] = {}

    def read(self) -> list[Any]:
        """Emit the inputs and calls in order, and return the outputs: values and constants.

        Raises:
            GraphError: the graph contradicts itself.
            OperatorError: a node calls its operator wrongly.
            UnsupportedError: something that torch has no live form of.
            LimitError: subgraphs nest too deep.
        """
        for index, argument in enumerate(self.source.inputs):
            self.place = f"{self.where}.inputs[{index}]"
            arm = argument.type
            name = None if arm in _NO_INPUTS else value_name(argument)
            if name is not None:
                self.define(name, self.add_input(name, index))
            elif arm in CONSTANTS:
                self.add_constant_input(argument, index)
            else:
                raise GraphError(f"{self.place}: expected a named value or a constant, got {arm}")
        operators = self.shared.operators
        for number, node in enumerate(self.source.nodes):
            label = printable(node_label(node, number))
            self.place = f"{self.where}.nodes[{number}]: node {label} ({node.target})"
            if node.name and not node.name.isidentifier():
                message = f"expected an identifier, got {quote(node.name)}"
                raise GraphError(f"{self.where}.nodes[{number}].name: {message}", rule="G15")
            operator = operators[node.target]
            args, kwargs = read_call(node, operator, self)
            self.add_call(node, label, operator, args, kwargs)
        return self._outputs()

    def _outputs(self) -> list[Any]:
        results = []
        for index, argument in enumerate(self.source.outputs):
            self.place = f"{self.where}.outputs[{index}]"
            arm = argument.type
            if arm in _NO_OUTPUTS:
                raise GraphError(f"{self.place}: expected a value or a constant, got {arm}")
            results.append(READERS[arm](getattr(argument, arm), self))
        if self.source.is_single_tensor_return and (len(results) != 1 or not isinstance(results[0], self.value_type)):
            raise GraphError(f"{self.where}.outputs: expected one value, as is_single_tensor_return says")
        return results

    def subgraph(self, value: schema.GraphArgument) -> Any:
        """Return a reference to a subgraph; one that several calls share is stored with each of them, and built once.

        Raises:
            GraphError: the name is taken.
            OperatorError: it is no name of an attribute.
        """
        name = value.name
        known = self.subgraphs.get(name)
        if known is None:
            check_variable(name, f"{self.place}: name of a subgraph", OperatorError, rule="G15")
            if name in MODULE_ATTRIBUTES:
                message = f"expected a free name for a subgraph, got {name}, which modules have"
                raise GraphError(f"{self.place}: {message}", rule="G15")
            known = value.graph, self.build_subgraph(value, f"{self.place}: subgraph {name}")
            self.subgraphs[name] = known
        elif known[0] is not value.graph and known[0] != value.graph:
            raise GraphError(f"{self.place}: expected one subgraph of the name {name}, got two that differ")
        return self.refer(name, known[1])

    def define(self, name: str, value: Any) -> None:
        """Define a value.

        Raises:
            GraphError: the name is taken, or the graph does not describe the value.
        """
        if name in self.nodes:
            raise GraphError(f"{self.place}: expected a value that is defined once, got {name[:80]!a} again")
        if name not in self._described:
            raise GraphError(f"{self.place}: expected a value that the graph describes, got {name[:80]!a}")
        self.nodes[name] = value

    def define_results(self, made: Any, outputs: Sequence[schema.Argument], *, is_tuple: bool) -> None:
        """Define the outputs that a node declares: as the result of its call, or as parts of it.

        Args:
            made: the value of the call.
            outputs: what the node declares.
            is_tuple: its one output is inside a tuple.

        Raises:
            GraphError: an output that names no value, or one that is taken or not described.
        """
        if len(outputs) == 1 and not is_tuple:
            [output] = outputs
            name = value_name(output)
            if name is not None:
                self.define(name, made)
                return
            if output.as_none is not UNSET:
                self.add_none(made)
                return
            if output.type in _LISTS:
                outputs = result_entries(output)
        self.add_parts(made, tuple(self._parts(made, outputs)))

    def _parts(self, made: Any, outputs: Sequence[schema.Argument]) -> list[Any]:
        """Return the parts of a result, defined if they have names; those without a value are left to the subclass."""
        parts = []
        for index, output in enumerate(outputs):
            name = value_name(output)
            if output.type in _LISTS:
                part = self.add_item(made, index, None)
                self.add_parts(part, self._parts(part, result_entries(output)))
            elif name is not None:
                part = self.add_item(made, index, name)
                self.define(name, part)
            elif output.as_none is not UNSET:
                part = self.add_none_item(made, index)
            else:
                raise GraphError(f"{self.place}: outputs[{index}]: expected a named value, got {output.type}")
            parts.append(part)
        return parts

    # Methods that subclasses implement. Those that do nothing by default return nothing that is used.

    def add_input(self, name: str, index: int) -> Any:
        """Emit an input, and return its value."""
        raise NotImplementedError

    def add_constant_input(self, argument: schema.Argument, index: int) -> None:
        """Emit an input that is a constant, to which nothing refers."""
        raise NotImplementedError

    def add_call(
        self, node: schema.Node, label: str, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Emit a call, and define its results."""
        raise NotImplementedError

    def add_item(self, made: Any, index: int, name: str | None) -> Any:
        """Emit a part of a result, and return its value."""
        raise NotImplementedError

    def build_subgraph(self, value: schema.GraphArgument, where: str) -> Any:
        """Build a subgraph."""
        raise NotImplementedError

    def refer(self, name: str, made: Any) -> Any:
        """Return the argument for a subgraph that was built."""
        return made

    def add_none(self, made: Any) -> None:
        """Complete a call whose result is None."""

    def add_none_item(self, made: Any, index: int) -> Any:
        """Emit a part of a result that is None."""

    def add_parts(self, made: Any, parts: Sequence[Any]) -> None:
        """Complete a call or a list whose parts were emitted."""


def result_entries(output: schema.Argument) -> list[schema.Argument]:
    """Return the entries of a list of results, as outputs of their own."""
    arm = output.type
    if arm == "as_optional_tensors":
        return [
            schema.Argument(as_none=True) if item.as_tensor is UNSET else schema.Argument(as_tensor=item.as_tensor)
            for item in output.as_optional_tensors  # type: ignore[union-attr]
        ]
    return [schema.Argument(**{_LISTS[arm]: item}) for item in getattr(output, arm)]


def value_name(output: schema.Argument) -> str | None:
    """Return the name of the value that an output is, or None if it names none."""
    if output.as_tensor is not UNSET:
        return output.as_tensor.name
    if output.as_custom_obj is not UNSET:
        return output.as_custom_obj.name
    for symbolic in (output.as_sym_int, output.as_sym_bool, output.as_sym_float):
        if symbolic is not UNSET:
            return None if symbolic.as_name is UNSET else symbolic.as_name
    if output.as_optional_tensor is not UNSET and output.as_optional_tensor.as_tensor is not UNSET:
        return output.as_optional_tensor.as_tensor.name
    return None


_ASSERT: Final = torch.ops.aten._assert_scalar.default
_FOR_SIZE: Final = torch.ops.aten.sym_constrain_range_for_size.default


@dataclass(frozen=True, slots=True)
class Readers(Shared):
    """Tables that the graphs of one program share, and readers with their caches."""

    shapes: Shapes
    values: FakeValues
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
        if node.outputs or operator.kind != "operator":  # torch requires a value of calls without a schema, "()" too
            is_tuple = is_unpacked(node, operator)
            self._step_aside(made, value_name(node.outputs[0]) if len(node.outputs) == 1 and not is_tuple else None)
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
        while node.name in self._described and node.name != own:
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
        tensor = self.source.tensor_values.get(name)
        if tensor is not None:
            return self.shared.values.tensor(tensor, f"{self.where}.tensor_values.{name}")
        for field in ("sym_int_values", "sym_bool_values", "sym_float_values"):
            meta = getattr(self.source, field).get(name)
            if meta is not None:
                return self.shared.values.value(meta, f"{self.where}.{field}.{name}")
        custom = self.source.custom_obj_values[name]
        return torch.export.graph_signature.CustomObjArgument(name=custom.name, class_fqn=custom.class_fqn)


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
