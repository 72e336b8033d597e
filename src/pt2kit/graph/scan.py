"""Scan of a graph: one pass that finds the definitions and uses of its values, and violations of the rules about them.

`index` stops at the first error; `problems` takes them all. Both run this pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pt2kit import schema
from pt2kit.errors import LimitError, Problem
from pt2kit.graph.argument_values import (
    LIMIT_RULE,
    ONE_CONSTANT,
    ONE_VALUE,
    TOO_DEEP,
    Reference,
    ValueKind,
    graph_arguments,
    references,
)
from pt2kit.graph.values import entry_place, kinds, table_problems
from pt2kit.messages import count_text, quote


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
            yield from self._check_input(argument, position)
            yield from self._define(argument, None, position)
        for number, node in enumerate(graph.nodes):
            for position, named in enumerate(node.inputs):
                yield from self._use(named.arg, number, position)
                yield from self._carry(named.arg, number, position)
            for position, argument in enumerate(node.outputs):
                yield from self._define(argument, number, position)
            if node.is_hop_single_tensor_return:
                yield from single_tensor_problems(node, f"{self.where}.nodes[{number}]")
        for position, argument in enumerate(graph.outputs):
            yield from self._use(argument, None, position)
        yield from self._check_outputs()
        if len(self._kinds) != len(self.definitions):
            yield from self._left_over()

    def _define(self, argument: schema.Argument, node: int | None, position: int) -> Iterator[Problem]:
        place = self._place(node, "outputs" if node is not None else "inputs", position)
        try:
            value_references = references(argument)
        except LimitError:
            yield Problem(place, LIMIT_RULE, TOO_DEEP)
            return
        if node is not None and graph_arguments(argument):
            yield Problem(place, "G10", "expected the values that the node defines, got a subgraph")
        for item, (name, kind, _) in enumerate(value_references):
            if name in self.definitions:
                yield Problem(place, "G2", self._defined_before(name))
                continue
            self.definitions[name] = Definition(name, kind, node, position, item)
            self.uses[name] = []
            if (recorded := self._kinds.get(name)) != kind:
                got = f"one in {recorded}_values" if recorded else "none"
                yield Problem(place, "G3", f"expected an entry for {quote(name)} in {kind}_values, got {got}")
            if not name.isidentifier():
                yield Problem(place, "G8", f"expected an identifier as the name of a value, got {quote(name)}")

    def _use(self, argument: schema.Argument, node: int | None, position: int) -> Iterator[Problem]:
        try:
            value_references = references(argument)
        except LimitError:
            yield Problem(
                self._place(node, "inputs" if node is not None else "outputs", position), LIMIT_RULE, TOO_DEEP
            )
            return
        for item, reference in enumerate(value_references):
            definition = self.definitions.get(reference.name)
            if definition is None:
                yield from self._not_defined(reference, node, position)
                continue
            self.uses[reference.name].append(Use(node, position, item))
            if reference.certain and reference.kind != definition.kind:
                place = self._place(node, "inputs" if node is not None else "outputs", position)
                expected = f"expected the name of a {reference.kind} value"
                yield Problem(
                    place, "G7", f"{expected}, got {quote(reference.name)}, which is a {definition.kind} value"
                )
        if node is None and graph_arguments(argument):
            yield Problem(self._place(None, "outputs", position), "G10", "expected values or constants, got a subgraph")

    def _carry(self, argument: schema.Argument, node: int, position: int) -> Iterator[Problem]:
        """Yield subgraphs whose name is taken: both have one module then, that of the last one."""
        try:
            subgraphs = graph_arguments(argument)
        except LimitError:  # Reported with the values that it names.
            return
        place = self._place(node, "inputs", position)
        for _, subgraph in subgraphs:
            first, owner = self._subgraphs.setdefault(subgraph.name, (subgraph.graph, place))
            if first is not subgraph.graph and first != subgraph.graph:
                got = f"{quote(subgraph.name)}, which another one has, {owner}"
                message = f"expected a name of its own for a subgraph, got {got}"
                yield Problem(place, "G16", message)

    def _not_defined(self, reference: Reference, node: int | None, position: int) -> Iterator[Problem]:
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
        place = self._place(node, "inputs" if node is not None else "outputs", position)
        expected = "expected the name of a graph input or of an earlier node's result"
        yield Problem(place, "G1", f"{expected}, got {quote(name)}, which {definer}{by}")

    def _check_input(self, argument: schema.Argument, position: int) -> Iterator[Problem]:
        if argument.type not in ONE_VALUE | ONE_CONSTANT:
            yield Problem(
                self._place(None, "inputs", position), "G9", f"expected one value or constant, got {argument.type}"
            )

    def _check_outputs(self) -> Iterator[Problem]:
        outputs = self.graph.outputs
        if not self.graph.is_single_tensor_return:
            return
        if len(outputs) != 1 or outputs[0].type not in ONE_VALUE:
            got = outputs[0].type if len(outputs) == 1 else count_text(len(outputs), "output")
            message = f"expected one output that is a value, as is_single_tensor_return says, got {got}"
            yield Problem(f"{self.where}.outputs", "G12", message)

    def _left_over(self) -> Iterator[Problem]:
        for name, kind in self._kinds.items():
            if name not in self.definitions:
                message = f"expected entries for the values of the graph alone, got one for {quote(name)}; drop it"
                yield Problem(entry_place(self.where, kind, name), "G5", message, "warning")

    def _defined_before(self, name: str) -> str:
        first = self.definitions[name]
        owner = f"inputs[{first.position}]" if first.node is None else f"nodes[{first.node}]"
        return f"expected a name that is not taken, got {quote(name)}, which {owner} defines"

    def _argument_text(self, node: int, position: int) -> str:
        """Return an argument as its operator names it: "argument 'other' of torch.ops.aten.add.Tensor"."""
        schema_node = self.graph.nodes[node]
        name = schema_node.inputs[position].name
        return f"argument {quote(name) if name else position} of {quote(schema_node.target)[1:-1]}"

    def _place(self, node: int | None, side: str, position: int) -> str:
        owner = self.where if node is None else f"{self.where}.nodes[{node}]"
        return f"{owner}.{side}[{position}]"


def _definers(graph: schema.Graph) -> dict[str, int]:
    """Return the index of the first node that defines each name, as far as names can be read."""
    definers: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        for argument in node.outputs:
            try:
                for reference in references(argument):
                    definers.setdefault(reference.name, number)
            except LimitError:
                continue
    return definers


def single_tensor_problems(node: schema.Node, where: str) -> Iterator[Problem]:
    """Yield problems of the outputs of a node whose `is_hop_single_tensor_return` is true (G13).

    Args:
        node: the node.
        where: its place.
    """
    if [output.type for output in node.outputs] != ["as_tensor"]:
        got = node.outputs[0].type if len(node.outputs) == 1 else count_text(len(node.outputs), "output")
        message = f"expected one output that is a tensor, as is_hop_single_tensor_return says, got {got}"
        yield Problem(f"{where}.outputs", "G13", message)
