"""A `.pt2` file -> a live `torch.export.ExportedProgram`: what `torch.export.load` does, without running the file."""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

import torch
from torch.export import ExportedProgram

from pt2kit import schema, treespec
from pt2kit.bridge.given_weights import Given, given_weights
from pt2kit.bridge.read.devices import Devices, Moves
from pt2kit.bridge.read.pickled_values import FAKE_TENSOR, PickledValues
from pt2kit.bridge.read.program import Context, Payloads, build_program
from pt2kit.bridge.read.refusals import trusted
from pt2kit.bridge.read.sample_inputs import StoredInputs, read_sample_inputs
from pt2kit.bridge.read.tensors import Tensors
from pt2kit.bridge.read.treespecs import registered_namedtuples
from pt2kit.bridge.read.trusted import globals_of, load_trusted
from pt2kit.bridge.read.values import Values
from pt2kit.bridge.save import Artifact
from pt2kit.bridge.torch_names import disable_current_modes
from pt2kit.checks.stored_numbers import tables_of
from pt2kit.collector import no_collection
from pt2kit.errors import ArchiveError, IntegrityError, PayloadError, Pt2Error
from pt2kit.messages import listed
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.package.parts import sample_inputs_record
from pt2kit.package.payloads import Payload
from pt2kit.package.pickle_free_inputs.index import PickleFreeInputs, read_moved_inputs
from pt2kit.pickles.reader import is_plain, read_payload
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.versions.opset.changes import EXPECTED, OperatorChange, convert_opset
from pt2kit.zip.opening import FileLike
from pt2kit.zip.source import map_privately

ZIP: Final = b"PK\x03\x04"
"""How a torch.save file begins."""
_SHOWN: Final = 20
_LOG: Final = logging.getLogger(__name__)


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
        them changes nothing outside this process. Cost: about 100 microseconds per node; weights cost nothing until
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
        no_collection(),
        disable_current_modes(),
        opened_and_mapped(f, weights_root) as (opened, mapping),
    ):
        program, devices = stored_program(opened, model, device, expected_opset_version, operator_changes)
        if extra_files is not None:
            extra_files.update(read_texts(opened))

        def open_payloads(context: Context) -> Payloads:
            tensors = Tensors(devices, opened.archive, mapping, verify=verify)
            found = read_payloads(opened, model, tensors, context, allowed, weights)
            tensors.finish()
            return found

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


@contextlib.contextmanager
def opened_and_mapped(
    f: FileLike, weights_root: str | os.PathLike[str] | None = None
) -> Iterator[tuple[Package, mmap.mmap | None]]:
    """The package, and its file mapped copy-on-write where there is one; both over one open file.

    A path is opened once: a file that takes its place in between cannot be mixed with it.
    """
    opened = open_package(f, namedtuples=registered_namedtuples(), weights_root=weights_root)
    with opened:
        yield opened, map_privately(opened.archive.source)


def stored_program(
    opened: Package,
    model: str,
    device: Moves = None,
    expected: Mapping[str, int] | None = None,
    changes: Sequence[OperatorChange] = (),
) -> tuple[schema.ExportedProgram, Devices]:
    """One program of a package, with operators of the expected versions, and where its tensors go.

    Raises:
        ArchiveError: no such program.
        Pt2Error: it cannot be read.
    """
    devices = Devices(device)
    if model not in opened.programs:
        raise ArchiveError(
            f"{opened.name}: expected a program {model!a}, got {', '.join(map(ascii, opened.programs)) or 'none'}"
        )
    stored = opened.stored[model]
    if device is None and stored.model is not None:
        devices = Devices(stored.model.devices)
    return _with_operators(stored.program, model, expected, changes), devices


def _with_operators(
    program: schema.ExportedProgram, model: str, expected: Mapping[str, int] | None, changes: Sequence[OperatorChange]
) -> schema.ExportedProgram:
    """The program with operators of the expected versions; what cannot be judged is logged."""
    found = convert_opset(program, names.model_json(model), expected={**EXPECTED, **(expected or {})}, changes=changes)
    for problem in found.problems:
        _LOG.warning("%s", problem)
    return found.program


