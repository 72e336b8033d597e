"""`Editor`: edit a program and its weights; leaving the context checks it and builds a new program or package.

    with pt2kit.edit("model.pt2") as editor:
        relu = editor.graph.nodes["relu"]
        relu.retarget("aten.gelu")
        editor.rename_input("x", "input_ids")
    pt2kit.write(editor.result, "new.pt2")

What was opened is never changed. Every edit is checked when it is made; the whole is checked when the editor is left.
"""

from __future__ import annotations

import builtins
import os
from operator import attrgetter
from types import TracebackType
from typing import IO, Any, Generic, TypeAlias, TypeVar, cast, overload

from msgspec import structs

from pt2kit import codec, schema
from pt2kit.editing import interface_edits, sample_inputs, weight_edits
from pt2kit.editing.assembly import is_current, parts_of
from pt2kit.editing.graphs import Value
from pt2kit.editing.state import EditState, check_program, needed_ranges
from pt2kit.editing.weights import write_weights
from pt2kit.errors import GraphError, SchemaError, UnsupportedError
from pt2kit.front_door import registered
from pt2kit.messages import count_text, quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.package.write import write_package
from pt2kit.schema.names import ATEN_OPS
from pt2kit.zip.listing import FileLike

Source: TypeAlias = "FileLike | Package | schema.ExportedProgram"
Result: TypeAlias = "Package | schema.ExportedProgram"
E = TypeVar("E", bound="Editor")
R = TypeVar("R", Package, schema.ExportedProgram)


@overload
def edit(source: schema.ExportedProgram, model: str | None = None) -> ProgramEditor: ...
@overload
def edit(source: FileLike | Package, model: str | None = None) -> PackageEditor: ...
def edit(source: Source, model: str | None = None) -> Editor:
    """Open a program to change it.

    Args:
        source: an open package, whatever `pt2kit.open` takes, or a program alone, which has no weights.
        model: which program of a package; the only one, or "model", where it is None. The others are copied.

    Returns:
        The editor: use it in a `with` block, or call `finish()`. Packages of older releases are raised to today's
        layout and schema.

    Raises:
        ArchiveError: no such program.
        GraphError: it contradicts itself.
        OSError, Pt2Error: the file cannot be read.

    Cost: linear in the program; weights are not read.
    """
    if isinstance(source, schema.ExportedProgram):
        return ProgramEditor(source)
    package = source if isinstance(source, Package) else open_package(source)
    chosen = package.choose(model)
    parts = parts_of(package)
    opened = package if is_current(package) else parts.package()
    return PackageEditor(opened.programs[chosen], opened, parts, chosen, package)


