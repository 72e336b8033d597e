"""Conversion of operator sets (`opset_version`): operators with changed meanings, converted to the expected versions.

`opset_version` says per namespace which meaning its operators have. A change of an operator's meaning is an
`OperatorChange` from one number to another; those between the program's number and the expected one are applied in
order, to every node of every graph. Users pass their own changes for their namespaces.

`ATEN_CHANGES` are those of aten that torch knows: the calls of each version, written for the next.

    4   div truncated integers; since then it is true division, and truncation is asked for
    5   full without a dtype made floats of whatever value
    8   linspace had 100 steps if none were given
    9   logspace likewise
    10  gelu had one formula, and got the argument `approximate`

No file of `torch.export` has another number than 10; these apply to programs that were stamped with an older one.

Problems and errors carry the rules O1 to O3 of `pt2kit.rules`.

Source: the meanings are those of torch/csrc/jit/operator_upgraders/ (2.13), whose upgraders keep TorchScript programs
of those numbers running. Complex numbers are divided truly here, as they always were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.errors import ConversionError, LimitError, OperatorError, Problem, VersionError
from pt2kit.jsontext import Path, path_text
from pt2kit.messages import count_text
from pt2kit.schema import ArgumentKind, ScalarType
from pt2kit.schema.names import ATEN_OPS

Convert = Callable[[schema.Node, schema.Graph, str], "schema.Node | Replacement"]
"""(node, its graph, its place) -> the node with another meaning of its operator; the same object if nothing changes."""

_WHOLE: Final = re.compile("BYTE|CHAR|SHORT|INT|LONG|BOOL|UINT.*")
"""Names of the element types of integers and truth values."""
_WHOLE_ARMS: Final = frozenset({"as_int", "as_bool", "as_sym_int", "as_sym_bool"})

EXPECTED: Final[Mapping[str, int]] = MappingProxyType({"aten": 10})
"""The numbers of torch 2.1 to 2.15."""

_MAX_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of a node after a change: nodes in order, and the metas of their new tensors.

    The last node must define the values that the old one did.
    """

    nodes: Sequence[schema.Node]
    tensor_values: Mapping[str, schema.TensorMeta] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperatorChange:
    """One change of one operator.

    Args:
        namespace: "aten".
        operator: name and overload: "div.Tensor".
        from_version, to_version: numbers of the operator set; the second is the smaller one for a downgrade.
        convert: turns a call with the first meaning into one with the second.
    """

    namespace: str
    operator: str
    from_version: int
    to_version: int
    convert: Convert

    @property
    def target(self) -> str:
        """Return the target of the nodes that it applies to."""
        return f"torch.ops.{self.namespace}.{self.operator}"


