"""Weights and constants of programs that torch 2.8 or older wrote, or no release at all -> views by name.

torch.save files       of a plain zip, and of the archive of 2.8: read as data; what is no plain data is listed
inside the program     constants of schema 1, parameters and buffers of the draft
named records          a container of schema 8.6 says which record of the archive, or file beside it, each one is
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from pt2kit import codec, schema
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.package.layout import Layout
from pt2kit.package.lazy import Named
from pt2kit.package.parts import Parts, parts, program_record
from pt2kit.package.stored import Kind, Payload, ReadContext, StoredPayloads, StoredProgram
from pt2kit.pickles.reader import globals_in, read_payload
from pt2kit.pickles.values import PickledStorage, PickledTensor, TensorKind, TensorLike
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import from_pickled
from pt2kit.tensors.storage import Storage
from pt2kit.versions.containers import read_model_payload
from pt2kit.versions.side_files import path_below
from pt2kit.zip.reader import Archive
from pt2kit.zip.source import open_path


def read_older_payloads(
    archive: Archive, layout: Layout, model: str, kind: Kind, stored: StoredProgram, context: ReadContext | None
) -> StoredPayloads:
    """Describe the weights or the constants of one program; of torch.save files the pickles are read, no tensors.

    Args:
        archive, layout: where they are.
        model: whose they are.
        kind: which of the two.
        stored: the program.
        context: where to look for what is stored beside a file.

    Raises:
        ArchiveError: a record is missing or damaged.
        PayloadError, UnsupportedError, LimitError: payloads that cannot be read.
    """
    if stored.model is not None:
        payloads, config = _named(archive, layout, kind, stored, context), program_record(archive, layout, model)
    else:
        place = parts(archive, layout, model)
        record = place.weights if kind == "weights" else place.constants
        config = record if record is not None else place.program
        payloads = _saved(archive, record, kind) | _inside(place, kind, stored)
    return StoredPayloads(Named(payloads, "tensor"), config.removeprefix(layout.root), ())


def _saved(archive: Archive, record: str | None, kind: Kind) -> dict[str, Payload]:
    """The entries of a torch.save file; none where there is no file, or an empty one.

    Weights are tensors. Constants may be script objects and others: the file as a whole stands for each of those.
    """
    data = archive.read(record) if record is not None else memoryview(b"")
    if record is None or not data:
        return {}
    trusted = frozenset(globals_in(data, record)) if kind == "constants" else frozenset[str]()
    value = read_payload(data, record, trust=trusted)
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise PayloadError(f"{record}: expected a dict from names to tensors, got {_describe(value)}")
    whole = Storage(record, data.nbytes, lambda: data, in_place=archive.source.is_local)
    storages: dict[PickledStorage, Storage] = {}
    payloads: dict[str, Payload] = {}
    for name, entry in value.items():
        if isinstance(entry, TensorLike) or kind == "weights":
            payloads[name] = from_pickled(entry, name=name, where=record, storages=storages)
        else:
            payloads[name] = OpaquePayload(name, whole, "opaque")
    return payloads


def _inside(place: Parts, kind: Kind, stored: StoredProgram) -> dict[str, Payload]:
    """What lies in the program itself."""
    entries: Mapping[str, Any] = stored.weights if kind == "weights" else stored.constants
    specs = stored.program.graph_module.signature.input_specs
    objects = {spec.value.custom_obj_name for spec in specs if isinstance(spec.value, schema.InputToCustomObjSpec)}
    storages: dict[PickledStorage, Storage] = {}
    payloads: dict[str, Payload] = {}
    for name, value in entries.items():
        where = f"{place.program}: constant {name!a}"
        if isinstance(value, bytes) and name in objects:
            payloads[name] = OpaquePayload(name, _of_bytes(where, value), "torchbind")
            continue
        tensor = read_payload(value, where) if isinstance(value, bytes) else value
        if isinstance(value, PickledTensor):  # its storage is named after its place in the program already
            _know(value.storage, value.storage.key, storages)
        payloads[name] = from_pickled(tensor, name=name, where=place.program, storages=storages)
    return payloads


def _of_bytes(where: str, data: bytes | memoryview) -> Storage:
    return Storage(where, len(data), lambda: memoryview(data))


def _named(
    archive: Archive, layout: Layout, kind: Kind, stored: StoredProgram, context: ReadContext | None
) -> dict[str, Payload]:
    """The records that a container names, for what the program takes in."""
    container = stored.model
    paths = {} if container is None else container.weight_paths if kind == "weights" else container.constant_paths
    values = stored.program.graph_module.graph.tensor_values
    is_bare = layout.kind == "json"
    open_record = _opener(archive, layout, context)
    data: dict[str, memoryview] = {}
    known: dict[tuple[Any, ...], PickledStorage] = {}
    storages: dict[PickledStorage, Storage] = {}
    payloads: dict[str, Payload] = {}
    for target, name, tensor_kind in _inputs(stored.program):
        path = paths.get(target)
        if path is None:
            continue
        if path not in data:
            data[path] = open_record(path, target)
        meta = values.get(name)
        if tensor_kind is None or meta is None:
            payloads[target] = OpaquePayload(target, _of_bytes(path, data[path]), "torchbind")
            continue
        read = read_model_payload(data[path], codec.to_tree(meta), target, path, kind=tensor_kind)
        tensor = _tied(read, path, known)
        if tensor.storage.key == path:  # raw bytes: the whole record
            _know(tensor.storage, path if is_bare else layout.record(path), storages, in_place=archive.source.is_local)
        payloads[target] = from_pickled(tensor, name=target, where=path, storages=storages)
    return payloads


def _know(
    held: PickledStorage, record: str, storages: dict[PickledStorage, Storage], *, in_place: bool = False
) -> None:
    """Give a storage the name of its record, unless it has one already."""
    if held not in storages:
        storages[held] = Storage(record, held.nbytes, lambda: held.data, in_place=in_place)


def _tied(tensor: PickledTensor, path: str, known: dict[tuple[Any, ...], PickledStorage]) -> PickledTensor:
    """The same tensor, over the storage that another of the same record has already: tied tensors stay tied."""
    own = tensor.storage
    return structs.replace(
        tensor, storage=known.setdefault((path, own.key, own.dtype_name, own.nbytes, own.device), own)
    )


def _opener(archive: Archive, layout: Layout, context: ReadContext | None) -> Callable[[str, str], memoryview]:
    """(path, name of the tensor) -> the bytes that a container names."""

    def from_archive(path: str, name: str) -> memoryview:
        if layout.record(path) not in archive.records:
            raise PayloadError(f"{name!a}: expected a record {path[:200]!a}, got none of that name", rule="P2")
        return archive.read(layout.record(path))

    def from_folder(path: str, name: str) -> memoryview:
        if context is None or context.folder is None:
            raise UnsupportedError(
                f"{name!a}: expected the folder of the program, which has its bytes in {path[:200]!a}, got none; "
                "open the program by its path"
            )
        try:
            source = open_path(path_below(Path(context.folder), path, repr(name)))
        except OSError as error:
            raise PayloadError(f"{name!a}: {path[:200]!a}: expected a readable file, got {error.strerror}") from None
        content = source.read(0, source.size)
        source.close()
        return content

    return from_folder if layout.kind == "json" else from_archive


def _inputs(program: schema.ExportedProgram) -> list[tuple[str, str, TensorKind | None]]:
    """For each input that is taken from the payloads: its name there, its name in the graph, and what it is."""
    inputs: list[tuple[str, str, TensorKind | None]] = []
    for spec in program.graph_module.signature.input_specs:
        match spec.value:
            case schema.InputToParameterSpec(arg, target):
                inputs.append((target, arg.name, "parameter"))
            case schema.InputToBufferSpec(arg, target):
                inputs.append((target, arg.name, "buffer"))
            case schema.InputToTensorConstantSpec(arg, target):
                inputs.append((target, arg.name, "tensor"))
            case schema.InputToCustomObjSpec(arg, target):
                inputs.append((target, arg.name, None))
    return inputs


def _describe(value: Any) -> str:
    return "one with other keys" if isinstance(value, Mapping) else f"a {type(value).__name__}"
