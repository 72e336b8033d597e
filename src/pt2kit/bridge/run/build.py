"""`schema.Graph` -> `Steps`: names become numbers, arguments live constants, results with several parts their parts."""

from __future__ import annotations

import operator as functions
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.arguments import READERS
from pt2kit.bridge.read.calls import is_unpacked, read_call
from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.read.names import check_value_names, check_variable
from pt2kit.bridge.read.results import LISTS, result_entries, value_name
from pt2kit.bridge.run.regions import REGIONS
from pt2kit.bridge.run.steps import Origin, Step, Steps, Value
from pt2kit.errors import GraphError, LimitError, OperatorError
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, node_label

CONSTANTS: Final = frozenset(("as_int", "as_float", "as_bool", "as_none", "as_string"))
"""Arms of inputs that are constants of the calling convention."""
_EFFECTS: Final = "torch.ops.higher_order.with_effects"


@dataclass(frozen=True, slots=True)
class Shared:
    """What the graphs of one program share.

    Args:
        operators: target -> operator, for every target in the program.
        devices: where its tensors go.
        constants: name -> live object, for custom objects that stand in the graph itself.
        wrap: makes of a subgraph, its steps and its place what operators that take one call.
        inner: names of the constants that were found to stand in the graph itself; grows.
    """

    operators: Mapping[str, Operator]
    devices: Devices
    constants: Mapping[str, Any]
    wrap: Callable[[schema.Graph, Steps, str], Any]
    inner: set[str] = field(default_factory=set)


def build_steps(graph: schema.Graph, shared: Shared, where: str, depth: int = 0, tokens: Collection[int] = ()) -> Steps:
    """Resolve a graph.

    Args:
        graph: the graph.
        shared: what the program's graphs share.
        where: its place, for messages.
        depth: 0 for the root.
        tokens: which of its inputs are effect tokens, where that is known.

    Raises:
        GraphError: it contradicts itself.
        OperatorError: a node calls its operator wrongly.
        UnsupportedError: something that torch has no live form of.
        LimitError: subgraphs nest too deep.
    """
    if depth > MAX_SUBGRAPH_DEPTH:
        raise LimitError(f"{where}: expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more")
    check_value_names(graph, where)
    builder = _Builder(graph, shared, where, depth)
    for index, argument in enumerate(graph.inputs):
        builder.place = f"{where}.inputs[{index}]"
        builder.input(argument, is_token=index in tokens)
    for number, node in enumerate(graph.nodes):
        builder.call(node, number)
    return Steps(len(graph.inputs), builder.steps, builder.outputs(), graph.is_single_tensor_return)