class Editor(EditState):
    """A program that is being edited, and its weights. `edit` makes one.

    Attributes:
        graph: the program's graph; subgraphs are those of its nodes.
        inputs: what comes in, in order: weights, constants, tokens, and what the caller passes.
        outputs: what goes out, in order.
        weights: parameters and persistent buffers by name; change them with the methods below.
        constants: constants, other buffers and objects by name, likewise.
        ranges: symbol -> (least, greatest) size; None is unbounded. Change it as a dict.
        guards: conditions on the inputs, `str()` of which is their text; they follow edits of the inputs. A text that
            is added is a guard on the inputs as they are in the end.
        verifiers, opset_version, metadata: as the schema has them, to be changed in place.
        samples: sample inputs that were set; None for those of the file.
        notes: what was lost, and what may surprise, as text.
    """

    _result: Result | None = None

    @property
    def result(self) -> Result:
        """Return the result of the edits once the editor has been left, as `finish` returns it.

        Raises:
            GraphError: the editor was not left yet, or an error ended it.
        """
        if self._result is None:
            raise GraphError(f"{self!r}: expected one that was left, by its `with` block or finish(), for a result")
        return self._result

    add_input = interface_edits.add_input
    drop_input = interface_edits.drop_input
    rename_input = interface_edits.rename_input
    reorder_inputs = interface_edits.reorder_inputs
    freeze_input = interface_edits.freeze_input
    specialize = interface_edits.specialize
    add_output = interface_edits.add_output
    drop_output = interface_edits.drop_output
    rename_output = interface_edits.rename_output
    reorder_outputs = interface_edits.reorder_outputs

    def add_parameter(self, name: str, numbers: Any, *, requires_grad: bool | None = None) -> Value:
        """Add a parameter and the input of the graph that takes it.

        Args:
            name: as in the state dict ("layers.3.weight").
            numbers: an array of numpy or ml_dtypes, or a payload of any package.
            requires_grad: where it is None, that of a payload; True for an array of floats.

        Raises:
            GraphError: a name that is taken, or a program without weights.
        """
        return weight_edits.add(self, "parameter", name, numbers, requires_grad=requires_grad)

    def add_buffer(self, name: str, numbers: Any, *, persistent: bool = True) -> Value:
        """Add a buffer and the input of the graph that takes it; as `add_parameter`."""
        return weight_edits.add(self, "buffer", name, numbers, persistent=persistent)

    def add_constant(self, name: str, numbers: Any) -> Value:
        """Add a tensor constant and the input of the graph that takes it; as `add_parameter`."""
        return weight_edits.add(self, "tensor_constant", name, numbers)

    set_sample_inputs = sample_inputs.set_sample_inputs
    set_weight = weight_edits.set_weight
    load_weights = weight_edits.load_weights
    rename_weight = weight_edits.rename_weight
    drop_weight = weight_edits.drop_weight
    tie = weight_edits.tie
    untie = weight_edits.untie
    convert_weight = weight_edits.convert_weight

    def replace_program(self, program: schema.ExportedProgram) -> None:
        """Replace the program by another one with the same weights, such as one written or edited as text.

        Raises:
            GraphError: the program contradicts itself, or takes weights that the package does not have.
        """
        new = type(self)(program, self._package, self._parts, self.model, self._source)
        targets = {*self.weights, *self.constants}
        for one in new.inputs:
            if self.has_weights and one.target is not None and one.target not in targets:
                raise GraphError(
                    f"replace_program: expected weights that the package has, got {quote(one.target)}", rule="P19"
                )
        kept = {key: getattr(self, key) for key in ("weights", "constants", "stored_weights")}
        self.__dict__.update({**new.__dict__, **kept, "opened": self.program, "_result": None})

    def check(self) -> schema.ExportedProgram:
        """Return the program as it is now, checked; editing can continue.

        Raises:
            GraphError: the edits made something unsound; the message names the place and the last edit there.
        """
        program = _written(self)
        if program is not self.program:
            check_program(self, program)
        return program

    def finish(self) -> Result:
        """Return the result: a program if a program was opened, else a package, which can be written.

        Raises:
            GraphError: as `check`.
            PayloadError: the graph declares another element type or other sizes than a weight has.
            SchemaError: keys that this build does not know would be lost.
        """
        self._result = _finished(self, self.check())
        return self._result

    def prove(self) -> None:
        """Finish, and check by running that the result computes what the package did; its inputs may be renamed.

        Raises:
            ProofError: results differ, or inputs or outputs are others.
            UnsupportedError: the program has operators that cannot be run; the message lists them.
            GraphError: there is only a program, or as `finish`.
        """
        result = self._result or self.finish()
        registered("prove")(self.source_package, result, models={self.model: self.model})

    def write(self, target: str | os.PathLike[str] | IO[bytes], *, prove: bool = False) -> None:
        """Finish, and write the package to a path or file object.

        Args:
            target: the file.
            prove: as `Editor.prove`, before anything is written.

        Raises:
            ProofError, UnsupportedError: as `Editor.prove`.
            UnsupportedError: there is only a program.
            GraphError: as `finish`.
            OSError: the target cannot be written.
        """
        result = self._result or self.finish()
        if not isinstance(result, Package):
            raise UnsupportedError("write: expected a package to write, got a program alone; pt2kit.edit a package")
        if prove:
            self.prove()
        write_package(result, target)

    def __enter__(self: E) -> E:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._result is None:
            self.finish()

    def __repr__(self) -> str:
        return f"<Editor of {quote(self.model)}: {count_text(len(self.graph.nodes), 'node')}>"


class _EditorOf(Editor, Generic[R]):
    """An editor whose result is of one type."""

    @property
    def result(self) -> R:
        """Return the result, as `Editor.result`."""
        return cast("R", super().result)

    def finish(self) -> R:
        """Return the result, as `Editor.finish`."""
        return cast("R", super().finish())


class ProgramEditor(_EditorOf[schema.ExportedProgram]):
    """An editor of a program alone, which has no weights: its result is a program."""


class PackageEditor(_EditorOf[Package]):
    """An editor of a program in a package: its result is a package."""


