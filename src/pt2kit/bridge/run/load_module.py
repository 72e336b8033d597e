"""A `.pt2` file -> a `torch.nn.Module` that runs its program: `torch.export.load(f).module()` by the shortest way.

No fake tensors, no graph of torch.fx but for subgraphs, no `ExportedProgram`: the schema's objects become one function
over operators.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Any, Final

import torch

from pt2kit import schema
from pt2kit.bridge.given_weights import Given
from pt2kit.bridge.read.checked import Checked, check_payloads, check_program
from pt2kit.bridge.read.devices import Devices, Moves
from pt2kit.bridge.read.guards import can_be_guarded
from pt2kit.bridge.read.module_calls import live_module_calls
from pt2kit.bridge.read.names import check_apart
from pt2kit.bridge.read.opened import Context, Payloads
from pt2kit.bridge.read.refusals import trusted
from pt2kit.bridge.read.tensors import Tensors
from pt2kit.bridge.run.build import Shared, build_steps
from pt2kit.bridge.run.calling import convention_of
from pt2kit.bridge.run.described import check_described
from pt2kit.bridge.run.fakes import Fakes
from pt2kit.bridge.run.module import make_module
from pt2kit.bridge.run.mutations import with_mutations
from pt2kit.bridge.run.source import compile_steps
from pt2kit.bridge.run.steps import Steps
from pt2kit.bridge.run.subgraphs import subgraph_module
from pt2kit.bridge.run.tensors import place_tensors
from pt2kit.bridge.stored import Chosen, opened_and_mapped, read_payloads, read_texts, stored_program
from pt2kit.bridge.torch_names import SUBGRAPHS_NEED_METADATA, disable_current_modes
from pt2kit.checks.refused import find_everyday
from pt2kit.checks.stored_numbers import Tables, tables_of
from pt2kit.collector import no_collection
from pt2kit.signature.specs import InputKind
from pt2kit.zip.opening import FileLike

WHERE: Final = "$.graph_module"
_LOG: Final = logging.getLogger(__name__)


@no_collection()
def load_module(
    f: FileLike,
    *,
    device: Moves = None,
    model: str = "model",
    trust: Sequence[str] = (),
    verify: bool = False,
    extra_files: dict[str, Any] | None = None,
    weights: Given | None = None,
    include: Callable[[str], bool] | None = None,
    weights_root: str | os.PathLike[str] | None = None,
) -> torch.nn.Module:
    """Load a program to run it. Nothing in the file is run before the module is called.

    Args:
        f, device, model, trust, verify, extra_files, weights, weights_root: as in `pt2kit.load`.
        include: which parameters and persistent buffers to load, by a function of their names; with those that share
            memory with them. The others are on the meta device: only the names that are included are taken from
            `weights`, and the rest is to be filled by `load_state_dict(..., assign=True)`, or not used.

    Returns:
        A module that is called as the program was exported. Weights are mapped copy-on-write from a local file where it
        has them stored and aligned, under their names in the module. `InputError` is raised by calls with inputs that
        the program does not take; an error in an operator says which node it was. Cost: about 50 microseconds per node,
        a thousand for programs with FFTs and other calls whose sizes have to be proven; weights cost nothing until they
        are used.

    Raises:
        OSError, Pt2Error: as `pt2kit.load`.

    Source: `_unlift_exported_program_lifted_states` in torch/export/_unlift.py, 2.13, for what the module does.
    """
    allowed = trusted(trust)
    with disable_current_modes(), opened_and_mapped(f, weights_root) as (opened, mapping):
        program, devices = stored_program(opened, model, device)
        if extra_files is not None:
            extra_files.update(read_texts(opened))
        tables = tables_of(opened, model, weights is None)
        checked = check_program(program, tables, allowed)
        calls = live_module_calls(checked.module.module_call_graph, checked.specs, checked.tree_specs)
        check_described(checked.scopes, program.range_constraints, devices)
        tensors = Tensors(devices, opened.archive, mapping, verify=verify)
        fakes = Fakes(program.range_constraints, devices)
        context = Context(fakes, calls[0].signature.in_spec, checked.sources)
        payloads = read_payloads(opened, model, tensors, context, allowed, Chosen(weights, include))
        tensors.finish()
        if _needs_sizes(checked, allowed):
            _prove_sizes(program, devices, tables, payloads, allowed)
        shared = Shared(checked.operators, devices, payloads.constants, partial(_subgraph, fakes))
        return _build(program, checked, calls[0].signature, payloads, shared)


def _build(
    program: schema.ExportedProgram, checked: Checked, call: Any, payloads: Payloads, shared: Shared
) -> torch.nn.Module:
    """The module of a program that may be built."""
    signature, graph = checked.signature, checked.module.graph
    check_payloads(signature, payloads.state_dict, payloads.constants, graph)
    targets = [spec.target for spec in signature.input_specs if spec.target]
    check_apart([*targets, *payloads.state_dict, *payloads.constants], (), f"{WHERE}.signature")
    tokens = [index for index, spec in enumerate(signature.input_specs) if spec.kind is InputKind.TOKEN]
    steps = with_mutations(build_steps(graph, shared, f"{WHERE}.graph", tokens=tokens), graph, signature)
    for name in shared.inner.difference(targets):
        del payloads.constants[name]  # It stands in the graph, and is no attribute of the module.
    examples = payloads.example_inputs
    if examples is not None and not can_be_guarded(examples, signature.input_specs):
        _LOG.warning("example inputs are left out: torch could not write guards from their keys or constants")
        examples = None
    convention = convention_of(program, checked, call, examples)
    lifted = [index for index, spec in enumerate(signature.input_specs) if spec.target]
    users = [index for index, spec in enumerate(signature.input_specs) if spec.kind is InputKind.USER_INPUT]
    module = make_module(targets, compile_steps(steps, [*lifted, *users]), convention)
    place_tensors(module, signature, payloads.state_dict, payloads.constants)
    return module


def _subgraph(fakes: Fakes, graph: schema.Graph, steps: Steps, where: str) -> torch.nn.Module:
    """A subgraph, with what the installed torch asks of its inputs."""
    if not SUBGRAPHS_NEED_METADATA:
        return subgraph_module(steps)
    return subgraph_module(steps, fakes.inputs(graph, where), fakes.outputs(graph, where))


def _needs_sizes(checked: Checked, trust: Set[str]) -> bool:
    """Whether something is only sound if values have the sizes that the file declares."""
    if checked.assumed:
        return True
    rows = (find_everyday(target) for target in checked.operators)
    return "X10" not in trust and any(row is not None and row.sizes for row in rows)


def _prove_sizes(
    program: schema.ExportedProgram, devices: Devices, tables: Tables, payloads: Payloads, trust: Set[str]
) -> None:
    """Have torch compute the sizes of a program's values: on fake tensors, so the whole program is built for it."""
    copied = Payloads(dict(payloads.state_dict), dict(payloads.constants), payloads.example_inputs)
    _built_whole(program, devices, tables, copied, trust)


def _built_whole(
    program: schema.ExportedProgram, devices: Devices, tables: Tables, payloads: Payloads, trust: Set[str]
) -> torch.export.ExportedProgram:
    """The program as `pt2kit.load` gives it."""
    # Not above: it brings sympy and torch's serializer with it, a second that other programs need not wait for.
    from pt2kit.bridge.read.program import build_program

    return build_program(program, devices, tables, lambda _: payloads, trust)
