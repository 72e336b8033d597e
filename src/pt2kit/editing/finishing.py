"""What an editor holds -> the program with its edits, and the package with the edited program and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.editing import sample_inputs, soundness
from pt2kit.editing.inference import misstated_type
from pt2kit.editing.interface_edits import is_token, takes_token
from pt2kit.editing.values import Value
from pt2kit.editing.weights import write_weights
from pt2kit.errors import GraphError, SchemaError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package

if TYPE_CHECKING:
    from pt2kit.editing.editor import Editor


def finished(editor: Editor) -> Package | schema.ExportedProgram:
    """As `Editor.finish`."""
    program = editor.check()
    if editor._parts is None or editor._package is None:
        return program
    parts = editor._parts
    stored = editor._package.stored[editor.model]
    if program is editor._opened and not _weights_changed(editor):
        return editor._source or editor._package
    if program is not editor._opened:
        if stored.unknown:
            raise SchemaError(
                f"{names.model_json(editor.model)}: expected no keys of a newer schema, got {len(stored.unknown)} "
                f"that rewriting this program would lose ({stored.unknown[0]}, …); upgrade pt2kit"
            )
        parts.put(names.model_json(editor.model), codec.encode(program))
    write_weights(parts, editor.model, editor.weights, editor.constants)
    parts.drop_unused()
    package, notes = sample_inputs.pack(parts, editor.model, program, editor.calls)
    editor.notes += notes
    return package


def _weights_changed(editor: Editor) -> bool:
    return [table.entries for table in (editor.weights, editor.constants)] != editor._stored_weights


def written(editor: Editor) -> schema.ExportedProgram:
    """The program with all edits; the one that was opened, where nothing changed."""
    old, module = editor.program, editor.program.graph_module
    _check_tokens(editor)
    _check_types(editor)
    idle = _idle_tokens(editor)
    inputs = [one for one in editor.inputs if one.value not in idle]
    outputs = [one for one in editor.outputs if one.value not in idle]
    graph = editor.graph.written(without=idle)
    signature = _same(
        schema.GraphSignature([one.spec() for one in inputs], [one.spec() for one in outputs]), module.signature
    )
    calls = _same(editor.calls.written(), module.module_call_graph)
    ranges = soundness.needed_ranges(editor, graph)
    parts = {
        "graph_module": _replaced(
            module, graph=graph, signature=signature, module_call_graph=calls, metadata=editor.metadata
        ),
        "range_constraints": ranges,
        "guards_code": editor.guards,
        "verifiers": editor.verifiers,
        "opset_version": editor.opset_version,
    }
    new: schema.ExportedProgram = _replaced(old, **parts)
    return new


def _check_tokens(editor: Editor) -> None:
    """Refuse tokens in the place of numbers, and the other way round: tokens order effects; torch takes them out."""
    for number, one in enumerate(editor.user_outputs):
        if one.value is not None and is_token(editor, one.value):
            raise GraphError(f"output {number}: expected a tensor or a number, got the token {quote(one.name)}, which "
                             "torch takes out", rule="S13")  # fmt: skip
    for one in editor.outputs:
        if one.kind == "token" and not (one.value is not None and is_token(editor, one.value)):
            raise GraphError(f"{one!r}: expected a token, got {quote(one.name)}, which is none", rule="S13")
    for node in editor.graph.nodes:
        if not node.edit:
            continue
        if takes_token(node):
            if not (node.inputs and is_token(editor, node.inputs[0])):
                got = quote(node.inputs[0].name) if node.inputs else "no value"
                raise GraphError(f"{node.edit}: {node.label}: expected a token first, got {got}", rule="S13")
        elif node.target.startswith("torch.ops.aten.") and any(is_token(editor, value) for value in node.inputs):
            raise GraphError(f"{node.edit}: {node.label}: expected a tensor with numbers, got a token", rule="S13")


def _check_types(editor: Editor) -> None:
    """Refuse nodes that edits let give another element type than is stated of what they give."""
    for graph in editor.graph.walk():
        for node in graph.nodes:
            if node.edit and (said := misstated_type(node)) is not None:
                raise GraphError(f"{node.edit}: {node.label}: {said}", rule="T11")


def _idle_tokens(editor: Editor) -> set[Value]:
    """Tokens that go out as they came in, once the nodes that took them are erased: torch cannot run those."""
    going = {one.value for one in editor.outputs if one.kind == "token"}
    coming = {one.value for one in editor.inputs if one.kind == "token"}
    return {value for value in going & coming if value is not None and not value.users}


def _same(new: Any, old: Any) -> Any:
    return old if new == old else new


def _replaced(old: Any, **fields: Any) -> Any:
    """A struct with other fields; the one there was, where they are the same."""
    changed: Mapping[str, Any] = {
        name: value for name, value in fields.items() if value is not getattr(old, name) and value != getattr(old, name)
    }
    return replace(old, **changed) if changed else old
