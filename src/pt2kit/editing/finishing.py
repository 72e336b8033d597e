"""What an editor holds -> the program with its edits, and the package with the edited program and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.editing import sample_inputs, soundness
from pt2kit.editing.interface_edits import is_token
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
    _drop_idle_tokens(editor)
    for number, one in enumerate(editor.user_outputs):
        if one.value is not None and is_token(editor, one.value):
            raise GraphError(f"output {number}: expected a tensor or a number, got the token {quote(one.name)}, which "
                             "torch takes out", rule="S13")  # fmt: skip
    editor.graph.input_slots = [one.slot for one in editor.inputs]
    editor.graph.output_slots = [one.slot for one in editor.outputs]
    graph = editor.graph.written()
    signature = _same(
        schema.GraphSignature([one.spec() for one in editor.inputs], [one.spec() for one in editor.outputs]),
        module.signature,
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


def _drop_idle_tokens(editor: Editor) -> None:
    """Take out tokens that go out as they came in, once the nodes that took them are erased: torch cannot run those."""
    for one in [output for output in editor.outputs if output.kind == "token"]:
        taken = next((given for given in editor.inputs if given.kind == "token" and given.value is one.value), None)
        if taken is None or one.value is None or one.value.users:
            continue
        if any(other.value is one.value for other in editor.user_outputs):
            continue  # which is refused
        editor.outputs.remove(one)
        one.slot.detach()
        editor.inputs.remove(taken)
        editor.graph.forget(taken.slot)


def _same(new: Any, old: Any) -> Any:
    return old if new == old else new


def _replaced(old: Any, **fields: Any) -> Any:
    """A struct with other fields; the one there was, where they are the same."""
    changed: Mapping[str, Any] = {
        name: value for name, value in fields.items() if value is not getattr(old, name) and value != getattr(old, name)
    }
    return replace(old, **changed) if changed else old
