"""Edits of weights and constants: payloads, configs, graph inputs and signature are updated together."""

from __future__ import annotations

import keyword
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from pt2kit import schema
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.graphs import Value
from pt2kit.editing.interface import Input, insert_in_group
from pt2kit.editing.metas import cast_meta
from pt2kit.editing.state import EditState, check_unused, find_input, forget_inputs
from pt2kit.editing.weights import Weights, laid_out, to_view
from pt2kit.errors import GraphError
from pt2kit.messages import quote
from pt2kit.package.open import Package, open_package
from pt2kit.schema import names
from pt2kit.signature.consistency import targets_below
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.safetensors_file import SUFFIXES, read_safetensors
from pt2kit.tensors.view import TensorView, own_copy

_OF_SHAPE = (TensorView, MetaView)
"""The payloads that numbers can replace: dense tensors, and those without data."""
_PREFIXES = {"parameter": "p_", "buffer": "b_", "tensor_constant": "c_"}
"""Kind of a weight -> how the name of its input begins, as torch names it."""
_WRITES = {"buffer_mutation": "buffer", "parameter_mutation": "parameter", "gradient_to_parameter": "parameter"}
"""Kind of an output that is about a weight -> the kind of that weight."""


def check_package(editor: EditState, edit: str) -> None:
    """Refuse an edit of weights where there is only a program."""
    if not editor.has_weights:
        raise GraphError(f"{edit}: expected a package, got a program alone, which has no weights")


def table_of(editor: EditState, name: str, edit: str) -> Weights:
    """Return the table, of weights or of constants, that has a name.

    Raises:
        GraphError: neither.
    """
    check_package(editor, edit)
    if name in editor.constants:
        return editor.constants
    editor.weights.find(name, edit)
    return editor.weights


def add(
    editor: EditState, kind: str, name: str, numbers: Any, *, requires_grad: bool | None = None, persistent: bool = True
) -> Value:
    """Add a weight or constant, as `Editor.add_parameter` and its like."""
    edit = f"add_{kind.removeprefix('tensor_')}({quote(name)})"
    check_package(editor, edit)
    _check_free(editor, name, edit)
    view = to_view(name, numbers, edit=edit)
    if kind == "parameter":
        wanted = DTYPES[view.dtype].has_gradient and not isinstance(numbers, TensorView)
        gradient = requires_grad if requires_grad is not None else view.requires_grad or wanted
        view = replace(view, requires_grad=gradient, is_param=True)
    else:
        view = replace(view, requires_grad=False, is_param=False)
    wish = f"{_PREFIXES[kind]}{name.replace('.', '_')}"
    value = editor.graph.define(editor.graph.names.unique(wish), "tensor", view.meta(), None)
    new = Input.of(value)
    new.kind, new.target, new.persistent = kind, name, kind == "buffer" and persistent
    insert_in_group(editor.inputs, new)
    _home(editor, kind, persistent).payloads[name] = view
    return value


def set_weight(editor: EditState, name: str, numbers: Any) -> None:
    """Replace the values of a weight or constant, of the same element type and sizes.

    Names that are tied to it get them too; `untie` first where they should not.

    Raises:
        GraphError: there is none of that name, or its type or sizes are others.
    """
    edit = f"set_weight({quote(name)})"
    table = table_of(editor, name, edit)
    old = table.find(name, edit)
    if not isinstance(old, _OF_SHAPE):
        raise GraphError(f"{edit}: expected a dense tensor to replace, got {old.describe()}")
    new = laid_out(to_view(name, numbers, like=old, edit=edit), old.strides)
    if new.dtype != old.dtype or new.sizes != old.sizes:
        raise GraphError(
            f"{edit}: expected numbers like those there, {old.describe()}, got {new.describe()}; cast weights with "
            "the pass cast_weights",
            rule="P14",
        )
    for weights in (editor.weights, editor.constants):
        for other, payload in list(weights.items()):
            if isinstance(payload, _OF_SHAPE) and (other == name or _is_tied(payload, old)):
                like = replace(new, requires_grad=payload.requires_grad, is_param=payload.is_param, name=other)
                weights.payloads[other] = like
                if like.strides != old.strides:  # of numbers that lay in one place
                    _restate(editor, other, like)


