"""The nodes of a graph that is being edited: what they call, what goes in and what comes out."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pt2kit import schema
from pt2kit.canonical.effects import writes
from pt2kit.editing.values import Slot, Value
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import ONE_VALUE, graph_arguments
from pt2kit.messages import quote

if TYPE_CHECKING:
    from pt2kit.editing.graphs import Graph


class Node:
    """One call: its operator, its arguments as slots, and the values it defines. Made by the graph it belongs to."""

    __slots__ = ("_graph", "_next", "_order", "_origin", "_previous", "edit", "metadata", "name", "outputs_", "slots")

    def __init__(self, graph: Graph, origin: schema.Node) -> None:
        self._graph = graph
        self._origin = origin
        self._order = 0
        self._previous: Node | None = None
        self._next: Node | None = None
        self.slots: list[Slot] = []
        self.outputs_: list[Slot] = []
        self.name = origin.name
        self.metadata: dict[str, str] = dict(origin.metadata)
        self.edit = ""

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        return self._graph

    @property
    def target(self) -> str:
        """What it calls: "torch.ops.aten.relu.default". `retarget` changes it."""
        return self._origin.target

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it uses, in the order of its arguments; one that is used twice comes twice."""
        return tuple(value for slot in self.slots for value in slot.values)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values it defines, lists flattened."""
        return tuple(value for slot in self.outputs_ for value in slot.values)

    @property
    def output(self) -> Value:
        """The one value it defines.

        Raises:
            GraphError: it defines none, or several.
        """
        values = self.outputs
        if len(values) != 1:
            raise GraphError(f"{self.label}: expected a node with one result, got one with {len(values)}")
        return values[0]

    @property
    def subgraphs(self) -> dict[str, Graph]:
        """The subgraphs it carries, by the name they have in it."""
        return {
            carried.name: graph
            for slot in self.slots
            for (_, carried), graph in zip(graph_arguments(slot.template), slot.graphs, strict=True)
        }

    @property
    def arguments(self) -> dict[str, schema.Argument]:
        """Its arguments as the schema has them, by parameter; those without a name by position ("0")."""
        return {slot.name or str(position): slot.written() for position, slot in enumerate(self.slots)}

    @property
    def label(self) -> str:
        """What messages call it."""
        first = next(iter(self.outputs), None)
        return f"node {quote(self.name or (first.name if first else '') or self.target)}"

    @property
    def writes(self) -> bool:
        """Whether it, or a node of a subgraph that it carries, may change what other nodes see."""
        return writes(self._origin) or any(
            node.writes for slot in self.slots for graph in slot.graphs for node in graph.nodes
        )

    @property
    def next(self) -> Node | None:
        """The node after it; None for the last."""
        return self._next

    @property
    def previous(self) -> Node | None:
        """The node before it; None for the first."""
        return self._previous

    def argument(self, name: str) -> Any:
        """What it gets for a parameter: a `Value`, or the schema's argument; None where it is left to its default."""
        place = self._place(name)
        if place is None:
            return None
        slot = self.slots[place]
        argument = slot.written()
        return slot.values[0] if argument.type in ONE_VALUE else argument

    def set_argument(self, name: str, value: Any) -> None:
        """Give it something else for a parameter: a plain Python value or a `Value`, as in `Graph.append`.

        Raises:
            GraphError: a parameter that the operator does not have, or a value that is not defined before this node.
        """
        from pt2kit.editing.building import build_slot

        edit = f"set_argument({self.label}, {quote(name)})"
        self._graph.check_own(edit, self)
        new = build_slot(self._graph, self.target, name, value, edit)
        self._graph.check_defined(edit, new.values, self)
        place = self._place(name)
        if place is not None:
            new.name, new.kind = self.slots[place].name, self.slots[place].kind
            self.slots[place].detach()
            self.slots[place] = new
        else:
            self.slots.append(new)
        new.node = self
        new.attach()
        self.edit = edit

    def _place(self, name: str) -> int | None:
        """Where the argument of a name stands; one without a name has its place for one."""
        names = [slot.name or str(position) for position, slot in enumerate(self.slots)]
        return names.index(name) if name in names else None

    def retarget(self, operator: str) -> None:
        """Call another operator with the same arguments and results.

        Args:
            operator: "aten.gelu.default", with or without "torch.ops."; a name without overload means the only one, or
                "default".

        Raises:
            GraphError: the operator does not take these arguments.
        """
        from pt2kit.editing.building import check_call, full_target

        edit = f"retarget({self.label}, {quote(operator)})"
        self._graph.check_own(edit, self)
        target = full_target(operator, edit)
        check_call(target, [slot.name for slot in self.slots], len(self.outputs_), edit)
        self._origin = schema.Node(
            target, self._origin.inputs, self._origin.outputs, self._origin.metadata, None, self._origin.name
        )
        self.edit = edit

    def insert_before(self, operator: str, /, *args: Any, **kwargs: Any) -> Node:
        """Make a node in front of this one: `graph.insert_before(self, …)`."""
        return self._graph.insert_before(self, operator, *args, **kwargs)

    def insert_after(self, operator: str, /, *args: Any, **kwargs: Any) -> Node:
        """Make a node behind this one: `graph.insert_after(self, …)`."""
        return self._graph.insert_after(self, operator, *args, **kwargs)

    def erase(self) -> None:
        """Take it out of its graph: `graph.erase(self)`."""
        self._graph.erase(self)

    def written(self) -> schema.Node:
        """The node as the schema has it; the one that was read, where nothing changed."""
        old = self._origin
        inputs = [
            same
            if same is not None and same.arg is argument and same.name == slot.name and same.kind is slot.kind
            else schema.NamedArgument(slot.name, argument, slot.kind)
            for slot, same, argument in _beside(self.slots, old.inputs)
        ]
        outputs = [slot.written() for slot in self.outputs_]
        if (
            are_same(inputs, old.inputs)
            and are_same(outputs, old.outputs)
            and self.name == old.name
            and self.metadata == old.metadata
        ):
            return old
        return schema.Node(old.target, inputs, outputs, dict(self.metadata), old.is_hop_single_tensor_return, self.name)

    def __repr__(self) -> str:
        return f"<Node {', '.join(f'%{value.name}' for value in self.outputs) or '-'} = {self.target}>"


