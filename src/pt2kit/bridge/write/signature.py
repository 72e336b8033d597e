"""Write torch's graph signature as `GraphSignature`, and its argument specs as `Argument`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch.export import graph_signature as live

from pt2kit.bridge.write.arguments import write_argument
from pt2kit.bridge.write.scope import Scope
from pt2kit.errors import GraphError, Pt2Error, UnsupportedError, at
from pt2kit.schema import (
    Argument,
    BufferMutationSpec,
    ConstantValue,
    CustomObjArgument,
    GradientToParameterSpec,
    GradientToUserInputSpec,
    GraphSignature,
    InputSpec,
    InputToBufferSpec,
    InputToConstantInputSpec,
    InputToCustomObjSpec,
    InputTokenSpec,
    InputToParameterSpec,
    InputToTensorConstantSpec,
    LossOutputSpec,
    OutputSpec,
    OutputTokenSpec,
    ParameterMutationSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
    UserInputMutationSpec,
    UserInputSpec,
    UserOutputSpec,
)

_In, _Out = live.InputKind, live.OutputKind
_TRACED_INPUT = re.compile(r"arg(\d{1,9})_1", re.ASCII)


def write_signature(signature: live.ExportGraphSignature, scope: Scope) -> GraphSignature:
    """Return the signature: the kind of each input and output of the graph.

    Args:
        signature: of the live program.
        scope: the outer graph, already written.

    Raises:
        GraphError: a spec that lacks what its kind needs, with its place.
        UnsupportedError: a kind or a constant that the format does not have.

    Source: `serialize_signature` in torch/_export/serde/serialize.py, 2.13.
    """
    output = partial(_output_spec, inputs=signature.input_specs)
    return GraphSignature(
        [_placed("input", index, spec, _input_spec, scope) for index, spec in enumerate(signature.input_specs)],
        [_placed("output", index, spec, output, scope) for index, spec in enumerate(signature.output_specs)],
    )


def write_argument_spec(spec: Any, scope: Scope) -> Argument:
    """Return an argument of the calling convention; a name for the same result as another becomes that one.

    Raises:
        UnsupportedError: a kind that the format does not have.

    Source: `serialize_argument_spec` in torch/_export/serde/serialize.py, 2.13.
    """
    if isinstance(spec, live.ConstantArgument):
        return write_argument(spec.value, scope)
    name = scope.renamed.get(spec.name, spec.name)
    if isinstance(spec, live.TensorArgument):
        return Argument(as_tensor=TensorArgument(name))
    if isinstance(spec, live.SymIntArgument):
        return Argument(as_sym_int=SymIntArgument(as_name=name))
    if isinstance(spec, live.SymFloatArgument):
        return Argument(as_sym_float=SymFloatArgument(as_name=name))
    if isinstance(spec, live.SymBoolArgument):
        return Argument(as_sym_bool=SymBoolArgument(as_name=name))
    if isinstance(spec, live.CustomObjArgument):
        return Argument(as_custom_obj=CustomObjArgument(name, spec.class_fqn))
    raise UnsupportedError(f"expected a tensor, a number, a constant or an object, got {type(spec).__name__}")


def _placed(side: str, index: int, spec: Any, write: Callable[[Any, Scope], Any], scope: Scope) -> Any:
    try:
        return write(spec, scope)
    except Pt2Error as error:
        raise at(f"graph signature: {side} {index} ({spec.kind.name})", error) from error


def _input_spec(spec: live.InputSpec, scope: Scope) -> InputSpec:
    if spec.kind == _In.USER_INPUT:
        if isinstance(spec.arg, live.ConstantArgument):
            return InputSpec(constant_input=InputToConstantInputSpec(spec.arg.name, _constant(spec.arg.value)))
        return InputSpec(user_input=UserInputSpec(write_argument_spec(spec.arg, scope)))
    if spec.kind == _In.TOKEN:
        return InputSpec(token=InputTokenSpec(_token(spec)))
    if spec.kind == _In.CUSTOM_OBJ:
        if not isinstance(spec.arg, live.CustomObjArgument):
            raise GraphError(f"expected a CustomObjArgument, got {type(spec.arg).__name__}")
        custom = CustomObjArgument(spec.arg.name, spec.arg.class_fqn)
        return InputSpec(custom_obj=InputToCustomObjSpec(custom, _target(spec)))
    tensor, target = _tensor(spec, scope), _target(spec)
    if spec.kind == _In.PARAMETER:
        return InputSpec(parameter=InputToParameterSpec(tensor, target))
    if spec.kind == _In.CONSTANT_TENSOR:
        return InputSpec(tensor_constant=InputToTensorConstantSpec(tensor, target))
    if spec.kind == _In.BUFFER:
        if spec.persistent is None:
            raise GraphError("expected it to say whether the buffer is persistent, got None")
        return InputSpec(buffer=InputToBufferSpec(tensor, target, spec.persistent))
    raise UnsupportedError(f"expected a kind of input that the format has, got {spec.kind}")


def _output_spec(spec: live.OutputSpec, scope: Scope, inputs: Sequence[live.InputSpec]) -> OutputSpec:
    if spec.kind == _Out.USER_OUTPUT:
        return OutputSpec(user_output=UserOutputSpec(write_argument_spec(spec.arg, scope)))
    if spec.kind == _Out.TOKEN:
        return OutputSpec(token=OutputTokenSpec(_token(spec)))
    if spec.kind == _Out.LOSS_OUTPUT:
        return OutputSpec(loss_output=LossOutputSpec(_tensor(spec, scope)))
    if spec.kind not in _TARGETED:
        raise UnsupportedError(f"expected a kind of output that the format has, got {spec.kind}")
    arm, kind = _TARGETED[spec.kind]
    target = _gradient_target(spec, inputs) if spec.kind == _Out.GRADIENT_TO_USER_INPUT else _target(spec)
    made: OutputSpec = OutputSpec.create(**{arm: kind(_tensor(spec, scope), target)})
    return made


_TARGETED: Mapping[Any, tuple[str, Callable[[TensorArgument, str], Any]]] = {
    _Out.BUFFER_MUTATION: ("buffer_mutation", BufferMutationSpec),
    getattr(_Out, "PARAMETER_MUTATION", None): ("parameter_mutation", ParameterMutationSpec),  # since torch 2.9
    _Out.GRADIENT_TO_PARAMETER: ("gradient_to_parameter", GradientToParameterSpec),
    _Out.GRADIENT_TO_USER_INPUT: ("gradient_to_user_input", GradientToUserInputSpec),
    _Out.USER_INPUT_MUTATION: ("user_input_mutation", UserInputMutationSpec),
}


def _tensor(spec: Any, scope: Scope) -> TensorArgument:
    if not isinstance(spec.arg, live.TensorArgument):
        raise GraphError(f"expected a TensorArgument, got {type(spec.arg).__name__}")
    return TensorArgument(scope.renamed.get(spec.arg.name, spec.arg.name))


def _token(spec: Any) -> TokenArgument:
    if not isinstance(spec.arg, live.TokenArgument):
        raise GraphError(f"expected a TokenArgument, got {type(spec.arg).__name__}")
    return TokenArgument(spec.arg.name)


def _target(spec: Any) -> str:
    if spec.target is None:
        raise GraphError("expected the name of its parameter, buffer, constant or input as target, got None")
    return str(spec.target)


def _gradient_target(spec: live.OutputSpec, inputs: Sequence[live.InputSpec]) -> str:
    """Return the name of the user input that a gradient is for.

    A joint graph made by export itself names it as tracing did, "arg<position>_1", and not as its placeholder.

    Raises:
        GraphError: no such input.

    Source: the code after `joint_loss_index` in torch/export/exported_program.py, 2.13.
    """
    target = _target(spec)
    if any(input_spec.kind == _In.USER_INPUT and input_spec.arg.name == target for input_spec in inputs):
        return target
    traced = _TRACED_INPUT.fullmatch(target)
    if traced and int(traced[1]) < len(inputs):
        input_spec = inputs[int(traced[1])]
        if input_spec.kind == _In.USER_INPUT:
            return str(input_spec.arg.name)
    raise GraphError(f"expected the name of a user input as target, got {target!r}")


def _constant(value: Any) -> ConstantValue:
    for kind, arm in ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string")):
        if type(value) is kind:
            made: ConstantValue = ConstantValue.create(**{arm: value})
            return made
    if value is None:
        return ConstantValue(as_none=True)
    raise UnsupportedError(f"expected a constant that the format has a kind for, got {type(value).__name__}")
