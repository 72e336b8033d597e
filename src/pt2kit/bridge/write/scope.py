"""State of writing a graph: its values so far, the names its nodes go by, and what the program shares.

A node's origin (`node.meta`) is written as the metadata texts of the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as quote
from types import MappingProxyType
from typing import Any, get_args

import torch
from torch.fx import Node

from pt2kit.bridge.callables import describe, find_type, target_text
from pt2kit.bridge.operators import Operator, of_overload, with_schema
from pt2kit.bridge.torch_names import NodeSource, action_text, writes_origins
from pt2kit.bridge.write.values import Values
from pt2kit.errors import GraphError, LimitError, SchemaError, UnsupportedError
from pt2kit.graph.argument_values import ValueKind
from pt2kit.node_metadata.frames import SourceFn, dump_custom, dump_source_fn_stack, dump_torch_fn
from pt2kit.node_metadata.modules import ModuleEntry, dump_module_stack
from pt2kit.node_metadata.redaction import AddressNumbers
from pt2kit.schema import (
    Argument,
    CustomObjArgument,
    Graph,
    SymBool,
    SymBoolArgument,
    SymFloat,
    SymFloatArgument,
    SymInt,
    SymIntArgument,
    TensorArgument,
    TensorMeta,
)
from pt2kit.schema import Node as SchemaNode


class Metadata:
    """Writer of the metadata of nodes; it formats each distinct stack once."""

    def __init__(self) -> None:
        self._stacks: dict[Any, str] = {}
        self._addresses = AddressNumbers()

    def of_node(self, node: Node) -> dict[str, str]:
        """Return the texts of one node in torch's order, with numbers for process addresses.

        Raises:
            SchemaError: custom metadata that JSON cannot hold, or an entry of another type than its key requires.

        Source: `serialize_metadata` in torch/_export/serde/serialize.py, 2.13.
        """
        meta = node.meta
        texts: dict[str, str] = {}
        if trace := meta.get("stack_trace"):
            texts["stack_trace"] = _unicode(_text(trace, "stack_trace"))
        if modules := meta.get("nn_module_stack"):
            texts["nn_module_stack"] = self._once(tuple(modules.items()), _module_stack)
        if sources := meta.get("source_fn_stack"):
            texts["source_fn_stack"] = self._once(tuple(map(tuple, sources)), _source_stack)
        if function := meta.get("torch_fn"):
            texts["torch_fn"] = dump_torch_fn([_text(part, "torch_fn") for part in function])
        if custom := meta.get("custom"):
            texts["custom"] = dump_custom(custom, "metadata 'custom'")
        if "from_node" in meta and writes_origins():
            texts["from_node"] = _sources(meta["from_node"])
        return self._addresses.numbered(texts)

    def _once(self, key: Any, write: Callable[[Any], str]) -> str:
        try:
            text = self._stacks.get(key)
        except TypeError:  # a function without a hash
            return write(key)
        if text is None:
            text = self._stacks[key] = write(key)
        return text


def of_graph_module(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata of a whole graph module: the user's entries under "custom"."""
    custom = meta.get("custom")
    return {"custom": dump_custom(custom, "graph metadata 'custom'")} if custom else {}


def _module_stack(items: Iterable[tuple[Any, Any]]) -> str:
    entries = []
    for key, value in items:
        if not isinstance(value, tuple) or len(value) != 2:
            raise SchemaError(f"metadata 'nn_module_stack': expected a path and a type for {key!r}, got {value!r}")
        path, kind = value
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        entries.append(ModuleEntry(str(key), _text(path, "nn_module_stack"), name))
    return dump_module_stack(entries)


def _source_stack(items: Iterable[tuple[Any, ...]]) -> str:
    return dump_source_fn_stack([SourceFn(str(item[0]), describe(item[1])) for item in items])


def _sources(sources: Iterable[Any] | None) -> str:
    """Return the text of from_node.

    Made by hand: programs hold tens of thousands of these, and `json.dumps` is four times slower.
    """
    if sources is None:
        return "null"
    return f"[{', '.join([_source(source) for source in sources if isinstance(source, NodeSource)])}]"


def _source(source: NodeSource) -> str:
    return (
        f'{{"name": {quote(source.name)}, "target": {quote(source.target)}, "graph_id": {source.graph_id}, '
        f'"pass_name": {quote(source.pass_name)}, "action": {quote(action_text(source))}, '
        f'"from_node": {_sources(source.from_node)}}}'
    )


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise SchemaError(f"metadata {key!r}: expected text, got {type(value).__name__}")
    return value


