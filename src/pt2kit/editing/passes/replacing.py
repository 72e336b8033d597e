"""Passes that replace one thing by another of its kind: devices, operators, element types, and the kinds of weights.

Element types are those of weights, with a cast to the declared type, or those that the whole program computes in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET, structs

from pt2kit import schema
from pt2kit.dataflow.engine import changed_inputs
from pt2kit.editing import sample_inputs
from pt2kit.editing.building import full_target, signature_of
from pt2kit.editing.editor import Editor
from pt2kit.editing.graphs import Node, Slot, Value
from pt2kit.editing.interface import Input
from pt2kit.editing.metas import cast_meta, device_of, inferred_facts, scalar_type
from pt2kit.editing.passes.simplify import cse, dce, drop_assertions, fold_shapes, identities, strip_metadata
from pt2kit.editing.weight_edits import check_package
from pt2kit.errors import GraphError
from pt2kit.messages import quote
from pt2kit.operators.facts import Mismatch, Tensor, Unknown
from pt2kit.operators.higher_order import HIGHER_ORDER, UNFOLLOWED
from pt2kit.operators.metas import Symbols
from pt2kit.schema.names import ATEN_OPS, HIGHER_ORDER_OPS, OPS, plain_target
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import contiguous_strides, device_text, parse_device
from pt2kit.tensors.dtypes import DTYPES, largest_number, numpy_dtype
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import Storage


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

    Weights that the program writes to keep their kind, and so do those that share memory with these.

    Args:
        editor: the program.
        old, new: "parameter", "buffer", "constant".
        names: those to convert; all of the kind where it is None.

    Raises:
        GraphError: no such kind, or one that `names` asks for and the program writes.
    """
    kind = "tensor_constant" if old == "constant" else old
    written = {output.target for output in editor.outputs if output.target is not None}
    in_place = changed_inputs(editor.check()) if names is None else ()
    written |= {one.target for one in editor.inputs if one.target is not None and one.name in in_place}
    storages = {
        name: payload.storage
        for table in (editor.weights, editor.constants)
        for name, payload in table.items()
        if isinstance(payload, TensorView)
    }
    changed = {storages.get(name) for name in written} - {None}
    count = 0
    for target in dict.fromkeys(one.target for one in editor.inputs if one.kind == kind):
        if target is None or (names is not None and target not in names):
            continue
        if names is None and (target in written or storages.get(target) in changed):
            continue
        editor.convert_weight(target, new)
        count += 1
    return count


_COMPUTED: Final = frozenset(
    (schema.ScalarType.BFLOAT16, schema.ScalarType.HALF, schema.ScalarType.FLOAT, schema.ScalarType.DOUBLE)
)
"""The element types that programs compute in."""
_CONVERTED: Final = frozenset(("value", "fill_value", "min", "max", "min_val", "max_val"))
"""Parameters whose numbers kernels convert to the type of their result; torch refuses those beyond its range."""


def cast_weights(editor: Editor, dtype: Any, names: Collection[str] | None = None) -> int:
    """Store weights in another element type, and cast them back in front of their first use.

    Tensors that the program writes to keep their type.

    Args:
        editor: the program.
        dtype: "bf16", "float16", a numpy type.
        names: the parameters and buffers to cast; all parameters and buffers of floats where it is None.

    Returns:
        how many weights changed.

    Raises:
        GraphError: a type that is none of floats, a name that the program does not have, or only a program.
    """
    edit = f"cast_weights({dtype})"
    target = scalar_type(dtype)
    if DTYPES[target].kind != "float":
        raise GraphError(f"{edit}: expected an element type of floats, got {DTYPES[target].name}")
    check_package(editor, edit)
    targets = {one.target for one in editor.inputs if one.target is not None}
    if names is not None and (odd := [name for name in names if name not in targets]):
        raise GraphError(f"{edit}: expected names of weights of the program, got {odd[0]!r}")
    written = {output.target for output in editor.outputs}
    done: dict[Any, Storage] = {}
    count = 0
    for name in sorted(targets):
        if (name in names if names is not None else True) and name not in written:
            count += _cast(editor, name, target, done, is_asked=names is not None)
    return count