def truncate_division(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `div` of 3 to 4: of integers with rounding_mode "trunc", of anything else unchanged."""
    names = ("self", "other", "out") if node.target.endswith(".out") else ("self", "other")
    if not all(_is_whole(_argument(node, name), graph, place) for name in names):
        return node
    name, _, overload = node.target.removeprefix(ATEN_OPS).partition(".")
    mode = _named("rounding_mode", schema.Argument(as_string="trunc"))
    target = f"{ATEN_OPS}{name}.{'out_mode' if overload == 'out' else f'{overload}_mode'}"
    return replace(node, target=target, inputs=[*node.inputs, mode])


def divide_truly(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `div` of 4 to 3: of integers under the name `true_divide`, of anything else unchanged."""
    if not all(_is_whole(_argument(node, name), graph, place) for name in ("self", "other")):
        return node
    return replace(node, target=node.target.replace(f"{ATEN_OPS}div", f"{ATEN_OPS}true_divide"))


def fill_with_float(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `full` of 4 to 5: a value that is no float becomes one, unless a dtype is passed."""
    value = _argument(node, "fill_value")
    if value is not None and not _given(node, "dtype"):
        for number in (value.as_int, value.as_bool):
            if number is not UNSET:
                return _with(node, "fill_value", schema.Argument(as_float=float(number)))
    return fill_with_dtype(node, graph, place)


def fill_with_dtype(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `full` of 5 to 4: the dtype is written out, if it follows from a value that is no float."""
    value = _argument(node, "fill_value")
    if value is None or _given(node, "dtype") or value.type not in _WHOLE_ARMS:
        return node
    return _with(node, "dtype", schema.Argument(as_scalar_type=_result_type(node, graph, place)))


def _stating(name: str, value: schema.Argument, *, after: str = "") -> Convert:
    """Return a conversion that writes out the default of an argument."""
    return lambda node, *_: node if _given(node, name) else _with(node, name, value, after=after)


def drop_formula(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `gelu` of 10 to 9, which has only one formula.

    Raises:
        ConversionError: another formula.
    """
    del graph  # the node says it all
    argument = _argument(node, "approximate")
    if argument is None:
        return node
    if argument.as_string != "none":
        raise ConversionError(f"{place}: expected gelu with approximate 'none' for aten 9, got {argument.value!r}")
    return replace(node, inputs=[named for named in node.inputs if named.name != "approximate"])


def _changes(names: tuple[str, ...], from_version: int, to_version: int, convert: Convert) -> list[OperatorChange]:
    return [OperatorChange("aten", name, from_version, to_version, convert) for name in names]


# linspace of 7 and logspace of 8 had a default number of steps, gelu of 9 had one formula.
_STEPS: Final = _stating("steps", schema.Argument(as_int=100), after="end")
_FORMULA: Final = _stating("approximate", schema.Argument(as_string="none"))
_DIVISIONS: Final = ("div.Tensor", "div.Scalar", "div_.Tensor", "div_.Scalar", "div.out")

ATEN_CHANGES: Final = (
    *_changes(_DIVISIONS, 3, 4, truncate_division),
    *_changes(_DIVISIONS, 4, 3, divide_truly),
    *_changes(("full.default",), 4, 5, fill_with_float),
    *_changes(("full.default",), 5, 4, fill_with_dtype),
    *_changes(("linspace.default", "linspace.out"), 7, 8, _STEPS),
    *_changes(("logspace.default", "logspace.out"), 8, 9, _STEPS),
    *_changes(("gelu.default", "gelu.out"), 9, 10, _FORMULA),
    *_changes(("gelu.default", "gelu.out"), 10, 9, drop_formula),
)
"""Up and down; where there is no way down, the newer call means the same in the older set."""


def _argument(node: schema.Node, name: str) -> schema.Argument | None:
    return next((named.arg for named in node.inputs if named.name == name), None)


def _given(node: schema.Node, name: str) -> bool:
    """Return whether an argument is present and not None."""
    argument = _argument(node, name)
    return argument is not None and argument.as_none is UNSET


def _named(name: str, argument: schema.Argument) -> schema.NamedArgument:
    return schema.NamedArgument(name, argument, ArgumentKind.KEYWORD)


def _with(node: schema.Node, name: str, argument: schema.Argument, *, after: str = "") -> schema.Node:
    """Return the node with another value of an argument; a missing argument is added after `after`, or at the end."""
    if _argument(node, name) is not None:
        inputs = [replace(named, arg=argument) if named.name == name else named for named in node.inputs]
        return replace(node, inputs=inputs)
    place = next((index + 1 for index, named in enumerate(node.inputs) if named.name == after), len(node.inputs))
    return replace(node, inputs=[*node.inputs[:place], _named(name, argument), *node.inputs[place:]])


def _is_whole(argument: schema.Argument | None, graph: schema.Graph, place: str) -> bool:
    """Return whether an argument is an integer or a tensor of integers; missing ones count as such."""
    if argument is None:
        return True
    if argument.as_tensor is UNSET:
        return argument.type in _WHOLE_ARMS
    name = argument.as_tensor.name
    if name not in graph.tensor_values:
        raise OperatorError(f"{place}: expected {name!r} among the tensor values, which say its dtype, got none")
    return _WHOLE.fullmatch(graph.tensor_values[name].dtype.name) is not None


def _result_type(node: schema.Node, graph: schema.Graph, place: str) -> ScalarType:
    """Return the dtype of a node's first result."""
    for output in node.outputs:
        if output.as_tensor is not UNSET and output.as_tensor.name in graph.tensor_values:
            return graph.tensor_values[output.as_tensor.name].dtype
    raise OperatorError(f"{place}: expected a result among the tensor values, which say its dtype, got none")


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
            notes.append(f"{place}: from {number} to {wanted}, {count_text(count, 'node')} changed")
    if notes:
        program = replace(program, opset_version=numbers)
    return Converted(program, tuple(notes), tuple(problems))


def _convert(
    program: schema.ExportedProgram, changes: list[OperatorChange], number: int, wanted: int, where: str, place: str
) -> tuple[schema.ExportedProgram, int]:
    """Apply the changes of one namespace between two numbers."""
    if number == wanted:
        return program, 0
    if number < 1:
        raise VersionError(f"{place}: expected a number from 1 to {wanted}, got {number}", rule="O1")
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
        if walker.count:
            program = replace(program, graph_module=replace(program.graph_module, graph=graph))
    return program, count


@dataclass(slots=True)
class _Walker:
    """Applies one change to every graph of a program, inner ones first; `count` says whether any node changed."""

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
            inputs = [
                replace(named, arg=self._argument(named.arg, (*place, "inputs", number, "arg"), depth))
                for number, named in enumerate(node.inputs)
            ]
            new = self._node(replace(node, inputs=inputs), graph, place)
            nodes += new.nodes
            values |= new.tensor_values
        return replace(graph, nodes=nodes, tensor_values={**graph.tensor_values, **values})

    def _node(self, node: schema.Node, graph: schema.Graph, path: Path) -> Replacement:
        if node.target != self.change.target:
            return Replacement((node,))
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

    def _argument(self, argument: schema.Argument, path: Path, depth: int) -> schema.Argument:
        if argument.as_graph is not UNSET:
            graph = self.graph(argument.as_graph.graph, (*path, "as_graph", "graph"), depth + 1)
            return schema.Argument(as_graph=replace(argument.as_graph, graph=graph))
        if argument.as_operator is not UNSET and argument.as_operator == self.change.target:
            raise OperatorError(
                f"{self.where}: {path_text((*path, 'as_operator'))}: expected an operator that did not change between "
                f"{self.numbers[0]} and {self.numbers[1]}, got {self.change.target}",
                rule="O3",
            )
        if argument.as_string_to_argument is not UNSET:
            if depth > _MAX_DEPTH:
                raise LimitError(f"{self.where}: expected arguments nested at most {_MAX_DEPTH} levels deep, got more")
            entries = argument.as_string_to_argument.items()
            return schema.Argument(
                as_string_to_argument={key: self._argument(entry, (*path, key), depth + 1) for key, entry in entries}
            )
        return argument
