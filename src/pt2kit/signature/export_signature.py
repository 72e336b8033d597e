"""Signature of a graph (`ExportGraphSignature`): specs of inputs and outputs, views of them, reading and writing.

The torch-free counterpart of torch's class of the same name: the same properties with the same types (tuples, read-only
mappings in the order of the specs), the same text. It is checked when it is made: the order of inputs and outputs, and
one loss at most. Like torch's it can be changed: `replace_all_uses` renames in place, because passes hold on to the
object (`get_replace_hook`). The specs themselves are frozen; renaming puts new ones into the lists.

`from_schema` reads a `schema.GraphModule` to a verified `ExportGraphSignature`; `to_schema` writes it as
`schema.GraphSignature`.

Source: torch/export/graph_signature.py, torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol, TypeVar

from pt2kit import schema
from pt2kit.errors import GraphError
from pt2kit.signature.consistency import DEFAULT_WHERE, read_specs
from pt2kit.signature.specs import (
    NAMED,
    ArgumentSpec,
    Constant,
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    order_problems,
    schema_input_spec,
    schema_output_spec,
)

S = TypeVar("S", InputSpec, OutputSpec)


class FxNode(Protocol):
    """The attributes of a torch.fx node that a replace hook needs."""

    @property
    def name(self) -> str:
        """Return the name of the node."""

    @property
    def op(self) -> str:
        """Return the kind of the node ("placeholder", "output", …)."""


@dataclass(frozen=True, slots=True)
class ExportBackwardSignature:
    """The gradients of a joint graph.

    Args:
        gradients_to_parameters: name of the gradient -> parameter.
        gradients_to_user_inputs: name of the gradient -> name of the user input.
        loss_output: the name of the loss.
    """

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass(slots=True)
class ExportGraphSignature:
    """The specs of all inputs and outputs of a graph.

    Args:
        input_specs: in the order of the graph's inputs; copied into a list.
        output_specs: in the order of the graph's outputs; copied into a list.

    Every property costs one pass over the specs.

    Raises:
        GraphError: inputs or outputs in an order that no caller can follow (S5, S6), or two losses (S9).
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def __post_init__(self) -> None:
        self.input_specs = list(self.input_specs)
        self.output_specs = list(self.output_specs)
        inputs, outputs = dict(enumerate(self.input_specs)), dict(enumerate(self.output_specs))
        for problem in order_problems(inputs, outputs, "signature"):
            raise GraphError(f"{problem.loc}: {problem.message}", rule=problem.rule)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters, by their names in the module."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """Return the buffers, persistent or not, by their names in the module."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Return the buffers that are not in the state dict, by their names in the module."""
        specs = [spec for spec in self.input_specs if spec.kind is InputKind.BUFFER and spec.persistent is False]
        return tuple(spec.target for spec in specs if spec.target is not None)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Return the tensor constants, by their names in the module."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """Return the custom objects, by their names in the module."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple[Constant, ...]:
        """Return the flattened inputs of the caller: names of values, and constants themselves."""
        return tuple(_name_or_value(spec.arg) for spec in self.input_specs if spec.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[Constant, ...]:
        """Return the flattened outputs to the caller, the loss among them: names of values, and constants
        themselves."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_name_or_value(spec.arg) for spec in self.output_specs if spec.kind in kinds)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """Return a dict from graph input to parameter, both by name."""
        return _mapping(self.input_specs, InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """Return name of the graph input -> buffer."""
        return _mapping(self.input_specs, InputKind.BUFFER)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Return a dict from the output with the new value to the buffer."""
        return _mapping(self.output_specs, OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """Return name of the new value among the outputs -> parameter."""
        return _mapping(self.output_specs, OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Return a dict from the output with the new value to the user input, both by name."""
        return _mapping(self.output_specs, OutputKind.USER_INPUT_MUTATION)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """Return name of the graph input -> tensor constant."""
        return _mapping(self.input_specs, InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """Return name of the graph input -> custom object."""
        return _mapping(self.input_specs, InputKind.CUSTOM_OBJ)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Return the gradients of a joint graph; None if no output is a loss."""
        losses = [spec.arg.name for spec in self.output_specs if spec.kind is OutputKind.LOSS_OUTPUT]
        if not losses:
            return None
        return ExportBackwardSignature(
            gradients_to_parameters=dict(_mapping(self.output_specs, OutputKind.GRADIENT_TO_PARAMETER)),
            gradients_to_user_inputs=dict(_mapping(self.output_specs, OutputKind.GRADIENT_TO_USER_INPUT)),
            loss_output=losses[0],
        )

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """Return None, as in torch: assertions are no longer threaded through a token."""
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """Return the names of the input effect tokens."""
        return tuple(spec.arg.name for spec in self.input_specs if spec.kind is InputKind.TOKEN)

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """Return the names of the output effect tokens."""
        return tuple(spec.arg.name for spec in self.output_specs if spec.kind is OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Rename a value, in place, wherever an input or output spec holds it as its argument.

        As in torch, targets stay: also the target of a mutation of, or a gradient to, a user input of that name.
        """
        self.input_specs[:] = _renamed(self.input_specs, old, new)
        self.output_specs[:] = _renamed(self.output_specs, old, new)

    def get_replace_hook(self, replace_inputs: bool = False) -> Callable[[FxNode, str, FxNode], None]:
        """Return a hook for torch.fx graph modules that follows replaced nodes with `replace_all_uses`.

        Args:
            replace_inputs: follow replaced placeholders too, and not only what outputs use.

        Returns:
            A function of the old node, the new name, and the node that uses it.
        """

        def hook(old: FxNode, new: str, user: FxNode) -> None:
            if user.op == "output" or (replace_inputs and old.op == "placeholder"):
                self.replace_all_uses(old.name, new)

        return hook

    def __str__(self) -> str:
        """Return all specs, one on a line, as torch prints them."""
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(spec.target for spec in self.input_specs if spec.kind is kind and spec.target is not None)


def _name_or_value(arg: ArgumentSpec) -> Constant:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


def _mapping(specs: Sequence[InputSpec] | Sequence[OutputSpec], kind: InputKind | OutputKind) -> Mapping[str, str]:
    """Return name of the argument -> target, for the specs of one kind."""
    return MappingProxyType(
        {spec.arg.name: spec.target for spec in specs if spec.kind is kind and spec.target is not None}
    )


def _renamed(specs: list[S], old: str, new: str) -> list[S]:
    return [
        replace(spec, arg=replace(spec.arg, name=new)) if isinstance(spec.arg, NAMED) and spec.arg.name == old else spec
        for spec in specs
    ]


def from_schema(graph_module: schema.GraphModule, where: str = DEFAULT_WHERE) -> ExportGraphSignature:
    """Read the signature of a graph module, and prove that it fits the graph (rules S1 to S14).

    Args:
        graph_module: the graph and its signature.
        where: the place of the graph module, for messages ("models/model.json: $.graph_module").

    Returns:
        The signature; it shares nothing that can change with `graph_module`.

    Cost: linear in the specs.

    Raises:
        GraphError: the first contradiction, with its place.
    """
    inputs: dict[int, InputSpec] = {}
    outputs: dict[int, OutputSpec] = {}
    for problem in read_specs(graph_module, where, inputs, outputs):
        if problem.kind == "error":
            raise GraphError(f"{problem.loc}: {problem.message}", rule=problem.rule)
    return ExportGraphSignature(list(inputs.values()), list(outputs.values()))


def to_schema(signature: ExportGraphSignature) -> schema.GraphSignature:
    """Write a signature as the schema has it: the exact inverse of `from_schema`.

    Raises:
        UnsupportedError: a constant that the schema cannot hold where it stands.
    """
    return schema.GraphSignature(
        [schema_input_spec(spec) for spec in signature.input_specs],
        [schema_output_spec(spec) for spec in signature.output_specs],
    )
