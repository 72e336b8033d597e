"""Passes that replace one thing by another of its kind: devices, operators, and the kinds of weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from msgspec import UNSET, structs

from pt2kit import schema
from pt2kit.editing.building import full_target
from pt2kit.editing.editor import Editor
from pt2kit.editing.graphs import Slot
from pt2kit.editing.metas import device_of, device_text
from pt2kit.schema.names import OPS
from pt2kit.tensors.bounds import parse_device
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
                value.meta = structs.replace(meta, device=moved(meta.device))
                count += 1
        for node in graph.nodes:
            for slot in node.slots:
                count += _move_argument(slot, moved)
    return count + _move_payloads(editor, moved)


def _move_argument(slot: Slot, moved: Callable[[schema.Device], schema.Device]) -> bool:
    device = slot.template.as_device
    if slot.name == "device" and isinstance(slot.template.as_string, str):
        device = parse_device(slot.template.as_string) or UNSET
    if not isinstance(device, schema.Device) or moved(device) == device:
        return False
    slot.template = schema.Argument(as_device=moved(device))
    return True


def _move_payloads(editor: Editor, moved: Callable[[schema.Device], schema.Device]) -> int:
    count = 0
    for table in (editor.weights, editor.constants):
        for name, payload in list(table.items()):
            if isinstance(payload, TensorView) and moved(payload.device) != payload.device:
                table.payloads[name] = replace(payload, device=moved(payload.device))
                count += 1
    return count


def rename_operators(editor: Editor, names: Mapping[str, str]) -> int:
    """Call other operators with the same arguments: `{"aten::relu": "aten::gelu"}`, subgraphs included.

    Args:
        editor: the program.
        names: operator -> operator, with or without "torch.ops." and overload; without one "default", or the only one.

    Raises:
        GraphError: no operator, or one that does not take the arguments that the other was given.
    """
    targets = {_target(old): new for old, new in names.items()}
    count = 0
    for node in list(editor.nodes):
        if node.target in targets:
            node.retarget(targets[node.target])
            count += 1
    return count


def _target(operator: str) -> str:
    """Return the full name of an operator that a program may have, even if torch no longer has it."""
    name = operator.replace("::", ".")
    if name.startswith(OPS) and name.count(".") >= 4:
        return name
    return full_target(operator, "rename_operators")


def convert_weights(editor: Editor, old: str, new: str, names: Collection[str] | None = None) -> int:
    """Convert parameters, buffers or constants of one kind to another.

    Weights that the program writes to keep their kind.

    Args:
        editor: the program.
        old, new: "parameter", "buffer", "constant".
        names: those to convert; all of the kind where it is None.

    Raises:
        GraphError: no such kind, or one that `names` asks for and the program writes.
    """
    kind = "tensor_constant" if old == "constant" else old
    written = {output.target for output in editor.outputs if output.target is not None}
    in_place = {
        one.target for one in editor.inputs if one.value is not None and any(user.writes for user in one.value.users)
    }
    count = 0
    for target in dict.fromkeys(one.target for one in editor.inputs if one.kind == kind):
        if target is None or (names is not None and target not in names):
            continue
        if names is None and (target in written or target in in_place):
            continue
        editor.convert_weight(target, new)
        count += 1
    return count
