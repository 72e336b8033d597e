"""Conversion of one program with its payloads to the records of another layout: raw records, or torch.save files.

Obstacles are collected.

Raw records with the config that lists them are read by torch 2.9 and later. Names are grouped by storage and element
type, as those releases do it: a record holds elements of one type, tied tensors and views share one. Empty storages
share a record. Anything but a strided tensor is a torch.save file in a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from pt2kit import codec, schema
from pt2kit.errors import UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.package.payloads import stated_metas
from pt2kit.package.plan import Numbering, Planned, PlannedPickle, PlannedRecord, copied, of_bytes, of_storage
from pt2kit.package.stored import Kind, Payload
from pt2kit.pickles.values import PickledTensor
from pt2kit.release.destinations import Destination
from pt2kit.release.programs import Model, Outcome, Requested, convert_program
from pt2kit.schema import ScalarType
from pt2kit.tensors.compound import MetaView, SparseView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import to_pickled
from pt2kit.tensors.view import TensorView, own_copy
from pt2kit.versions.conversion_log import Note, SideInputs
from pt2kit.zip.reader import Storage

Plain: TypeAlias = TensorView | SparseView | MetaView
"""The tensors that torch.save files hold; those without data on the meta device alone."""
Raw: TypeAlias = TensorView | MetaView
"""The tensors that can be written as raw records."""

Metas = Mapping[str, schema.TensorMeta]
"""The graph's description of each weight or constant, by name."""

_WITHOUT_DATA = (
    "a tensor without data, for which files of torch 2.8 and older have no form: give all of them numbers first "
    "(pt2 weights FILE --from NUMBERS), or convert to torch 2.9 or newer"
)


def plain_tensor(payload: Payload) -> Plain:
    """Return the tensor of a payload.

    Raises:
        UnsupportedError: one that only code can rebuild, or of a kind that is not written.
    """
    view = payload.view() if isinstance(payload, OpaquePayload) else payload
    if isinstance(view, Plain):
        return view
    kind = type(view).__name__.removesuffix("View").lower()
    raise UnsupportedError(f"{view.name!r}: expected a dense or a sparse tensor, got a {kind} one")


def pack(
    payloads: Mapping[str, Plain], metas: Metas, numbering: Numbering, name_of: Callable[[int], str]
) -> tuple[list[Planned], schema.PayloadConfig]:
    """Return payloads as raw records, and the config that lists them.

    Args:
        payloads: name -> view.
        metas: the graph's descriptions; for anything but strided tensors.
        numbering: assigns records their numbers.
        name_of: makes the name of a record of a number.
    """
    records: list[Planned] = []
    config: dict[str, schema.PayloadMeta] = {}
    groups: dict[tuple[Storage | None, ScalarType], list[tuple[str, Raw]]] = {}
    for name, payload in payloads.items():
        if isinstance(payload, Raw):
            raw = own_copy(payload) if isinstance(payload, TensorView) and (payload.conj or payload.neg) else payload
            storage = raw.storage if isinstance(raw, TensorView) and raw.storage.nbytes else None
            groups.setdefault((storage, raw.dtype), []).append((name, raw))
            continue
        record = numbering.take(name_of)
        records.append(PlannedPickle(record, to_pickled(payload)))
        config[name] = schema.PayloadMeta(_last(record), payload.is_param, True, metas.get(name))
    for (storage, _), group in groups.items():
        record = numbering.take(name_of)
        records.append(of_bytes(record, b"") if storage is None else of_storage(record, storage, group[0][1].itemsize))
        for name, view in group:
            config[name] = schema.PayloadMeta(_last(record), view.is_param, False, view.meta())
    return records, schema.PayloadConfig(config)


def listed_in(package: Package, config: str) -> Iterable[str]:
    """Return the full names of the records that a config lists, each once."""
    folder = config.rpartition("/")[0]
    listed = codec.decode(package.archive.read(config), schema.PayloadConfig, package.relative(config)).value
    return dict.fromkeys(f"{folder}/{meta.path_name}" for meta in listed.config.values())


def records_of(package: Package, model: str) -> Iterator[str]:
    """Yield the full names of the records that belong to a program.

    Raises:
        Pt2Error: a record cannot be read.
    """
    parts = package.layout.parts(model)
    yield from parts.all
    for config in parts.configs:
        yield from listed_in(package, config)
    if (container := package.stored[model].model) is not None:
        yield from map(package.layout.record, (*container.weight_paths.values(), *container.constant_paths.values()))


def _last(record: str) -> str:
    return record.rpartition("/")[2]


def find_model(package: Package, name: str, to: Destination) -> Model:
    """Find the parts of a program. Its payloads are described on access: some are copied unchanged.

    Raises:
        Pt2Error: the program cannot be read.
    """
    moved = _buffers_outside_state_dict(package.programs[name]) if to.keeps_all_buffers else []
    return Model(package, name, package.layout.parts(name), tuple(moved))


def convert_model(model: Model, to: Destination, wanted: Requested, numbering: Numbering) -> Outcome:
    """Plan the records of one program.

    Raises:
        Pt2Error: the program or its payloads cannot be read.
    """
    notes: list[Note] = []
    side_inputs = _payloads_inside(model, notes) if to.has_constants_inside else SideInputs()
    outcome = convert_program(model, to, wanted, side_inputs, notes)
    if to.layout.has_configs:
        _as_records(model, numbering, outcome)
    outcome.records.append(of_bytes(to.program_record(model.name), outcome.data, deflate=True))
    for kind, record in to.pickles(model.name).items():
        _as_saved(model, kind, record, outcome)
    sample_inputs(model, to, outcome)
    return outcome


