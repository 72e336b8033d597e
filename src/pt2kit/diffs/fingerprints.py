"""Fingerprints for graph matching (each node's operation, ancestors, descendants); matching of two programs' symbols.

Everything is a number from an `Interner`, the same number for the same thing in both graphs: no hash can collide.

A program names its symbols as it likes: what is `s0` in one export is `s77` in the next. Symbols correspond where the
sizes of values that correspond are nothing but a symbol each; where such sizes disagree, most of them decide. With
these names, expressions are texts that are equal in both programs.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pt2kit import codec, schema
from pt2kit.canonical.expressions import renamed_expression, renamed_words
from pt2kit.canonical.facts import NO_NODE, NO_VALUE, Facts, collect, slots, usual_graph
from pt2kit.canonical.form import Keep, Reloading, subgraph_digest
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import graph_arguments, renamed
from pt2kit.graph.traversal import argument_place
from pt2kit.node_metadata.modules import module_of
from pt2kit.schema.names import target_of

_NO_GRAPH: Final = schema.GraphArgument("", schema.Graph([], [], [], {}, {}, {}))
_LONE: Final = re.compile(r"(?:Symbol\('(\w+)'[^()]*\))|([A-Za-z_]\w*)")
_PREFIX: Final = re.compile(r"[A-Za-z_]*")


class Interner:
    """Gives equal things one number, and different things different ones."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __call__(self, thing: Hashable) -> int:
        """Return the number of an item."""
        return self._numbers.setdefault(thing, len(self._numbers))


Users: TypeAlias = list[list[tuple[int, int, int]]]
"""Value -> (node, argument, slot) of each use by a node."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two graphs that are compared.

    Args:
        facts: its values as numbers.
        keys: node -> what it does, arguments that are values left aside.
        up: node -> that, and all that leads to it.
        down: node -> that, and all that it leads to.
        modules: node -> the module that it was traced in.
        users: value -> (node, argument, slot) of each use by a node.
        keep: of the program; remembers its subgraphs.
    """

    facts: Facts
    keys: list[int]
    up: list[int]
    down: list[int]
    modules: list[str]
    users: Users
    keep: Keep

    @property
    def nodes(self) -> list[schema.Node]:
        """Return the nodes of the graph."""
        return self.facts.graph.nodes

    def owner(self, value: int) -> int:
        """Return the node that defines a value; `NO_NODE` for an input, and for the marker of no value."""
        return NO_NODE if value == NO_VALUE else self.facts.definers[value]


def make_side(
    program: ProgramSide,
    graph: schema.Graph,
    where: str,
    intern: Interner,
    inputs: Sequence[Hashable],
    outputs: Sequence[Hashable],
) -> Side:
    """Number every item of one graph, in the form that a round trip through torch does not change.

    Args:
        program: the program that it belongs to.
        graph: the graph.
        where: its place, for messages.
        intern: shared with the other graph.
        inputs: the role of each graph input, the same for inputs of both graphs that correspond.
        outputs: the role of each graph output, likewise.

    Raises:
        GraphError: the graph contradicts itself.
        LimitError: subgraphs or dicts of arguments nest too deep (G11).

    Cost: linear in the arguments, times the logarithm of the number of uses of a value.
    """
    graph, where = program.reloading.graph(usual_graph(graph)), f"{program.which} {where}"
    facts = collect(graph, graph.inputs, graph.outputs, where)
    for position, argument in enumerate(graph.outputs):
        if len(slots(argument)) != 1:
            place = argument_place(where, "outputs", None, position)
            raise GraphError(f"{place}: expected one value or constant, got {argument.type}", rule="G9")
    keys = [intern(operation(node, f"{where}.nodes[{n}]", program.keep)) for n, node in enumerate(graph.nodes)]
    roles = {value: intern(("input", inputs[position])) for position, value in input_values(graph).items()}
    up = _up(facts, keys, roles, intern)
    users = _users(facts)
    down = _down(facts, keys, roles, users, outputs, intern)
    return Side(facts, keys, up, down, program.modules_of(facts), users, program.keep)


