"""State of a program that is being edited: what the functions that edit it read and change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pt2kit import schema, signature
from pt2kit.editing.assembly import Parts
from pt2kit.editing.calls import Calls
from pt2kit.editing.graphs import Graph, Node, Value
from pt2kit.editing.interface import Input, Output
from pt2kit.editing.weights import read_weights
from pt2kit.errors import GraphError
from pt2kit.messages import quote
from pt2kit.package.layouts.base import PLAIN_MODEL
from pt2kit.package.open import Package


class EditState:
    """A program and its weights, with all edits so far. `editor.Editor` adds the edits as methods.

    Attributes:
        program: the program as it was opened, or replaced.
        opened: the program as it was opened.
        stored_weights: the weights and the constants as they were opened.
        namedtuple_fields: the fields of the named tuples among inputs and outputs.
        samples, notes, and all others: as in `editor.Editor`.
    """

    def __init__(
        self,
        program: schema.ExportedProgram,
        package: Package | None = None,
        parts: Parts | None = None,
        model: str = PLAIN_MODEL,
        source: Package | None = None,
    ) -> None:
        module = program.graph_module
        self.program = program
        self.opened = program
        self.model = model
        self._package = package
        self._parts = parts
        self._source = source
        self.graph = Graph(module.graph, "$.graph_module.graph")
        signature.from_schema(module)  # Refuses a signature that does not fit the graph (S1 to S14).
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
        self.stored_weights = [dict(table) for table in (self.weights, self.constants)]
        self.ranges = {name: (one.min_val, one.max_val) for name, one in program.range_constraints.items()}
        self.guards = list(program.guards_code)
        self.verifiers = list(program.verifiers)
        self.opset_version = dict(program.opset_version)
        self.metadata = dict(module.metadata)
        self.namedtuple_fields = dict(module.treespec_namedtuple_fields)
        self.samples: dict[Input, Any] | None = None
        self.notes: list[str] = []

    @property
    def has_weights(self) -> bool:
        """Return whether there is a package with weights to edit, and not only a program."""
        return self._parts is not None

    @property
    def opened_package(self) -> Package | None:
        """Return the package that was opened, in the current layout; None if there is only a program."""
        return self._package

    @property
    def parts(self) -> Parts:
        """Return the records of the package that was opened.

        Raises:
            GraphError: there is only a program.
        """
        if self._parts is None:
            raise GraphError(f"{self!r}: expected a package, got a program alone")
        return self._parts

    @property
    def source_package(self) -> Package:
        """Return the package that was opened.

        Raises:
            GraphError: there is only a program.
        """
        if self._source is None:
            raise GraphError(f"{self!r}: expected a package, got a program alone")
        return self._source

    @property
    def nodes(self) -> Iterable[Node]:
        """Return the nodes of all graphs, subgraphs included, each graph in order."""
        return (node for graph in self.graph.walk() for node in graph.nodes)

    @property
    def user_inputs(self) -> list[Input]:
        """Return the inputs that the caller passes, in order."""
        return [one for one in self.inputs if one.kind in ("user_input", "constant_input")]

    @property
    def user_outputs(self) -> list[Output]:
        """Return the outputs that the caller gets, in order."""
        return [one for one in self.outputs if one.kind in ("user_output", "loss_output")]

    def value(self, name: str) -> Value:
        """Return a value of the program's graph by its name.

        Raises:
            GraphError: there is none.
        """
        return self.graph.value(name)

    def input(self, name: str) -> Input:
        """Return an input by the name of its value, or of the weight or constant that it takes.

        Raises:
            GraphError: there is none.
        """
        return find_input(self, name, "input")


def find_input(editor: EditState, name: str, edit: str) -> Input:
    """Return an input by the name of its value or placeholder, or by its target in the state dict."""
    for one in editor.inputs:
        if name in (one.name, one.target):
            return one
    there = ", ".join(one.name for one in editor.user_inputs[:8]) or "none"
    raise GraphError(f"{edit}: expected the name of an input ({there}), got {quote(name)}")
