"""The proven signature -> torch's own classes of the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from torch.export import graph_signature as live

from pt2kit import signature as twin
from pt2kit.bridge.read.names import attribute_path
from pt2kit.errors import GraphError

_NAMED: Final[Mapping[type, Callable[..., Any]]] = MappingProxyType(
    {
        twin.TensorArgument: live.TensorArgument,
        twin.TokenArgument: live.TokenArgument,
        twin.SymIntArgument: live.SymIntArgument,
        twin.SymFloatArgument: live.SymFloatArgument,
        twin.SymBoolArgument: live.SymBoolArgument,
    }
)


def live_signature(signature: twin.ExportGraphSignature) -> live.ExportGraphSignature:
    """The signature as torch has it.

    Raises:
        GraphError: torch refuses it.
    """
    inputs = [
        live.InputSpec(live.InputKind[spec.kind.name], live_argument(spec.arg), _target(spec.target), spec.persistent)
        for spec in signature.input_specs
    ]
    outputs = [
        live.OutputSpec(live.OutputKind[spec.kind.name], live_argument(spec.arg), _target(spec.target))
        for spec in signature.output_specs
    ]
    try:
        return live.ExportGraphSignature(input_specs=inputs, output_specs=outputs)
    except (AssertionError, ValueError) as error:
        raise GraphError(f"$.graph_module.signature: expected a signature that torch takes, got: {error}") from error


def live_argument(arg: twin.ArgumentSpec) -> Any:
    """One argument description as torch has it."""
    if isinstance(arg, twin.ConstantArgument):
        value = float(arg.value) if isinstance(arg.value, float) else arg.value
        return live.ConstantArgument(name=arg.name, value=value)
    if isinstance(arg, twin.CustomObjArgument):
        return live.CustomObjArgument(name=arg.name, class_fqn=arg.class_fqn)
    return _NAMED[type(arg)](name=arg.name)


def _target(target: str | None) -> str | None:
    return None if target is None else attribute_path(target)