class ProgramSide:
    """One of two programs that are compared: what all of its graphs need.

    Args:
        which: "old" or "new", for messages.
        program: the program.

    Attributes:
        which, program: as above.
        reloading: drops what a round trip through torch changes.
        keep: remembers its subgraphs.
    """

    def __init__(self, which: str, program: schema.ExportedProgram) -> None:
        self.which = which
        self.program = program
        self.reloading = Reloading()
        self.keep = Keep()
        self._owners: dict[str, str] = {}
        for spec in program.graph_module.signature.input_specs:
            if target := target_of(spec):
                self._owners[spec.value.arg.name] = target.rpartition(".")[0]

    def modules_of(self, facts: Facts) -> list[str]:
        """Return the dotted names of the modules of a graph's nodes, "" for the root or if unknown.

        Where a node's metadata names no module, that of the first parameter, buffer or constant that it uses counts.
        """
        nodes = facts.graph.nodes
        modules = [module_of(node.metadata) or self._owner(facts, number) for number, node in enumerate(nodes)]
        if not any(node.metadata.get("nn_module_stack") for node in nodes):
            # Without traces: what follows the use of a parameter belongs to its module, more or less.
            last = ""
            for number, name in enumerate(modules):
                last = modules[number] = name or last
        return modules

    def _owner(self, facts: Facts, node: int) -> str:
        used = (value for _, slots in facts.inputs[node] for value in slots if value != NO_VALUE)
        names = (facts.names[value] for value in used if facts.definers[value] == NO_NODE)
        return next((self._owners[name] for name in names if name in self._owners), "")


def operation(node: schema.Node, where: str, keep: Keep) -> Hashable:
    """Return the operation of a node: its target, its arguments without values, the structure of its results.

    Args:
        node: the node.
        where: its place, for messages.
        keep: of the program; remembers its subgraphs.
    """
    inputs = tuple((named.name, _argument_key(named.arg, where, keep)) for named in node.inputs)
    outputs = tuple((output.type, _argument_key(output, where, keep)) for output in node.outputs)
    return node.target, inputs, outputs, node.is_hop_single_tensor_return


def _argument_key(argument: schema.Argument, where: str, keep: Keep) -> Hashable:
    if argument.type == "as_tensor":
        return "as_tensor"
    carried = graph_arguments(argument)
    digests = tuple((keys, subgraph_digest(subgraph.graph, where, keep)) for keys, subgraph in carried)
    return encoded(argument, lambda name: ""), digests


def encoded(argument: schema.Argument, name: Callable[[str], str]) -> bytes:
    """Return the bytes of an argument with other names of values, by `name`, and without its subgraphs."""
    return codec.encode(renamed(argument, name, itertools.repeat(_NO_GRAPH), by_key=True))


def input_values(graph: schema.Graph) -> dict[int, int]:
    """Return position -> value of the graph inputs, which are numbered first; constant inputs are omitted."""
    positions = [n for n, argument in enumerate(graph.inputs) if next(iter(slots(argument)), None) is not None]
    return {position: value for value, position in enumerate(positions)}


def _up(facts: Facts, keys: list[int], roles: Mapping[int, int], intern: Interner) -> list[int]:
    """Return node -> the number of its operation and its ancestors; nodes are stored in an order that allows this."""
    values = [NO_VALUE] * len(facts.names)
    for value, role in roles.items():
        values[value] = role
    numbers = []
    for node, inputs in enumerate(facts.inputs):
        arguments = tuple(tuple([-1 if value == NO_VALUE else values[value] for value in used]) for _, used in inputs)
        numbers.append(intern(("up", keys[node], arguments)))
        for place, value in enumerate(facts.results[node]):
            values[value] = intern(("result", numbers[-1], place))
    return numbers


