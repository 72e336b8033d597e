"""The layout of the containers of schema 8.6: several programs in one JSON, whose payloads are named by their paths.

No release of torch wrote it. A container without an archive names files next to it.

Payloads can also be inside a program: parameters and buffers of the design draft, constants of schema 1 (torch 2.1).
Where payloads are is a property of such a program, whatever file it is in: a draft is a `BareJson`, and a program of
schema 1 is in a plain zip or alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pt2kit import codec, schema
from pt2kit.package.layouts.base import Layout
from pt2kit.package.payloads import payload_inputs, view_all
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledTensor
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import from_pickled
from pt2kit.versions.containers import read_model_payload
from pt2kit.zip.reader import Storage

if TYPE_CHECKING:
    from pt2kit.package.stored import Kind, Payload, StoredPayloads, StoredProgram


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
    payloads: dict[str, Payload] = {}
    for name, value in entries.items():
        where = f"{record}: constant {name!a}"
        if isinstance(value, bytes) and name in objects:
            payloads[name] = OpaquePayload(name, storage_of_bytes(where, value), "torchbind")
            continue
        tensor = read_payload(value, where) if isinstance(value, bytes) else value
        payloads[name] = from_pickled(tensor, name=name, where=record)
    return payloads


def storage_of_bytes(where: str, data: bytes | memoryview) -> Storage:
    """Return a storage of bytes that are in memory."""
    return Storage(where, len(data), lambda: memoryview(data))


class Container(Layout):
    """An archive of containers, each of whose methods is a program."""

    __slots__ = ()
    kind: ClassVar[str] = "model"

    def read_payloads(self, model: str, kind: Kind, stored: Callable[[], StoredProgram]) -> StoredPayloads:
        """Describe the weights or constants of a program.

        Raises: as `Layout.read_payloads`.
        """
        return read_from_program(self, model, kind, stored())


def read_from_program(layout: Layout, model: str, kind: Kind, program: StoredProgram) -> StoredPayloads:
    """Describe the weights or constants that a program holds itself, or that its container names.

    Raises: as `Layout.read_payloads`.
    """
    record = layout.program_record(model)
    if program.model is None:
        payloads = payloads_inside(record, kind, program)
    else:
        payloads = payloads_named(layout, kind, program)
    return view_all(layout, model, payloads, record, program)


def payloads_named(layout: Layout, kind: Kind, stored: StoredProgram) -> dict[str, Payload]:
    """Describe the payloads that a container names, of those that the program takes as inputs.

    Args:
        layout: reads them.
        kind: which of them.
        stored: a program of a container.

    Raises:
        Pt2Error: one of them cannot be read.
    """
    container = stored.model
    paths = {} if container is None else container.weight_paths if kind == "weights" else container.constant_paths
    values = stored.program.graph_module.graph.tensor_values
    storages: dict[str, Storage] = {}
    saved: dict[str, PickledTensor] = {}  # of torch.save files
    payloads: dict[str, Payload] = {}
    for target, name, tensor_kind in payload_inputs(stored.program):
        path = paths.get(target)
        if path is None:
            continue
        if path not in storages:
            storages[path] = layout.payload_at(path, target)
        storage, meta = storages[path], values.get(name)
        if tensor_kind is None or meta is None:
            payloads[target] = OpaquePayload(target, storage_of_bytes(path, storage.read()), "torchbind")
            continue
        tensor = saved.get(path) or read_model_payload(storage, codec.to_tree(meta), target, path, kind=tensor_kind)
        if tensor.storage is not storage:
            saved[path] = tensor
        payloads[target] = from_pickled(tensor, name=target, where=path)
    return payloads
