"""Conversion between `schema.GraphSignature` and the specs of this package, one spec at a time; exact in both
directions.

A constant input is one spec here and, by the age of the file, one of two in the schema: `constant_input`, which names
its placeholder, or (before schema 5.3) a `user_input` that holds the constant. The name "" stands for the latter.

Source: torch/_export/serde/serialize.py, torch 2.13.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.schema.names import target_of
from pt2kit.schema.reflection import field_classes
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

_SYMBOLIC: Final[Mapping[str, type[SymIntArgument | SymFloatArgument | SymBoolArgument]]] = MappingProxyType(
    {"as_sym_int": SymIntArgument, "as_sym_float": SymFloatArgument, "as_sym_bool": SymBoolArgument}
)
_CONSTANTS: Final = frozenset(("as_none", "as_int", "as_float", "as_bool", "as_string", "as_complex"))


def argument_spec(argument: schema.Argument) -> ArgumentSpec:
    """Describe one argument of the schema.

    Raises:
        GraphError: it is neither one value nor one constant (S12).
    """
    arm, value = argument.type, argument.value
    if arm in ("as_tensor", "as_custom_obj"):
        return _named_value(value)
    if arm in _SYMBOLIC and value.as_name is not UNSET:
        return _SYMBOLIC[arm](value.as_name)
    if arm in _CONSTANTS:
        if isinstance(value, schema.ComplexValue):
            value = complex(float(value.real), float(value.imag))
        return ConstantArgument("", None if arm == "as_none" else value)
    got = f"{arm} with a constant" if arm in _SYMBOLIC else arm
    raise GraphError(f"expected one value or one constant, got {got}", rule="S12")


def _named_value(held: schema.TensorArgument | schema.CustomObjArgument | schema.TokenArgument) -> ArgumentSpec:
    if isinstance(held, schema.CustomObjArgument):
        return CustomObjArgument(held.name, held.class_fqn)
    return TensorArgument(held.name) if isinstance(held, schema.TensorArgument) else TokenArgument(held.name)


def schema_argument(arg: ArgumentSpec) -> schema.Argument:
    """Write one argument description as an argument of the schema, which has no arm for tokens: they are tensors."""
    match arg:
        case TensorArgument(name) | TokenArgument(name):
            return schema.Argument(as_tensor=schema.TensorArgument(name))
        case CustomObjArgument(name, class_fqn):
            return schema.Argument(as_custom_obj=schema.CustomObjArgument(name, class_fqn))
        case ConstantArgument(_, complex() as value):
            return schema.Argument(as_complex=schema.ComplexValue(value.real, value.imag))
        case ConstantArgument(_, value):
            return schema.Argument(**_constant_arm(value))
    arm = next(arm for arm, cls in _SYMBOLIC.items() if isinstance(arg, cls))
    return schema.Argument(**{arm: field_classes(schema.Argument)[arm](as_name=arg.name)})


def input_spec(spec: schema.InputSpec) -> InputSpec:
    """Read an input spec of the schema.

    Raises:
        GraphError: a user input that is neither one value nor one constant (S12).
    """
    held = spec.value
    match held:
        case schema.UserInputSpec(arg):
            given = argument_spec(arg)
            if isinstance(given, ConstantArgument) and isinstance(given.value, complex):
                raise GraphError("expected a constant that an input can be, got a complex number", rule="S12")
            return InputSpec(InputKind.USER_INPUT, given, None)
        case schema.InputToConstantInputSpec(name, value):
            constant = None if value.type == "as_none" else value.value
            return InputSpec(InputKind.USER_INPUT, ConstantArgument(name, constant), None)
    kind = InputKind.CONSTANT_TENSOR if spec.type == "tensor_constant" else InputKind[spec.type.upper()]
    return InputSpec(kind, _named_value(held.arg), target_of(spec), getattr(held, "persistent", None))


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
    return OutputSpec(kind, _named_value(held.arg), target_of(spec))


def schema_input_spec(spec: InputSpec) -> schema.InputSpec:
    """Write an input spec as the schema has it.

    Raises:
        UnsupportedError: a complex constant input, which the schema cannot hold.
    """
    if isinstance(spec.arg, ConstantArgument) and spec.arg.name:
        constant = schema.ConstantValue(**_constant_arm(spec.arg.value))
        return schema.InputSpec(constant_input=schema.InputToConstantInputSpec(spec.arg.name, constant))
    flags = (spec.persistent,) if spec.kind is InputKind.BUFFER else ()
    field = "tensor_constant" if spec.kind is InputKind.CONSTANT_TENSOR else spec.kind.name.lower()
    return schema.InputSpec(**_spec_field(schema.InputSpec, field, spec, *flags))


def schema_output_spec(spec: OutputSpec) -> schema.OutputSpec:
    """Write an output spec as the schema has it."""
    return schema.OutputSpec(**_spec_field(schema.OutputSpec, spec.kind.name.lower(), spec))


def _spec_field(union: type[schema.Union], field: str, spec: InputSpec | OutputSpec, *flags: Any) -> dict[str, Any]:
    """Return the one field of a spec of the schema: its argument, the target if the kind has one, then flags."""
    argument: Any = schema_argument(spec.arg)
    if isinstance(spec.arg, TokenArgument):
        argument = schema.TokenArgument(spec.arg.name)
    elif field not in ("user_input", "user_output"):
        argument = argument.value
    targets = () if spec.target is None else (spec.target,)
    return {field: field_classes(union)[field](argument, *targets, *flags)}


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
