"""A schema program and its payloads -> a live `torch.export.ExportedProgram`.

Everything that can be refused without torch is refused first, then operators and containers that this process lacks;
then the payloads are opened, the graph is built over them, and torch checks the whole once more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Set
from typing import Final

import torch
from torch.export import ExportedProgram

from pt2kit import schema, treespec
from pt2kit.bridge.read.actual_sizes import check_actual_sizes
from pt2kit.bridge.read.checked import check_payloads, check_program
from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.read.graph import read_graph, read_subgraph
from pt2kit.bridge.read.guards import can_be_guarded
from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.read.module_calls import live_module_calls
from pt2kit.bridge.read.module_inputs import attach_modules
from pt2kit.bridge.read.names import check_apart, check_argument
from pt2kit.bridge.read.on_demand import write_on_demand
from pt2kit.bridge.read.opened import Context, Payloads
from pt2kit.bridge.read.scope import Shared
from pt2kit.bridge.read.shapes import Shapes
from pt2kit.bridge.read.signature import live_signature
from pt2kit.bridge.read.values import Values
from pt2kit.bridge.torch_names import SpecViolationError, set_guards_code
from pt2kit.checks.stored_numbers import Tables
from pt2kit.errors import GraphError

WHERE: Final = "$.graph_module"
_LOG: Final = logging.getLogger(__name__)


OpenPayloads = Callable[[Context], Payloads]
"""What opens the payloads."""


def build_program(
    program: schema.ExportedProgram,
    devices: Devices,
    tables: Tables,
    open_payloads: OpenPayloads,
    trust: Set[str] = frozenset(),
) -> ExportedProgram:
    """Build a live program.

    Args:
        program: of the current schema version.
        devices: where its tensors go.
        tables: gives its payloads as the file has them, those that are the file's.
        open_payloads: called once, after everything that can be checked before it was.
        trust: rules and operators that are not refused, and names of classes that may be imported.

    Returns:
        A program in the state that `torch.export.load` leaves one in. It shares nothing with `program`.

    Raises:
        GraphError, SchemaError, ExpressionError: a program that contradicts itself.
        OperatorError: operators that are unknown, refused or called wrongly.
        UnsupportedError: containers that are not registered, or something that torch has no live form of.
        LimitError: a stated limit was passed.
        Pt2Error: whatever `open_payloads` raises.
    """
    checked = check_program(program, tables, trust)
    module, signature = checked.module, checked.signature
    calls = live_module_calls(module.module_call_graph, checked.specs, checked.tree_specs)
    shapes = Shapes(program.range_constraints)
    values = Values(shapes, devices)
    payloads = open_payloads(Context(values, calls[0].signature.in_spec, checked.sources))
    check_payloads(signature, payloads.state_dict, payloads.constants, module.graph)
    examples = payloads.example_inputs
    if examples is not None and not can_be_guarded(examples, signature.input_specs):
        _LOG.warning("example inputs are left out: torch could not write guards from their keys or constants")
        examples = None
    shared = Shared(
        checked.operators, shapes, values, Metadata(), devices, payloads.constants, read_subgraph, checked.assumed
    )
    names = [spec.arg.name for spec in signature.input_specs]
    built = read_graph(module.graph, shared, f"{WHERE}.graph", 0, names)
    targets = [spec.target for spec in signature.input_specs if spec.target]
    check_apart([*targets, *payloads.state_dict, *payloads.constants], built.subgraphs, f"{WHERE}.signature")
    for name in shared.inner.difference(spec.target for spec in signature.input_specs if spec.target):
        del payloads.constants[name]  # It stands in the graph, and is no constant of the live program.
    if examples is not None:
        attach_modules([call.signature.in_spec for call in calls if call.signature], examples)
    try:
        live = ExportedProgram(
            root=built.module,
            graph=built.graph,
            graph_signature=live_signature(signature),
            state_dict=payloads.state_dict,
            range_constraints=shapes.constraints(),
            module_call_graph=calls,
            example_inputs=examples,
            constants=payloads.constants,
            verifiers=list(checked.verifiers),
        )
    except (SpecViolationError, AssertionError, RuntimeError, ValueError, SyntaxError) as error:
        raise GraphError(f"{WHERE}: expected a program that torch takes, got: {error}") from error
    write_on_demand(live.graph_module)
    _check_arguments(module.module_call_graph[0], live.graph_module)
    check_actual_sizes(live.graph_module, trust)
    set_guards_code(live, checked.guards)
    live.graph_module.meta.update(checked.metadata)
    return live


def _check_arguments(entry: schema.ModuleCallEntry, module: torch.fx.GraphModule) -> None:
    """Refuse names of arguments that would hide what the source uses which `ExportedProgram.module()` generates."""
    if entry.signature is None:
        return
    where = f"{WHERE}.module_call_graph[0].signature"
    for name in entry.signature.forward_arg_names or ():
        check_argument(name, module, f"{where}.forward_arg_names")
    for name in treespec.split_call(treespec.parse(entry.signature.in_spec))[1]:
        check_argument(name, module, f"{where}.in_spec")