def load_weights(editor: EditState, source: Any, *, prefix: str = "", strict: bool = True) -> list[str]:
    """Replace the values of all weights and constants that another file has.

    Args:
        source: a mapping from names to arrays or payloads, the path of a `.safetensors` file or of the index of
            sharded ones, an open package, or the path of a `.pt2`.
        prefix: the common prefix of the names there.
        strict: refuse names that the program does not have, and parameters that the source does not.

    Returns:
        the names that were set.

    Raises:
        GraphError: types or sizes that differ, or names that are missing.
    """
    edit = "load_weights"
    check_package(editor, edit)
    by_name = {name.removeprefix(prefix): one for name, one in _numbers_of(source).items() if name.startswith(prefix)}
    there = {**editor.constants, **editor.weights}
    if strict:
        odd = [name for name in by_name if name not in there]
        missing = [name for name in editor.weights if name not in by_name]
        tied = {name for name in missing if any(_is_tied(there[name], there.get(other)) for other in by_name)}
        if odd or len(tied) < len(missing):
            missing = [name for name in missing if name not in tied]
            raise GraphError(
                f"{edit}: expected the names of the program's weights, got {odd[:5]} besides them and "
                f"nothing for {missing[:5]}; strict=False, --partial, takes what fits"
            )
    names = [name for name in there if name in by_name]
    for name in names:
        set_weight(editor, name, by_name[name])
    return names


def _numbers_of(source: Any) -> Mapping[str, Any]:
    if isinstance(source, Package):
        return {**source.constants(), **source.weights()}
    if isinstance(source, Mapping):
        return source
    if isinstance(source, str | os.PathLike) and os.fspath(source).endswith(SUFFIXES):
        return read_safetensors(source)
    return _numbers_of(open_package(source))


def rename_weight(editor: EditState, old: str, new: str) -> None:
    """Rename a parameter, buffer or constant in the state dict.

    Raises:
        GraphError: there is none of that name, or the new one is taken.
    """
    edit = f"rename_weight({quote(old)}, {quote(new)})"
    if old == new:
        return
    inputs = [one for one in editor.inputs if one.target == old]
    if not inputs and not editor.has_weights:
        find_input(editor, old, edit)
    _check_free(editor, new, edit, old)
    if editor.has_weights:
        table = table_of(editor, old, edit)
        payloads = {new if name == old else name: payload for name, payload in table.items()}
        if isinstance(view := payloads[new], TensorView):
            payloads[new] = replace(view, name=new)
        table.payloads = payloads
    kinds = {one.kind for one in inputs}
    for one in inputs:
        one.target = new
    for output in editor.outputs:
        if output.target == old and _WRITES.get(output.kind) in kinds:
            output.target = new


def drop_weight(editor: EditState, name: str) -> None:
    """Remove a weight or constant, and the input of the graph that takes it.

    Raises:
        GraphError: there is none of that name, or something uses it.
    """
    edit = f"drop_weight({quote(name)})"
    inputs = [one for one in editor.inputs if one.target == name]
    kinds = {one.kind for one in inputs}
    for one in inputs:
        check_unused(one, "a weight", edit)
    _check_unwritten(editor, name, kinds, edit)
    if editor.has_weights and (not inputs or name in editor.weights or name in editor.constants):
        del table_of(editor, name, edit).payloads[name]
    elif not inputs:
        find_input(editor, name, edit)
    forget_inputs(editor, inputs)


def _check_unwritten(editor: EditState, name: str, kinds: Collection[str], edit: str) -> None:
    """Refuse a weight, as an input of one of some kinds, that an output of the program writes to."""
    if any(output.target == name and _WRITES.get(output.kind) in kinds for output in editor.outputs):
        raise GraphError(f"{edit}: expected a weight that the program does not write, got {quote(name)}", rule="S7")