def _unicode(text: str) -> str:
    """Return text without lone surrogates, which paths on Linux may hold and UTF-8 may not: they are escaped."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_NONE: Mapping[str, Any] = MappingProxyType({})
MAX_SUBGRAPHS = 48
"""Limit of nested graphs. Each takes about eight levels of JSON, of which readers allow 512."""


class Shared:
    """Tables that the graphs of one program share; made for one call of save.

    Args:
        write_graph: fx GraphModule and the depth of its graph -> Graph.
        constants: of the program; objects that stand in the graph may be among them, as they are after loading.
    """

    def __init__(self, write_graph: Callable[[Any, Shared, int], Graph], constants: Mapping[str, Any] = _NONE) -> None:
        self.values = Values()
        self.metadata = Metadata()
        self.objects: dict[str, Any] = {}
        """Script and opaque objects in the graph itself, by their names there."""
        self._write_graph = write_graph
        self._graphs: dict[int, tuple[Any, Graph]] = {}
        self._taken = constants.keys()
        self._named = {id(value): name for name, value in constants.items() if not isinstance(value, torch.Tensor)}

    def operator(self, target: Any) -> Operator:
        """Return the facts of an OpOverload's schema, or of an operator of an extension."""
        extension = find_type(type(target))
        if extension is None:
            return of_overload(target_text(target), target)
        return with_schema(extension.target(target), target, extension.schema(target))

    def graph(self, module: Any, depth: int) -> Graph:
        """Return a subgraph; one that is called twice is written once and shared.

        Raises:
            LimitError: graphs inside graphs, too deep.
        """
        if depth > MAX_SUBGRAPHS:
            raise LimitError(f"expected at most {MAX_SUBGRAPHS} graphs inside each other, got more")
        entry = self._graphs.get(id(module))
        if entry is None:
            entry = self._graphs[id(module)] = (module, self._write_graph(module, self, depth))
        return entry[1]

    def add_object(self, value: Any) -> str:
        """Name a script or opaque object that is in the graph itself."""
        if id(value) in self._named:
            return self._named[id(value)]
        number = len(self.objects)
        while (name := f"_custom_obj_{number}") in self._taken or name in self.objects:
            number += 1
        self.objects[name] = value
        return name


_KINDS: Mapping[type, tuple[ValueKind, Callable[[str], Any]]] = MappingProxyType(
    {
        TensorMeta: ("tensor", TensorArgument),
        SymInt: ("sym_int", lambda name: SymIntArgument(as_name=name)),
        SymFloat: ("sym_float", lambda name: SymFloatArgument(as_name=name)),
        SymBool: ("sym_bool", lambda name: SymBoolArgument(as_name=name)),
    }
)
"""Class of a value's description -> the kind of the value, and the content of the argument that names it."""


@dataclass(slots=True)
class Scope:
    """Graph that is being written.

    Args:
        module: the fx GraphModule.
        shared: what the program's graphs share.
        depth: how many graphs this one is inside of.
        inputs, outputs, nodes, is_single_tensor_return: of the graph.
        values: its tables of descriptions, by their names.
        uses: the argument for an fx node where it is used.
        renamed: names of fx nodes that go by another node's name, because they take the same result again.
    """

    module: Any
    shared: Shared
    depth: int = 0
    inputs: list[Argument] = field(default_factory=list)
    outputs: list[Argument] = field(default_factory=list)
    nodes: list[SchemaNode] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {f"{kind}_values": {} for kind in get_args(ValueKind)}
    )
    is_single_tensor_return: bool = False
    uses: dict[Node, Argument] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def define(self, name: str, value: Any) -> Argument:
        """Define a value of an input or a node; returns its argument.

        Args:
            name: its name in the graph.
            value: fx's metadata of it (`node.meta["val"]`).

        Raises:
            GraphError: the name is taken.
            UnsupportedError: a value of a kind that the format cannot define.
        """
        described = self.shared.values.described(value)
        if described is not None:
            kind, argument = _KINDS[type(described)]
            self._enter(kind, name, described)
            return make(f"as_{kind}", argument(name))
        if value is None:
            return NONE
        if isinstance(value, torch.export.graph_signature.CustomObjArgument):
            self._enter("custom_obj", name, CustomObjArgument(value.name, value.class_fqn))
            return Argument(as_custom_obj=CustomObjArgument(name, value.class_fqn))
        raise UnsupportedError(f"expected a tensor, a number or None as result {name!r}, got {type(value).__name__}")

    def graph(self) -> Graph:
        """Return the finished graph."""
        return Graph(
            self.inputs, self.outputs, self.nodes, **self.values, is_single_tensor_return=self.is_single_tensor_return
        )

    def _enter(self, kind: ValueKind, name: str, value: Any) -> None:
        table = self.values[f"{kind}_values"]
        if name in table:
            raise GraphError(f"expected one value of the name {name!r}, got two")
        table[name] = value


NONE = Argument(as_none=True)


def make(arm: str, value: Any) -> Argument:
    """Return an argument of the kind `arm` ("as_ints")."""
    argument: Argument = Argument.create(**{arm: value})
    return argument
