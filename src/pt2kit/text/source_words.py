"""Vocabulary of the text form of programs, shared by printer and parser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema

VERSION: Final = 1
"""Of the text form: the first line says it."""

PLAIN_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
PLAIN_TARGET: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+", re.ASCII)

KIND_MARKS: Final[Mapping[schema.ArgumentKind | None, str]] = MappingProxyType(
    {
        schema.ArgumentKind.POSITIONAL: "",
        schema.ArgumentKind.KEYWORD: "*",
        schema.ArgumentKind.UNKNOWN: "!",
        None: "?",
    }
)
"""How an argument is passed -> the prefix of its text."""

INPUT_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "user_input": "user_input",
        "parameter": "parameter",
        "buffer": "buffer",
        "tensor_constant": "constant",
        "custom_obj": "object",
        "token": "token",
        "constant_input": "constant_input",
    }
)
OUTPUT_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: name
        for name in (
            *("user_output", "loss_output", "buffer_mutation", "parameter_mutation", "gradient_to_parameter"),
            *("gradient_to_user_input", "user_input_mutation", "token"),
        )
    }
)


def input_spec(kind: str, argument: schema.Argument, rest: Sequence[Any]) -> schema.InputSpec:
    """Return the spec of an input of the graph.

    Args:
        kind: the field of `schema.InputSpec`.
        argument: the input.
        rest: the target, and for buffers whether they are persistent; for a constant its placeholder and value.
    """
    match kind:
        case "user_input":
            return schema.InputSpec(user_input=schema.UserInputSpec(argument))
        case "constant_input":
            name, value = rest
            return schema.InputSpec(constant_input=schema.InputToConstantInputSpec(name, constant_value(value)))
        case "token":
            content = argument.value
            return schema.InputSpec(token=schema.InputTokenSpec(schema.TokenArgument(getattr(content, "name", ""))))
    makers: Mapping[str, Any] = {
        "parameter": schema.InputToParameterSpec,
        "buffer": schema.InputToBufferSpec,
        "tensor_constant": schema.InputToTensorConstantSpec,
        "custom_obj": schema.InputToCustomObjSpec,
    }
    made: schema.InputSpec = schema.InputSpec.create(**{kind: makers[kind](argument.value, *rest)})
    return made


def output_spec(kind: str, argument: schema.Argument, rest: Sequence[Any]) -> schema.OutputSpec:
    """Return the spec of an output of the graph; `rest` is the target, if it has one."""
    if kind == "user_output":
        return schema.OutputSpec(user_output=schema.UserOutputSpec(argument))
    name = getattr(argument.value, "name", "")
    if kind == "token":
        return schema.OutputSpec(token=schema.OutputTokenSpec(schema.TokenArgument(name)))
    makers: Mapping[str, Any] = {
        "loss_output": schema.LossOutputSpec,
        "buffer_mutation": schema.BufferMutationSpec,
        "parameter_mutation": schema.ParameterMutationSpec,
        "gradient_to_parameter": schema.GradientToParameterSpec,
        "gradient_to_user_input": schema.GradientToUserInputSpec,
        "user_input_mutation": schema.UserInputMutationSpec,
    }
    made: schema.OutputSpec = schema.OutputSpec.create(**{kind: makers[kind](schema.TensorArgument(name), *rest)})
    return made


def constant_value(value: Any) -> schema.ConstantValue:
    """Return a constant of the calling convention."""
    if value is None:
        return schema.ConstantValue(as_none=True)
    for cls, arm in ((bool, "as_bool"), (int, "as_int"), (float, "as_float")):
        if isinstance(value, cls):
            made: schema.ConstantValue = schema.ConstantValue.create(**{arm: value})
            return made
    return schema.ConstantValue(as_string=value)