def _finished(editor: EditState, program: schema.ExportedProgram) -> Package | schema.ExportedProgram:
    """Return the result of the edits: a checked program, or its package with the edited weights."""
    package = editor.opened_package
    if package is None:
        return program
    parts, stored = editor.parts, package.stored[editor.model]
    weights = [editor.weights.payloads, editor.constants.payloads]
    if program is editor.opened and editor.samples is None and weights == editor.stored_weights:
        return editor.source_package
    if program is not editor.opened:
        if stored.unknown:
            raise SchemaError(
                f"{names.model_json(editor.model)}: expected no keys of a newer schema, got {len(stored.unknown)} "
                f"that rewriting this program would lose ({stored.unknown[0]}, …); upgrade pt2kit"
            )
        parts.put(names.model_json(editor.model), codec.encode(program))
    write_weights(parts, editor.model, editor.weights, editor.constants)
    parts.drop_unused()
    result, notes = sample_inputs.pack(editor, parts, program)
    editor.notes += notes
    for payloads in (result.weights, result.constants):
        payloads(editor.model)  # Refuses those that differ from what the graph declares.
    return result


def package_alone(editor: EditState, program: schema.ExportedProgram) -> Package:
    """Return a package of a program and its weights, without other programs, sample inputs and extra files."""
    parts = editor.parts
    parts.reduce(editor.model)
    write_weights(parts, editor.model, editor.weights, editor.constants)
    parts.put_program(editor.model, program)
    parts.drop_unused()
    return parts.package()


def _written(editor: EditState) -> schema.ExportedProgram:
    """Return the program with all edits; the one that was opened if nothing changed."""
    _check_interface(editor)
    idle = _idle_tokens(editor)
    inputs = [one for one in editor.inputs if one.value not in idle]
    outputs = [one for one in editor.outputs if one.value not in idle]
    old = editor.program.graph_module
    graph = editor.graph.written(without=idle)
    is_same = graph is old.graph or (graph == old.graph and codec.encode(graph) == codec.encode(old.graph))
    module = structs.replace(
        old,
        graph=old.graph if is_same else graph,
        signature=schema.GraphSignature([one.spec() for one in inputs], [one.spec() for one in outputs]),
        module_call_graph=editor.calls.written(),
        metadata=editor.metadata,
        treespec_namedtuple_fields=editor.namedtuple_fields,
    )
    program = structs.replace(
        editor.program,
        graph_module=module,
        range_constraints=needed_ranges(editor, graph),
        guards_code=editor.calls.guards(editor.guards, editor.namedtuple_fields),
        verifiers=editor.verifiers,
        opset_version=editor.opset_version,
    )
    return editor.program if is_same and program == editor.program else program


def _check_interface(editor: EditState) -> None:
    """Refuse tokens used as numbers and numbers used as tokens, which order effects, and names that torch loses."""
    for number, one in enumerate(editor.user_outputs):
        if one.value is not None and interface_edits.is_token(editor, one.value):
            raise GraphError(
                f"output {number}: expected a tensor or a number, got the token {quote(one.name)}, which "
                "torch takes out",
                rule="S13",
            )
    for one in editor.outputs:
        if one.kind == "token" and not (one.value is not None and interface_edits.is_token(editor, one.value)):
            raise GraphError(f"{one!r}: expected a token, got {quote(one.name)}, which is none", rule="S13")
        written = one.input.name if one.kind == "user_input_mutation" and one.input is not None else ""
        if hasattr(builtins, written) and written not in editor.graph.origin.tensor_values:
            raise GraphError(
                f"{one!r}: expected an input that is written to not to be named like a function of Python, got "
                f"{quote(written)}, which torch renames and does not find",
                rule="G8",
            )
    for node in filter(attrgetter("edit"), editor.graph.nodes):
        tokens = [interface_edits.is_token(editor, value) for value in node.inputs]
        if interface_edits.takes_token(node) and tokens[:1] != [True]:
            got = quote(node.inputs[0].name) if node.inputs else "no value"
            raise GraphError(f"{node.edit}: {node.label}: expected a token first, got {got}", rule="S13")
        if node.target.startswith(ATEN_OPS) and any(tokens):
            raise GraphError(f"{node.edit}: {node.label}: expected a tensor with numbers, got a token", rule="S13")


def _idle_tokens(editor: EditState) -> set[Value]:
    """Return tokens that are returned unchanged after the nodes that took them were erased: torch cannot run those."""
    going = {one.value for one in editor.outputs if one.kind == "token"}
    coming = {one.value for one in editor.inputs if one.kind == "token"}
    return {value for value in going & coming if value is not None and not value.users}
