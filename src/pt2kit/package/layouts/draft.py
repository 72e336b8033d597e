"""Payloads inside a program: parameters and buffers of the design draft, constants of schema 1 (torch 2.1).

Where payloads are is a property of such a program, whatever file it is in: a draft is a `BareJson`, and a program of
schema 1 is in a plain zip or alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pt2kit import schema
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledStorage, PickledTensor
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import from_pickled
from pt2kit.tensors.view import Storage

if TYPE_CHECKING:
    from pt2kit.package.stored import Kind, Payload, StoredProgram


def payloads_inside(record: str, kind: Kind, stored: StoredProgram) -> dict[str, Payload]:
    """Describe the weights or constants that are stored in a program itself.

    Args:
        record: the program's record, for messages.
        kind: which of the two.
        stored: the program.

    Raises:
        Pt2Error: one of them cannot be read.
    """
    entries: Mapping[str, Any] = stored.weights if kind == "weights" else stored.constants
    specs = stored.program.graph_module.signature.input_specs
    objects = {spec.value.custom_obj_name for spec in specs if isinstance(spec.value, schema.InputToCustomObjSpec)}
    storages: dict[PickledStorage, Storage] = {}
    payloads: dict[str, Payload] = {}
    for name, value in entries.items():
        where = f"{record}: constant {name!a}"
        if isinstance(value, bytes) and name in objects:
            payloads[name] = OpaquePayload(name, storage_of_bytes(where, value), "torchbind")
            continue
        tensor = read_payload(value, where) if isinstance(value, bytes) else value
        if isinstance(value, PickledTensor):  # its storage is named after its place in the program already
            use_storage(value.storage, value.storage.key, storages)
        payloads[name] = from_pickled(tensor, name=name, where=record, storages=storages)
    return payloads


def storage_of_bytes(where: str, data: bytes | memoryview) -> Storage:
    """Return a storage of bytes that are in memory."""
    return Storage(where, len(data), lambda: memoryview(data))


def use_storage(
    pickled: PickledStorage, record: str, storages: dict[PickledStorage, Storage], *, in_place: bool = False
) -> None:
    """Name a storage after its record, unless it has a name already."""
    if pickled not in storages:
        storages[pickled] = Storage(record, pickled.nbytes, lambda: pickled.data, in_place=in_place)
