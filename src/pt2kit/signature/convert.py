"""Conversion between `schema.GraphSignature` and the specs of this package, one spec at a time; exact in both
directions.

A constant input is one spec here and, by the age of the file, one of two in the schema: `constant_input`, which names
its placeholder, or (before schema 5.3) a `user_input` that holds the constant. The name "" stands for the latter.

Source: torch/_export/serde/serialize.py, torch 2.13.
"""

from __future__ import annotations

from typing import Any, Final

from pt2kit import schema
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.schema.names import target_of
from pt2kit.signature.specs import (
    ArgumentSpec,
    Constant,
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)


def argument_spec(argument: schema.Argument) -> ArgumentSpec:
    """Describe one argument of the schema.

    Raises:
        GraphError: it is neither one value nor one constant (S12).
    """
    arm, value = argument.type, argument.value
    match value:
        case schema.TensorArgument():
            return TensorArgument(value.name)
        case schema.CustomObjArgument():
            return CustomObjArgument(value.name, value.class_fqn)
        case schema.SymIntArgument(as_name=str(name)):
            return SymIntArgument(name)
        case schema.SymFloatArgument(as_name=str(name)):
            return SymFloatArgument(name)
        case schema.SymBoolArgument(as_name=str(name)):
            return SymBoolArgument(name)
        case schema.ComplexValue():
            return ConstantArgument("", complex(float(value.real), float(value.imag)))
    if arm == "as_none":
        return ConstantArgument("", None)
    if arm in ("as_int", "as_float", "as_bool", "as_string"):
        return ConstantArgument("", value)
    got = f"{arm} with a constant" if arm.startswith("as_sym_") and not isinstance(value, list) else arm
    raise GraphError(f"expected one value or one constant, got {got}", rule="S12")


def schema_argument(arg: ArgumentSpec) -> schema.Argument:
    """Write one argument description as an argument of the schema, which has no arm for tokens: they are tensors."""
    match arg:
        case TensorArgument(name) | TokenArgument(name):
            return schema.Argument(as_tensor=schema.TensorArgument(name))
        case SymIntArgument(name):
            return schema.Argument(as_sym_int=schema.SymIntArgument(as_name=name))
        case SymFloatArgument(name):
            return schema.Argument(as_sym_float=schema.SymFloatArgument(as_name=name))
        case SymBoolArgument(name):
            return schema.Argument(as_sym_bool=schema.SymBoolArgument(as_name=name))
        case CustomObjArgument(name, class_fqn):
            return schema.Argument(as_custom_obj=schema.CustomObjArgument(name, class_fqn))
        case ConstantArgument(_, complex() as value):
            return schema.Argument(as_complex=schema.ComplexValue(value.real, value.imag))
    return schema.Argument(**_constant_arm(arg.value))


def input_spec(spec: schema.InputSpec) -> InputSpec:
    """Read an input spec of the schema.

    Raises:
        GraphError: a user input that is neither one value nor one constant (S12).
    """
    match spec.value:
        case schema.UserInputSpec(arg):
            given = argument_spec(arg)
            if isinstance(given, ConstantArgument) and isinstance(given.value, complex):
                raise GraphError("expected a constant that an input can be, got a complex number", rule="S12")
            return InputSpec(InputKind.USER_INPUT, given, None)
        case schema.InputToParameterSpec(arg, target):
            return InputSpec(InputKind.PARAMETER, TensorArgument(arg.name), target)
        case schema.InputToBufferSpec(arg, target, persistent):
            return InputSpec(InputKind.BUFFER, TensorArgument(arg.name), target, persistent)
        case schema.InputToTensorConstantSpec(arg, target):
            return InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(arg.name), target)
        case schema.InputToCustomObjSpec(arg, target):
            return InputSpec(InputKind.CUSTOM_OBJ, CustomObjArgument(arg.name, arg.class_fqn), target)
        case schema.InputTokenSpec(arg):
            return InputSpec(InputKind.TOKEN, TokenArgument(arg.name), None)
        case schema.InputToConstantInputSpec(name, held):
            constant = None if held.type == "as_none" else held.value
            return InputSpec(InputKind.USER_INPUT, ConstantArgument(name, constant), None)
    raise TypeError(f"input spec without a reader: {spec.type}")


