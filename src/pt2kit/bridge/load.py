"""A `.pt2` file -> a live `torch.export.ExportedProgram`: what `torch.export.load` does, without running the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from torch.export import ExportedProgram

from pt2kit.bridge.given_weights import Given
from pt2kit.bridge.read.devices import Moves
from pt2kit.bridge.read.opened import Context, Payloads
from pt2kit.bridge.read.program import build_program
from pt2kit.bridge.read.refusals import trusted
from pt2kit.bridge.read.tensors import Tensors
from pt2kit.bridge.save import Artifact
from pt2kit.bridge.stored import Chosen, opened_and_mapped, read_payloads, read_texts, stored_program
from pt2kit.bridge.torch_names import disable_current_modes
from pt2kit.checks.stored_numbers import tables_of
from pt2kit.collector import no_collection
from pt2kit.versions.opset.operator_change import OperatorChange
from pt2kit.zip.opening import FileLike


@no_collection()
def load(
    f: FileLike,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: Mapping[str, int] | None = None,
    operator_changes: Sequence[OperatorChange] = (),
    device: Moves = None,
    model: str = "model",
    trust: Sequence[str] = (),
    verify: bool = False,
    weights: Given | None = None,
    weights_root: str | os.PathLike[str] | None = None,
) -> ExportedProgram:
    """Load a program that `torch.export.save` or `pt2kit.save` wrote. Nothing in the file is run.

    Args:
        f: a path, bytes, a binary file object, or any URL that fsspec knows.
        extra_files: filled with the user's files, name -> text; bytes for those that are not UTF-8.
        expected_opset_version: namespace -> number of its operator set, beside that of aten. A program of another
            number is brought to it; a namespace of the program that is not there is logged.
        operator_changes: how operators of other namespaces than aten changed between their numbers.
        device: one device for everything, or stored device -> device (`{"cuda:0": "cpu"}`); applies to weights,
            constants, sample inputs and the devices in the graph.
        model: which of the programs to build; the others are not read.
        trust: what is not refused: globals that pickled payloads may use ("package.Class"), classes of modules among
            the inputs, operators ("aten.resize_"), and rules ("X11") as errors name them (docs/security.md lists all).
        verify: compare all weights with their checksums, in several threads, which reads every byte. Without it that
            is done for the first 64 MiB of mapped weights, and for everything that is not mapped.
        weights: parameters and persistent buffers to take instead of the file's: name -> tensor, array or payload, or
            the path of a `.safetensors` file or of the index of sharded ones. Names, types and shapes must be those of
            the file. Live tensors are shared, not copied, where they lie on the device as the file has them.
        weights_root: where files of weights may lie that the archive names, as in `open_package`.

    Returns:
        The program. Weights are mapped copy-on-write from a local file where it has them stored and aligned: changing
        them changes nothing outside this process. Cost: about 50 microseconds per node; weights cost nothing until
        they are used. Python's garbage collector is off meanwhile, in the whole process.

    Raises:
        OSError: the path cannot be opened.
        ArchiveError: no `.pt2` archive, or no such program in it.
        VersionError: a layout or schema that this build does not read, or an operator set from which nothing known
            leads to the expected one.
        IntegrityError: damaged bytes, as far as they were compared.
        Pt2Error: anything else in the file that is wrong or refused; the message says where.

    Source: `load` in torch/export/__init__.py and torch/export/pt2_archive/_package.py, 2.13.
    """
    allowed = trusted(trust)
    # The caller may be in a fake tensor mode, which would get hold of the weights.
    with (
        disable_current_modes(),
        opened_and_mapped(f, weights_root) as (opened, mapping),
    ):
        program, devices = stored_program(opened, model, device, expected_opset_version, operator_changes)
        if extra_files is not None:
            extra_files.update(read_texts(opened))

        def open_payloads(context: Context) -> Payloads:
            tensors = Tensors(devices, opened.archive, mapping, verify=verify)
            payloads = read_payloads(opened, model, tensors, context, allowed, Chosen(weights))
            tensors.finish()
            return payloads

        return build_program(program, devices, tables_of(opened, model, weights is None), open_payloads, allowed)


def deserialize(
    artifact: Artifact | bytes,
    expected_opset_version: Mapping[str, int] | None = None,
    *,
    device: Moves = None,
    trust: Sequence[str] = (),
) -> ExportedProgram:
    """Load a program from memory: the counterpart of `pt2kit.serialize`.

    Args:
        artifact: what `serialize` gave, or the bytes of a `.pt2` file.
        expected_opset_version, device, trust: as in `load`.

    Returns:
        A program with copies of the artifact's tensors.

    Raises:
        TypeError: another kind of artifact.
        Pt2Error: as `load`.
    """
    if isinstance(artifact, Artifact):
        artifact = artifact.to_bytes()
    if not isinstance(artifact, bytes):
        raise TypeError(f"artifact: expected what pt2kit.serialize gives, or bytes, got {type(artifact).__name__}")
    return load(artifact, expected_opset_version=expected_opset_version, device=device, trust=trust)
