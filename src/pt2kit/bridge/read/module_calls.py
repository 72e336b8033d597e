"""`schema.ModuleCallEntry` -> torch's: which modules were called, and how, where their signatures were kept."""

from __future__ import annotations

from collections.abc import Sequence

from torch.export import exported_program as live

from pt2kit import schema, treespec
from pt2kit import signature as twin
from pt2kit.bridge.read.names import check_module_name, check_variable
from pt2kit.bridge.read.signature import live_argument
from pt2kit.bridge.read.treespecs import TreeSpecs
from pt2kit.errors import GraphError

WHERE = "$.graph_module.module_call_graph"


Specs = tuple[treespec.TreeSpec, ...]
"""in_spec and out_spec of an entry; () for one without signature."""


def parse_specs(entries: Sequence[schema.ModuleCallEntry], signature: twin.ExportGraphSignature) -> list[Specs]:
    """The tree specs of every entry, as data, and proof that they fit.

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
) -> list[live.ModuleCallEntry]:
    """The module call graph as torch has it.

    Args:
        entries: the root first.
        parsed: the tree specs of each.
        specs: builds the live tree specs.

    Raises:
        SchemaError: a tree spec that contradicts itself.
        UnsupportedError: a container type that is not known here.
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


def _entry(entry: schema.ModuleCallEntry, specs: Specs, live_specs: TreeSpecs, where: str) -> live.ModuleCallEntry:
    call = entry.signature
    if call is None:
        return live.ModuleCallEntry(fqn=entry.fqn, signature=None)
    in_spec, out_spec = specs
    return live.ModuleCallEntry(
        fqn=entry.fqn,
        signature=live.ModuleCallSignature(
            inputs=[live_argument(twin.argument_spec(argument)) for argument in call.inputs],
            outputs=[live_argument(twin.argument_spec(argument)) for argument in call.outputs],
            in_spec=live_specs.read(in_spec, f"{where}.signature.in_spec"),
            out_spec=live_specs.read(out_spec, f"{where}.signature.out_spec"),
            forward_arg_names=list(call.forward_arg_names) if call.forward_arg_names else None,
        ),
    )