def _buffers_outside_state_dict(program: schema.ExportedProgram) -> list[str]:
    """Return the buffers that are no part of the state dict today."""
    specs = [spec.value for spec in program.graph_module.signature.input_specs]
    return [spec.buffer_name for spec in specs if isinstance(spec, schema.InputToBufferSpec) and not spec.persistent]


def fitting(
    model: Model, kind: Kind, notes: list[Note], *, is_left_out: Callable[[Payload], bool] = lambda _: False
) -> Iterator[tuple[str, Plain]]:
    """Yield the payloads that torch.save files hold; the others are noted as blocked.

    Args:
        model: their program.
        kind: which of them.
        notes: receives notes on the others.
        is_left_out: which payloads to pass over.

    Raises:
        Pt2Error: payloads that cannot be read.
    """
    try:
        payloads = model.payloads(kind)
    except UnsupportedError as error:
        notes.append(Note("blocked", "", f"{kind} that are more than data: {error}", "", (model.where,), 1))
        return
    for name, payload in payloads.items():
        if is_left_out(payload):
            continue
        if isinstance(payload, MetaView) and payload.device.type != "meta":
            notes.append(Note("blocked", "", _WITHOUT_DATA, "", (f"{model.where}: {name!r}",), 1))
            continue
        try:
            yield name, plain_tensor(payload)
        except UnsupportedError as error:
            notes.append(Note("blocked", "", f"a payload of this kind: {error}", "", (f"{model.where}: {name!r}",), 1))


def _payloads_inside(model: Model, notes: list[Note]) -> SideInputs:
    """Return the payloads for versions that keep them inside the program.

    Other payloads than dense tensors are blocked there.
    """
    constants = _dense(fitting(model, "constants", notes, is_left_out=_is_object))
    weights = _dense(fitting(model, "weights", notes))
    if any(note.kind == "blocked" for note in notes):
        return SideInputs(constants, weights)
    objects = {
        name: bytes(payload.buffer())
        for name, payload in model.payloads("constants").items()
        if isinstance(payload, OpaquePayload) and _is_object(payload)
    }
    return SideInputs({**constants, **objects}, weights)


def _is_object(payload: Payload) -> bool:
    return isinstance(payload, OpaquePayload) and payload.kind == "torchbind"


def _dense(views: Iterable[tuple[str, Plain]]) -> dict[str, PickledTensor]:
    described = {name: to_pickled(view) for name, view in views}
    return {name: tensor for name, tensor in described.items() if isinstance(tensor, PickledTensor)}


def _as_saved(model: Model, kind: Kind, record: str, found: Outcome) -> None:
    """Add weights or constants as one torch.save file: the one there is, or a new one."""
    stored = model.stored(kind)
    if stored in model.parts.pickles and stored is not None and not model.moved:
        found.records.append(copied(model.package, stored, record))
        return
    described = {name: to_pickled(view) for name, view in fitting(model, kind, found.notes)}
    found.records.append(PlannedPickle(record, described))
    if described:
        found.notes.append(Note("changed", "", f"{kind} became a torch.save file", "", (record,), 1))


def _as_records(model: Model, numbering: Numbering, found: Outcome) -> None:
    """Plan weights and constants as raw records with their configs: existing or new ones."""
    stated = metas(model.package.programs[model.name])
    kinds: tuple[Kind, ...] = ("weights", "constants")
    for kind in kinds:
        config = names.payload_config(model.name, kind)
        if model.parts.configs:
            found.records += _listed(model, kind)
            continue
        without_data = {name: one for name, one in model.payloads(kind).items() if isinstance(one, MetaView)}
        plain = dict(fitting(model, kind, found.notes, is_left_out=lambda one: isinstance(one, MetaView)))
        records, listed = pack({**plain, **without_data}, stated, numbering, names.PAYLOADS[kind])
        found.records += [*records, of_bytes(config, codec.encode(listed), deflate=True)]
        if records:
            found.notes.append(Note("changed", "", f"{kind} became raw records", "", (config,), 1))


def _listed(model: Model, kind: Kind) -> Iterator[PlannedRecord]:
    """Yield a config and the records that it lists, unchanged.

    Raises:
        Pt2Error: the config contradicts its records or the graph.
    """
    model.payloads(kind)
    package, config = model.package, model.stored(kind) or ""
    for record in listed_in(package, config):
        yield copied(package, record, package.relative(record))
    yield copied(package, config, package.relative(config), deflate=True)


def metas(program: schema.ExportedProgram) -> dict[str, schema.TensorMeta]:
    """Return the graph's description of each weight or constant by name."""
    return {name: meta for name, meta, _ in stated_metas(program)}


def sample_inputs(model: Model, to: Destination, found: Outcome) -> None:
    """Plan the sample inputs unchanged; an empty record if there are none."""
    package, stored = model.package, model.parts.sample_inputs
    if name := to.sample_inputs(model.name):
        found.records.append(copied(package, stored, name) if stored is not None else of_bytes(name, b""))
    elif stored is not None and package.records[stored].size > 0:
        message = "the inputs that the program was exported with"
        found.notes.append(Note("lost", "sample_inputs", message, "5.3", (package.relative(stored),), 1))
