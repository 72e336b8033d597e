"""Def-use index of a graph: the definition and the uses of each value by name, or every contradiction, as data.

One pass (`Scan`) finds the definitions and uses of values, and violations of the rules about them. `index` stops at the
first error; `problems` takes them all. Each graph has names of its own, so a subgraph gets an index of its own
(`indexes`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from pt2kit import schema
from pt2kit.errors import GraphError, LimitError, Problem, attempt
from pt2kit.graph.argument_values import (
    ARGUMENTS_TOO_DEEP,
    LIMIT_RULE,
    ONE_CONSTANT,
    ONE_VALUE,
    Reference,
    ValueKind,
    graph_arguments,
    references,
)
from pt2kit.graph.traversal import (
    MAX_SUBGRAPH_DEPTH,
    TOO_DEEP,
    Meta,
    Scope,
    Source,
    Step,
    argument_place,
    carried,
    entry_place,
    graphs,
    kinds,
    root,
    table_problems,
    tables,
)
from pt2kit.messages import count_text, quote
from pt2kit.schema.names import MODULE_ATTRIBUTES, is_variable


class Definition(NamedTuple):
    """The definition of a value.

    Args:
        name: the name of the value.
        kind: the kind of value.
        node: the number of the node, from 0; None for a graph input.
        position: which output of the node, or which graph input, from 0.
        item: which value of a list of outputs, from 0.
    """

    name: str
    kind: ValueKind
    node: int | None
    position: int
    item: int = 0


class Use(NamedTuple):
    """A use of a value.

    Args:
        node: the number of the node, from 0; None for a graph output.
        position: which argument of the node, or which graph output, from 0.
        item: which of the values that the argument names, from 0.
    """

    node: int | None
    position: int
    item: int = 0


class Scan:
    """A pass over one graph: `run` iterates what is wrong and fills in the rest on the way.

    Args:
        graph: the graph; its subgraphs are not entered.
        where: its place, for messages.
    """

    def __init__(self, graph: schema.Graph, where: str) -> None:
        self.graph = graph
        self.where = where
        self.definitions: dict[str, Definition] = {}
        self.uses: dict[str, list[Use]] = {}
        self.externals: dict[str, None] = {}
        self._kinds = kinds(graph)
        self._definers: dict[str, int] | None = None
        self._subgraphs: dict[str, tuple[schema.Graph, str]] = {}

    def run(self) -> Iterator[Problem]:
        """Yield problems: of the value tables, then in the order of the graph, then of leftovers."""
        graph = self.graph
        yield from table_problems(graph, self.where)
        for position, argument in enumerate(graph.inputs):
            yield from _one_value_problems(argument, argument_place(self.where, "inputs", None, position))
            yield from self._define(argument, None, position)
        for number, node in enumerate(graph.nodes):
            for position, named in enumerate(node.inputs):
                yield from self._use(named.arg, number, position)
            for position, argument in enumerate(node.outputs):
                yield from self._define(argument, number, position)
            if node.is_hop_single_tensor_return:
                yield from single_tensor_problems(node, f"{self.where}.nodes[{number}]")
        for position, argument in enumerate(graph.outputs):
            yield from self._use(argument, None, position)
        if graph.is_single_tensor_return:
            stated = "a value, as is_single_tensor_return"
            yield from _single_output_problems(graph.outputs, ONE_VALUE, stated, "G12", self.where)
        if len(self._kinds) != len(self.definitions):
            yield from self._left_over()

    def _define(self, argument: schema.Argument, node: int | None, position: int) -> Iterator[Problem]:
        place = argument_place(self.where, "outputs" if node is not None else "inputs", node, position)
        if (value_references := attempt(references, argument)) is None:
            yield Problem(place, LIMIT_RULE, ARGUMENTS_TOO_DEEP)
            return
        if node is not None and graph_arguments(argument):
            yield Problem(place, "G10", "expected the values that the node defines, got a subgraph")
        for item, (name, kind, _) in enumerate(value_references):
            if name in self.definitions:
                first = self.definitions[name]
                owner = f"inputs[{first.position}]" if first.node is None else f"nodes[{first.node}]"
                message = f"expected a name that is not taken, got {quote(name)}, which {owner} defines"
                yield Problem(place, "G2", message)
                continue
            self.definitions[name] = Definition(name, kind, node, position, item)
            self.uses[name] = []
            if (recorded := self._kinds.get(name)) != kind:
                got = f"one in {recorded}_values" if recorded else "none"
                yield Problem(place, "G3", f"expected an entry for {quote(name)} in {kind}_values, got {got}")
            if not name.isidentifier():
                yield Problem(place, "G8", f"expected an identifier as the name of a value, got {quote(name)}")

    def _use(self, argument: schema.Argument, node: int | None, position: int) -> Iterator[Problem]:
        place = argument_place(self.where, "outputs" if node is None else "inputs", node, position)
        if (value_references := attempt(references, argument)) is None:
            yield Problem(place, LIMIT_RULE, ARGUMENTS_TOO_DEEP)
            return
        for item, reference in enumerate(value_references):
            definition = self.definitions.get(reference.name)
            if definition is None:
                yield from self._not_defined(reference, node, position, place)
                continue
            self.uses[reference.name].append(Use(node, position, item))
            if reference.certain and reference.kind != definition.kind:
                expected = f"expected the name of a {reference.kind} value"
                got = f"{quote(reference.name)}, which is a {definition.kind} value"
                yield Problem(place, "G7", f"{expected}, got {got}")
        subgraphs = graph_arguments(argument)
        if node is None and subgraphs:
            yield Problem(place, "G10", "expected values or constants, got a subgraph")
            return
        for _, subgraph in subgraphs:  # Two of one name have one module then, that of the last one.
            first, owner = self._subgraphs.setdefault(subgraph.name, (subgraph.graph, place))
            if first is not subgraph.graph and first != subgraph.graph:
                got = f"{quote(subgraph.name)}, which another one has, {owner}"
                message = f"expected a name of its own for a subgraph, got {got}"
                yield Problem(place, "G16", message)

    def _not_defined(self, reference: Reference, node: int | None, position: int, place: str) -> Iterator[Problem]:
        """Yield the error of a use before any definition; none if the constants hold the object."""
        name = reference.name
        if self._definers is None:
            self._definers = _definers(self.graph)
        later = self._definers.get(name)
        if reference.kind == "custom_obj" and later is None and name not in self._kinds:
            self.externals[name] = None
            return
        definer = "nothing defines" if later is None else f"nodes[{later}] defines, which is not earlier"
        by = "" if node is None else f" ({self._argument_text(node, position)})"
        expected = "expected the name of a graph input or of an earlier node's result"
        yield Problem(place, "G1", f"{expected}, got {quote(name)}, which {definer}{by}")

    def _left_over(self) -> Iterator[Problem]:
        for name, kind in self._kinds.items():
            if name not in self.definitions:
                message = f"expected entries for the values of the graph alone, got one for {quote(name)}; drop it"
                yield Problem(entry_place(self.where, kind, name), "G5", message, "warning")

    def _argument_text(self, node: int, position: int) -> str:
        """Return an argument as its operator names it: "argument 'other' of torch.ops.aten.add.Tensor"."""
        schema_node = self.graph.nodes[node]
        name = schema_node.inputs[position].name
        return f"argument {quote(name) if name else position} of {quote(schema_node.target)[1:-1]}"


def _definers(graph: schema.Graph) -> dict[str, int]:
    """Return the index of the first node that defines each name, as far as names can be read."""
    definers: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        for argument in node.outputs:
            for reference in attempt(references, argument) or ():
                definers.setdefault(reference.name, number)
    return definers


def single_tensor_problems(node: schema.Node, where: str) -> Iterator[Problem]:
    """Yield problems of the outputs of a node whose `is_hop_single_tensor_return` is true (G13).

    Args:
        node: the node.
        where: its place.
    """
    stated = "a tensor, as is_hop_single_tensor_return"
    yield from _single_output_problems(node.outputs, ("as_tensor",), stated, "G13", where)


def _single_output_problems(
    outputs: Sequence[schema.Argument], arms: Collection[str], stated: str, rule: str, where: str
) -> Iterator[Problem]:
    """Yield the problem of outputs that are not one of certain arms, as a flag of their node or graph states."""
    if len(outputs) != 1 or outputs[0].type not in arms:
        got = outputs[0].type if len(outputs) == 1 else count_text(len(outputs), "output")
        yield Problem(f"{where}.outputs", rule, f"expected one output that is {stated} says, got {got}")


def _one_value_problems(argument: schema.Argument, where: str) -> Iterator[Problem]:
    """Yield the problem of an input or output of a graph that is a list, a dict or a subgraph (G9)."""
    if argument.type not in ONE_VALUE | ONE_CONSTANT:
        yield Problem(where, "G9", f"expected one value or constant, got {argument.type}")


def problems(source: Source, where: str = "") -> Iterator[Problem]:
    """Yield everything that is wrong with a program's graphs, subgraphs included (rules G1 to G15). Raises nothing.

    Args:
        source: a program, a graph module or a graph.
        where: the place of the root graph, for messages ("models/model.json: $.graph_module.graph").

    Cost: linear in the arguments.
    """
    stack = [root(source, where)]
    while stack:
        scope = stack.pop()
        if scope.depth > MAX_SUBGRAPH_DEPTH:
            yield Problem(scope.where, LIMIT_RULE, TOO_DEEP)
        else:
            inner: list[Scope] = []
            yield from _graph_problems(scope, inner)
            stack += reversed(inner)


def _graph_problems(scope: Scope, inner: list[Scope]) -> Iterator[Problem]:
    """Yield the errors of one graph; the subgraphs that its nodes carry are added to `inner`."""
    scan = Scan(scope.graph, scope.where)
    yield from scan.run()
    if scope.depth:  # Of the root's outputs the signature has its own rule.
        for position, output in enumerate(scope.graph.outputs):
            yield from _one_value_problems(output, f"{scope.where}.outputs[{position}]")
    taken: dict[str, int] = {}
    for number, node in enumerate(scope.graph.nodes):
        step = Step(scope, number, node)
        yield from _label_problems(step, scan, taken)
        # Nesting that is too deep is among the scan's findings already.
        with suppress(LimitError):
            yield from _pasted_names(step)
            inner += carried(step)


def _label_problems(step: Step, scan: Scan, taken: dict[str, int]) -> Iterator[Problem]:
    """Yield names of nodes that are taken (G14): torch renames such a node when it loads the program."""
    if not (name := step.node.name):
        return
    definition = scan.definitions.get(name)
    if name in taken:
        owner = f"nodes[{taken[name]}] has"
    elif definition and definition.node != step.number:
        owner = f"{'a graph input' if definition.node is None else f'a result of nodes[{definition.node}]'} has"
    else:
        taken[name] = step.number
        return
    yield Problem(
        f"{step.where}.name", "G14", f"expected a name of its own, got {quote(name)}, which {owner}", "warning"
    )


def _pasted_names(step: Step) -> Iterator[Problem]:
    """Yield names that torch writes into the source of a generated function, unescaped (G15)."""
    node = step.node
    if node.name and not node.name.isidentifier():
        yield Problem(f"{step.where}.name", "G15", f"expected an identifier, got {quote(node.name)}", "safety")
    for position, named in enumerate(node.inputs):
        place = f"{step.where}.inputs[{position}]"
        if named.name and not named.name.isidentifier():
            yield Problem(f"{place}.name", "G15", f"expected an identifier, got {quote(named.name)}", "safety")
        for _, subgraph in graph_arguments(named.arg):
            name, got = subgraph.name, f"got {quote(subgraph.name)}"
            if not all(part.isidentifier() or part.isdecimal() for part in name.split(".")):
                message = f"expected identifiers with dots between them as the name of a subgraph, {got}"
                yield Problem(place, "G15", message, "safety" if name else "error")
            elif not is_variable(name):
                message = f"expected an identifier that is no keyword as the name of a subgraph, {got}"
                yield Problem(place, "G15", message)
            elif name in MODULE_ATTRIBUTES:
                message = f"expected a free name for a subgraph, {got}, which modules of torch have"
                yield Problem(place, "G15", message)


@dataclass(frozen=True, slots=True)
class GraphIndex:
    """Definitions and uses of the values of one graph. Read-only; does not contain subgraphs.

    Args:
        graph: the graph; shared, not copied.
        definitions: name -> definition, in the order of definition, graph inputs first.
        uses: name -> uses in execution order, graph outputs last; every defined name is a key.
        externals: names of custom objects that arguments use and nothing defines, because the archive's constants hold
            them; in the order of first use.
    """

    graph: schema.Graph
    definitions: Mapping[str, Definition]
    uses: Mapping[str, tuple[Use, ...]]
    externals: tuple[str, ...] = ()

    def meta(self, name: str) -> Meta:
        """Return a value's entry in the graph's value tables.

        Raises:
            KeyError: the graph defines no such value.
        """
        meta: Meta = tables(self.graph)[self.definitions[name].kind][name]
        return meta

    def users(self, name: str) -> tuple[int, ...]:
        """Return the indices of the nodes that use a value, each once, in order.

        Raises:
            KeyError: the graph defines no such value.
        """
        return tuple(dict.fromkeys(use.node for use in self.uses[name] if use.node is not None))


def index(graph: schema.Graph, where: str = "") -> GraphIndex:
    """Index one graph, and prove that it does not contradict itself (rules G1 to G12, the warning G5 aside).

    Args:
        graph: a graph; its subgraphs are not entered.
        where: the place of the graph, for messages ("models/model.json: $.graph_module.graph").

    Cost: linear in the arguments.

    Raises:
        GraphError: the first contradiction, with its place.
        LimitError: dicts of arguments nest too deep (G11).
    """
    scan = Scan(graph, where or "$")
    for problem in scan.run():
        if problem.kind == "error":
            raise_problem(problem)
    uses = {name: tuple(value_uses) for name, value_uses in scan.uses.items()}
    return GraphIndex(graph, MappingProxyType(scan.definitions), MappingProxyType(uses), tuple(scan.externals))


def indexes(source: Source, where: str = "") -> Iterator[tuple[Scope, GraphIndex]]:
    """Index the root graph and every subgraph, in the order of `graphs`.

    Raises:
        GraphError: the first contradiction, with its place.
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for scope in graphs(source, where):
        yield scope, index(scope.graph, scope.where)


def raise_problem(problem: Problem) -> NoReturn:
    """Turn a finding into its exception.

    Raises:
        LimitError: the finding is about a limit (G11).
        GraphError: any other finding.
    """
    error = LimitError if problem.rule == LIMIT_RULE else GraphError
    raise error(f"{problem.loc}: {problem.message}", rule=problem.rule)
