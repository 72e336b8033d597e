"""Read a program as Python objects: nodes, arguments, values, subgraphs and weights (`Package.graph()`); stable API.

    for node in pt2kit.open("model.pt2").graph().walk():
        print(node.module, node.op, node.args, [value.shape for value in node.outputs])

Read-only and without torch. Arguments have the names and defaults of the release of torch that wrote the file; to
change a program, use `pt2kit.edit`.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import GraphError, attempt
from pt2kit.graph.argument_values import ValueKind, argument_names, arguments, arguments_of
from pt2kit.graph.def_use import GraphIndex, index
from pt2kit.graph.traversal import Scope, Step, carried, check_depth, depth_first, node_label, operator_name, root
from pt2kit.messages import count_text, quote, suggestion
from pt2kit.node_metadata.frames import Frame, parse_stack_trace
from pt2kit.node_metadata.modules import ModuleEntry, module_fqn, stated_modules
from pt2kit.package.open import Package
from pt2kit.package.stored import Named, Payload
from pt2kit.schema.names import target_of
from pt2kit.schema.operators import Parameter, find_operator, nearest
from pt2kit.schema.versions import release_written
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.plain import to_str
from pt2kit.tensors.bounds import device_text
from pt2kit.tensors.dtypes import DTYPES

Names: TypeAlias = Mapping[str, "Value"]

_REQUIRED: Final = object()
"""Marker instead of a default: the parameter is required."""

MEMORY_FORMATS: Final[Mapping[str, schema.MemoryFormat]] = MappingProxyType(
    {
        "contiguous_format": schema.MemoryFormat.ContiguousFormat,
        "preserve_format": schema.MemoryFormat.PreserveFormat,
        "channels_last": schema.MemoryFormat.ChannelsLast,
        "channels_last_3d": schema.MemoryFormat.ChannelsLast3d,
    }
)
"""torch's names of memory formats, in the order of torch's own numbers -> the format's numbers."""


class Value:
    """An input of a graph or a result of a node.

    Attributes:
        name: unique in its graph.
        kind: "tensor", "sym_int", "sym_float", "sym_bool" or "custom_obj".
        graph: the graph that defines it.
        producer: the node that defines it; None for an input of the graph.
        role: what an input of the program is: "user_input", "parameter", "buffer", "tensor_constant", "custom_obj",
            "token" or "constant_input"; "" for inputs of subgraphs and for results of nodes.
        target: the name of a weight or constant in the module ("layer1.0.weight"); "" for other values.
    """

    __slots__ = ("graph", "kind", "meta", "name", "producer", "role", "target")

    def __init__(self, graph: Graph, name: str, kind: ValueKind, meta: Any, producer: Node | None) -> None:
        self.graph = graph
        self.name = name
        self.kind = kind
        self.meta = meta
        self.producer = producer
        self.role, self.target = graph._roles.get(name, ("", ""))

    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """Return the sizes of a tensor: numbers, and expressions over symbols as text ("s77", "2*s77"); None
        otherwise."""
        return tuple(map(readable_size, self.meta.sizes)) if isinstance(self.meta, schema.TensorMeta) else None

    @property
    def strides(self) -> tuple[int | str, ...] | None:
        """Return the strides of a tensor in elements, as `shape`; None for anything else."""
        return tuple(map(readable_size, self.meta.strides)) if isinstance(self.meta, schema.TensorMeta) else None

    @property
    def dtype(self) -> str | None:
        """Return the element type of a tensor as torch names it ("float32"); None for anything else."""
        return _dtype(self.meta.dtype) if isinstance(self.meta, schema.TensorMeta) else None

    @property
    def device(self) -> str | None:
        """Return the device of a tensor ("cpu", "cuda:0"); None for anything else."""
        return device_text(self.meta.device) if isinstance(self.meta, schema.TensorMeta) else None

    @property
    def users(self) -> tuple[Node, ...]:
        """Return the nodes of the graph that use it, each once, in execution order."""
        return tuple(self.graph.nodes[number] for number in self.graph._index.users(self.name))

    @property
    def is_output(self) -> bool:
        """Return whether the graph returns the value."""
        return any(use.node is None for use in self.graph._index.uses.get(self.name, ()))

    def tensor(self) -> Payload:
        """Return the stored tensor of a parameter, buffer or constant; `.numpy()` of the result reads it.

        Raises:
            GraphError: it is no weight, or the file has none of that name.
            Pt2Error: what lists the tensors of the file cannot be read.
        """
        package, model = self.graph.package, self.graph.model
        for payloads in (package.weights, package.constants) if self.target else ():
            if (payload := payloads(model).get(self.target)) is not None:
                return payload
        got = f"no {quote(self.target)} in the file" if self.target else self.role or "a computed value"
        raise GraphError(f"value {quote(self.name)}: expected a stored parameter, buffer or constant, got {got}")

    def __repr__(self) -> str:
        shown = f"{self.dtype}{list(self.shape)}" if self.shape is not None else self.kind
        return f"<Value %{self.name}: {shown}>"


