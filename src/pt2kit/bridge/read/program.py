"""Build a live `torch.export.ExportedProgram` from a schema program and its payloads.

Everything that can be refused without torch is refused first, then operators and containers that this process lacks;
then the payloads are opened, the graph is built over them, and torch checks the whole once more.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

from torch.export import ExportedProgram

from pt2kit import schema
from pt2kit.bridge.read.checked import Checked, check_payloads, check_program
from pt2kit.bridge.read.graph import Readers, read_graph
from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.read.module_inputs import attach_modules, guardable
from pt2kit.bridge.read.names import check_apart
from pt2kit.bridge.read.on_demand import write_on_demand
from pt2kit.bridge.read.opened import Context, Payloads
from pt2kit.bridge.read.shapes import ORIGIN, Shapes
from pt2kit.bridge.read.tensors import Devices
from pt2kit.bridge.read.treespecs import live_module_calls, live_signature
from pt2kit.bridge.read.values import Values
from pt2kit.bridge.torch_export_names import without_stacks
from pt2kit.bridge.torch_names import SpecViolationError, set_guards_code
from pt2kit.checks.stored_inputs import Tables
from pt2kit.errors import GraphError

WHERE: Final = "$.graph_module"
OpenPayloads = Callable[[Context], Payloads]
"""Function that opens the payloads."""


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
        tables: returns its payloads as the file has them, those that are the file's.
        open_payloads: called once, after all checks that are possible before it.
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
    shapes = Shapes(program.range_constraints)
    with without_stacks(shapes.env, ORIGIN):
        return _build(checked, shapes, devices, open_payloads)


def _build(checked: Checked, shapes: Shapes, devices: Devices, open_payloads: OpenPayloads) -> ExportedProgram:
    module, signature = checked.module, checked.signature
    calls = live_module_calls(module.module_call_graph, checked.specs, checked.tree_specs)
    values = Values(shapes, devices)
    payloads = open_payloads(Context(values, calls[0].signature.in_spec, checked.sources))
    check_payloads(signature, payloads.state_dict, payloads.constants, module.graph)
    examples = guardable(payloads.example_inputs, signature.input_specs)
    shared = Readers(checked.operators, devices, payloads.constants, shapes, values, Metadata())
    names = [spec.arg.name for spec in signature.input_specs]
    built = read_graph(module.graph, shared, f"{WHERE}.graph", 0, names)
    targets = [spec.target for spec in signature.input_specs if spec.target]
    check_apart([*targets, *payloads.state_dict, *payloads.constants], built.subgraphs, f"{WHERE}.signature")
    for name in shared.inner.difference(spec.target for spec in signature.input_specs if spec.target):
        del payloads.constants[name]  # It is in the graph, and is no constant of the live program.
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
    set_guards_code(live, checked.guards)
    live.graph_module.meta.update(checked.metadata)
    return live
