"""Load a `.pt2` file as a `torch.nn.Module` that runs its program: a faster `torch.export.load(f).module()`.

No fake tensors, no graph of torch.fx but for subgraphs, no `ExportedProgram`: the schema's objects become one function
over operators.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.given_weights import Given
from pt2kit.bridge.read.checked import Checked
from pt2kit.bridge.read.names import check_apart
from pt2kit.bridge.read.pickled_values import MakeValues, Payloads
from pt2kit.bridge.read.reading import MappedFile
from pt2kit.bridge.read.tensors import Moves, Tensors, check_described
from pt2kit.bridge.run.build import Tables, build_steps, convention_of, with_mutations
from pt2kit.bridge.run.emitters import compile_steps, fakes_of, subgraph_module, values_on_demand
from pt2kit.bridge.run.module import LoadedModule, make_module, place_tensors
from pt2kit.bridge.run.steps import Steps
from pt2kit.bridge.stored import Stored, opened_program, read_payloads
from pt2kit.bridge.torch_names import SUBGRAPHS_NEED_METADATA, disable_current_modes, not_traced
from pt2kit.collector import no_collection
from pt2kit.signature.consistency import DEFAULT_WHERE as WHERE
from pt2kit.signature.specs import InputKind
from pt2kit.zip.listing import FileLike


@not_traced
@disable_current_modes()
@no_collection()
def load_module(
    f: FileLike,
    *,
    device: Moves = None,
    model: str | None = None,
    trust: Sequence[str] = (),
    verify: bool = False,
    extra_files: dict[str, Any] | None = None,
    weights: Given | None = None,
    include: Callable[[str], bool] | None = None,
    weights_root: str | os.PathLike[str] | None = None,
    mmap: bool | None = None,
) -> torch.nn.Module:
    """Load a program as a module to run it. Nothing in the file is run before the module is called.

    Args:
        f, device, model, trust, verify, extra_files, weights, weights_root: as in `pt2kit.load`.
        include: a predicate on the names of parameters and persistent buffers to load; those that share
            memory with them are loaded, too. The others are on the meta device: only included names are read from
            `weights`, and the rest is to be filled by `load_state_dict(..., assign=True)`, or not used.
        mmap: True to map all weights that can be mapped (`pt2kit.load`), False to read all into memory. By default
            weights of at most 64 MiB together are read, and more are mapped.

    Returns:
        A module that is called as the program was exported, with its weights under their names. Before each call a file
        that weights are mapped from is compared with its recorded state, by inode, size and time of modification;
        `IntegrityError` if something wrote to it. `InputError` is raised by calls with inputs that the program does not
        accept; an error in an operator names its node. Calls of kernels that do not compare their indices and
        sizes are validated first, and memory that nothing was written to is filled with zeros (docs/security.md).
        Cost: about 50 microseconds per node; weights cost nothing until they are used.

    Raises:
        OSError, Pt2Error: as `pt2kit.load`.

    Source: `_unlift_exported_program_lifted_states` in torch/export/_unlift.py, 2.13, for the behavior of the module.
    """
    with opened_program(
        f,
        device=device,
        model=model,
        trust=trust,
        extra_files=extra_files,
        weights=weights,
        weights_root=weights_root,
        validates=True,
    ) as stored:
        check_described(stored.checked.scopes, stored.devices)
        tensors = Tensors(stored.devices, stored.package.archive, mmap=mmap, verify=verify)
        values = values_on_demand(stored.program.range_constraints, stored.devices)
        payloads = read_payloads(stored, tensors, values, include)
        return _build(stored, payloads, values, tensors.finish())


def _build(stored: Stored, payloads: Payloads, values: MakeValues, files: Sequence[MappedFile]) -> LoadedModule:
    """Return the module of a program."""
    checked, signature, graph = stored.checked, stored.checked.signature, stored.checked.module.graph
    targets = [spec.target for spec in signature.input_specs if spec.target]
    check_apart([*targets, *payloads.state_dict, *payloads.constants], (), f"{WHERE}.signature")
    tokens = [index for index, spec in enumerate(signature.input_specs) if spec.kind is InputKind.TOKEN]
    wrap = partial(_subgraph, values)
    is_mixed = _is_mixed(checked, payloads)
    shared = Tables(checked.operators, stored.devices, payloads.constants, wrap, stored.trust, is_mixed)
    steps = with_mutations(build_steps(graph, shared, f"{WHERE}.graph", tokens=tokens), graph, signature)
    for name in shared.inner.difference(targets):
        del payloads.constants[name]  # It is in the graph, and is no attribute of the module.
    convention = convention_of(checked, stored.program.range_constraints, payloads.example_inputs)
    lifted = [index for index, spec in enumerate(signature.input_specs) if spec.target]
    users = [index for index, spec in enumerate(signature.input_specs) if spec.kind is InputKind.USER_INPUT]
    module = make_module(targets, compile_steps(steps, [*lifted, *users]), convention, files)
    place_tensors(module, signature, payloads)
    return module


def _subgraph(values: MakeValues, graph: schema.Graph, steps: Steps, where: str) -> torch.nn.Module:
    """Return a subgraph, with the metadata that the installed torch asks of its inputs."""
    if not SUBGRAPHS_NEED_METADATA:
        return subgraph_module(steps)
    inputs = fakes_of(graph.inputs, graph, values(), f"{where}.inputs")
    return subgraph_module(steps, inputs, fakes_of(graph.outputs, graph, values(), f"{where}.outputs"))


def _is_mixed(checked: Checked, payloads: Payloads) -> bool:
    """Return whether a program has tensors without memory: stored without data, or created by a call on meta."""
    tensors = (*payloads.state_dict.values(), *payloads.constants.values())
    if any(isinstance(tensor, torch.Tensor) and tensor.is_meta for tensor in tensors):
        return True
    arguments = (named.arg for scope in checked.scopes for node in scope.graph.nodes for named in node.inputs)
    return any(argument.as_device is not UNSET and argument.as_device.type == "meta" for argument in arguments)
