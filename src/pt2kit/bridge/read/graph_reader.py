"""Read a `schema.Graph` step by step: inputs, subgraphs, calls with their results, outputs.

`GraphReader` resolves names and arguments, and refuses what contradicts itself. What it reads is emitted by a subclass:
as nodes of torch.fx (`read/graph.py`), or as steps of a function (`run/build.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.calls import Shared, Values, read_argument, read_call
from pt2kit.bridge.read.names import check_variable
from pt2kit.errors import GraphError, LimitError, OperatorError
from pt2kit.graph.argument_values import ARMS, ONE_VALUE, arguments
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, node_label
from pt2kit.messages import printable, quote
from pt2kit.schema.names import MODULE_ATTRIBUTES

CONSTANTS: Final = frozenset(("as_int", "as_float", "as_bool", "as_none", "as_string"))
"""Arms of inputs that are constants of the calling convention."""
_NAMED: Final = ONE_VALUE | {"as_optional_tensor"}
_NO_INPUTS: Final = frozenset(("as_optional_tensor",))
_NO_OUTPUTS: Final = frozenset(("as_graph", "as_operator", "as_string_to_argument"))
_LISTS: Final[Mapping[str, str]] = MappingProxyType({f"{arm}s": arm for arm in _NAMED if f"{arm}s" in ARMS})
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
            results.append(read_argument(argument, self))
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
        if name not in self.kinds:
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
    return next(arguments(output), None) if output.type in _NAMED else None
