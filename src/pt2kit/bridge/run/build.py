"""Steps of a program's graphs (`schema.Graph` to `Steps`), mutations included, and the program's calling convention.

Names become numbers, arguments live constants. Mutations become calls that write the new values of tensors, and outputs
for the caller alone.

The calling convention of a program's module comes from its signature, its tree specs and its guards.

Source: `_insert_copy_for_mutations` in torch/export/_unlift.py, 2.13.
"""

from __future__ import annotations

import operator as functions
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch

from pt2kit import schema, treespec
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.checked import Checked
from pt2kit.bridge.read.graph_reader import GraphReader, Shared, is_unpacked, value_name
from pt2kit.bridge.read.treespecs import WHERE
from pt2kit.bridge.run.conditions import Condition, Conditions, Input, guard_condition, read_source
from pt2kit.bridge.run.inputs import InputTree, OutputTree
from pt2kit.bridge.run.module import Convention
from pt2kit.bridge.run.steps import REGIONS, Origin, Step, Steps, Value, source_line
from pt2kit.bridge.run.validation import validated, with_memory
from pt2kit.bridge.torch_names import pytree
from pt2kit.errors import GraphError, OperatorError
from pt2kit.schema.names import ATEN_OPS, plain_target
from pt2kit.signature.export_signature import ExportGraphSignature
from pt2kit.signature.specs import InputKind, OutputKind
from pt2kit.symbols.guards import Path, parse_guard, path_text
from pt2kit.treespec.callsig import input_paths, named_arguments
from pt2kit.treespec.containers import FieldTable
from pt2kit.treespec.spec import TreeSpec

_MUTATIONS: Final = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_OWN: Final = (ATEN_OPS, "torch.ops.prims.")
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
        if plain_target(node.target) == _EFFECTS:
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


def with_mutations(steps: Steps, graph: schema.Graph, signature: ExportGraphSignature) -> Steps:
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


def _inputs(signature: ExportGraphSignature) -> Mapping[tuple[bool, str | None], Value]:
    """Return the inputs by (whether the user passes it, its name there)."""
    inputs = {}
    for number, spec in enumerate(signature.input_specs):
        is_user = spec.kind is InputKind.USER_INPUT
        inputs[is_user, spec.arg.name if is_user else spec.target] = Value(number)
    return inputs


def convention_of(checked: Checked, ranges: Mapping[str, schema.RangeConstraint], examples: Any) -> Convention:
    """Return the calling convention of a program.

    Args:
        checked: the program.
        ranges: symbol -> range.
        examples: its example inputs; None where it has none, and then torch's own module has no guards either.

    Raises:
        GraphError: a guard over something that is no input.
    """
    call: Any = checked.calls[0].signature
    stored: Any = checked.module.module_call_graph[0].signature
    in_spec = treespec.parse(stored.in_spec)
    # Source: `_get_codegen` in torch/export/_unlift.py, 2.13.
    tree = InputTree(call.in_spec, [name for name, *_ in named_arguments(in_spec, call.forward_arg_names)])
    graph = checked.module.graph
    specs = checked.signature.input_specs
    arguments = [graph.inputs[index] for index, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT]
    paths = _paths(tree, in_spec, checked.tree_specs.fields, examples)
    inputs = [Input(path_text(path), argument, path) for path, argument in zip(paths, arguments, strict=False)]
    written = Conditions(inputs, graph, ranges, is_guarded=examples is not None)
    conditions = list(written.found)
    if examples is not None:
        conditions += [_guard(text, inputs, f"$.guards_code[{n}]") for n, text in enumerate(checked.guards)]
    modules = frozenset(type(leaf) for leaf in pytree.tree_leaves(examples) if isinstance(leaf, torch.nn.Module))
    where = f"{WHERE}[0].signature.out_spec"
    outputs = OutputTree(call.out_spec, lambda: checked.tree_specs.read(treespec.parse(stored.out_spec), where))
    return Convention(tree, conditions, outputs, modules)


def _paths(tree: InputTree, in_spec: TreeSpec, fields: FieldTable, examples: Any) -> list[Path]:
    """Return the path to each value from the names of the arguments, through the example inputs if there are some."""
    if examples is not None:
        args, kwargs = examples
        by_name: Any = dict(zip(tree.names, (*args, *(kwargs[name] for name in tree.keywords)), strict=True))
        return [tuple(map(_step, path)) for path, _ in pytree.tree_leaves_with_path(by_name)]
    # Not by an object of the structure: constructors of containers may inspect their arguments.
    return input_paths(in_spec, tree.names, fields=fields)


def _step(key: Any) -> Any:
    """Return a step on a path as guards have it: an index or key, or (name,) for an attribute."""
    if isinstance(key, pytree.SequenceKey):
        return key.idx
    return (key.name,) if isinstance(key, pytree.GetAttrKey) else getattr(key, "key", None)


def _guard(text: str, inputs: Sequence[Input], where: str) -> Condition:
    guard, paths = parse_guard(text, where=where), [one.path for one in inputs]
    values = {one.text: read_source(one.what, one.find(paths, where), one.index) for one in guard.sources}
    return guard_condition(text, guard.expr, values)
