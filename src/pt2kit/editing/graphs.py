"""Editable graph: ordered nodes, values with def-use chains in both directions, subgraphs.

A `Value` is known by identity; its name is one of its fields, so renaming touches nothing else. A `Slot` is an argument
of the schema with holes: where the argument names values, the slot holds the `Value`s themselves. Every edit is checked
when it is made and names itself in the error; what it refuses, it has not begun.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msgspec.structs import replace

from pt2kit import graph as rules
from pt2kit import schema
from pt2kit.canonical.form import writes
from pt2kit.editing import building
from pt2kit.editing.building import argument_of, operands_of, to_argument
from pt2kit.editing.metas import Operand, infer_meta, kind_of
from pt2kit.editing.structures import Link, Names, Nodes, check_name
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import ONE_VALUE, ValueKind, graph_arguments, plain, references, renamed
from pt2kit.graph.traversal import Meta, depth_first, operator_name, tables
from pt2kit.messages import quote, suggestion
from pt2kit.schema.names import HIGHER_ORDER_OPS, OPS
from pt2kit.schema.operators import ValueType

_INHERITED: Final = ("nn_module_stack", "stack_trace", "from_node")
"""Metadata that a new node has from its neighbor: the module that it belongs to, and where it comes from."""


class Value(Operand):
    """A result of a node or an input of a graph, with the nodes that use it.

    Made by the graph it belongs to, which sets its attributes; compares by identity.

    Attributes:
        graph: the graph that it belongs to.
        name: unique in its graph; `rename` changes it.
        kind: "tensor", "sym_int", "sym_float", "sym_bool" or "custom_obj".
        producer: the node that defines it; None for an input of the graph.
        uses: the slots that use it, with the position in each.
    """

    __slots__ = ("graph", "producer", "uses")

    def __init__(self, graph: Graph, name: str, kind: ValueKind, meta: Meta | None, producer: Node | None) -> None:
        super().__init__(name, kind, meta)
        self.graph = graph
        self.producer = producer
        self.uses: dict[tuple[Slot, int], None] = {}

    @property
    def meta(self) -> Any:
        """Return the value's table entry: a `schema.TensorMeta` for a tensor; assign to change it."""
        return self._meta

    @meta.setter
    def meta(self, meta: Any) -> None:
        meta = meta.meta if isinstance(meta, Value) else meta
        edit = f"meta({quote(self.name)})"
        if (kind := kind_of(meta, edit)) != self.kind:
            raise GraphError(f"{edit}: expected the meta of a {self.kind}, got that of a {kind}")
        self._meta = meta
        if self.producer is not None:
            self.producer.edit = edit

    @property
    def users(self) -> tuple[Node, ...]:
        """Return the nodes that use it, each once, in the order in which they came to use it."""
        return tuple(dict.fromkeys(slot.node for slot, _ in self.uses if slot.node is not None))

    @property
    def is_output(self) -> bool:
        """Return whether the graph returns the value."""
        return any(slot.node is None for slot, _ in self.uses)

    @property
    def is_used(self) -> bool:
        """Return whether any node or the graph's outputs use the value."""
        return bool(self.uses)

    def rename(self, name: str) -> None:
        """Rename the value, wherever it is used.

        Raises:
            GraphError: no identifier, or a name that the graph has already.
        """
        self.graph.rename(self, name)

    def replace_uses(self, new: Value) -> None:
        """Use another value wherever this one is used: `graph.replace_uses(self, new)`."""
        self.graph.replace_uses(self, new)

    def __repr__(self) -> str:
        return f"<Value %{self.name}: {self.kind}>"


