"""State of a program that is being edited: what the functions that edit it read and change; its verification.

Edited programs are held against the rules of `checks`. Errors name the edit that caused them; those that the program
had before the edits are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pt2kit import graph as rules
from pt2kit import schema, signature
from pt2kit.checks.findings import context_of
from pt2kit.checks.higher_order import region_problems
from pt2kit.checks.run import RULES_OF_PROGRAMS
from pt2kit.checks.storages import storage_problems
from pt2kit.editing.assembly import Parts
from pt2kit.editing.calls import Calls, Condition
from pt2kit.editing.graphs import Graph, Node, Value
from pt2kit.editing.interface import Input, Output
from pt2kit.editing.sizes import symbols_of
from pt2kit.editing.weights import read_weights
from pt2kit.errors import GraphError, Problem, Pt2Error
from pt2kit.graph.traversal import tables
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
        self.verifiers = list(program.verifiers)
        self.opset_version = dict(program.opset_version)
        self.metadata = dict(module.metadata)
        self.namedtuple_fields = dict(module.treespec_namedtuple_fields)
        self.guards: list[Condition | str] = self.calls.conditions(program.guards_code, self.namedtuple_fields)
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
        return [one for one in self.inputs if one.is_user]

    @property
    def user_outputs(self) -> list[Output]:
        """Return the outputs that the caller gets, in order."""
        return [one for one in self.outputs if one.is_user]

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


def find_input(editor: EditState, name: str, edit: str, among: Iterable[Input] | None = None) -> Input:
    """Return an input by the name of its value or placeholder, or by its target in the state dict.

    Args:
        editor: the program.
        name: the name.
        edit: what messages call the edit.
        among: the inputs that it may be; all where it is None.

    Raises:
        GraphError: there is none.
    """
    for one in editor.inputs if among is None else among:
        if name in (one.name, one.target):
            return one
    there = ", ".join(one.name for one in editor.user_inputs[:8]) or "none"
    raise GraphError(f"{edit}: expected the name of an input ({there}), got {quote(name)}")


def check_unused(one: Input, what: str, edit: str, way_out: str = "") -> None:
    """Refuse to take out an input, of a kind that messages call `what`, that a node or an output uses."""
    value = one.value
    if value is not None and value.is_used:
        who = ", ".join(user.label for user in value.users[:3]) or "an output"
        raise GraphError(
            f"{edit}: expected {what} that nothing uses, got {quote(value.name)}, which {who} uses{way_out}"
        )


def forget_inputs(editor: EditState, gone: Iterable[Input]) -> None:
    """Remove inputs from the signature and the graph; the caller must ensure that their values have no users."""
    for one in gone:
        editor.inputs.remove(one)
        editor.graph.forget(one.slot)


_RECORD = "program"
"""The record of a program that is in no file, in messages."""
NEW_SYMBOL = (1, None)
"""The range of a symbol that the program did not have."""
_REFUSED = ("error", "safety")
"""The kinds of problems that an edited program must not have."""
_UNSURE = ("E8",)
"""Rules whose warnings say that torch may not load the program."""
_OF_RESULTS = ("T8", "T11")
"""Rules that compare what is declared of a result with what the call computes."""
_PLACE = re.compile(r"\.nodes\[(\d+)\]|\.\w+_values(?:\.(\w+)|\[['\"](.*?)['\"]\])")
"""A node of a graph, or the entry of a value, behind the place of the graph."""


def check_program(editor: EditState, program: schema.ExportedProgram) -> None:
    """Refuse a program that has errors which it did not have before.

    Raises:
        GraphError: the first of them, with the last edit at its place.
    """
    problems = list(_errors(program))
    if not problems:
        return
    known = {(problem.rule, problem.message) for problem in _errors(editor.program)}
    for problem in problems:
        if (problem.rule, problem.message) not in known:
            edit = _edit_at(editor, program, problem.loc)
            way_out = "; set its meta" if problem.rule in _OF_RESULTS and ".outputs[" in problem.loc else ""
            raise GraphError(f"{edit}{problem.loc}: {problem.message}{way_out}", rule=problem.rule)


def needed_ranges(editor: EditState, graph: schema.Graph) -> dict[str, schema.RangeConstraint]:
    """Return the ranges that a program needs: those it had, without removed symbols, and with new ones."""
    ranges = {name: schema.RangeConstraint(*limits) for name, limits in editor.ranges.items()}
    if graph is editor.graph.origin:
        return ranges
    before, after = _symbol_names(editor.graph.origin), _symbol_names(graph)
    # Symbols that no value had before are kept: the program states them without using them.
    kept = {name: limits for name, limits in ranges.items() if name in after or name not in before}
    new = [name for name in after if name not in kept and name not in before]
    return kept | dict.fromkeys(new, schema.RangeConstraint(*NEW_SYMBOL))


def _symbol_names(graph: schema.Graph) -> dict[str, None]:
    """Return the symbols in the metas of the values of a graph and its subgraphs, in the order of the tables."""
    found = [table.values() for scope in rules.graphs(graph) for table in tables(scope.graph).values()]
    distinct = {id(meta): meta for metas in found for meta in metas}
    return dict.fromkeys(symbol.name for meta in distinct.values() for symbol in symbols_of(meta))


def _errors(program: schema.ExportedProgram) -> Iterator[Problem]:
    context = context_of(program, _RECORD, schema.CURRENT.number)
    for rule in (*RULES_OF_PROGRAMS, region_problems, storage_problems):
        try:
            yield from (problem for problem in rule(context) if problem.kind in _REFUSED or problem.rule in _UNSURE)
        except Pt2Error as error:
            yield Problem(_RECORD, error.rule, str(error))


def _edit_at(editor: EditState, program: schema.ExportedProgram, loc: str) -> str:
    """Return the last edit at a location of the edited program, for messages: of its node or value, or, if these were
    not edited, of the node that carries its subgraph."""
    edited: Node | None = None
    for scope, graph in zip(rules.graphs(program), editor.graph.walk(), strict=True):
        place = _PLACE.match(loc.partition(scope.where)[2])
        if place is None:
            continue
        if place[1]:
            node: Node | None = graph.nodes[int(place[1])]
        else:
            value = graph.values.get(place[2] or place[3])
            node = value.producer if value is not None else None
        edited = node if node is not None and node.edit else edited
    return f"{edited.edit}: {edited.label}: " if edited is not None else ""
