"""A graph of the schema <-> one that can be changed: nodes in order, values with def-use both ways, subgraphs.

Nodes are a linked list with an order number each, so inserting, erasing and asking which of two nodes comes first cost
the same in a graph of ten nodes and of ten thousand. Every edit is checked when it is made and names itself in the
error; what it refuses, it has not begun.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final

from pt2kit import graph as rules
from pt2kit import schema
from pt2kit.editing.nodes import Node, Nodes, are_entries, are_same
from pt2kit.editing.values import Slot, Value
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import ValueKind, graph_arguments, references
from pt2kit.graph.names import GLOBALS, is_variable
from pt2kit.graph.values import Meta, tables
from pt2kit.messages import quote

if TYPE_CHECKING:
    from pt2kit.editing.building import Infer
    from pt2kit.editing.interface import Input, Output

_GAP: Final = 1 << 60
"""Between the order numbers of two neighbours at the beginning; halved by each insertion between them."""


class Graph:
    """A graph that can be changed. Its subgraphs are those of its nodes: `node.subgraphs`.

    Args:
        graph: as the schema has it; not changed.
        where: its place, for messages.
        owner: the node that carries it; None for a program's own graph.

    Raises:
        GraphError: the graph contradicts itself (G1 to G12).
    """

    def __init__(self, graph: schema.Graph, where: str = "$.graph_module.graph", owner: Node | None = None) -> None:
        self._origin = graph
        self.where = where
        self.owner = owner
        self._values: dict[str, Value] = {}
        self._externals: dict[str, Value] = {}
        self._first: Node | None = None
        self._last: Node | None = None
        self._count = 0
        self._names: dict[str, int] = {}
        self._read: dict[str, Value] = {}
        self._single = graph.is_single_tensor_return
        index = rules.index(graph, where)
        self._left_over = {
            name: kind for kind, table in tables(graph).items() for name in table if name not in index.definitions
        }
        self._input_slots = [self._defining(argument, index, None) for argument in graph.inputs]
        for number, node in enumerate(graph.nodes):
            self._read_node(node, number, index)
        self._output_slots = [self.using(argument, where) for argument in graph.outputs]
        for slot in self._output_slots:
            slot.attach()
        self._interface: tuple[Sequence[Input], Sequence[Output]] | None = None
        self._node_names = {node.name for node in self.nodes if node.name}

    @property
    def nodes(self) -> Nodes:
        """The nodes in execution order: iterate, `len`, `nodes["relu"]`."""
        return Nodes(self)

    @property
    def values(self) -> Mapping[str, Value]:
        """Name -> value, inputs first at the beginning, new ones last; do not change it."""
        return self._values

    def follow(self, inputs: Sequence[Input], outputs: Sequence[Output]) -> None:
        """Let two lists, which stay the caller's and may change, say from now on what comes in and what goes out."""
        self._interface = inputs, outputs

    @property
    def input_slots(self) -> list[Slot]:
        """What comes in, constants of the calling convention included."""
        return self._input_slots if self._interface is None else [one.slot for one in self._interface[0]]

    @property
    def output_slots(self) -> list[Slot]:
        """What goes out, constants included."""
        return self._output_slots if self._interface is None else [one.slot for one in self._interface[1]]

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that come in, in order; constants of the calling convention are left out."""
        return tuple(value for slot in self.input_slots for value in slot.values)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values that go out, in order; constants are left out."""
        return tuple(value for slot in self.output_slots for value in slot.values)

    def walk(self) -> Iterator[Graph]:
        """This graph and every subgraph, at any depth, each before the ones inside it."""
        stack: list[Graph] = [self]
        while stack:
            graph = stack.pop()
            yield graph
            stack += [inner for node in reversed(graph.nodes) for slot in reversed(node.slots) for inner in slot.graphs]

    def value(self, name: str | Value) -> Value:
        """A value by its name.

        Raises:
            GraphError: there is none of that name, or it belongs to another graph.
        """
        if isinstance(name, Value):
            self.check_own("value", name)
            return name
        value = self._values.get(name)
        if value is None:
            raise GraphError(f"{self.where}: expected the name of a value, got {quote(name)}{self._close(name)}")
        return value

    def append(
        self,
        operator: str,
        /,
        *args: Any,
        meta: Any = None,
        name: str | None = None,
        metadata: Mapping[str, str] | None = None,
        infer: Infer = None,
        **kwargs: Any,
    ) -> Node:
        """Make a node at the end of the graph.

        Args:
            operator: "aten.add.Tensor", with or without "torch.ops."; "_operator.mul" and its like.
            args, kwargs: its arguments, as the operator's schema has them: `Value`s, numbers, texts, lists; dtypes,
                devices, layouts and memory formats as texts; an argument of the schema as it is.
            meta: what the result is like: a `Value`, a `schema.TensorMeta` or what else the tables hold; a tuple of
                them for several results, a list for a result that is a list. None infers it.
            name: of the result; made from the operator's where it is None. Taken as a wish: a number is put behind one
                that is taken.
            metadata: texts of the node (stack trace, module stack).
            infer: "torch" to infer with torch's fake tensors what this build cannot.

        Returns:
            The node; `node.output` is its result.

        Raises:
            GraphError: arguments that do not fit the operator, or a meta that cannot be inferred.
        """
        return self._insert(
            None, "append", operator, args, meta=meta, name=name, metadata=metadata, infer=infer, **kwargs
        )

    def insert_before(self, node: Node, operator: str, /, *args: Any, **options: Any) -> Node:
        """Make a node in front of another.

        Args:
            node: the other.
            operator, args, options: as for `append`.

        Raises:
            GraphError: as `append`; also arguments that are defined only later.
        """
        self.check_own(f"insert_before({node.label})", node)
        return self._insert(node, "insert_before", operator, args, **options)

    def insert_after(self, node: Node, operator: str, /, *args: Any, **options: Any) -> Node:
        """Make a node behind another; as `insert_before`."""
        self.check_own(f"insert_after({node.label})", node)
        return self._insert(node._next, "insert_after", operator, args, **options)

    def prepend(self, operator: str, /, *args: Any, **kwargs: Any) -> Node:
        """Make a node in front of all others; as `append`."""
        if self._first is None:
            return self.append(operator, *args, **kwargs)
        return self.insert_before(self._first, operator, *args, **kwargs)

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
            for slot, position in old._slots
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
        """Take a node out.

        Raises:
            GraphError: something uses its results; nothing was changed.
        """
        if node.graph is not self or node._order < 0:
            self.check_own(f"erase({node.label})", node)
        for value in node.outputs:
            if value._slots:
                who = ", ".join(user.label for user in value.users[:3]) or "the graph's outputs"
                raise GraphError(
                    f"erase({node.label}): expected a node whose results nobody uses, got {quote(value.name)}, which "
                    f"{who} use; replace_uses first"
                )
        for slot in node.slots:
            slot.detach()
        for value in node.outputs:
            del self._values[value.name]
        if node.name:
            self._node_names.discard(node.name)
        self._unlink(node)

    def rename(self, value: str | Value, name: str) -> None:
        """Give a value another name, wherever it is used; a node named after its result is renamed with it.

        Raises:
            GraphError: no identifier (G8), or a name that the graph has already (G2).
        """
        value = self.value(value)
        edit = f"rename({quote(value.name)}, {quote(name)})"
        if value.name == name:
            return
        if value.name in self._externals:
            raise GraphError(f"{edit}: expected a value of the graph, got an object among the archive's constants")
        self.check_free(edit, name, value.producer if value.producer and value.producer.name == value.name else None)
        node = value.producer
        if node is not None and node.name == value.name:
            self._node_names.discard(value.name)
            self._node_names.add(name)
            node.name = name
        del self._values[value.name]
        value._name = name
        self._values[name] = value

    def set_meta(self, value: Value, meta: Any) -> None:
        """State something else of a value.

        Raises:
            GraphError: it is not of the value's kind.
        """
        from pt2kit.editing.metas import kind_of

        meta = meta.meta if isinstance(meta, Value) else meta
        edit = f"meta({quote(value.name)})"
        if kind_of(meta, edit) != value.kind:
            raise GraphError(f"{edit}: expected the meta of a {value.kind}, got that of a {kind_of(meta, edit)}")
        value._meta = meta
        if value.producer is not None:
            value.producer.edit = edit

    def unique(self, wish: str) -> str:
        """A name that nothing in the graph has: the wish itself, or with a number behind it. Takes constant time.

        Names of Python's own get a number too ("sum_1"), which `torch.fx` would give them on loading.
        """
        stem = wish if wish.isidentifier() else _identifier(wish)
        if _is_name(stem) and not hasattr(builtins, stem) and not self._is_taken(stem):
            return stem
        number = self._names.get(stem, 1)
        while self._is_taken(f"{stem}_{number}"):
            number += 1
        self._names[stem] = number + 1
        return f"{stem}_{number}"

    def written(self, without: Set[Value] = frozenset()) -> schema.Graph:
        """The graph as the schema has it, without some inputs that nodes do not use; the one read, where it is that."""
        old = self._origin
        nodes = [node.written() for node in self.nodes]
        inputs = [slot.written() for slot in self.input_slots if without.isdisjoint(slot.values)]
        outputs = [slot.written() for slot in self.output_slots if without.isdisjoint(slot.values)]
        metas = self._tables(without)
        if are_same(nodes, old.nodes) and are_same(inputs, old.inputs) and are_same(outputs, old.outputs) and all(
            are_entries(metas[kind], table) for kind, table in tables(old).items()
        ) and self._single == old.is_single_tensor_return:  # fmt: skip
            return old
        return schema.Graph(
            inputs, outputs, nodes, metas["tensor"], metas["sym_int"], metas["sym_bool"], self._single,
            metas["custom_obj"], metas["sym_float"],
        )  # fmt: skip

    def define(self, name: str, kind: ValueKind, meta: Meta | None, producer: Node | None) -> Value:
        """Make a value; the caller has made sure that the name is free."""
        value = self._values[name] = Value(self, name, kind, meta, producer)
        return value

    def take(self, name: str) -> None:
        """Note the name of a node."""
        self._node_names.add(name)

    def external(self, name: str) -> Value:
        """An object among the archive's constants, which arguments name without the graph defining it."""
        value = self._externals.get(name)
        if value is None:
            value = self._externals[name] = Value(self, name, "custom_obj", None, None)
        return value

    def forget(self, slot: Slot) -> None:
        """Take the values of an input out of the graph; the caller has made sure that nobody uses them."""
        for value in slot.values:
            del self._values[value.name]

    def _tables(self, without: Set[Value]) -> dict[ValueKind, dict[str, Any]]:
        """The value tables, in the order in which they were read, new values behind."""
        old = tables(self._origin)
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
        """The slot of an input of the graph, or of a result of a node."""
        values = []
        for name in rules.arguments(argument):
            kind = index.definitions[name].kind
            self._read[name] = value = self.define(name, kind, tables(self._origin)[kind][name], node)
            values.append(value)
        return Slot(argument, values, (), node)

    def using(self, argument: schema.Argument, where: str, node: Node | None = None) -> Slot:
        """The slot of an argument as the schema has it, not yet entered among the uses of its values.

        Raises:
            GraphError: it names a value that the graph does not have.
        """
        values = [
            self.external(reference.name)
            if reference.kind == "custom_obj" and reference.name not in self._values
            else self.value(reference.name)
            for reference in references(argument)
        ]
        graphs = tuple(
            Graph(carried.graph, f"{where}.as_graph.graph", node) for _, carried in graph_arguments(argument)
        )
        return Slot(argument, values, graphs, node)

    def _read_node(self, origin: schema.Node, number: int, index: rules.GraphIndex) -> None:
        node = Node(self, origin)
        for position, named in enumerate(origin.inputs):
            slot = self.using(named.arg, f"{self.where}.nodes[{number}].inputs[{position}].arg", node)
            slot.attach()
            slot.name, slot.kind = named.name, named.kind
            node.slots.append(slot)
        node.outputs_ = [self._defining(argument, index, node) for argument in origin.outputs]
        self._link(node, None)

    def _insert(
        self,
        before: Node | None,
        verb: str,
        operator: str,
        args: Sequence[Any],
        /,
        *,
        meta: Any = None,
        name: str | None = None,
        metadata: Mapping[str, str] | None = None,
        infer: Infer = None,
        **kwargs: Any,
    ) -> Node:
        from pt2kit.editing.building import build_node

        edit = f"{verb}({quote(operator)})"
        node = build_node(self, before, edit, operator, args, kwargs, meta, name, metadata, infer)
        for slot in node.slots:
            slot.attach()
        self._link(node, before)
        return node

    def _link(self, node: Node, before: Node | None) -> None:
        """Put a node in front of another, or at the end."""
        after = self._last if before is None else before._previous
        node._previous, node._next = after, before
        low = after._order if after is not None else 0
        high = before._order if before is not None else low + 2 * _GAP
        node._order = (low + high) // 2
        if after is None:
            self._first = node
        else:
            after._next = node
        if before is None:
            self._last = node
        else:
            before._previous = node
        self._count += 1
        if node._order <= low:
            self._renumber()

    def _unlink(self, node: Node) -> None:
        if node._previous is None:
            self._first = node._next
        else:
            node._previous._next = node._next
        if node._next is None:
            self._last = node._previous
        else:
            node._next._previous = node._previous
        node._order = -1
        self._count -= 1

    def _renumber(self) -> None:
        """Spread the order numbers again; needed once for about sixty insertions at one place."""
        for number, node in enumerate(self.nodes, 1):
            node._order = number * _GAP

    def check_own(self, edit: str, what: Node | Value) -> None:
        """Refuse a node or value that is not in this graph, or not any more."""
        if what.graph is not self:
            raise GraphError(f"{edit}: expected something of the graph at {self.where}, got {what!r} of another graph")
        is_gone = what._order < 0 if isinstance(what, Node) else (
            self._values.get(what.name) is not what and self._externals.get(what.name) is not what
        )  # fmt: skip
        if is_gone:
            raise GraphError(f"{edit}: expected something that is in the graph, got {what!r}, which was erased")

    def check_defined(self, edit: str, values: Iterable[Value], before: Node | None) -> None:
        """Refuse values that a node could not use where it stands; None stands at the end."""
        for value in values:
            self.check_own(edit, value)
            maker = value.producer
            if maker is not None and before is not None and maker._order >= before._order:
                raise GraphError(f"{edit}: expected a value that is defined before {before.label}, which is to use it, "
                                 f"got {quote(value.name)}", rule="G1")  # fmt: skip

    def check_free(self, edit: str, name: str, besides: Node | None = None) -> None:
        """Refuse a name that cannot be a variable (G8) or is taken (G2, G14)."""
        check_name(edit, name)
        if name in self._values or name in self._left_over or name in self._externals:
            raise GraphError(f"{edit}: expected a name that is not taken, got {quote(name)}", rule="G2")
        if name in self._node_names and not (besides is not None and besides.name == name):
            raise GraphError(f"{edit}: expected a name that no node has, got {quote(name)}", rule="G14")

    def _is_taken(self, name: str) -> bool:
        return name in self._values or name in self._left_over or name in self._externals or name in self._node_names

    def _close(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, list(self._values)[:20_000], n=3, cutoff=0.7)
        return f"; there is {', '.join(near)}" if near else ""


def _is_name(name: str) -> bool:
    return is_variable(name) and name not in GLOBALS


def check_name(edit: str, name: str) -> None:
    """Refuse a name that could not be a variable in what torch generates (G8)."""
    if not is_variable(name):
        raise GraphError(f"{edit}: expected an identifier that is no keyword of Python, nor 'self', got {quote(name)}",
                         rule="G8")  # fmt: skip
    if name in GLOBALS:
        raise GraphError(f"{edit}: expected a name that torch does not use in generated source, got {quote(name)}",
                         rule="G8")  # fmt: skip


def _identifier(wish: str) -> str:
    """A text as a name: what a name cannot have becomes an underscore."""
    stem = "".join(char if char.isidentifier() or char.isdigit() else "_" for char in wish)
    return stem if stem.isidentifier() else f"_{stem}"