def tie(editor: EditState, name: str, to: str) -> None:
    """Tie a weight to another of the same type and sizes: both share one memory, and its own values are dropped.

    Raises:
        GraphError: types or sizes differ.
    """
    edit = f"tie({quote(name)}, {quote(to)})"
    table = table_of(editor, name, edit)
    mine, theirs = table.find(name, edit), table_of(editor, to, edit).find(to, edit)
    if not isinstance(mine, TensorView) or not isinstance(theirs, TensorView):
        raise GraphError(f"{edit}: expected two dense tensors, got others")
    if (mine.dtype, mine.sizes) != (theirs.dtype, theirs.sizes):
        raise GraphError(
            f"{edit}: expected two tensors alike, got {mine.describe()} and {theirs.describe()}", rule="P14"
        )
    view = replace(theirs, name=name, requires_grad=mine.requires_grad, is_param=mine.is_param)
    table.payloads[name] = view
    _restate(editor, name, view)


def untie(editor: EditState, name: str) -> None:
    """Copy the values of a weight, so that no other name shares its memory.

    Calls keep the inputs they have, which may all be of one name; `notes` names weights that nothing uses then.

    Raises:
        GraphError: there is none of that name, or it is no dense tensor.
    """
    edit = f"untie({quote(name)})"
    table = table_of(editor, name, edit)
    old = table.find(name, edit)
    if not isinstance(old, TensorView):
        raise GraphError(f"{edit}: expected a dense tensor, got {old.describe()}")
    same = [other for other, one in table.items() if _is_tied(one, old)]
    view = own_copy(old)
    table.payloads[name] = view
    _spread_inputs(editor, same)
    _restate(editor, name, view)
    used = {one.target for one in editor.inputs if one.value is not None and one.value.is_used}
    taken = ", ".join(quote(one) for one in same if one in used)
    if taken:
        unused = [quote(one) for one in same if one not in used]
        editor.notes += [f"{edit}: nothing uses {one} now: calls take {taken}" for one in unused]


def _spread_inputs(editor: EditState, tied: list[str]) -> None:
    """Add inputs so that each formerly tied name has its own, if two inputs took the weight by one of the names."""
    inputs = [one for one in editor.inputs if one.target in tied]
    for name in tied:
        if all(one.target != name for one in inputs):
            several = [one for one in inputs if sum(other.target == one.target for other in inputs) > 1]
            fitting = [one for one in several if one.name.endswith(name.replace(".", "_"))]
            if several:
                (fitting or several[1:])[0].target = name


def convert_weight(editor: EditState, name: str, kind: str, *, persistent: bool = True) -> None:
    """Convert a parameter, buffer or constant to one of the other two kinds.

    Args:
        name: of the weight.
        kind: "parameter", "buffer", "tensor_constant" (or "constant").
        persistent: whether a buffer is in the state dict.

    Raises:
        GraphError: the program writes it, or it has a gradient, which the new kind has not.
    """
    edit = f"convert_weight({quote(name)}, {quote(kind)})"
    kind = {"constant": "tensor_constant"}.get(kind, kind)
    if kind not in _PREFIXES:
        raise GraphError(f"{edit}: expected 'parameter', 'buffer' or 'constant', got {quote(kind)}")
    inputs = [one for one in editor.inputs if one.target == name and one.kind in _PREFIXES]
    if not inputs:
        (table_of if editor.has_weights else find_input)(editor, name, edit)
        raise GraphError(f"{edit}: expected a parameter, buffer or tensor constant, got something else")
    if inputs[0].kind != kind:
        _check_unwritten(editor, name, {inputs[0].kind}, edit)
    payload = table_of(editor, name, edit).find(name, edit) if editor.has_weights else None
    if payload is not None and not isinstance(payload, TensorView):
        raise GraphError(f"{edit}: expected a dense tensor, got {payload.describe()}")
    for one in inputs:
        one.kind, one.persistent = kind, persistent
    if kind == "tensor_constant":
        _join(editor, inputs)
    if payload is not None:
        _convert_payload(editor, name, payload, inputs, persistent)


