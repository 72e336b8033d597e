"""Devices rewritten, in what is known of values, in arguments, and in payloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pt2kit import schema
from pt2kit.editing.editor import Editor
from pt2kit.editing.metas import device_of, device_text
from pt2kit.editing.values import Slot
from pt2kit.editing.weights import Entry
from pt2kit.tensors.view import TensorView


def move(editor: Editor, devices: str | Mapping[str, str]) -> int:
    """Move a program and its weights to other devices.

    Args:
        editor: the program.
        devices: the device for everything ("cpu"), or old -> new ("cuda:0" -> "cpu"). A type alone ("cuda") stands for
            all of its devices.

    Returns:
        how many values, arguments and payloads changed.

    Raises:
        GraphError: a text that is no device.
    """
    table = {"": devices} if isinstance(devices, str) else dict(devices)
    wanted = {old: device_of(new) for old, new in table.items()}

    def moved(device: schema.Device) -> schema.Device:
        for name in (device_text(device), device.type, ""):
            if name in wanted:
                return wanted[name]
        return device

    count = 0
    for graph in editor.graph.walk():
        for value in graph.values.values():
            meta = value.meta
            if isinstance(meta, schema.TensorMeta) and moved(meta.device) != meta.device:
                value.meta = schema.TensorMeta(
                    meta.dtype, meta.sizes, meta.requires_grad, moved(meta.device), meta.strides, meta.storage_offset,
                    meta.layout,
                )  # fmt: skip
                count += 1
        for node in graph.nodes:
            for slot in node.slots:
                count += _move_argument(slot, moved)
    return count + _move_payloads(editor, moved)


def _move_argument(slot: Slot, moved: object) -> bool:
    device = slot.template.as_device
    if not isinstance(device, schema.Device) or not callable(moved) or moved(device) == device:
        return False
    slot.template = schema.Argument(as_device=moved(device))
    return True


def _move_payloads(editor: Editor, moved: object) -> int:
    count = 0
    for table in (editor.weights, editor.constants):
        for name, entry in list(table.entries.items()):
            payload = entry.payload
            if not isinstance(payload, TensorView) or not callable(moved) or moved(payload.device) == payload.device:
                continue
            view = replace(payload, device=moved(payload.device))
            meta = entry.meta
            if meta is not None:
                meta = schema.PayloadMeta(meta.path_name, meta.is_param, meta.use_pickle, view.meta())
            table.entries[name] = Entry(view, meta, entry.kind)
            count += 1
    return count