@dataclass(slots=True, eq=False)
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

    template: schema.Argument
    values: list[Value]
    graphs: tuple[Graph, ...] = ()
    node: Node | None = None
    name: str = ""
    kind: schema.ArgumentKind | None = None

    @classmethod
    def of(cls, value: Value) -> Slot:
        """Return the slot of one value: an input or output of a graph."""
        return cls(argument_of(value), [value])

    @property
    def plain(self) -> Any:
        """Return the argument as plain Python: numbers, texts, enums, tuples, None, and `Value`s where it names
        them."""
        return self.plain_with(self.values)

    def plain_with(self, values: Iterable[Any]) -> Any:
        """Return the argument as plain Python, with something for each value that it names, in their order."""
        rest = iter(values)
        return plain(self.template, lambda _: next(rest))

    def attach(self) -> None:
        """Enter the slot among the uses of its values."""
        for position, value in enumerate(self.values):
            value.uses[self, position] = None

    def detach(self) -> None:
        """Remove the slot from the uses of its values."""
        for position, value in enumerate(self.values):
            value.uses.pop((self, position), None)

    def put(self, position: int, value: Value) -> None:
        """Use another value in one place."""
        self.values[position].uses.pop((self, position), None)
        self.values[position] = value
        value.uses[self, position] = None

    def written(self) -> schema.Argument:
        """Return the argument with the current names of its values; the old argument if nothing changed."""
        old_references = rules.references(self.template) if self.values else []
        carried = [held for _, held in graph_arguments(self.template)] if self.graphs else []
        graphs = [graph.written() for graph in self.graphs]
        if all(old.name == value.name for old, value in zip(old_references, self.values, strict=True)) and all(
            new is old.graph for new, old in zip(graphs, carried, strict=True)
        ):
            return self.template
        values = iter(self.values)
        new_graphs = (schema.GraphArgument(old.name, new) for old, new in zip(carried, graphs, strict=True))
        return renamed(self.template, lambda _: next(values).name, new_graphs)