class _Builder:
    """One graph while it is resolved: what `READERS` ask for the values of arguments."""

    def __init__(self, graph: schema.Graph, shared: Shared, where: str, depth: int) -> None:
        self.graph = graph
        self.shared = shared
        self.where = where
        self.depth = depth
        self.place = where
        self.nodes: dict[str, Value | None] = {}
        self.steps: list[Step] = []
        self._count = 0
        self._subgraphs: dict[str, tuple[schema.Graph, Any]] = {}
        self._origin = Origin("", "")

    # What arguments ask for.

    def use(self, name: str) -> Value | None:
        """A value by its name; None for an effect token, which is nothing."""
        try:
            return self.nodes[name]
        except KeyError:
            message = f"{self.place}: expected a value that is defined before, got {name[:80]!a}"
            raise GraphError(message) from None

    def tensor(self, name: str) -> Value | None:
        """A value that is a tensor."""
        if name not in self.graph.tensor_values and name in self.nodes:
            raise GraphError(f"{self.place}: expected a tensor, got {name}, which is none")
        return self.use(name)

    def number(self, name: str) -> Value | None:
        """A value that is a number or a truth value."""
        graph = self.graph
        tables = (graph.sym_int_values, graph.sym_bool_values, graph.sym_float_values)
        if name in self.nodes and not any(name in table for table in tables):
            raise GraphError(f"{self.place}: expected a number, got {name}, which is none")
        return self.use(name)

    def subgraph(self, value: schema.GraphArgument) -> Any:
        """A subgraph; one that several calls share is stored with each of them, and built once."""
        known = self._subgraphs.get(value.name)
        if known is None:
            check_variable(value.name, f"{self.place}: name of a subgraph", OperatorError)
            where = f"{self.place}: subgraph {value.name}"
            steps = build_steps(value.graph, self.shared, where, self.depth + 1)
            made = self.shared.wrap(value.graph, steps, where)
            known = self._subgraphs[value.name] = value.graph, made
        elif known[0] is not value.graph and known[0] != value.graph:
            raise GraphError(f"{self.place}: expected one subgraph of the name {value.name}, got two that differ")
        return known[1]

    # The parts of a graph.

    def input(self, argument: schema.Argument, *, is_token: bool) -> None:
        """One input."""
        arm = argument.type
        content = getattr(argument, arm)
        if arm in CONSTANTS:
            self._new()  # nothing refers to it
        elif arm in ("as_tensor", "as_custom_obj"):
            value = self._new()
            self._define(content.name, None if is_token else value)
        elif arm in ("as_sym_int", "as_sym_float", "as_sym_bool") and content.as_name is not UNSET:
            self._define(content.as_name, self._new())
        else:
            raise GraphError(f"{self.place}: expected a named value or a constant, got {arm}")

    def call(self, node: schema.Node, number: int) -> None:
        """One node, and the parts of its result."""
        label = node_label(node, number)
        self.place = f"{self.where}.nodes[{number}]: node {label} ({node.target})"
        self._origin = Origin(label, node.metadata.get("stack_trace", ""))
        operator = self.shared.operators[node.target]
        args, kwargs = read_call(node, operator, self)
        if node.target == _EFFECTS:
            self._call_with_effects(node, args, kwargs)
            return
        made = self._step(REGIONS.get(operator.target, operator.target), args, kwargs)
        if node.outputs:
            self._name_results(node.outputs, made, is_tuple=is_unpacked(node, operator))

    def outputs(self) -> list[Any]:
        """What the graph gives."""
        results = []
        for index, argument in enumerate(self.graph.outputs):
            self.place = f"{self.where}.outputs[{index}]"
            arm = argument.type
            if arm in ("as_graph", "as_operator", "as_string_to_argument"):
                raise GraphError(f"{self.place}: expected a value or a constant, got {arm}")
            results.append(READERS[arm](getattr(argument, arm), self))
        if self.graph.is_single_tensor_return and (len(results) != 1 or not isinstance(results[0], Value)):
            raise GraphError(f"{self.where}.outputs: expected one value, as is_single_tensor_return says")
        return results

    def _call_with_effects(self, node: schema.Node, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A call that is ordered by a token: in a program that runs, by its place.

        Source: `_replace_with_effects_node` in torch/export/_remove_effect_tokens_pass.py, 2.13.
        """
        if len(args) < 2 or not callable(args[1]) or not node.outputs:
            raise OperatorError(f"{self.place}: expected a token, an operator and its arguments")
        token = value_name(node.outputs[0])
        if token is not None:
            self._define(token, None)
        made = self._step(args[1], args[2:], kwargs)
        if len(node.outputs) > 1:
            self._name_results(node.outputs[1:], made, is_tuple=len(node.outputs) > 2)

    def _name_results(self, outputs: Sequence[schema.Argument], made: Value, *, is_tuple: bool) -> None:
        """Let the outputs that a node declares be what its call gave, or parts of it."""
        if len(outputs) == 1 and not is_tuple:
            [output] = outputs
            name = value_name(output)
            if name is not None:
                self._define(name, made)
                return
            if output.as_none is not UNSET:
                return
            if output.type in LISTS:
                outputs = result_entries(output)
        for index, output in enumerate(outputs):
            name = value_name(output)
            if output.type in LISTS:
                self._name_results([output], self._step(functions.getitem, (made, index), {}), is_tuple=False)
            elif name is not None:
                self._define(name, self._step(functions.getitem, (made, index), {}))
            elif output.as_none is UNSET:
                raise GraphError(f"{self.place}: outputs[{index}]: expected a named value, got {output.type}")

    def _step(self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Value:
        result = self._new()
        self.steps.append(Step(target, args, kwargs, result, self._origin))
        return result

    def _new(self) -> Value:
        self._count += 1
        return Value(self._count - 1)

    def _define(self, name: str, value: Value | None) -> None:
        if name in self.nodes:
            raise GraphError(f"{self.place}: expected a value that is defined once, got {name[:80]!a} again")
        graph = self.graph
        if name not in graph.tensor_values and not any(
            name in table
            for table in (
                graph.sym_int_values, graph.sym_bool_values, graph.sym_float_values, graph.custom_obj_values
            )
        ):  # fmt: skip
            raise GraphError(f"{self.place}: expected a value that the graph describes, got {name[:80]!a}")
        self.nodes[name] = value
