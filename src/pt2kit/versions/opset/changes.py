"""Conversion of operator sets: a program stamped with other versions, converted to the expected ones.

`opset_version` says per namespace which meaning its operators have. A change of an operator's meaning is an
`OperatorChange` from one number to another; those between the program's number and the expected one are applied in
order, to every node of every graph. The changes of aten that torch knows are in `aten.py`; users pass their own for
their namespaces.

Problems and errors carry the rules O1 to O3 of `pt2kit.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.errors import LimitError, OperatorError, Problem, VersionError
from pt2kit.jsontext import Path, path_text
from pt2kit.versions.opset.aten import ATEN_CHANGES
from pt2kit.versions.opset.operator_change import OperatorChange, Replacement

EXPECTED: Final[Mapping[str, int]] = MappingProxyType({"aten": 10})
"""The numbers of torch 2.1 to 2.15."""

_MAX_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Converted:
    """A program with the expected numbers.

    Args:
        program: the same object if nothing changed.
        notes: which namespaces went from which number to which, and how many nodes changed.
        problems: namespaces that are not known (O2).
    """

    program: schema.ExportedProgram
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def convert_opset(
    program: schema.ExportedProgram,
    where: str,
    *,
    expected: Mapping[str, int] = EXPECTED,
    changes: Iterable[OperatorChange] = (),
) -> Converted:
    """Convert the operators of a program to the expected versions.

    Args:
        program: of the current schema.
        where: the record's name, for messages.
        expected: namespace -> number.
        changes: the user's, in addition to those of aten.

    Raises:
        VersionError: a number newer than the expected one that no change leads back from, or an expected number that
            no change leads to (O1).
        OperatorError: an operator with a change that begins before or ends behind the numbers in question (O3), or one
            that is an argument of another.
        ConversionError: a call that the older version does not have.
        LimitError: subgraphs nested too deep.
    """
    known = (*ATEN_CHANGES, *changes)
    numbers = dict(program.opset_version)
    problems: list[Problem] = []
    notes: list[str] = []
    for namespace, number in program.opset_version.items():
        place = f"{where}: {path_text(('opset_version', namespace))}"
        if namespace not in expected:
            listed = ", ".join(sorted(expected))
            message = (
                f"expected one of the namespaces {listed}, got an unknown one; its operators are taken as they are"
            )
            problems.append(Problem(place, "O2", message, "warning"))
            continue
        wanted = expected[namespace]
        own = [change for change in known if change.namespace == namespace]
        program, count = _convert(program, own, number, wanted, where, place)
        if number != wanted:
            numbers[namespace] = wanted
            notes.append(f"{place}: from {number} to {wanted}, {count} nodes changed")
    if notes:
        program = replace(program, opset_version=numbers)
    return Converted(program, tuple(notes), tuple(problems))


def _convert(
    program: schema.ExportedProgram, changes: list[OperatorChange], number: int, wanted: int, where: str, place: str
) -> tuple[schema.ExportedProgram, int]:
    """Apply the changes of one namespace between two numbers."""
    if number == wanted:
        return program, 0
    newest = max((max(change.from_version, change.to_version) for change in changes), default=0)
    if number > wanted and number > newest:
        raise VersionError(
            f"{place}: expected {wanted} or older, got {number}; a newer torch wrote the program, or the changes of "
            "its operators must be passed along",
            rule="O1",
        )
    if number < wanted and wanted > newest:
        raise VersionError(
            f"{place}: expected {wanted}, got {number}; what changed up to {newest or number} is known here, and the "
            "later changes of its operators must be passed along",
            rule="O1",
        )
    low, high = min(number, wanted), max(number, wanted)
    upwards = number < wanted
    chosen = [change for change in changes if (change.from_version < change.to_version) is upwards]
    chosen.sort(key=lambda change: (change.from_version, change.to_version), reverse=not upwards)
    count = 0
    for change in chosen:
        first, last = sorted((change.from_version, change.to_version))
        if last <= low or first >= high:
            continue
        walker = _Walker(change, where, is_whole=low <= first and last <= high, numbers=(number, wanted))
        graph = walker.graph(program.graph_module.graph, ("graph_module", "graph"), 0)
        count += walker.count
        if graph is not program.graph_module.graph:
            program = replace(program, graph_module=replace(program.graph_module, graph=graph))
    return program, count


@dataclass(slots=True)
class _Walker:
    """Applies one change to every graph of a program, inner ones first."""

    change: OperatorChange
    where: str
    is_whole: bool
    numbers: tuple[int, int]
    count: int = 0

    def graph(self, graph: schema.Graph, path: Path, depth: int) -> schema.Graph:
        if depth > _MAX_DEPTH:
            raise LimitError(f"{self.where}: expected subgraphs nested at most {_MAX_DEPTH} levels deep, got more")
        nodes: list[schema.Node] = []
        values: dict[str, schema.TensorMeta] = {}
        for index, node in enumerate(graph.nodes):
            place = (*path, "nodes", index)
            node = self._inner(node, place, depth)
            if node.target == self.change.target:
                new = self._node(node, graph, place)
                nodes += new.nodes
                values |= new.tensor_values
            else:
                nodes.append(node)
        if len(nodes) == len(graph.nodes) and all(map(_same, nodes, graph.nodes)):
            return graph
        return replace(graph, nodes=nodes, tensor_values={**graph.tensor_values, **values})

    def _node(self, node: schema.Node, graph: schema.Graph, path: Path) -> Replacement:
        place = f"{self.where}: {path_text(path)}"
        if not self.is_whole:
            number, wanted = self.numbers
            raise OperatorError(
                f"{place}: expected {self.change.target} to be known at {number} and {wanted}, got a change of it from "
                f"{self.change.from_version} to {self.change.to_version}",
                rule="O3",
            )
        new = self.change.convert(node, graph, place)
        self.count += new is not node
        return new if isinstance(new, Replacement) else Replacement((new,))

    def _inner(self, node: schema.Node, path: Path, depth: int) -> schema.Node:
        inputs = []
        for index, named in enumerate(node.inputs):
            argument = self._argument(named.arg, (*path, "inputs", index, "arg"), depth)
            inputs.append(named if argument is named.arg else replace(named, arg=argument))
        return node if all(map(_same, inputs, node.inputs)) else replace(node, inputs=inputs)

    def _argument(self, argument: schema.Argument, path: Path, depth: int) -> schema.Argument:
        if argument.as_graph is not UNSET:
            graph_argument = argument.as_graph
            graph = self.graph(graph_argument.graph, (*path, "as_graph", "graph"), depth + 1)
            return (
                argument
                if graph is graph_argument.graph
                else schema.Argument(as_graph=replace(graph_argument, graph=graph))
            )
        if argument.as_operator is not UNSET and argument.as_operator == self.change.target:
            raise OperatorError(
                f"{self.where}: {path_text((*path, 'as_operator'))}: expected an operator that did not change between "
                f"{self.numbers[0]} and {self.numbers[1]}, got {self.change.target}",
                rule="O3",
            )
        if argument.as_string_to_argument is not UNSET:
            if depth > _MAX_DEPTH:
                raise LimitError(f"{self.where}: expected arguments nested at most {_MAX_DEPTH} levels deep, got more")
            entries = argument.as_string_to_argument
            new = {key: self._argument(entry, (*path, key), depth + 1) for key, entry in entries.items()}
            if not all(map(_same, new.values(), entries.values())):
                return schema.Argument(as_string_to_argument=new)
        return argument


def _same(new: Any, old: Any) -> bool:
    return new is old
