"""Resolve a `schema.Graph` into `Steps`: names become numbers, arguments live constants.

Mutations become calls that write the new values of tensors, and outputs for the caller alone.

Source: `_insert_copy_for_mutations` in torch/export/_unlift.py, 2.13.
"""

from __future__ import annotations

import operator as functions
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch

from pt2kit import schema
from pt2kit import signature as twin
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.calls import Shared, is_unpacked
from pt2kit.bridge.read.graph_reader import GraphReader, value_name
from pt2kit.bridge.run.failures import source_line
from pt2kit.bridge.run.regions import REGIONS
from pt2kit.bridge.run.steps import Origin, Step, Steps, Value
from pt2kit.bridge.run.validation import validated, with_memory
from pt2kit.errors import GraphError, OperatorError
from pt2kit.signature.specs import InputKind, OutputKind

_MUTATIONS: Final = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_OWN: Final = ("torch.ops.aten.", "torch.ops.prims.")
_EFFECTS: Final = "torch.ops.higher_order.with_effects"


@dataclass(frozen=True, slots=True)
class Tables(Shared):
    """Tables that the graphs of one program share.

    Args:
        wrap: subgraph, its steps and its place -> the callable for operators with a subgraph argument.
        trust: rules and operators that the caller trusts.
        is_mixed: some of its tensors have no memory, or may have none, so that each call is looked at for that.
    """

    wrap: Callable[[schema.Graph, Steps, str], Any]
    trust: Set[str] = frozenset()
    is_mixed: bool = False


def build_steps(graph: schema.Graph, shared: Tables, where: str, depth: int = 0, tokens: Collection[int] = ()) -> Steps:
    """Resolve a graph.

    Args:
        graph: the graph.
        shared: what the program's graphs share.
        where: its place, for messages.
        depth: 0 for the root.
        tokens: indices of its inputs that are effect tokens, if known.

    Raises:
        Pt2Error: as `GraphReader.read`.
    """
    builder = _Builder(graph, shared, where, depth)
    builder.tokens = tokens
    outputs = builder.read()
    return Steps(len(graph.inputs), builder.steps, outputs, graph.is_single_tensor_return)


class _Builder(GraphReader):
    """Reads one graph as steps. An effect token has no value, but None."""

    value_type: ClassVar[type] = Value
    shared: Tables
    tokens: Collection[int] = ()

    def __init__(self, source: schema.Graph, shared: Tables, where: str, depth: int) -> None:
        super().__init__(source, shared, where, depth)
        self.steps: list[Step] = []
        self._count = 0
        self._origin = Origin("", "")

    def add_input(self, name: str, index: int) -> Value | None:
        """Number an input."""
        value = self._new()
        return None if index in self.tokens else value

    def add_constant_input(self, argument: schema.Argument, index: int) -> None:
        """Number the input."""
        self._new()

    def build_subgraph(self, value: schema.GraphArgument, where: str) -> Any:
        """Build a subgraph as a callable."""
        return self.shared.wrap(value.graph, build_steps(value.graph, self.shared, where, self.depth + 1), where)

    def add_call(
        self, node: schema.Node, label: str, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Add a step, and one for each part of its result.

        A call that is ordered by a token is ordered by its position in a program that runs.

        Source: `_replace_with_effects_node` in torch/export/_remove_effect_tokens_pass.py, 2.13.
        """
        self._origin = Origin(label, node.metadata.get("stack_trace", ""))
        outputs, is_tuple = node.outputs, is_unpacked(node, operator)
        if node.target == _EFFECTS:
            if len(args) < 2 or not callable(args[1]) or not outputs:
                raise OperatorError(f"{self.place}: expected a token, an operator and its arguments")
            token = value_name(outputs[0])
            if token is not None:
                self.define(token, None)
            operator = next(leaf for leaf in self.shared.operators.values() if leaf.target is args[1])
            args, outputs, is_tuple = args[2:], outputs[1:], len(outputs) > 2
        made = self._step(self._callable(operator, args, kwargs), args, kwargs)
        if outputs:
            self.define_results(made, outputs, is_tuple=is_tuple)

    def add_item(self, made: Value, index: int, name: str | None) -> Value:
        """Add the step that takes a part of a result."""
        return self._step(functions.getitem, (made, index), {})

    def _callable(self, operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the callable of a step for an operator."""
        if operator.kind != "operator":
            return REGIONS.get(operator.target, operator.target)
        label = f"node {self._origin.label}{source_line(self._origin.stack_trace)}"
        target = validated(operator, args, kwargs, label, self.shared.trust)
        return with_memory(target) if self.shared.is_mixed and operator.text.startswith(_OWN) else target

    def _step(self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Value:
        result = self._new()
        self.steps.append(Step(target, args, kwargs, result, self._origin))
        return result

    def _new(self) -> Value:
        self._count += 1
        return Value(self._count - 1)


def with_mutations(steps: Steps, graph: schema.Graph, signature: twin.ExportGraphSignature) -> Steps:
    """Return the steps of a whole program, mutations included.

    Args:
        steps: of its root graph.
        graph: the root graph.
        signature: states the kind of each output.

    Returns:
        Steps that write the mutations of the signature, and return the user's outputs. An output that is the new
        value of a tensor is that tensor, as in torch.

    Raises:
        GraphError: a mutated tensor is no input.
    """
    inputs = _inputs(signature)
    values = steps.inputs + len(steps.steps)
    added: list[Step] = []
    written: dict[Value, Value] = {}
    outputs: list[Any] = []
    for output, spec in zip(steps.outputs, signature.output_specs, strict=True):
        if spec.kind in _MUTATIONS:
            target = inputs.get((spec.kind is OutputKind.USER_INPUT_MUTATION, spec.target))
            if target is None:
                raise GraphError(
                    f"$.graph_module.signature: expected an input that is written, got {str(spec.target)[:80]!a}"
                )
            result = Value(values + len(added))
            origin = Origin(f"write back {spec.target}", "")
            added.append(Step(torch.ops.aten.copy_.default, (target, output), {}, result, origin))
            if isinstance(output, Value):
                written[output] = result
        elif spec.kind is not OutputKind.TOKEN:
            outputs.append(output)
    outputs = [written.get(output, output) if isinstance(output, Value) else output for output in outputs]
    return Steps(steps.inputs, [*steps.steps, *added], outputs)


def _inputs(signature: twin.ExportGraphSignature) -> Mapping[tuple[bool, str | None], Value]:
    """Return the inputs by (whether the user passes it, its name there)."""
    inputs = {}
    for number, spec in enumerate(signature.input_specs):
        is_user = spec.kind is InputKind.USER_INPUT
        inputs[is_user, spec.arg.name if is_user else spec.target] = Value(number)
    return inputs