class Node:
    """A call of an operator.

    Attributes:
        graph: the graph that it is in.
        number: its position there, from 0.
        name: its name, unique in its graph.
        op: the operator without "torch.ops.": "aten.conv2d.default", "higher_order.cond", "_operator.add".
        outputs: the values that it defines, lists flattened.
    """

    __slots__ = ("_args", "_node", "_subgraphs", "graph", "name", "number", "op", "outputs")

    def __init__(self, graph: Graph, number: int, node: schema.Node) -> None:
        self.graph = graph
        self.number = number
        self.name = node_label(node, number)
        self.op = operator_name(node.target)
        self.outputs: tuple[Value, ...] = ()
        self._node = node
        self._args: Mapping[str, Any] | None = None
        self._subgraphs: dict[str, Graph] | None = None

    @property
    def metadata(self) -> Mapping[str, str]:
        """Return the texts that the file keeps for the node."""
        return self._node.metadata

    @property
    def args(self) -> Mapping[str, Any]:
        """Return every argument by the operator's parameter name, defaults filled in.

        Values are `Value`s and subgraphs `Graph`s; lists are tuples; dtypes, devices, layouts and memory formats are
        texts ("float32", "cuda:0", "strided", "channels_last"). Functions over numbers and higher-order operators
        name arguments by position ("0", "1"). Operators that the release of the file does not have, such as custom
        ones, have the arguments that the file names.

        Raises (on access):
            KeyError: the operator has no parameter of that name; the message lists those it has.
        """
        if self._args is None:
            given = {name: self._plain(value) for name, value in arguments_of(self._node, self.graph._lookup).items()}
            by_schema = {
                name: given.get(name, default)
                for name, default in defaults(self.op, self.graph.release).items()
                if name in given or default is not _REQUIRED
            }
            self._args = Named(by_schema | given, f"argument of {self.op}")
        return self._args

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return the values that it uses, each once, in the order of its arguments."""
        return tuple(dict.fromkeys(_values(self.args.values())))

    @property
    def output(self) -> Value:
        """Return the one value that it defines.

        Raises:
            GraphError: it defines none or several.
        """
        if len(self.outputs) != 1:
            raise GraphError(f"node {quote(self.name)}: expected one result, got {len(self.outputs)}")
        return self.outputs[0]

    @property
    def users(self) -> tuple[Node, ...]:
        """Return the nodes of its graph that use its results, each once, in execution order."""
        nodes = {user.number: user for value in self.outputs for user in value.users}
        return tuple(nodes[number] for number in sorted(nodes))

    @property
    def subgraphs(self) -> Mapping[str, Graph]:
        """Return the subgraphs that it carries, by name: the branches of `cond`, the body of `while_loop`."""
        if self._subgraphs is None:
            scopes = carried(Step(self.graph._scope, self.number, self._node))
            inner = [(scope.path.rpartition("/")[2], check_depth(scope)) for scope in scopes]
            self._subgraphs = {name: Graph(self.graph.package, self.graph.model, scope, self) for name, scope in inner}
        return self._subgraphs

    @property
    def module(self) -> str | None:
        """Return the dotted name of the innermost module that was running, "" for the root; None if the file has
        none."""
        return module_fqn(self._modules[-1].path) if self._modules else None

    @property
    def module_type(self) -> str | None:
        """Return the class of that module ("torch.nn.modules.linear.Linear"); None if the file has none."""
        return self._modules[-1].type if self._modules else None

    @property
    def _modules(self) -> tuple[ModuleEntry, ...]:
        return stated_modules(self.metadata.get("nn_module_stack", ""))

    @property
    def source(self) -> Frame | None:
        """Return the line of the model that the node comes from (`.file`, `.line`, `.function`, `.source`), if
        known."""
        trace = attempt(parse_stack_trace, self.metadata.get("stack_trace", ""))
        return trace.frames[-1] if trace else None

    def _plain(self, value: Any) -> Any:
        """Turn what `graph.argument_values` reads into plain Python values."""
        match value:
            case tuple():
                return tuple(map(self._plain, value))
            case dict():
                return {key: self._plain(item) for key, item in value.items()}
            case schema.GraphArgument():
                return self.subgraphs[value.name]
            case schema.ScalarType():
                return _dtype(value)
            case schema.Layout():
                return value.name.lower()
            case schema.MemoryFormat():
                return next((name for name, one in MEMORY_FORMATS.items() if one is value), "unknown")
            case schema.Device():
                return device_text(value)
        return value

    def __repr__(self) -> str:
        return f"<Node {self.name}: {self.op}>"


class Graph:
    """A graph of a program; `walk` also visits its subgraphs.

    Attributes:
        package: the file that it was read from.
        model: the name of the program in it.
        owner: the node that carries it; None for the graph of the program.
        nodes: in execution order.
        values: name -> value, inputs first.
        inputs, outputs: the values that come in and go out; constants of the calling convention are left out.
        release: the release of torch that wrote the program ("2.13"); the newest known one if the file does not say.

    Raises:
        GraphError: the graph contradicts itself (G1 to G12).
    """

    __slots__ = (
        *("_index", "_roles", "_scope", "inputs", "model", "nodes", "outputs"),
        *("owner", "package", "release", "values"),
    )

    def __init__(self, package: Package, model: str, scope: Scope, owner: Node | None = None) -> None:
        self.package = package
        self.model = model
        self.owner = owner
        stored = package.stored[model]
        self.release = nearest(release_written(stored.program.torch_version, stored.version))
        self._scope = scope
        self._index: GraphIndex = index(scope.graph, scope.where)
        self._roles = _roles(stored.program) if owner is None else {}
        self.nodes = tuple(Node(self, number, node) for number, node in enumerate(scope.graph.nodes))
        values: dict[str, Value] = {}
        for name, place in self._index.definitions.items():
            producer = None if place.node is None else self.nodes[place.node]
            values[name] = Value(self, name, place.kind, self._index.meta(name), producer)
            if producer is not None:
                producer.outputs = (*producer.outputs, values[name])
        self.values: Names = Named(values, f"value of {scope.where}")
        self.inputs = tuple(value for value in values.values() if value.producer is None)
        returned = (name for argument in scope.graph.outputs for name in arguments(argument))
        self.outputs = tuple(values[name] for name in returned if name in values)

    def walk(self) -> Iterator[Node]:
        """Yield every node, each before the nodes of its subgraphs, in execution order."""
        return depth_first(
            iter(self.nodes), lambda node: chain.from_iterable(inner.nodes for inner in node.subgraphs.values())
        )

    def node(self, name: str) -> Node:
        """Return the node of a name, or the node that defines the value of a name.

        Raises:
            GraphError: there is none.
        """
        value = self.values.get(name)
        if value is not None and value.producer is not None:
            return value.producer
        found = next((node for node in self.nodes if node.name == name), None)
        if found is None:
            meant = suggestion(name, (node.name for node in self.nodes))
            raise GraphError(f"{self._scope.where}: expected the name of a node, got {quote(name)}{meant}")
        return found

    def weights(self) -> tuple[Value, ...]:
        """Return the inputs that are parameters, buffers or constants, in order; `value.tensor()` has the numbers."""
        return tuple(value for value in self.inputs if value.target)

    def _lookup(self, name: str) -> Value:
        """Return the value of a name; custom objects that only the constants of the archive define are made here."""
        value = self.values.get(name)
        if value is None:
            value = Value(self, name, "custom_obj", None, None)
            value.role, value.target = "custom_obj", name
        return value

    def __repr__(self) -> str:
        return f"<Graph of {self.model!r}: {count_text(len(self.nodes), 'node')}>"


def graph_of(package: Package, model: str) -> Graph:
    """Return the graph of a program of a package; `Package.graph` calls it.

    Raises:
        KeyError: no such program.
        GraphError: the graph contradicts itself (G1 to G12).
        Pt2Error: the program cannot be read.

    Cost: linear in the size of the graph; reads no weights.
    """
    return Graph(package, model, root(package.programs[model]))


# A pure function; programs call the same few operators over and over.
@lru_cache(maxsize=4096)
def defaults(op: str, release: str) -> Mapping[str, Any]:
    """Return the defaults of an operator's parameters by name, as plain values; {} if the release does not have it.

    Args:
        op: "aten.conv2d.default".
        release: of torch: "2.13".

    Raises:
        VersionError: no release that the table has.
    """
    operator = find_operator(op, release)
    return {name: _default(parameter) for name, parameter in operator.parameters.items()} if operator else {}


def _default(parameter: Parameter) -> Any:
    """Return the default of a parameter, if it has one; a single number for a list of fixed length is repeated."""
    if parameter.default is None:
        return _REQUIRED
    kind = parameter.type
    value = literal_eval(parameter.default)
    if kind.base == "ScalarType" and value is not None:
        return _dtype(schema.ScalarType(value + 1))  # torch counts from 0, the format from 1
    if kind.base == "MemoryFormat" and value is not None:
        return tuple(MEMORY_FORMATS)[value]
    if isinstance(value, list):
        return tuple(value)
    return (value,) * kind.length if kind.length and value is not None else value


def _roles(program: schema.ExportedProgram) -> dict[str, tuple[str, str]]:
    """Return the role and the target of each input of a program by its name in the graph."""
    specs = program.graph_module.signature.input_specs
    return {name: (spec.type, target_of(spec) or "") for spec in specs for name in argument_names(spec)}


def _values(arguments: Iterable[Any]) -> Iterator[Value]:
    """Yield the values in arguments, those in lists and dicts included, in order."""
    for argument in arguments:
        if isinstance(argument, Value):
            yield argument
        elif isinstance(argument, tuple | dict):
            yield from _values(argument.values() if isinstance(argument, dict) else argument)


def readable_size(size: schema.SymInt) -> int | str:
    """Return a size as a number, or as the text of its expression ("2*s77")."""
    return size.as_int if size.as_int is not UNSET else _expression(size.value.expr_str)


# A pure function; the values of a program share a few expressions.
@lru_cache(maxsize=4096)
def _expression(text: str) -> str:
    """Return an expression as people write it; as stored if it cannot be parsed."""
    tree = attempt(parse, text)
    return text if tree is None else to_str(tree)


def _dtype(dtype: schema.ScalarType) -> str:
    return DTYPES[dtype].name if dtype in DTYPES else dtype.name.lower()