def compute_in(editor: Editor, dtype: Any) -> int:
    """Compute the whole program in another element type: inputs, weights, constants, casts and results.

    All tensors of 16, 32 and 64 bit floats become tensors of that type, and so do casts and new tensors that name such
    a type. Sample inputs are converted. Element types of results are those of the result rules, so that results which
    an operator always has in float32 stay what they are. Fills and bounds beyond the range of the type, such as the
    least number of float32 in a mask, become the least or largest number of it.

    Args:
        editor: the program.
        dtype: "bfloat16", "float16", "float32", "float64".

    Returns:
        how many values have another element type now.

    Raises:
        GraphError: no such type, complex numbers, a weight that is no dense tensor, or a call that torch refuses then.
    """
    edit = f"compute_in({dtype})"
    target = scalar_type(dtype)
    if target not in _COMPUTED:
        raise GraphError(f"{edit}: expected bfloat16, float16, float32 or float64, got {DTYPES[target].name}")
    graphs = list(editor.graph.walk())
    before = {value: value.dtype for graph in graphs for value in graph.values.values()}
    for value, dtype in before.items():
        if dtype is not None and DTYPES[dtype].kind == "complex":
            raise GraphError(f"{edit}: expected real numbers, got {quote(value.name)}, which is complex")
    limit = largest_number(target)
    sample_inputs.convert(editor, lambda view: _converted(view, target, {}) if view.dtype in _COMPUTED else view)
    done: dict[Any, Storage] = {}
    for table in (editor.weights, editor.constants):
        for name, view in list(table.items()):
            if isinstance(view, TensorView) and view.dtype in _COMPUTED and view.dtype != target:
                table.payloads[name] = _converted(view, target, done)
            elif not isinstance(view, TensorView) and getattr(view, "dtype", None) in _COMPUTED:
                raise GraphError(f"{edit}: expected dense tensors, got {quote(name)}, {view.describe()}")
    stored = {one.value for one in editor.inputs if one.target is not None}
    for value, dtype in before.items():
        if dtype in _COMPUTED and dtype != target:
            is_copy = value in stored and editor.has_weights
            value.meta = cast_meta(value.meta, target) if is_copy else structs.replace(value.meta, dtype=target)
    symbols = Symbols(assumed_least=2)
    for graph in reversed(graphs):
        for node in graph.nodes:
            _retype_arguments(node, target)
            for value, fact in zip(node.outputs, _inferred(node), strict=False):
                if not isinstance(fact, Tensor):
                    continue
                if _is_cast(node) and fact.strides not in (None, symbols.fact(value.meta).strides):
                    node.set_argument("copy", True)  # It changes no type now; without this, it returns its operand.
                if fact.dtype not in (None, value.dtype):
                    if _is_new(node) and fact.dtype in _COMPUTED:
                        node.set_argument("dtype", target)
                    else:
                        value.meta = structs.replace(value.meta, dtype=fact.dtype)
            for value, given in zip(node.outputs, _given(node), strict=False):
                if given.dtype is not None and given.dtype != value.dtype:
                    value.meta = structs.replace(value.meta, dtype=given.dtype)
            if any(value.dtype == target for value in node.outputs):
                _clamp_numbers(node, limit)
    return sum(value.dtype != old for value, old in before.items())


def _inferred(node: Node) -> list[Any]:
    """Return the facts of a node's results, one for each value, from what is known of its arguments now; [] if unknown.

    Raises:
        GraphError: torch refuses the arguments.
    """
    try:
        facts = inferred_facts(node.op, node.plain_arguments)
    except Mismatch as error:
        raise GraphError(f"{node.label}: {error}", rule="T11") from error
    except Unknown:
        return []
    listed = facts if isinstance(facts, list | tuple) else [facts]
    flat = [one for fact in listed for one in (fact if isinstance(fact, list) else [fact])]
    return flat if len(flat) == len(node.outputs) else []


def _given(node: Node) -> list[Value]:
    """Return the values that the subgraph of a call gives, if they are the call's results."""
    convention = HIGHER_ORDER.get(plain_target(node.target).removeprefix(HIGHER_ORDER_OPS), UNFOLLOWED)
    if convention.results is None:
        return []
    place = convention.graphs[convention.results]
    graphs = node.slots[place].graphs if place < len(node.slots) else ()
    return [value for graph in graphs for slot in graph.output_slots for value in slot.values]


