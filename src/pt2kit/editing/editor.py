"""`Editor`: a program that can be changed, with its weights; leaving it gives a new sound program or package.

    with pt2kit.edit("model.pt2") as editor:
        relu = editor.graph.nodes["relu"]
        relu.retarget("aten.gelu")
        editor.rename_input("x", "input_ids")
    pt2kit.write(editor.result, "new.pt2")

What was opened is never changed. Every edit is checked when it is made; the whole is checked when the editor is left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import IO, Any, TypeAlias, cast, overload

from pt2kit import schema
from pt2kit.editing import interface_edits, soundness, weight_edits
from pt2kit.editing.assembly import Parts, is_current, parts_of
from pt2kit.editing.calls import Calls
from pt2kit.editing.finishing import finished, written
from pt2kit.editing.graphs import Graph
from pt2kit.editing.interface import Input, Output
from pt2kit.editing.nodes import Node
from pt2kit.editing.values import Value
from pt2kit.editing.weights import read_weights
from pt2kit.errors import ArchiveError, GraphError
from pt2kit.messages import listed, printable, quote
from pt2kit.package.open import Package, open_package
from pt2kit.package.write import write_package
from pt2kit.zip.opening import FileLike

Source: TypeAlias = "FileLike | Package | schema.ExportedProgram"
Result: TypeAlias = "Package | schema.ExportedProgram"


@overload
def edit(source: schema.ExportedProgram, model: str | None = None) -> ProgramEditor: ...
@overload
def edit(source: FileLike | Package, model: str | None = None) -> PackageEditor: ...
def edit(source: Source, model: str | None = None) -> Editor:
    """Open a program to change it.

    Args:
        source: an open package, whatever `pt2kit.open` takes, or a program alone, which has no weights.
        model: which program of a package; the only one, or "model", where it is None. The others go over as they are.

    Returns:
        The editor: use it in a `with` block, or call `finish()`. Packages of older releases are raised to today's
        layout and schema.

    Raises:
        GraphError: no such program, or one that contradicts itself.
        OSError, Pt2Error: the file cannot be read.

    Cost: linear in the program; weights are not read.
    """
    if isinstance(source, schema.ExportedProgram):
        return ProgramEditor(source)
    package = source if isinstance(source, Package) else open_package(source)
    chosen = package.layout.choose(model)
    if chosen is None:
        known = listed(package.layout.models, 20) or "none"
        raise ArchiveError(f"{package.name}: expected model= to be one of {known}, got {printable(str(model))}")
    parts = parts_of(package)
    opened = package if is_current(package) else parts.package()
    return PackageEditor(opened.programs[chosen], opened, parts, chosen, package)


class Editor:
    """A program that is being edited, and its weights. `edit` makes one.

    Attributes:
        graph: the program's graph; subgraphs are those of its nodes.
        inputs: what comes in, in order: weights, constants, tokens, and what the caller passes.
        outputs: what goes out, in order.
        weights: parameters and persistent buffers by name; change them with the methods below.
        constants: constants, other buffers and objects by name, likewise.
        ranges: symbol -> (least, greatest) size; None is unbounded. Change it as a dict.
        guards: conditions on the inputs, as text.
        verifiers, opset_version, metadata: as the schema has them, to be changed in place.
        notes: what was lost besides, as text.
    """

    def __init__(
        self,
        program: schema.ExportedProgram,
        package: Package | None = None,
        parts: Parts | None = None,
        model: str = "model",
        source: Package | None = None,
    ) -> None:
        module = program.graph_module
        self.program = program
        self._opened = program
        self.model = model
        self._package = package
        self._parts = parts
        self._source = source
        self.graph = Graph(module.graph, "$.graph_module.graph")
        soundness.check_specs(module)
        self.inputs = [
            Input(spec, slot) for spec, slot in zip(module.signature.input_specs, self.graph.input_slots, strict=True)
        ]
        by_name = {one.name: one for one in self.inputs}
        self.outputs = [
            Output(spec, slot, by_name)
            for spec, slot in zip(module.signature.output_specs, self.graph.output_slots, strict=True)
        ]
        self.graph.follow(self.inputs, self.outputs)
        self.calls = Calls(module, self.graph, self.inputs, self.outputs)
        self.weights, self.constants = read_weights(package, parts, model)
        self._stored_weights = [dict(table.entries) for table in (self.weights, self.constants)]
        self.ranges = {name: (one.min_val, one.max_val) for name, one in program.range_constraints.items()}
        self.guards = list(program.guards_code)
        self.verifiers = list(program.verifiers)
        self.opset_version = dict(program.opset_version)
        self.metadata = dict(module.metadata)
        self._result: Result | None = None
        self.notes: list[str] = []

    @property
    def result(self) -> Result:
        """What came of it, once the editor was left: as `finish` gives it.

        Raises:
            GraphError: the editor was not left yet, or an error ended it.
        """
        if self._result is None:
            raise GraphError(f"{self!r}: expected one that was left, by its `with` block or finish(), for a result")
        return self._result

    @property
    def has_weights(self) -> bool:
        """Whether there is a package whose weights can be changed, and not a program alone."""
        return self._parts is not None

    @property
    def parts(self) -> Parts:
        """The records of the package that was opened.

        Raises:
            GraphError: there is only a program.
        """
        if self._parts is None:
            raise GraphError(f"{self!r}: expected a package, got a program alone")
        return self._parts

    @property
    def nodes(self) -> Iterable[Node]:
        """The nodes of all graphs, subgraphs included, each graph in order."""
        return (node for graph in self.graph.walk() for node in graph.nodes)

    @property
    def user_inputs(self) -> list[Input]:
        """What the caller passes, in order."""
        return [one for one in self.inputs if one.kind in ("user_input", "constant_input")]

    @property
    def user_outputs(self) -> list[Output]:
        """What the caller gets, in order."""
        return [one for one in self.outputs if one.kind in ("user_output", "loss_output")]

    def input(self, name: str) -> Input:
        """An input by the name of its value, or of the weight or constant that it takes.

        Raises:
            GraphError: there is none.
        """
        return interface_edits.find_input(self, name, "input")

    def value(self, name: str) -> Value:
        """A value of the program's graph by its name.

        Raises:
            GraphError: there is none.
        """
        return self.graph.value(name)

    def add_input(self, name: str, meta: Any, *, keyword: bool = False, position: int | None = None) -> Value:
        """Let the caller pass one value more.

        Args:
            name: of the value, and of the argument.
            meta: what it is like: a `Value`, a `schema.TensorMeta` (`tensor_meta` makes one), or what else the value
                tables hold. Symbols that the program does not have get the range from 1 on; `ranges` changes it.
            keyword: whether it is passed by name, behind all others.
            position: among the positional arguments; at their end where it is None.

        Raises:
            GraphError: a name that is taken, or a call that is not known.
        """
        return interface_edits.add_input(self, name, meta, keyword, position)

    def drop_input(self, name: str) -> None:
        """Let the caller pass one argument less.

        Args:
            name: of a value or constant that nothing uses any more, or of an argument, with all that is in it.

        Raises:
            GraphError: something uses it, or it stands in a container of a shape of its own.
        """
        interface_edits.drop_input(self, name)

    def rename_input(self, old: str, new: str) -> None:
        """Give an input another name: its value, its argument or keyword, and where guards ask for it.

        Raises:
            GraphError: there is none of that name, or the new one is taken or no identifier.
        """
        interface_edits.rename_input(self, old, new)

    def reorder_inputs(self, order: Sequence[str]) -> None:
        """Let the caller pass the positional arguments in another order.

        Args:
            order: the names of all positional arguments.

        Raises:
            GraphError: other names than those.
        """
        interface_edits.reorder_inputs(self, order)

    def freeze_input(self, name: str, numbers: Any = None) -> None:
        """Make a constant of what the caller passes; it passes one argument less then.

        Args:
            name: of the input.
            numbers: an array for a tensor, an int for a sym_int; None for an input that is a constant already. Symbols
                that are sizes of the array become numbers everywhere.

        Raises:
            GraphError: an array of another type or of sizes that do not fit, or an input of another kind.
        """
        interface_edits.freeze_input(self, name, numbers)

    def specialize(self, symbol: str, number: int) -> None:
        """Let a symbol be a number in everything that is stated of values; nodes that compute it stay as they are.

        Raises:
            GraphError: there is no such symbol, or the number is not in its range.
        """
        interface_edits.specialize(self, symbol, number)

    def add_output(self, value: str | Value, *, key: str | None = None, position: int | None = None) -> Output:
        """Give the caller one value more.

        Args:
            value: of the program's graph.
            key: where the program returns a dict.
            position: among the items of the tuple, list or dict that the program returns; at the end where it is None.
                A program that returns one value returns a tuple then.

        Raises:
            GraphError: a value that the format has no output for, or results in a container of a shape of its own.
        """
        return interface_edits.add_output(self, value, key, position)

    def drop_output(self, which: int | str) -> None:
        """Give the caller one value less.

        Args:
            which: its number among what the caller gets, from 0, or its name. A program whose last output goes returns
                an empty tuple. By its name also a write to a buffer, parameter or input goes.

        Raises:
            GraphError: there is none, or it stands in a container of a shape of its own.
        """
        interface_edits.drop_output(self, which)

    def rename_output(self, old: str, new: str) -> None:
        """Give the value of an output another name, and the key of a dict that had its name.

        Raises:
            GraphError: there is none, or the new name is taken or no identifier.
        """
        interface_edits.rename_output(self, old, new)

    def reorder_outputs(self, order: Sequence[int | str]) -> None:
        """Give the caller the items of the tuple or list that the program returns in another order.

        Args:
            order: the old numbers, from 0, in the new order; or names of values.

        Raises:
            GraphError: other numbers or names than those.
        """
        interface_edits.reorder_outputs(self, order)

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

    def set_weight(self, name: str, numbers: Any) -> None:
        """Put other numbers into a weight or constant, of the same element type and sizes.

        Names that are tied to it get them too; `untie` first where they should not.

        Raises:
            GraphError: there is none of that name, or its type or sizes are others.
        """
        weight_edits.set_numbers(self, name, numbers)

    def load_weights(self, source: Any, *, prefix: str = "", strict: bool = True) -> list[str]:
        """Put the numbers of another file into all weights and constants that it has.

        Args:
            source: a mapping from names to arrays or payloads, the path of a `.safetensors` file or of the index of
                sharded ones, an open package, or the path of a `.pt2`.
            prefix: what stands in front of every name there.
            strict: refuse names that the program does not have, and parameters that the source does not.

        Returns:
            the names that were set.

        Raises:
            GraphError: types or sizes that differ, or names that are missing.
        """
        return weight_edits.load(self, source, prefix, strict)

    def rename_weight(self, old: str, new: str) -> None:
        """Give a parameter, buffer or constant another name in the state dict.

        Raises:
            GraphError: there is none of that name, or the new one is taken.
        """
        weight_edits.rename(self, old, new)

    def drop_weight(self, name: str) -> None:
        """Take a weight or constant out, and the input of the graph that takes it.

        Raises:
            GraphError: there is none of that name, or something uses it.
        """
        weight_edits.drop(self, name)

    def tie(self, name: str, to: str) -> None:
        """Let one weight be the same memory as another of the same type and sizes; its own numbers go.

        Raises:
            GraphError: types or sizes differ.
        """
        weight_edits.tie(self, name, to)

    def untie(self, name: str) -> None:
        """Give a weight a copy of its numbers that no other name shares.

        Raises:
            GraphError: there is none of that name, or it is no dense tensor.
        """
        weight_edits.untie(self, name)

    def convert_weight(self, name: str, kind: str, *, persistent: bool = True) -> None:
        """Make a parameter, buffer or constant one of the other two.

        Args:
            name: of the weight.
            kind: "parameter", "buffer", "tensor_constant" (or "constant").
            persistent: whether a buffer is in the state dict.

        Raises:
            GraphError: the program writes it, or it has a gradient, which the new kind has not.
        """
        weight_edits.convert(self, name, kind, persistent)

    def replace_program(self, program: schema.ExportedProgram) -> None:
        """Take another program with the same weights: one that was written or changed as text.

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
        weights, constants, stored, opened = self.weights, self.constants, self._stored_weights, self.program
        self.__dict__.update(new.__dict__)
        self.weights, self.constants, self._stored_weights, self._opened = weights, constants, stored, opened

    def check(self) -> schema.ExportedProgram:
        """The program as it is now, checked; the editor goes on.

        Raises:
            GraphError: the edits made something unsound; the message names the place and the last edit there.
        """
        program = written(self)
        if program is not self.program:
            soundness.check_program(self, program)
        return program

    def finish(self) -> Result:
        """The result: a program where a program was opened, else a package, which can be written.

        Raises:
            GraphError: as `check`.
            SchemaError: keys that this build does not know would be lost.
        """
        self._result = finished(self)
        return self._result

    def write(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Finish, and write the package to a path or file object.

        Raises:
            GraphError: there is only a program, or as `finish`.
            OSError: the target cannot be written.
        """
        result = self._result or self.finish()
        if not isinstance(result, Package):
            raise GraphError("write: expected a package to write, got a program alone; pt2kit.edit a package")
        write_package(result, target)

    def __enter__(self) -> Editor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._result is None:
            self.finish()

    def __repr__(self) -> str:
        return f"<Editor of {quote(self.model)}: {len(self.graph.nodes)} nodes>"


class ProgramEditor(Editor):
    """An editor of a program alone, which has no weights: its result is a program."""

    @property
    def result(self) -> schema.ExportedProgram:
        """As `Editor.result`."""
        return cast("schema.ExportedProgram", super().result)

    def finish(self) -> schema.ExportedProgram:
        """As `Editor.finish`."""
        return cast("schema.ExportedProgram", super().finish())

    def __enter__(self) -> ProgramEditor:
        return self


class PackageEditor(Editor):
    """An editor of a program in a package: its result is a package."""

    @property
    def result(self) -> Package:
        """As `Editor.result`."""
        return cast("Package", super().result)

    def finish(self) -> Package:
        """As `Editor.finish`."""
        return cast("Package", super().finish())

    def __enter__(self) -> PackageEditor:
        return self