def output_spec(spec: schema.OutputSpec) -> OutputSpec:
    """Read an output spec of the schema.

    Raises:
        GraphError: a user output that is neither one value nor one constant (S12).
    """
    kind, held = OutputKind[spec.type.upper()], spec.value
    if isinstance(held, schema.UserOutputSpec):
        returned = argument_spec(held.arg)
        if isinstance(returned, ConstantArgument) and returned.value != returned.value:
            # torch compares the constants of outputs with those of the graph.
            raise GraphError("expected a constant that equals itself, got NaN", rule="S12")
        return OutputSpec(kind, returned, None)
    arg = TokenArgument(held.arg.name) if kind is OutputKind.TOKEN else TensorArgument(held.arg.name)
    return OutputSpec(kind, arg, target_of(spec))


def schema_input_spec(spec: InputSpec) -> schema.InputSpec:
    """Write an input spec as the schema has it.

    Raises:
        UnsupportedError: a complex constant input, which the schema cannot hold.
    """
    arg, target = spec.arg, spec.target
    match spec.kind, arg:
        case InputKind.USER_INPUT, ConstantArgument(str(name), value) if name:
            constant = schema.ConstantValue(**_constant_arm(value))
            return schema.InputSpec(constant_input=schema.InputToConstantInputSpec(name, constant))
        case InputKind.CUSTOM_OBJ, CustomObjArgument(name, class_fqn) if target is not None:
            custom_obj = schema.CustomObjArgument(name, class_fqn)
            return schema.InputSpec(custom_obj=schema.InputToCustomObjSpec(custom_obj, target))
        case InputKind.TOKEN, _:
            return schema.InputSpec(token=schema.InputTokenSpec(schema.TokenArgument(arg.name)))
    if target is None:
        return schema.InputSpec(user_input=schema.UserInputSpec(schema_argument(arg)))
    tensor = schema.TensorArgument(arg.name)
    if spec.kind is InputKind.PARAMETER:
        return schema.InputSpec(parameter=schema.InputToParameterSpec(tensor, target))
    if spec.kind is InputKind.BUFFER:
        return schema.InputSpec(buffer=schema.InputToBufferSpec(tensor, target, bool(spec.persistent)))
    return schema.InputSpec(tensor_constant=schema.InputToTensorConstantSpec(tensor, target))


def schema_output_spec(spec: OutputSpec) -> schema.OutputSpec:
    """Write an output spec as the schema has it."""
    name, target = spec.arg.name, spec.target or ""
    tensor = schema.TensorArgument(name)
    match spec.kind:
        case OutputKind.USER_OUTPUT:
            return schema.OutputSpec(user_output=schema.UserOutputSpec(schema_argument(spec.arg)))
        case OutputKind.LOSS_OUTPUT:
            return schema.OutputSpec(loss_output=schema.LossOutputSpec(tensor))
        case OutputKind.BUFFER_MUTATION:
            return schema.OutputSpec(buffer_mutation=schema.BufferMutationSpec(tensor, target))
        case OutputKind.PARAMETER_MUTATION:
            return schema.OutputSpec(parameter_mutation=schema.ParameterMutationSpec(tensor, target))
        case OutputKind.GRADIENT_TO_PARAMETER:
            return schema.OutputSpec(gradient_to_parameter=schema.GradientToParameterSpec(tensor, target))
        case OutputKind.GRADIENT_TO_USER_INPUT:
            return schema.OutputSpec(gradient_to_user_input=schema.GradientToUserInputSpec(tensor, target))
        case OutputKind.USER_INPUT_MUTATION:
            return schema.OutputSpec(user_input_mutation=schema.UserInputMutationSpec(tensor, target))
        case OutputKind.TOKEN:
            return schema.OutputSpec(token=schema.OutputTokenSpec(schema.TokenArgument(name)))


def _constant_arm(value: Constant) -> dict[str, Any]:
    """Return the arm of a constant, by its name, as `schema.Argument` and `schema.ConstantValue` share them.

    Raises:
        UnsupportedError: the constant is complex, or no constant of the schema.
    """
    if value is None:
        return {"as_none": True}
    for cls, arm in _ARMS:
        if isinstance(value, cls):
            return {arm: cls(value)}  # of an IntEnum, say, the number
    got = quote(value)
    raise UnsupportedError(
        f"signature: expected None, an int, a float, a bool or a str as constant, got {got}", rule="S12"
    )


_ARMS: Final = ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string"))  # a bool is an int too