def _is_new(node: Node) -> bool:
    """Return whether a node makes a tensor of the default type, from no other tensor."""
    signature = signature_of(node.target)
    return (
        signature is not None
        and "dtype" in signature.parameters
        and node.argument("dtype") in (None, schema.Argument(as_none=True))
        and all(value.kind != "tensor" for value in node.inputs)
    )


def _is_cast(node: Node) -> bool:
    """Return whether a node copies its operand only where it changes its type or device."""
    return node.target.startswith(f"{ATEN_OPS}to.")


def _retype_arguments(node: Node, target: schema.ScalarType) -> None:
    """Replace the element type in calls that name one of floats; an assertion names that of its operand."""
    if node.target == "torch.ops.aten._assert_tensor_metadata.default" and node.inputs[0].dtype in _COMPUTED:
        target = node.inputs[0].dtype or target
    for place, slot in enumerate(node.slots):
        if slot.template.as_scalar_type in _COMPUTED and slot.template.as_scalar_type != target:
            node.set_argument(slot.name or str(place), target)


def _clamp_numbers(node: Node, limit: float) -> None:
    """Replace finite numbers that a kernel could not convert to the type of its result by the nearest that it can."""
    for slot in node.slots:
        number = slot.plain if slot.name in _CONVERTED else None
        if isinstance(number, int | float) and limit < abs(number) < math.inf:
            node.set_argument(slot.name, math.copysign(limit, number))


def _cast(editor: Editor, name: str, target: schema.ScalarType, done: dict[Any, Storage], *, is_asked: bool) -> bool:
    inputs = [one for one in editor.inputs if one.target == name]
    if not is_asked and any(one.kind not in ("parameter", "buffer") for one in inputs):
        return False
    table = editor.weights if name in editor.weights else editor.constants
    view = table.get(name)
    if not isinstance(view, TensorView) or DTYPES[view.dtype].kind != "float" or view.dtype == target:
        return False
    if any(one.value is not None and (one.value.is_output or any(u.writes for u in one.value.users)) for one in inputs):
        return False
    table.payloads[name] = _converted(view, target, done)
    for one in inputs:
        _insert_cast(editor, one, target)
    return True


def _converted(view: TensorView, target: schema.ScalarType, done: dict[Any, Storage]) -> TensorView:
    """Return a tensor in another element type, row-major, computed when it is read; tied weights stay tied."""
    key = (view.storage, view.storage_offset, view.sizes, view.strides, view.dtype)
    if key not in done:
        nbytes = view.numel * DTYPES[target].itemsize
        done[key] = Storage(
            f"<{view.name}>", nbytes, lambda: arrays.raw_bytes(view.numpy().astype(numpy_dtype(target)))
        )
    return replace(view, dtype=target, strides=contiguous_strides(view.sizes), storage_offset=0, storage=done[key])


def _insert_cast(editor: Editor, one: Input, target: schema.ScalarType) -> None:
    """Set the new type of an input, and cast it back for its users."""
    value = one.value
    if value is None:
        return
    old = value.meta
    value.meta = cast_meta(old, target)
    if not value.users:
        return
    first = min(value.users, key=lambda user: user.order)
    node = first.insert_before(
        "aten.to.dtype", value, old.dtype, meta=cast_meta(old, old.dtype), name=f"{value.name}_cast"
    )
    editor.graph.replace_uses(value, node.output)


_CONVERSIONS: Final = (
    *(("buffer", "constant"), ("parameter", "constant"), ("parameter", "buffer"), ("constant", "buffer")),
    ("buffer", "parameter"),
)

PASSES: Final[Mapping[str, Callable[[Editor], int]]] = MappingProxyType(
    {
        **{
            one.__name__.replace("_", "-"): one
            for one in (dce, cse, identities, fold_shapes, drop_assertions, strip_metadata)
        },
        **{f"{old}s-to-{new}s": partial(convert_weights, old=old, new=new) for old, new in _CONVERSIONS},
    }
)
"""Name -> pass, of those that need no arguments."""
