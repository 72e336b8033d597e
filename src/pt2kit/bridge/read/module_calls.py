"""Build torch's own signature classes from the verified signature, and its module call graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from torch.export import graph_signature as live
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature

from pt2kit import schema, treespec
from pt2kit import signature as twin
from pt2kit.bridge.read.names import attribute_path, check_module_name, check_variable
from pt2kit.bridge.read.treespecs import TreeSpecs
from pt2kit.errors import GraphError

WHERE = "$.graph_module.module_call_graph"


Specs = tuple[treespec.TreeSpec, ...]
"""in_spec and out_spec of an entry; () for one without signature."""


def parse_specs(entries: Sequence[schema.ModuleCallEntry], signature: twin.ExportGraphSignature) -> list[Specs]:
    """Return the tree specs of every entry, as data, and check that they fit.

    Args:
        entries: the root first.
        signature: of the program, which the root's specs must fit.

    Raises:
        GraphError: no root, specs with another number of leaves than inputs or outputs, or names that cannot be.
        SchemaError, JsonError, LimitError: a tree spec that cannot be read.
    """
    if not entries or entries[0].fqn or entries[0].signature is None:
        raise GraphError(f"{WHERE}: expected the root, with its signature, as the first entry")
    parsed = [_parse(entry, f"{WHERE}[{index}]") for index, entry in enumerate(entries)]
    _check_root(parsed[0], signature)
    return parsed


def live_module_calls(
    entries: Sequence[schema.ModuleCallEntry], parsed: Sequence[Specs], specs: TreeSpecs
) -> list[ModuleCallEntry]:
    """Return the module call graph as torch has it.

    Args:
        entries: the root first.
        parsed: the tree specs of each.
        specs: builds the live tree specs.

    Raises:
        SchemaError: a tree spec that contradicts itself.
        UnsupportedError: an unknown container type.
    """
    return [
        _entry(entry, pair, specs, f"{WHERE}[{index}]")
        for index, (entry, pair) in enumerate(zip(entries, parsed, strict=True))
    ]


def _parse(entry: schema.ModuleCallEntry, where: str) -> Specs:
    check_module_name(entry.fqn, f"{where}.fqn")
    if entry.signature is None:
        return ()
    in_spec = treespec.parse(entry.signature.in_spec, f"{where}.signature.in_spec")
    out_spec = treespec.parse(entry.signature.out_spec, f"{where}.signature.out_spec")
    if entry.signature.forward_arg_names:
        treespec.check_arg_names(entry.signature.forward_arg_names, in_spec, f"{where}.signature.forward_arg_names")
    for name in entry.signature.forward_arg_names or ():
        check_variable(name, f"{where}.signature.forward_arg_names: name of an argument")
    for name in treespec.split_call(in_spec, f"{where}.signature.in_spec")[1]:
        check_variable(name, f"{where}.signature.in_spec: name of a keyword argument")
    return in_spec, out_spec


def _check_root(specs: Specs, signature: twin.ExportGraphSignature) -> None:
    inputs = sum(spec.kind is twin.InputKind.USER_INPUT for spec in signature.input_specs)
    outputs = sum(
        spec.kind in (twin.OutputKind.USER_OUTPUT, twin.OutputKind.LOSS_OUTPUT) for spec in signature.output_specs
    )
    for side, spec, expected in (("in_spec", specs[0], inputs), ("out_spec", specs[1], outputs)):
        leaves = treespec.leaf_count(spec)
        if leaves != expected:
            raise GraphError(
                f"{WHERE}[0].signature.{side}: expected {expected} leaves, as the signature says, got {leaves}"
            )


def _entry(entry: schema.ModuleCallEntry, specs: Specs, live_specs: TreeSpecs, where: str) -> ModuleCallEntry:
    call = entry.signature
    if call is None:
        return ModuleCallEntry(fqn=entry.fqn, signature=None)
    in_spec, out_spec = specs
    return ModuleCallEntry(
        fqn=entry.fqn,
        signature=ModuleCallSignature(
            inputs=[live_argument(twin.argument_spec(argument)) for argument in call.inputs],
            outputs=[live_argument(twin.argument_spec(argument)) for argument in call.outputs],
            in_spec=live_specs.read(in_spec, f"{where}.signature.in_spec"),
            out_spec=live_specs.read(out_spec, f"{where}.signature.out_spec"),
            forward_arg_names=list(call.forward_arg_names) if call.forward_arg_names else None,
        ),
    )


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
    """Return the signature as torch has it.

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
    """Return one argument description as torch has it."""
    if isinstance(arg, twin.ConstantArgument):
        value = float(arg.value) if isinstance(arg.value, float) else arg.value
        return live.ConstantArgument(name=arg.name, value=value)
    if isinstance(arg, twin.CustomObjArgument):
        return live.CustomObjArgument(name=arg.name, class_fqn=arg.class_fqn)
    return _NAMED[type(arg)](name=arg.name)


def _target(target: str | None) -> str | None:
    return None if target is None else attribute_path(target)