class Node(Link["Node"]):
    """One call: its operator, its arguments as slots, and the values it defines. Made by the graph it belongs to.

    Attributes:
        graph: the graph that it belongs to.
        origin: the node as the schema had it.
        previous, next: its neighbors in the graph; None at the ends.
        order: grows along the graph; negative once it is erased.
        edit: the last edit that changed it, for messages.
    """

    __slots__ = ("edit", "graph", "metadata", "name", "origin", "outputs_", "slots")

    def __init__(self, graph: Graph, origin: schema.Node) -> None:
        super().__init__()
        self.graph = graph
        self.origin = origin
        self.slots: list[Slot] = []
        self.outputs_: list[Slot] = []
        self.name = origin.name
        self.metadata: dict[str, str] = dict(origin.metadata)
        self.edit = ""

    @property
    def target(self) -> str:
        """Return the target: "torch.ops.aten.relu.default". `retarget` changes it."""
        return self.origin.target

    @property
    def op(self) -> str:
        """Return the operator without "torch.ops.": "aten.relu.default", as `op` of a graph to read."""
        return operator_name(self.origin.target)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return the values it uses, in the order of its arguments; one that is used twice comes twice."""
        return tuple(value for slot in self.slots for value in slot.values)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Return the values it defines, lists flattened."""
        return tuple(value for slot in self.outputs_ for value in slot.values)

    @property
    def output(self) -> Value:
        """Return the one value it defines.

        Raises:
            GraphError: it defines none, or several.
        """
        values = self.outputs
        if len(values) != 1:
            raise GraphError(f"{self.label}: expected a node with one result, got one with {len(values)}")
        return values[0]

    @property
    def subgraphs(self) -> dict[str, Graph]:
        """Return the subgraphs it carries, by the name they have in it."""
        return {
            carried.name: graph
            for slot in self.slots
            for (_, carried), graph in zip(graph_arguments(slot.template), slot.graphs, strict=True)
        }

    @property
    def arguments(self) -> dict[str, schema.Argument]:
        """Return the arguments as the schema has them, by parameter; those without a name by position ("0")."""
        return {slot.name or str(position): slot.written() for position, slot in enumerate(self.slots)}

    @property
    def plain_arguments(self) -> dict[str, Any]:
        """Return the arguments as plain Python, by parameter; those without a name by position ("0")."""
        return {slot.name or str(position): slot.plain for position, slot in enumerate(self.slots)}

    @property
    def label(self) -> str:
        """Return the node's label in messages."""
        first = next(iter(self.outputs), None)
        return f"node {quote(self.name or (first.name if first else '') or self.target)}"

    @property
    def writes(self) -> bool:
        """Return whether the node, or a node of one of its subgraphs, may change what other nodes see."""
        return writes(self.origin) or any(
            node.writes for slot in self.slots for graph in slot.graphs for node in graph.nodes
        )

    def argument(self, name: str) -> Any:
        """Return the argument of a parameter: a `Value`, or the schema's argument; None if it is left to its
        default."""
        place = self._place(name)
        if place is None:
            return None
        slot = self.slots[place]
        argument = slot.written()
        return slot.values[0] if argument.type in ONE_VALUE else argument

    def set_argument(self, name: str, value: Any) -> None:
        """Set the argument of a parameter: a plain Python value or a `Value`, as in `Graph.append`.

        Raises:
            GraphError: a parameter that the operator does not have, or a value that is not defined before this node.
        """
        edit = f"set_argument({self.label}, {quote(name)})"
        self.graph.check_own(edit, self)
        new = self.graph.argument(self.target, name, value, edit)
        self.graph.check_defined(edit, new.values, self)
        place = self._place(name)
        if place is None:
            new.kind = schema.ArgumentKind.KEYWORD  # Parameters before it may be left to their defaults.
            self.slots.append(new)
        self.replace_slot(-1 if place is None else place, new, edit)

    def replace_slot(self, place: int, new: Slot, edit: str) -> None:
        """Replace an argument by another of the same parameter."""
        old = self.slots[place]
        new.node, new.name, new.kind = self, old.name, old.kind
        old.detach()
        self.slots[place] = new
        new.attach()
        self.edit = edit

    def _place(self, name: str) -> int | None:
        """Return the index of a named argument; an argument without a name is named by its index."""
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
        edit = f"retarget({self.label}, {quote(operator)})"
        self.graph.check_own(edit, self)
        target = building.full_target(operator, edit)
        building.check_call(replace(self.written(), target=target), edit, has_results=True)
        self.origin = replace(self.origin, target=target, is_hop_single_tensor_return=None)
        self.edit = edit

    def insert_before(self, operator: str, /, *args: Any, **kwargs: Any) -> Node:
        """Add a node before this one: `graph.insert_before(self, …)`."""
        return self.graph.insert_before(self, operator, *args, **kwargs)

    def insert_after(self, operator: str, /, *args: Any, **kwargs: Any) -> Node:
        """Add a node after this one: `graph.insert_after(self, …)`."""
        return self.graph.insert_after(self, operator, *args, **kwargs)

    def erase(self) -> None:
        """Remove the node from its graph: `graph.erase(self)`."""
        self.graph.erase(self)

    def written(self) -> schema.Node:
        """Return the node as the schema has it; the one that was read if nothing changed."""
        old = self.origin
        inputs = [schema.NamedArgument(slot.name, slot.written(), slot.kind) for slot in self.slots]
        outputs = [slot.written() for slot in self.outputs_]
        new = schema.Node(old.target, inputs, outputs, dict(self.metadata), old.is_hop_single_tensor_return, self.name)
        # Arguments are compared by identity, as -0.0 equals 0.0.
        is_same = new == old and all(one.arg is other.arg for one, other in zip(inputs, old.inputs, strict=True))
        return old if is_same else new

    def __repr__(self) -> str:
        return f"<Node {', '.join(f'%{value.name}' for value in self.outputs) or '-'} = {self.target}>"


class HasSlot(Protocol):
    """An input or output of a program."""

    slot: Slot