class Nodes:
    """The nodes of a graph in execution order; the one at hand may be erased, and others inserted, on the way."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[Node]:
        node = self._graph._first
        while node is not None:
            following = node._next
            yield node
            # What was inserted behind the node is visited, unless the node went.
            node = node._next if node._order >= 0 else following
            while node is not None and node._order < 0:
                node = node._next

    def __reversed__(self) -> Iterator[Node]:
        node = self._graph._last
        while node is not None:
            before = node._previous
            yield node
            node = before

    def __len__(self) -> int:
        return self._graph._count

    def __getitem__(self, key: str | int) -> Node:
        """A node by its name or that of a value it defines, or by its place; the latter takes as long as the graph."""
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise IndexError(f"expected the place of one of {len(self)} nodes, got {key}")
            return list(self)[key]
        value = self._graph._values.get(key)
        if value is not None and value.producer is not None:
            return value.producer
        named_node = next((node for node in self if node.name == key), None)
        if named_node is None:
            raise KeyError(key)
        return named_node


def are_same(new: Sequence[Any], old: Sequence[Any]) -> bool:
    """Whether two lists hold the same objects."""
    return len(new) == len(old) and all(map(operator.is_, new, old))


def are_entries(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether two tables hold the same objects under the same names, in the same order."""
    return len(new) == len(old) and all(a == b and new[a] is old[b] for a, b in zip(new, old, strict=True))


def _beside(
    slots: list[Slot], old: list[schema.NamedArgument]
) -> Iterator[tuple[Slot, schema.NamedArgument | None, schema.Argument]]:
    """The slots with the arguments that stood in their places, and what they are now."""
    for position, slot in enumerate(slots):
        yield slot, old[position] if position < len(old) else None, slot.written()
