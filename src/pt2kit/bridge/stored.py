"""A `.pt2` file -> one program of it as schema objects, and its payloads live: how every way of loading begins."""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from pt2kit import schema, treespec
from pt2kit.bridge.given_weights import Given, given_weights
from pt2kit.bridge.left_out import leave_out
from pt2kit.bridge.read.devices import Devices, Moves
from pt2kit.bridge.read.opened import Context, FakeTensors, Payloads
from pt2kit.bridge.read.pickled_values import FAKE_TENSOR, PickledValues
from pt2kit.bridge.read.sample_inputs import StoredInputs, read_sample_inputs
from pt2kit.bridge.read.tensors import Tensors
from pt2kit.bridge.read.treespecs import registered_namedtuples
from pt2kit.bridge.read.trusted import globals_of, load_trusted
from pt2kit.errors import ArchiveError, IntegrityError, PayloadError, Pt2Error
from pt2kit.messages import listed
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.package.parts import parts, sample_inputs_record
from pt2kit.package.pickle_free_inputs.index import PickleFreeInputs, read_pickle_free_inputs
from pt2kit.package.stored import Payload
from pt2kit.pickles.reader import is_plain, read_payload
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView
from pt2kit.versions.opset.changes import EXPECTED, convert_opset
from pt2kit.versions.opset.operator_change import OperatorChange
from pt2kit.zip.opening import FileLike
from pt2kit.zip.source import map_privately

ZIP: Final = b"PK\x03\x04"
"""How a torch.save file begins."""
_SHOWN: Final = 20
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which weights, and where they come from.

    Args:
        given: what to take instead of the file's.
        include: which names to load; the others are left on the meta device. All where it is None.
    """

    given: Given | None = None
    include: Callable[[str], bool] | None = None


ALL: Final = Chosen()
"""All weights, from the file."""


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
    converted = convert_opset(
        program, names.model_json(model), expected={**EXPECTED, **(expected or {})}, changes=changes
    )
    for problem in converted.problems:
        _LOG.warning("%s", problem)
    return converted.program


def read_texts(opened: Package) -> dict[str, Any]:
    """The user's files, as text where they are UTF-8."""
    texts: dict[str, Any] = {}
    for name, content in opened.extra_files.items():
        try:
            texts[name] = str(content, "utf-8")
        except UnicodeDecodeError:
            texts[name] = bytes(content)
    return texts


def read_payloads(
    opened: Package, model: str, tensors: Tensors, context: Context, trust: Set[str], chosen: Chosen = ALL
) -> Payloads:
    """The weights, constants and sample inputs of a program, live."""
    values = context.values
    weights, constant_views = opened.weights(model), opened.constants(model)
    views = weights if chosen.include is None else leave_out(weights, chosen.include)
    left_out = {name for name, view in views.items() if view is not weights[name]}
    read = {name: view for name, view in views.items() if chosen.given is None or name in left_out}
    state_dict = {name: _payload(view, tensors, values, trust) for name, view in read.items()}
    if parts(opened.archive, opened.layout, model).stored_as != "records":
        state_dict = _as_objects(state_dict, read)
    if chosen.given is not None:
        wanted = {name: view for name, view in views.items() if name not in left_out}
        state_dict |= given_weights(chosen.given, wanted, tensors.devices, left_out)
        state_dict = {name: state_dict[name] for name in views}
    constants = {name: _payload(view, tensors, values, trust) for name, view in constant_views.items()}
    without = [view.name for views in (read, constant_views) for view in views.values() if _is_without_data(view)]
    if without:
        shown = listed(without, _SHOWN)
        _LOG.warning(
            "%d tensor(s) were saved without data and are on the meta device: %s; fill them with "
            "load_state_dict(..., assign=True)",
            len(without),
            shown,
        )
    return Payloads(state_dict, constants, _sample_inputs(opened, model, tensors, context, trust))


def _as_objects(state_dict: dict[str, Any], views: Mapping[str, Payload]) -> dict[str, Any]:
    """The same, with one object for each that a torch.save file holds: tied weights are one parameter there."""
    object_by_view: dict[Any, Any] = {}
    for name, view in views.items():
        if isinstance(view, TensorView):
            key = replace(view, name="")
            state_dict[name] = object_by_view.setdefault(key, state_dict[name])
    return state_dict


def _is_without_data(view: Payload) -> bool:
    """Whether a tensor was saved without its data; one that was on the meta device never had any."""
    return isinstance(view, MetaView) and view.device.type != "meta"


def _payload(view: Payload, tensors: Tensors, values: FakeTensors, trust: Set[str]) -> Any:
    if not isinstance(view, OpaquePayload):
        return tensors.any(view)
    if view.kind == "opaque" and bytes(view.buffer()[:4]) == ZIP:
        # A constant of torch 2.8 or older: one entry of a torch.save file.
        entries = load_trusted(replace(view, kind="pickle"), trust, tensors.devices)
        if not isinstance(entries, dict) or view.name not in entries:
            raise PayloadError(f"{view.where}: expected a dict with that name, got a {type(entries).__name__}")
        return entries[view.name]
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
    moved = None if payload else _pickle_free_inputs(opened, model)
    module = opened.programs[model].graph_module
    fields = {name: tuple(definition.field_names) for name, definition in module.treespec_namedtuple_fields.items()}
    call = module.module_call_graph[0].signature
    stored = StoredInputs(payload, where, treespec.parse(call.in_spec), fields, trust, moved)  # type: ignore[union-attr]
    return read_sample_inputs(stored, context.in_spec, context.sources, PickledValues(where, tensors, context.values))


def _pickle_free_inputs(opened: Package, model: str) -> PickleFreeInputs | None:
    """Sample inputs that are raw records with an index; None where there are none, or none that can be read."""
    try:
        return read_pickle_free_inputs(opened.archive, opened.layout, model)
    except IntegrityError:
        raise
    except Pt2Error as error:
        _LOG.warning("sample inputs are left out: %s", error)
        return None