def read_texts(opened: Package) -> dict[str, Any]:
    """The user's files, as text where they are UTF-8."""
    found: dict[str, Any] = {}
    for name, content in opened.extra_files.items():
        try:
            found[name] = str(content, "utf-8")
        except UnicodeDecodeError:
            found[name] = bytes(content)
    return found


def read_payloads(
    opened: Package, model: str, tensors: Tensors, context: Context, trust: Set[str], given: Given | None = None
) -> Payloads:
    """The weights, constants and sample inputs of a program, live; with `given`, weights from there."""
    values = context.values
    weights, constant_views = opened.weights(model), opened.constants(model)
    if given is None:
        state_dict = {name: _payload(view, tensors, values, trust) for name, view in weights.items()}
    else:
        state_dict = given_weights(given, weights, tensors.devices)
    constants = {name: _payload(view, tensors, values, trust) for name, view in constant_views.items()}
    read = (weights if given is None else {}, constant_views)
    without = [view.name for views in read for view in views.values() if _is_without_data(view)]
    if without:
        shown = listed(without, _SHOWN)
        _LOG.warning(
            "%d tensor(s) were saved without data and are on the meta device: %s; fill them with "
            "load_state_dict(..., assign=True)",
            len(without),
            shown,
        )
    return Payloads(state_dict, constants, _sample_inputs(opened, model, tensors, context, trust))


def _is_without_data(view: Payload) -> bool:
    """Whether a tensor was saved without its data; one that was on the meta device never had any."""
    return isinstance(view, MetaView) and view.device.type != "meta"


def _payload(view: Payload, tensors: Tensors, values: Values, trust: Set[str]) -> Any:
    if not isinstance(view, OpaquePayload):
        return tensors.any(view)
    if view.kind == "opaque" and bytes(view.buffer()[:4]) == ZIP:
        # A constant of torch 2.8 or older: one entry of a torch.save file.
        held = load_trusted(replace(view, kind="pickle"), trust, tensors.devices)
        if not isinstance(held, dict) or view.name not in held:
            raise PayloadError(f"{view.where}: expected a dict with that name, got a {type(held).__name__}")
        return held[view.name]
    if view.kind != "pickle" or not all(is_plain(name) or name == FAKE_TENSOR for name in globals_of(view)):
        return load_trusted(view, trust, tensors.devices)
    described = read_payload(view.buffer(), view.where, trust={FAKE_TENSOR})
    made = PickledValues(view.where, tensors, values).live(described)
    if not isinstance(made, torch.Tensor):
        raise PayloadError(f"{view.where}: expected a tensor, got a {type(made).__name__}")
    if view.is_param and not isinstance(made, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=made.requires_grad)
    return made


def _sample_inputs(
    opened: Package, model: str, tensors: Tensors, context: Context, trust: Set[str]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    record = sample_inputs_record(opened.archive, opened.layout, model)
    payload = opened.archive.read(record) if record is not None else memoryview(b"")
    where = record or opened.layout.record(names.sample_inputs(model))
    moved = None if payload else _moved_inputs(opened, model)
    module = opened.programs[model].graph_module
    fields = {name: tuple(given.field_names) for name, given in module.treespec_namedtuple_fields.items()}
    call = module.module_call_graph[0].signature
    stored = StoredInputs(payload, where, treespec.parse(call.in_spec), fields, trust, moved)  # type: ignore[union-attr]
    return read_sample_inputs(stored, context.in_spec, context.sources, PickledValues(where, tensors, context.values))


def _moved_inputs(opened: Package, model: str) -> PickleFreeInputs | None:
    """Sample inputs that are raw records with an index; None where there are none, or none that can be read."""
    try:
        return read_moved_inputs(opened.archive, opened.layout, model)
    except IntegrityError:
        raise
    except Pt2Error as error:
        _LOG.warning("sample inputs are left out: %s", error)
        return None