def _join(editor: EditState, inputs: list[Input]) -> None:
    """Merge several inputs of one constant into one: torch registers a constant once, and fails the second time."""
    first = inputs[0].value
    for one in inputs[1:]:
        if first is not None and one.value is not None:
            editor.graph.replace_uses(one.value, first)
    forget_inputs(editor, inputs[1:])
    del inputs[1:]


def _convert_payload(editor: EditState, name: str, old: TensorView, inputs: list[Input], persistent: bool) -> None:
    """Move the payload of a converted weight to the table of its new kind, with its other names that no input takes."""
    kind = inputs[0].kind
    gradient = old.requires_grad and kind == "parameter"
    table, new = table_of(editor, name, kind), _home(editor, kind, persistent)
    taken = {one.target for one in editor.inputs} - {name}
    for other, payload in list(table.items()):
        if other in taken or not isinstance(payload, TensorView) or payload.storage is not old.storage:
            continue
        if new is not table:
            del table.payloads[other]  # Another name would be a copy of it, in its old table.
        if other == name or (new is table and _is_tied(payload, old)):
            new.payloads[other] = replace(payload, is_param=kind == "parameter", requires_grad=gradient)
    for one in inputs:
        if one.value is not None:
            stated = one.value.meta
            one.value.meta = structs.replace(stated, requires_grad=stated.requires_grad and gradient)


def _home(editor: EditState, kind: str, persistent: bool) -> Weights:
    """Return the table of weights of a kind: the state dict, or the constants."""
    return editor.weights if kind == "parameter" or (kind == "buffer" and persistent) else editor.constants


def free_name(editor: EditState, wish: str) -> str:
    """Return a name that no weight, constant, target or module of these has."""
    taken = taken_names(editor)

    def is_taken(name: str) -> bool:
        return name in taken or bool(targets_below([name], taken))

    return names.free_name(wish, is_taken) if is_taken(wish) else wish


def meta_like(view: TensorView, stated: schema.TensorMeta) -> schema.TensorMeta:
    """Return the graph's meta of a payload: its type and sizes, row-major, on the declared device."""
    sizes = [arithmetic.number(size) for size in view.sizes]
    return structs.replace(
        cast_meta(structs.replace(stated, sizes=sizes), view.dtype), requires_grad=view.requires_grad
    )


def _restate(editor: EditState, name: str, view: TensorView) -> None:
    """Update the declared strides of a weight to those of its payload."""
    meta = view.meta()
    for one in editor.inputs:
        if one.target == name and one.value is not None:
            one.value.meta = structs.replace(one.value.meta, strides=meta.strides, storage_offset=meta.storage_offset)


def taken_names(editor: EditState) -> set[str]:
    """Return the names of all weights, constants and targets."""
    return {one.target for one in editor.inputs if one.target is not None} | {*editor.weights, *editor.constants}


def _check_free(editor: EditState, name: str, edit: str, old: str | None = None) -> None:
    """Refuse a name that no weight can have besides the others; `old` is about to be left."""
    parts = name.split(".")
    if not all(parts) or any(map(keyword.iskeyword, parts)):
        raise GraphError(
            f"{edit}: expected names with dots between them, none a keyword of Python, got {quote(name)}", rule="S10"
        )
    taken = taken_names(editor)
    if name in taken:
        raise GraphError(f"{edit}: expected a name that is not taken, got {quote(name)}", rule="S8")
    others = taken - {old}
    above = next((other for other in others if name.startswith(f"{other}.")), None)
    around = above or targets_below([name], others).get(name)
    if around is not None:
        raise GraphError(
            f"{edit}: expected a name that is not below another's, nor above, as tensors hold no others, "
            f"got {quote(name)} besides {quote(around)}",
            rule="S8",
        )


def _is_tied(a: Any, b: Any) -> bool:
    """Return whether two payloads are the same elements of one storage, or were before their data was omitted."""
    if isinstance(a, TensorView) and isinstance(b, TensorView):
        same = a.storage is b.storage
    else:
        same = isinstance(a, MetaView) and isinstance(b, MetaView) and a.tie == b.tie != ""
    return same and (a.dtype, a.sizes, a.strides, a.storage_offset) == (b.dtype, b.sizes, b.strides, b.storage_offset)