class Graph:
    """A graph that can be changed. Its subgraphs are those of its nodes: `node.subgraphs`.

    Args:
        graph: as the schema has it; not changed.
        where: its place, for messages.

    Raises:
        GraphError: the graph contradicts itself (G1 to G12).
    """

    def __init__(self, graph: schema.Graph, where: str = "$.graph_module.graph") -> None:
        self.origin = graph
        self.where = where
        self._values: dict[str, Value] = {}
        self._externals: dict[str, Value] = {}
        self._read: dict[str, Value] = {}
        self.nodes: Nodes[Node] = Nodes(self._values)
        index = rules.index(graph, where)
        left_over = {name for table in tables(graph).values() for name in table if name not in index.definitions}
        self.names = Names(self._values, left_over, self._externals)
        self._input_slots = [self._defining(argument, index, None) for argument in graph.inputs]
        for number, node in enumerate(graph.nodes):
            self._read_node(node, number, index)
        self._output_slots = [self.using(argument, where) for argument in graph.outputs]
        for slot in self._output_slots:
            slot.attach()
        self._interface: tuple[Sequence[HasSlot], Sequence[HasSlot]] | None = None
        self.names.nodes.update(node.name for node in self.nodes if node.name)

    @property
    def values(self) -> Mapping[str, Value]:
        """Return name -> value, inputs first at the beginning, new ones last; do not change it."""
        return self._values

    def follow(self, inputs: Sequence[HasSlot], outputs: Sequence[HasSlot]) -> None:
        """Take the graph's inputs and outputs from two lists, which the caller keeps and may change."""
        self._interface = inputs, outputs

    @property
    def input_slots(self) -> list[Slot]:
        """Return the inputs, constants of the calling convention included."""
        return self._input_slots if self._interface is None else [one.slot for one in self._interface[0]]

    @property
    def output_slots(self) -> list[Slot]:
        """Return the outputs, constants included."""
        return self._output_slots if self._interface is None else [one.slot for one in self._interface[1]]

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return the input values, in order; constants of the calling convention are omitted."""
        return tuple(value for slot in self.input_slots for value in slot.values)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Return the output values, in order; constants are omitted."""
        return tuple(value for slot in self.output_slots for value in slot.values)

    def walk(self) -> Iterator[Graph]:
        """Yield this graph and every subgraph, at any depth, each before the ones inside it."""
        return depth_first(
            iter([self]), lambda graph: (inner for node in graph.nodes for slot in node.slots for inner in slot.graphs)
        )

    def value(self, name: str | Value) -> Value:
        """Return a value by its name.

        Raises:
            GraphError: there is none of that name, or it belongs to another graph.
        """
        if isinstance(name, Value):
            self.check_own("value", name)
            return name
        value = self._values.get(name)
        if value is None:
            meant = suggestion(name, self._values)
            raise GraphError(f"{self.where}: expected the name of a value, got {quote(name)}{meant}")
        return value

    def append(
        self,
        operator: str,
        /,
        *args: Any,
        meta: Any = None,
        name: str | None = None,
        metadata: Mapping[str, str] | None = None,
        infer: str | None = None,
        **kwargs: Any,
    ) -> Node:
        """Add a node at the end of the graph.

        Args:
            operator: "aten.add.Tensor", with or without "torch.ops."; "_operator.mul" and its like.
            args, kwargs: its arguments, as the operator's schema has them: `Value`s, numbers, texts, lists; dtypes,
                devices, layouts and memory formats as texts; an argument of the schema as it is.
            meta: what the result is like: a `Value`, a `schema.TensorMeta` or what else the tables hold; a tuple of
                them for several results, a list for a result that is a list. None infers it.
            name: of the result; made from the operator's where it is None. A number is appended to one
                that is taken.
            metadata: texts of the node; where it is None, module stack and origin are those of its neighbor.
            infer: "torch" to infer with torch's fake tensors what this build cannot.

        Returns:
            The node; `node.output` is its result.

        Raises:
            GraphError: arguments that do not fit the operator, or a meta that cannot be inferred.
        """
        options = {"meta": meta, "name": name, "metadata": metadata, "infer": infer}
        return self._insert(None, "append", operator, args, {**options, **kwargs})

    def insert_before(self, node: Node, operator: str, /, *args: Any, **options: Any) -> Node:
        """Add a node before another.

        Args:
            node: the other.
            operator, args, options: as for `append`.

        Raises:
            GraphError: as `append`; also arguments that are defined only later.
        """
        self.check_own(f"insert_before({node.label})", node)
        return self._insert(node, "insert_before", operator, args, options)

    def insert_after(self, node: Node, operator: str, /, *args: Any, **options: Any) -> Node:
        """Add a node after another; as `insert_before`."""
        self.check_own(f"insert_after({node.label})", node)
        return self._insert(node.next, "insert_after", operator, args, options)

    def prepend(self, operator: str, /, *args: Any, **kwargs: Any) -> Node:
        """Add a node before all others; as `append`."""
        if self.nodes.first is None:
            return self.append(operator, *args, **kwargs)
        return self.insert_before(self.nodes.first, operator, *args, **kwargs)

    def replace_uses(
        self, old: str | Value, new: str | Value, *, only: Iterable[Node] | Callable[[Node], bool] | None = None
    ) -> int:
        """Use another value wherever one is used, by nodes and among the outputs; the node that makes it is left out.

        Args:
            old: the value that is used.
            new: the value to use, of the same kind and defined before each of the users.
            only: the nodes to change, or what chooses them; the graph's outputs stay then.

        Returns:
            how many places changed. Linear in them.

        Raises:
            GraphError: values of two kinds, or a user that comes before `new`; nothing was changed.
        """
        old, new = self.value(old), self.value(new)
        edit = f"replace_uses({quote(old.name)}, {quote(new.name)})"
        if old is new:
            return 0
        if old.kind != new.kind:
            raise GraphError(f"{edit}: expected a {old.kind} value like the one it replaces, got a {new.kind} value")
        chosen = only if callable(only) or only is None else set(only).__contains__
        places = [
            (slot, position)
            for slot, position in old.uses
            if slot.node is not new.producer or slot.node is None
            if chosen is None or (slot.node is not None and chosen(slot.node))
        ]
        for slot, _ in places:
            if slot.node is not None:
                self.check_defined(edit, (new,), slot.node)
        for slot, position in places:
            slot.put(position, new)
            if slot.node is not None:
                slot.node.edit = edit
        return len(places)

    def erase(self, node: Node) -> None:
        """Remove a node.

        Raises:
            GraphError: something uses its results; nothing was changed.
        """
        if node.graph is not self or node.order < 0:
            self.check_own(f"erase({node.label})", node)
        for value in node.outputs:
            if value.uses:
                who = ", ".join(user.label for user in value.users[:3]) or "the graph's outputs"
                raise GraphError(
                    f"erase({node.label}): expected a node whose results nobody uses, got {quote(value.name)}, which "
                    f"{who} use; replace_uses first"
                )
        for value in node.outputs:
            del self._values[value.name]
        self._remove(node)

    def _remove(self, node: Node) -> None:
        for slot in node.slots:
            slot.detach()
        self.names.nodes.discard(node.name or "")
        self.nodes.unlink(node)

    def name_node(self, node: Node, name: str) -> None:
        """Name a node; the caller must ensure that the name is free."""
        self.names.nodes.discard(node.name or "")
        self.names.nodes.add(name)
        node.name = name

    def rename(self, value: str | Value, name: str) -> None:
        """Rename a value, wherever it is used; a node named after its result is renamed with it.

        Raises:
            GraphError: no identifier (G8), or a name that the graph has already (G2).
        """
        value = self.value(value)
        edit = f"rename({quote(value.name)}, {quote(name)})"
        if value.name == name:
            return
        if value.name in self._externals:
            raise GraphError(f"{edit}: expected a value of the graph, got an object among the archive's constants")
        self.names.check_free(edit, name)
        node = value.producer
        if node is not None and node.name == value.name:
            self.name_node(node, name)
        del self._values[value.name]
        value.name = name
        self._values[name] = value

    def written(self, without: Set[Value] = frozenset()) -> schema.Graph:
        """Return the graph as the schema has it, optionally without unused inputs; the graph that was read if they are
        equal."""
        old = self.origin
        new = replace(
            old,
            nodes=[node.written() for node in self.nodes],
            inputs=[slot.written() for slot in self.input_slots if without.isdisjoint(slot.values)],
            outputs=[slot.written() for slot in self.output_slots if without.isdisjoint(slot.values)],
            **{f"{kind}_values": table for kind, table in self._tables(without).items()},
        )
        return old if new == old and all(map(operator.is_, new.nodes, old.nodes)) else new

    def define(self, name: str, kind: ValueKind, meta: Meta | None, producer: Node | None) -> Value:
        """Create a value; the caller must ensure that the name is free."""
        value = self._values[name] = Value(self, name, kind, meta, producer)
        return value

    def forget(self, slot: Slot) -> None:
        """Remove the values of an input from the graph; the caller must ensure that they have no users."""
        for value in slot.values:
            del self._values[value.name]

    def keep(self, nodes: Collection[Node]) -> None:
        """Remove all other nodes; the caller must ensure that what these define is not used, or an input now."""
        for node in list(self.nodes):
            if node not in nodes:
                self._remove(node)
        kept = {*self.inputs, *(value for node in nodes for value in node.outputs)}
        for value in list(self._values.values()):
            if value not in kept:
                del self._values[value.name]
            elif value.producer is not None and value.producer not in nodes:
                value.producer = None

    def absorb(self, other: Graph) -> None:
        """Append the nodes and values of another graph, which the caller must have given names of their own."""
        for value in other._values.values():
            value.graph = self
        self._values.update(other._values)
        self._externals.update(other._externals)
        self.names.nodes |= other.names.nodes
        for node in list(other.nodes):
            node.graph = self
            self.nodes.link(node, None)

    def _tables(self, without: Set[Value]) -> dict[ValueKind, dict[str, Any]]:
        """Return the value tables in the order in which they were read, with new values at the end."""
        old = tables(self.origin)
        by_kind: dict[ValueKind, dict[str, Any]] = {kind: {} for kind in old}
        for kind, table in old.items():
            for name, meta in table.items():
                value = self._read.get(name)
                if value is None:
                    by_kind[kind][name] = meta  # of nothing that the graph defines, kept as it was
                elif self._values.get(value.name) is value and value not in without:
                    by_kind[value.kind][value.name] = value.meta
        for name, value in self._values.items():
            if value.meta is not None and value not in without:
                by_kind[value.kind].setdefault(name, value.meta)
        return by_kind

    def _defining(self, argument: schema.Argument, index: rules.GraphIndex, node: Node | None) -> Slot:
        """Return the slot of an input of the graph, or of a result of a node."""
        values = []
        for name in rules.arguments(argument):
            kind = index.definitions[name].kind
            self._read[name] = value = self.define(name, kind, tables(self.origin)[kind][name], node)
            values.append(value)
        return Slot(argument, values, (), node)

    def using(self, argument: schema.Argument, where: str, node: Node | None = None) -> Slot:
        """Return the slot of an argument of the schema, not yet registered among the uses of its values.

        Raises:
            GraphError: it names a value that the graph does not have.
        """
        values = [
            self._externals.setdefault(reference.name, Value(self, reference.name, "custom_obj", None, None))
            if reference.kind == "custom_obj" and reference.name not in self._values
            else self.value(reference.name)
            for reference in references(argument)
        ]
        graphs = tuple(Graph(carried.graph, f"{where}.as_graph.graph") for _, carried in graph_arguments(argument))
        return Slot(argument, values, graphs, node)

    def _read_node(self, origin: schema.Node, number: int, index: rules.GraphIndex) -> None:
        node = Node(self, origin)
        for position, named in enumerate(origin.inputs):
            slot = self.using(named.arg, f"{self.where}.nodes[{number}].inputs[{position}].arg", node)
            slot.attach()
            slot.name, slot.kind = named.name, named.kind
            node.slots.append(slot)
        node.outputs_ = [self._defining(argument, index, node) for argument in origin.outputs]
        self.nodes.link(node, None)

    def _insert(
        self, before: Node | None, verb: str, operator: str, args: Sequence[Any], options: dict[str, Any]
    ) -> Node:
        """Add a node; `options` are the keyword arguments of `append`."""
        edit = f"{verb}({quote(operator)})"
        meta, name, metadata, infer = (options.pop(key, None) for key in ("meta", "name", "metadata", "infer"))
        if metadata is None:
            near = before if verb == "insert_before" else before.previous if before is not None else self.nodes.last
            metadata = {} if near is None else {key: near.metadata[key] for key in _INHERITED if key in near.metadata}
        target = building.full_target(operator, edit)
        is_higher_order = target.startswith(HIGHER_ORDER_OPS)
        node = Node(self, schema.Node(target, [], [], {}, None, None))
        for key, value in building.bound_arguments(target, args, options, edit).items():
            node.slots.append(self.argument(target, key, value, edit))
            node.slots[-1].node = node
        for slot in node.slots[: len(args)] if is_higher_order else ():
            slot.name = ""
        self.check_defined(edit, node.inputs, before)
        signature = building.signature_of(target)
        if signature is not None:
            for slot, parameter in zip(node.slots, signature.parameters, strict=False):
                if slot.name != parameter:  # One before it is left to its default.
                    slot.kind = schema.ArgumentKind.KEYWORD
            building.check_call(node.written(), edit, has_results=False)
        if meta is None:
            meta = infer_meta(target, node.plain_arguments, infer, edit)
        results = building.result_metas(meta, signature, edit)
        if name is not None:
            check_name(edit, name)
        if is_higher_order:
            node.origin = replace(node.origin, is_hop_single_tensor_return=not isinstance(meta, list | tuple))
        node.metadata = dict(metadata)
        node.edit = edit
        # Nothing is refused from here on.
        wish = target.removeprefix(OPS).split(".")[1] if "." in target else target
        self._define_results(node, name or wish, results)
        for slot in node.slots:
            slot.attach()
        self.nodes.link(node, before)
        return node

    def _define_results(self, node: Node, wish: str, results: Sequence[Any]) -> None:
        """Set the name of a node, and define the values that it returns."""
        single = len(results) == 1 and not isinstance(results[0], list)
        if not single:
            self.name_node(node, self.names.unique(wish))
        number = 0
        for result in results:
            values = []
            for meta in result if isinstance(result, list) else [result]:
                name = self.names.unique(wish if single else f"{wish}_{number}")
                values.append(self.define(name, kind_of(meta, node.edit), meta, node))
                number += 1
            if isinstance(result, list):
                template = schema.Argument(as_tensors=[schema.TensorArgument(value.name) for value in values])
            else:
                template = argument_of(values[0])
            node.outputs_.append(Slot(template, values, (), node))
        if single:
            self.name_node(node, node.output.name)

    def argument(self, target: str, name: str, value: Any, edit: str) -> Slot:
        """Return one argument of a call, not yet registered among the uses of its values.

        Raises:
            GraphError: a parameter that the operator does not have (T3), or a value that does not fit it (T5).
        """
        signature = building.signature_of(target)
        parameter = signature.parameters.get(name) if signature is not None else None
        slot = self.slot(value, parameter.type if parameter is not None else None, edit)
        is_by_name = parameter is not None and parameter.is_keyword_only
        slot.name = name
        slot.kind = schema.ArgumentKind.KEYWORD if is_by_name else schema.ArgumentKind.POSITIONAL
        building.check_argument(target, schema.NamedArgument(name, slot.template, slot.kind), edit)
        return slot

    def slot(self, value: Any, kind: ValueType | None, edit: str) -> Slot:
        """Write a plain value as an argument; names in a `schema.Argument` are looked up in the graph.

        Raises:
            GraphError: a value that the format has no kind for, or that is not one of the graph's.
        """
        if isinstance(value, schema.Argument):
            return self.using(value, edit)
        template = to_argument(value, kind, edit)
        if isinstance(value, schema.GraphArgument):
            return self.using(template, edit)
        values = [one for one in operands_of(value) if isinstance(one, Value)]
        for one in values:
            self.check_own(edit, one)
        return Slot(template, values)

    def check_own(self, edit: str, what: Node | Value) -> None:
        """Refuse a node or value that is not in this graph, or not any more."""
        if what.graph is not self:
            raise GraphError(f"{edit}: expected something of the graph at {self.where}, got {what!r} of another graph")
        is_gone = (
            what.order < 0
            if isinstance(what, Node)
            else (self._values.get(what.name) is not what and self._externals.get(what.name) is not what)
        )
        if is_gone:
            raise GraphError(f"{edit}: expected something that is in the graph, got {what!r}, which was erased")

    def check_defined(self, edit: str, values: Iterable[Value], before: Node | None) -> None:
        """Refuse values that a node could not use at its position; None is the end of the graph."""
        for value in values:
            self.check_own(edit, value)
            maker = value.producer
            if maker is not None and before is not None and maker.order >= before.order:
                raise GraphError(
                    f"{edit}: expected a value that is defined before {before.label}, which is to use it, "
                    f"got {quote(value.name)}",
                    rule="G1",
                )
