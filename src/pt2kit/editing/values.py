"""Values, and the places that use them: the two ends of every edge of a graph that is being edited.

A `Value` is known by identity; its name is one of its fields, so renaming touches nothing else. A `Slot` is an argument
of the schema with holes: where the argument names values, the slot holds the `Value`s themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pt2kit import graph as rules
from pt2kit import schema
from pt2kit.editing.filling import fill
from pt2kit.graph.argument_values import ValueKind
from pt2kit.graph.values import Meta

if TYPE_CHECKING:
    from pt2kit.editing.graphs import Graph
    from pt2kit.editing.nodes import Node


class Value:
    """A result of a node or an input of a graph, with the nodes that use it.

    Made by the graph it belongs to; compares by identity.
    """

    __slots__ = ("_graph", "_kind", "_meta", "_name", "_producer", "_slots")

    def __init__(self, graph: Graph, name: str, kind: ValueKind, meta: Meta | None, producer: Node | None) -> None:
        self._graph = graph
        self._name = name
        self._kind: ValueKind = kind
        self._meta = meta
        self._producer = producer
        self._slots: dict[tuple[Slot, int], None] = {}

    @property
    def name(self) -> str:
        """The name, unique in its graph; `rename` changes it."""
        return self._name

    @property
    def kind(self) -> ValueKind:
        """What it is: "tensor", "sym_int", "sym_float", "sym_bool", "custom_obj"."""
        return self._kind

    @property
    def meta(self) -> Any:
        """What the value tables say of it: a `schema.TensorMeta` for a tensor; assign to change it."""
        return self._meta

    @meta.setter
    def meta(self, meta: Any) -> None:
        self._graph.set_meta(self, meta)

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        return self._graph

    @property
    def producer(self) -> Node | None:
        """The node that defines it; None for an input of the graph."""
        return self._producer

    @property
    def users(self) -> tuple[Node, ...]:
        """The nodes that use it, each once, in the order in which they came to use it."""
        return tuple(dict.fromkeys(slot.node for slot, _ in self._slots if slot.node is not None))

    @property
    def is_output(self) -> bool:
        """Whether the graph gives it back."""
        return any(slot.node is None for slot, _ in self._slots)

    @property
    def is_used(self) -> bool:
        """Whether any node or the graph's outputs use it."""
        return bool(self._slots)

    @property
    def dtype(self) -> schema.ScalarType | None:
        """The element type of a tensor; None for anything else."""
        return self._meta.dtype if isinstance(self._meta, schema.TensorMeta) else None

    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """The sizes of a tensor, symbolic ones as the text of their expression; None for anything else."""
        if not isinstance(self._meta, schema.TensorMeta):
            return None
        return tuple(size.value if isinstance(size.value, int) else size.value.expr_str for size in self._meta.sizes)

    def rename(self, name: str) -> None:
        """Give it another name, wherever it is used.

        Raises:
            GraphError: no identifier, or a name that the graph has already.
        """
        self._graph.rename(self, name)

    def replace_uses(self, new: Value) -> None:
        """Use another value wherever this one is used: `graph.replace_uses(self, new)`.

        Raises:
            GraphError: as there.
        """
        self._graph.replace_uses(self, new)

    def __repr__(self) -> str:
        return f"<Value %{self._name}: {self._kind}>"


class Slot:
    """An argument of a node, or an output of a graph: the schema's argument with values where it has names.

    Args:
        template: the argument; its names are those that the values had when it was made.
        values: what it names, in the order of `graph.references`.
        graphs: the subgraphs that it carries, in the order of `graph.graph_arguments`.
        node: whose argument it is; None for an output of the graph.
        name: the parameter that the argument is for; "" where it has none.
        kind: how it is passed.
    """

    __slots__ = ("graphs", "kind", "name", "node", "template", "values")

    def __init__(
        self,
        template: schema.Argument,
        values: list[Value],
        graphs: tuple[Graph, ...] = (),
        node: Node | None = None,
        name: str = "",
        kind: schema.ArgumentKind | None = None,
    ) -> None:
        self.template = template
        self.values = values
        self.graphs = graphs
        self.node = node
        self.name = name
        self.kind = kind

    def attach(self) -> None:
        """Enter the slot among the uses of its values."""
        for position, value in enumerate(self.values):
            value._slots[self, position] = None

    def detach(self) -> None:
        """Take it out again."""
        for position, value in enumerate(self.values):
            value._slots.pop((self, position), None)

    def put(self, position: int, value: Value) -> None:
        """Use another value in one place."""
        self.values[position]._slots.pop((self, position), None)
        self.values[position] = value
        value._slots[self, position] = None

    def written(self) -> schema.Argument:
        """The argument with the names that the values have now; the one there was, where nothing changed."""
        old_references = rules.references(self.template) if self.values else []
        graphs = [graph.written() for graph in self.graphs]
        if all(old.name == value._name for old, value in zip(old_references, self.values, strict=True)) and all(
            new is old.graph for new, (_, old) in zip(graphs, self._carried(), strict=True)
        ):
            return self.template
        return fill(self.template, (value._name for value in self.values), iter(graphs))

    def _carried(self) -> list[tuple[tuple[str, ...], schema.GraphArgument]]:
        return rules.graph_arguments(self.template) if self.graphs else []