def _users(facts: Facts) -> Users:
    users: Users = [[] for _ in facts.names]
    for node, inputs in enumerate(facts.inputs):
        for position, (_, used) in enumerate(inputs):
            for slot, value in enumerate(used):
                if value != NO_VALUE:
                    users[value].append((node, position, slot))
    return users


def _down(
    facts: Facts, keys: list[int], roles: Mapping[int, int], users: Users, outputs: Sequence[Hashable], intern: Interner
) -> list[int]:
    """Return node -> the number of its operation, its graph inputs, and its descendants."""
    returned: dict[int, list[Hashable]] = defaultdict(list)
    for value, role in zip(facts.outputs, outputs, strict=True):
        returned[value].append(role)
    numbers = [0] * len(keys)
    for node in range(len(keys) - 1, -1, -1):
        direct = tuple(tuple([roles.get(value, -1) for value in used]) for _, used in facts.inputs[node])
        uses = tuple(
            (
                tuple(sorted((numbers[user], position, slot) for user, position, slot in users[value])),
                tuple(returned.get(value, ())),
            )
            for value in facts.results[node]
        )
        numbers[node] = intern(("down", keys[node], direct, uses))
    return numbers


class Symbols:
    """Old symbols -> new symbols, learned from values that correspond."""

    def __init__(self) -> None:
        self._to_new: dict[str, str] = {}
        self._taken: set[str] = set()
        self._forms: dict[str, str] = {}

    @property
    def renamed(self) -> dict[str, str]:
        """Return old symbol -> new symbol, of those whose name is another one."""
        return {one: other for one, other in self._to_new.items() if one != other}

    def learn(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Add the symbols of some more values; known ones are kept.

        Args:
            pairs: what is known of values that correspond: descriptions of tensors, numbers or objects.

        Cost: linear in their dimensions.
        """
        votes = Counter(vote for old, new in pairs for vote in self._votes(old, new))
        for one, other in sorted(votes, key=lambda pair: (-votes[pair], min(pair), max(pair))):
            if one not in self._to_new and other not in self._taken:
                self._to_new[one] = other
                self._taken.add(other)
        self._forms.clear()

    def _votes(self, old: Any, new: Any) -> Iterator[tuple[str, str]]:
        for one, other in zip(_numbers(old), _numbers(new), strict=False):
            before, after = self._lone_symbol(one), self._lone_symbol(other)
            if before and after:
                yield before, after

    def _lone_symbol(self, number: Any) -> str:
        """Return the name of a number that is one symbol, in either dialect; "" of any other."""
        expression = getattr(number, "as_expr", None)
        if not isinstance(expression, schema.SymExpr):
            return ""
        match = _LONE.fullmatch(expression.expr_str)
        return (match[1] or match[2]) if match else ""

    def new_name(self, symbol: str) -> str:
        """Return the new name of an old symbol; its own if none is known."""
        return self._to_new.get(symbol, symbol)

    def old_form(self, text: str) -> str:
        """Return an old expression, in normal form, under the new names; equal to a new one if both are the same."""
        if text not in self._forms:
            self._forms[text] = renamed_expression(text, self.renamed)
        return self._forms[text]

    def guard(self, text: str) -> str:
        """Return an old guard under the new names; texts in quotes name inputs."""
        return renamed_words(text, self.renamed) if self.renamed else text


def is_of_another_kind(old: str, new: str) -> bool:
    """Return whether two symbols are of different kinds, as sizes (`s0`) and data-dependent numbers (`u0`) are."""
    return _PREFIX.match(old)[0] != _PREFIX.match(new)[0]  # type: ignore[index]  # It matches everything.


def _numbers(known: Any) -> list[Any]:
    """Return the numbers of a description that may be symbols: the sizes of a tensor, or a number itself."""
    return known.sizes if isinstance(known, schema.TensorMeta) else [known]
