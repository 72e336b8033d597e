"""Inputs and outputs of a program: their specs in the signature, with their slots in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pt2kit import schema
from pt2kit.editing.graphs import Slot, Value

TARGETS: Final = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "gradient_to_parameter": "parameter_name",
}
"""Kind of a spec -> the field that names a weight or constant."""

OF_INPUTS: Final = ("user_input_mutation", "gradient_to_user_input")
"""The kinds of outputs whose target is an input of the caller's."""

USER_INPUTS: Final = ("user_input", "constant_input")
USER_OUTPUTS: Final = ("user_output", "loss_output")
INPUT_GROUPS: Final = {"token": 0, "user_input": 2, "constant_input": 2}
OUTPUT_GROUPS: Final = {
    "token": 0,
    **dict.fromkeys(("user_output", "loss_output"), 2),
    **dict.fromkeys(("gradient_to_parameter", "gradient_to_user_input"), 3),
}
"""Kind -> its place in the order of inputs, and of outputs; 1 for those that are not listed."""


class Input:
    """One input of a program.

    Attributes:
        kind: "user_input", "parameter", "buffer", "tensor_constant", "custom_obj", "token", "constant_input".
        target: the name of the weight, constant or object; None for what the caller passes.
        persistent: whether a buffer is in the state dict.
    """

    __slots__ = ("_constant", "_origin", "kind", "persistent", "slot", "target")

    def __init__(self, spec: schema.InputSpec, slot: Slot) -> None:
        self._origin: schema.InputSpec | None = spec
        self.slot = slot
        self.kind = spec.type
        value = spec.value
        self.target: str | None = getattr(value, TARGETS.get(self.kind, ""), None)
        self.persistent: bool = getattr(value, "persistent", False)
        self._constant: str | None = value.name if self.kind == "constant_input" else None

    @classmethod
    def of(cls, value: Value) -> Input:
        """Return an input that the caller passes."""
        slot = Slot.of(value)
        return cls(schema.InputSpec(user_input=schema.UserInputSpec(slot.template)), slot)

    @property
    def value(self) -> Value | None:
        """Return the value in the graph; None for a constant of the calling convention."""
        return self.slot.values[0] if self.slot.values else None

    @property
    def name(self) -> str:
        """Return the name of the value, or of the placeholder of a constant; "" for a constant without one."""
        return self.slot.values[0].name if self.slot.values else self._constant or ""

    @property
    def constant(self) -> Any:
        """Return the constant that the caller has to pass; None if it is no constant, or is None."""
        if self.slot.values or self.slot.template.type == "as_none":
            return None
        return self.slot.template.value

    def rename_constant(self, name: str) -> None:
        """Rename the placeholder of a constant."""
        self._constant = name

    def spec(self) -> schema.InputSpec:
        """Return the input's spec in the signature; the spec that was read if nothing changed."""
        new = self._written()
        if new == self._origin:
            return self._origin
        return new

    def _written(self) -> schema.InputSpec:
        argument = self.slot.written()
        target = self.target or ""
        match self.kind:
            case "user_input":
                return schema.InputSpec(user_input=schema.UserInputSpec(argument))
            case "constant_input" if self._origin is not None and self._origin.type == "constant_input":
                constant = self._origin.value.value
                return schema.InputSpec(constant_input=schema.InputToConstantInputSpec(self.name, constant))
            case "custom_obj":
                return schema.InputSpec(custom_obj=schema.InputToCustomObjSpec(argument.value, target))
            case "token":
                return schema.InputSpec(token=schema.InputTokenSpec(schema.TokenArgument(self.name)))
            case "buffer":
                buffer = schema.InputToBufferSpec(argument.value, target, self.persistent)
                return schema.InputSpec(buffer=buffer)
            case "parameter":
                return schema.InputSpec(parameter=schema.InputToParameterSpec(argument.value, target))
        return schema.InputSpec(tensor_constant=schema.InputToTensorConstantSpec(argument.value, target))

    def __repr__(self) -> str:
        return f"<Input {self.name}: {self.kind}{f' {self.target}' if self.target else ''}>"


class Output:
    """One output of a program.

    Attributes:
        kind: "user_output", "loss_output", "buffer_mutation", "parameter_mutation", "user_input_mutation",
            "gradient_to_parameter", "gradient_to_user_input", "token".
        target: the name of the parameter or buffer that is written or has the gradient, else None.
        input: the input of the caller's that is written or has the gradient, else None.
    """

    __slots__ = ("_origin", "input", "kind", "slot", "target")

    def __init__(self, spec: schema.OutputSpec, slot: Slot, inputs: dict[str, Input]) -> None:
        self._origin = spec
        self.slot = slot
        self.kind = spec.type
        value = spec.value
        self.target: str | None = getattr(value, TARGETS.get(self.kind, ""), None)
        self.input: Input | None = inputs.get(value.user_input_name) if self.kind in OF_INPUTS else None

    @classmethod
    def of(cls, value: Value) -> Output:
        """Return an output that the caller gets."""
        slot = Slot.of(value)
        return cls(schema.OutputSpec(user_output=schema.UserOutputSpec(slot.template)), slot, {})

    @property
    def value(self) -> Value | None:
        """Return the value in the graph; None for a constant."""
        return self.slot.values[0] if self.slot.values else None

    @property
    def name(self) -> str:
        """Return the name of the value; "" for a constant."""
        return self.slot.values[0].name if self.slot.values else ""

    def spec(self) -> schema.OutputSpec:
        """Return the output's spec in the signature; the spec that was read if nothing changed."""
        new = self._written()
        return self._origin if new == self._origin else new

    def _written(self) -> schema.OutputSpec:
        argument = self.slot.written()
        kind = self.kind
        if kind == "user_output":
            return schema.OutputSpec(user_output=schema.UserOutputSpec(argument))
        if kind == "token":
            return schema.OutputSpec(token=schema.OutputTokenSpec(schema.TokenArgument(self.name)))
        tensor = schema.TensorArgument(self.name)
        if kind == "loss_output":
            return schema.OutputSpec(loss_output=schema.LossOutputSpec(tensor))
        old = self._origin.value
        target = self.target or ""
        if kind in OF_INPUTS:
            target = self.input.name if self.input is not None else old.user_input_name
        made: schema.OutputSpec = schema.OutputSpec.create(**{kind: type(old)(tensor, target)})
        return made

    def __repr__(self) -> str:
        return f"<Output {self.name}: {self.kind}>"


def insert_in_group(items: list[Any], new: Any, groups: Mapping[str, int]) -> None:
    """Insert an input or output after the last one of its group."""
    group = groups.get(new.kind, 1)
    place = sum(groups.get(one.kind, 1) <= group for one in items)
    items.insert(place, new)
