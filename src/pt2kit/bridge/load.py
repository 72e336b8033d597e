"""Load a `.pt2` file as a live `torch.export.ExportedProgram`, like `torch.export.load`, without running the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram

from pt2kit.bridge.given_weights import Given
from pt2kit.bridge.read.graph import Readers, read_graph
from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.read.names import check_apart
from pt2kit.bridge.read.on_demand import write_on_demand
from pt2kit.bridge.read.tensors import Moves, Tensors
from pt2kit.bridge.read.treespecs import attach_modules, live_signature
from pt2kit.bridge.read.values import ORIGIN, Shapes, Values
from pt2kit.bridge.stored import Stored, opened_program, read_payloads
from pt2kit.bridge.torch_export_names import without_stacks
from pt2kit.bridge.torch_names import SpecViolationError, disable_current_modes, not_traced, set_guards_code
from pt2kit.collector import no_collection
from pt2kit.errors import GraphError
from pt2kit.signature.consistency import DEFAULT_WHERE as WHERE
from pt2kit.versions.opset_changes import OperatorChange
from pt2kit.zip.listing import FileLike

if TYPE_CHECKING:
    from pt2kit.bridge.save import Artifact


@not_traced
@disable_current_modes()
@no_collection()
def load(
    f: FileLike,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: Mapping[str, int] | None = None,
    operator_changes: Sequence[OperatorChange] = (),
    device: Moves = None,
    model: str | None = None,
    trust: Sequence[str] = (),
    verify: bool = False,
    weights: Given | None = None,
    weights_root: str | os.PathLike[str] | None = None,
    mmap: bool = False,
) -> ExportedProgram:
    """Load a program that `torch.export.save` or `pt2kit.save` wrote. Nothing in the file is run.

    Args:
        f: a path, bytes, a binary file object, or any URL that fsspec supports.
        extra_files: filled with the user's files, name -> text; bytes for those that are not UTF-8.
        expected_opset_version: namespace -> version of its operator set, in addition to that of aten. A program of
            another version is converted to it; a namespace of the program that is missing is logged.
        operator_changes: how operators of other namespaces than aten changed between their versions.
        device: one device for everything, or stored device -> device (`{"cuda:0": "cpu"}`); applies to weights,
            constants, sample inputs and the devices in the graph.
        model: the program to build, by default the only one, or "model"; the others are not read.
        trust: exceptions from refusal: globals that pickled payloads may use ("package.Class"), classes of modules
            among the inputs, operators ("aten.resize_"), and rules ("X11") as errors name them (docs/security.md lists
            all).
        verify: compare mapped weights with their checksums, in several threads, which reads every byte. Those that are
            read into memory are always compared.
        weights: parameters and persistent buffers to use instead of the file's: name -> tensor, array or payload, or
            the path of a `.safetensors` file or of the index of sharded ones. Names, types and shapes must be those of
            the file. Live tensors are shared, not copied, if their layout and device are those of the file.
        weights_root: directory of the weight files that the archive names, as in `open_package`.
        mmap: True to map weights copy-on-write from a local file where it has them stored and aligned: they cost
            nothing until they are used, but a process that writes to the file in place changes them, and one
            that truncates it ends this process. False to read them into memory.

    Returns:
        The program. Its weights are in memory, read by several threads and compared with their checksums: later
        changes of the file do not matter. Cost: about 50 microseconds per node, and reading the
        weights. Python's garbage collector is off meanwhile, in the whole process.

    Raises:
        OSError: the path cannot be opened.
        ArchiveError: no `.pt2` archive, or no such program in it.
        VersionError: a layout or schema that this build does not read, or an operator set from which nothing known
            leads to the expected one.
        IntegrityError: damaged bytes, as far as they were compared.
        Pt2Error: anything else in the file that is wrong or refused; the message names the place.

    Source: `load` in torch/export/__init__.py and torch/export/pt2_archive/_package.py, 2.13.
    """
    with opened_program(
        f,
        device=device,
        model=model,
        trust=trust,
        extra_files=extra_files,
        weights=weights,
        weights_root=weights_root,
        validates=False,
        expected=expected_opset_version,
        changes=operator_changes,
    ) as stored:
        tensors = Tensors(stored.devices, stored.package.archive, mmap=mmap, verify=verify)
        shapes = Shapes(stored.program.range_constraints)
        with without_stacks(shapes.env, ORIGIN):
            return _build(stored, tensors, shapes)


@not_traced
def deserialize(
    artifact: Artifact | bytes,
    expected_opset_version: Mapping[str, int] | None = None,
    *,
    device: Moves = None,
    trust: Sequence[str] = (),
) -> ExportedProgram:
    """Load a program from memory: the counterpart of `pt2kit.serialize`.

    Args:
        artifact: the result of `serialize`, or the bytes of a `.pt2` file.
        expected_opset_version, device, trust: as in `load`.

    Returns:
        A program with copies of the artifact's tensors.

    Raises:
        TypeError: another kind of artifact.
        Pt2Error: as `load`.
    """
    from pt2kit.bridge.save import Artifact  # Late: `load` of a file runs without the writer.

    if isinstance(artifact, Artifact):
        artifact = artifact.to_bytes()
    if not isinstance(artifact, bytes):
        raise TypeError(f"artifact: expected what pt2kit.serialize gives, or bytes, got {type(artifact).__name__}")
    return load(artifact, expected_opset_version=expected_opset_version, device=device, trust=trust)


def _build(stored: Stored, tensors: Tensors, shapes: Shapes) -> ExportedProgram:
    """Build a live program, in the state that `torch.export.load` leaves one in.

    Its payloads are opened, the graph is built over them, and torch checks the whole once more.

    Raises:
        GraphError: a program that contradicts itself.
        Pt2Error: payloads that cannot be read, or something that torch has no live form of.
    """
    checked, devices = stored.checked, stored.devices
    graph, input_specs = checked.module.graph, checked.signature.input_specs
    values = Values(shapes, devices)
    payloads = read_payloads(stored, tensors, lambda: values)
    tensors.finish()
    shared = Readers(checked.operators, devices, payloads.constants, shapes, values, Metadata())
    built = read_graph(graph, shared, f"{WHERE}.graph", 0, [spec.arg.name for spec in input_specs])
    targets = [spec.target for spec in input_specs if spec.target]
    check_apart([*targets, *payloads.state_dict, *payloads.constants], built.subgraphs, f"{WHERE}.signature")
    for name in shared.inner.difference(targets):
        del payloads.constants[name]  # It is in the graph, and is no constant of the live program.
    if payloads.example_inputs is not None:
        attach_modules([call.signature.in_spec for call in checked.calls if call.signature], payloads.example_inputs)
    try:
        live = ExportedProgram(
            root=built.module,
            graph=built.graph,
            graph_signature=live_signature(checked.signature),
            state_dict=payloads.state_dict,
            range_constraints=shapes.constraints(),
            module_call_graph=checked.calls,
            example_inputs=payloads.example_inputs,
            constants=payloads.constants,
            verifiers=list(checked.verifiers),
        )
    except (SpecViolationError, AssertionError, RuntimeError, ValueError, SyntaxError) as error:
        raise GraphError(f"{WHERE}: expected a program that torch takes, got: {error}") from error
    write_on_demand(live.graph_module)
    set_guards_code(live, checked.guards)
    live.graph_module.meta.update(checked.metadata)
    return live
