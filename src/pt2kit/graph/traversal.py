"""Traversal of a program's graphs and nodes, subgraphs included, with the path of each; the value tables of a graph.

A subgraph is an argument of a node and has its own names. Two texts say where a graph is: its *path*, made of names,
for people ("" for the root, "cond/true_graph_0" below the node `cond`), and its *place*, the JSON path in the record,
which is unique ("$.graph_module.graph.nodes[4].inputs[1].arg.as_graph.graph"). Nothing here recurses.

The tables of a graph have the metadata of each value. Views of nodes are for printing: outputs, arguments by name,
namespaces of operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.errors import LimitError, Problem
from pt2kit.graph.argument_values import LIMIT_RULE, ValueKind, defined, graph_arguments
from pt2kit.jsontext import path_text
from pt2kit.messages import cut, kind_of, quote
from pt2kit.schema.names import OPS, plain_target
from pt2kit.tensors.dtypes import DTYPES

T = TypeVar("T")

Meta = schema.TensorMeta | schema.SymInt | schema.SymFloat | schema.SymBool | schema.CustomObjArgument
"""The entry of a value table for one name."""


MAX_DIMENSIONS: Final = 64
"""How many dimensions a tensor of torch may have."""

MAX_STATIC_BYTES: Final = 1 << 40
"""Bytes that a tensor whose sizes are numbers may span: more than any device has."""

HIGHER_ORDER: Final = "higher_order"
"""The namespace of operators that take subgraphs."""

BUILTIN_NAMESPACES: Final = frozenset(
    {"_operator", "math", "torch", "aten", "prim", "prims", "debugprims", "rngprims", "higher_order", "export"}
    | {"quantized", "_quantized", "quantized_decomposed", "quantization", "sparse", "profiler", "debug_mode_ops"}
    | {"inductor", "inductor_prims", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "prepacked", "xnnpack", "metal"}
    | {"vulkan", "onnx", "symm_mem", "streams", "fsdp", "c10d", "c10d_functional", "_c10d_functional"}
    | {"_c10d_functional_autograd", "_dtensor", "static_runtime", "tensorexpr", "_native", "_test", "_inductor_test"}
    | {"flex_lib", "flex_gemm", "onnx_symbolic", "_native_aot", "coor", "cuda", "mempool"}
)
"""The namespaces that torch itself registers; an operator of any other one is a custom operator.

Source: the dispatchers of torch 2.1 to 2.15 and `torch.library` definitions in their sources.
"""


def tables(graph: schema.Graph) -> dict[ValueKind, Mapping[str, Any]]:
    """Return the value tables of a graph by the kind of value they describe; shared, not copied."""
    return {
        "tensor": graph.tensor_values,
        "sym_int": graph.sym_int_values,
        "sym_float": graph.sym_float_values,
        "sym_bool": graph.sym_bool_values,
        "custom_obj": graph.custom_obj_values,
    }


def with_numbers(meta: Any, change: Callable[[Any], Any]) -> Any:
    """Return the meta of a value with other numbers: a tensor's sizes, strides and offset, or a number itself."""
    if isinstance(meta, schema.TensorMeta):
        sizes, strides = list(map(change, meta.sizes)), list(map(change, meta.strides))
        return replace(meta, sizes=sizes, strides=strides, storage_offset=change(meta.storage_offset))
    return change(meta) if isinstance(meta, schema.SymInt | schema.SymFloat | schema.SymBool) else meta


def kinds(graph: schema.Graph) -> dict[str, ValueKind]:
    """Return the kind of the table that describes each name; the last table wins if two do (G4)."""
    by_name: dict[str, ValueKind] = {}
    for kind, table in tables(graph).items():
        by_name |= dict.fromkeys(table, kind)
    return by_name


def table_problems(graph: schema.Graph, where: str) -> Iterator[Problem]:
    """Yield names with two entries (G4), and tensors that contradict themselves (G6) or cannot be (G17)."""
    seen: dict[str, ValueKind] = {}
    for kind, table in tables(graph).items():
        for name in filter(seen.__contains__, table):
            message = f"expected one entry for {quote(name)}, got a second one, after that in {seen[name]}_values"
            yield Problem(entry_place(where, kind, name), "G4", message)
        seen |= dict.fromkeys(table, kind)
    for name, meta in graph.tensor_values.items():
        yield from tensor_problems(meta, entry_place(where, "tensor", name))


def tensor_problems(meta: schema.TensorMeta, place: str) -> Iterator[Problem]:
    """Yield how the description of a tensor contradicts itself (G6), or why no tensor has it (G17)."""
    if len(meta.sizes) != len(meta.strides):
        yield Problem(place, "G6", f"expected as many sizes as strides, got {len(meta.sizes)} and {len(meta.strides)}")
    if (negative := next((number for number in _known_numbers(meta) if number < 0), None)) is not None:
        yield Problem(place, "G6", f"expected sizes, strides and storage_offset of at least 0, got {negative}")
    if (expected := _impossible(meta)) is not None:
        yield Problem(place, "G17", expected)


def argument_place(where: str, side: str, node: int | None, position: int) -> str:
    """Return the path of an argument of a node, or of the graph (node is None), for messages."""
    owner = where if node is None else f"{where}.nodes[{node}]"
    return f"{owner}.{side}[{position}]"


def entry_place(where: str, kind: ValueKind, name: str) -> str:
    """Return the path of an entry of a value table, for messages."""
    return f"{where}.{kind}_values{path_text((cut(name),))[1:]}"


def _impossible(meta: schema.TensorMeta) -> str | None:
    """Return why a tensor cannot have its metadata; None if it can."""
    if meta.dtype is schema.ScalarType.UNKNOWN:
        return "expected an element type that torch has, got 0 (UNKNOWN)"
    if meta.layout in (schema.Layout.Unknown, schema.Layout._mkldnn):
        return f"expected a layout that torch can describe, got {meta.layout.value} ({meta.layout.name})"
    if schema.Layout.SparseCsr <= meta.layout <= schema.Layout.SparseBsc and len(meta.sizes) < 2:
        return f"expected 2 dimensions or more of a tensor in the layout {meta.layout.name}, got {len(meta.sizes)}"
    if len(meta.sizes) > MAX_DIMENSIONS:
        return f"expected at most {MAX_DIMENSIONS} dimensions, got {len(meta.sizes)}"
    if meta.requires_grad and not DTYPES[meta.dtype].has_gradient:
        return f"expected a tensor of floats where a gradient is required, got one of {meta.dtype.name}"
    if any(number.bit_length() > 63 for number in _known_numbers(meta)):
        return "expected sizes, strides and storage_offset below 2**63, got a larger one"
    known_sizes = [size.as_int for size in meta.sizes if isinstance(size.as_int, int)]
    if 0 not in known_sizes and prod(known_sizes).bit_length() > 63:
        return "expected fewer than 2**63 elements, got more"
    if is_too_large(meta):
        return f"expected at most {MAX_STATIC_BYTES:,} bytes, got {_last_byte(meta):,}"
    return None


def is_too_large(meta: schema.TensorMeta) -> bool:
    """Return whether a tensor has more dimensions, or spans more bytes, than any tensor of torch has."""
    is_strided = meta.layout is schema.Layout.Strided
    return len(meta.sizes) > MAX_DIMENSIONS or (is_strided and _last_byte(meta) > MAX_STATIC_BYTES)


def _last_byte(meta: schema.TensorMeta) -> int:
    """Return the bytes of a storage up to the end of a value, as far as they are known."""
    row, offset = DTYPES.get(meta.dtype), meta.storage_offset.as_int
    before = offset * (row.itemsize if row else 1) if isinstance(offset, int) else 0
    return before + spanned_bytes(meta)


def spanned_bytes(meta: schema.TensorMeta) -> int:
    """Return the bytes that a value spans, 0 if symbols decide; repeated elements (stride 0) count once."""
    last = 0
    for size, stride in zip(meta.sizes, meta.strides, strict=False):
        length, step = size.as_int, stride.as_int
        if not isinstance(length, int) or not isinstance(step, int) or length <= 0:
            return 0
        last += (length - 1) * step
    row = DTYPES.get(meta.dtype)
    return (last + 1) * (row.itemsize if row else 1)


def _known_numbers(meta: schema.TensorMeta) -> list[int]:
    """Return those of a tensor's sizes, strides and storage_offset that are no expressions."""
    numbers = (*meta.sizes, *meta.strides, meta.storage_offset)
    return [number.as_int for number in numbers if isinstance(number.as_int, int)]


def node_outputs(node: schema.Node) -> tuple[str, ...]:
    """Return the names of the values that a node defines, in order; lists are flattened, None and constants are
    omitted.

    Raises:
        GraphError: an output is a subgraph (G10).
        LimitError: dicts of arguments nest too deep (G11).
    """
    return tuple(name for output in node.outputs for name in defined(output))


def input_by_name(node: schema.Node, name: str) -> schema.Argument | None:
    """Return the argument that the operator's schema calls `name`; None if the node leaves it to its default."""
    return next((named.arg for named in node.inputs if named.name == name), None)


def operator_namespace(target: str) -> str:
    """Return the namespace of an operator.

    Args:
        target: what a node calls.

    Returns:
        The dispatcher's namespace ("aten" of "torch.ops.aten.add.Tensor"), "higher_order" also for what torch 2.1 to
        2.4 wrote, the module of a plain function ("_operator", "math", "torch"), and the name of an extension with
        its "#" ("#ext" of "#ext:op").
    """
    return operator_name(target).partition(":" if target.startswith("#") else ".")[0]


def operator_name(target: str) -> str:
    """Shorten what a node calls for printing: "aten.add.Tensor", "higher_order.cond", "_operator.mul"."""
    target = plain_target(target)
    short = target.removeprefix(OPS)
    # Torch 2.1 wrote torch.ops.cond: a higher-order operator without its namespace.
    return f"{HIGHER_ORDER}.{short}" if short != target and "." not in short else short


def is_custom(target: str) -> bool:
    """Return whether an operator is custom: torch does not include it, and somebody has to register it."""
    return operator_namespace(target) not in BUILTIN_NAMESPACES


def operator_counts(source: Source) -> Counter[str]:
    """Count the calls of each operator by target, subgraphs included.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    return Counter(step.node.target for step in walk(source))


MAX_SUBGRAPH_DEPTH: Final = 32
"""Levels of subgraphs inside subgraphs. The corpus has one; nobody nests control flow by dozens."""

TOO_DEEP: Final = f"expected subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep, got more"

Source = schema.ExportedProgram | schema.GraphModule | schema.Graph


@dataclass(frozen=True, slots=True)
class Scope:
    """A graph and its location in the program.

    Args:
        graph: the graph; shared, not copied.
        path: names that lead to it from the root, "" for the root itself.
        where: its place, for messages: record and JSON path, as far as the caller knew them.
        depth: 0 for the root.
    """

    graph: schema.Graph
    path: str
    where: str
    depth: int = 0


class Step(NamedTuple):
    """A node and its location: its graph, and its number in it from 0."""

    scope: Scope
    number: int
    node: schema.Node

    @property
    def where(self) -> str:
        """Return the location of the node, for messages."""
        return f"{self.scope.where}.nodes[{self.number}]"

    @property
    def path(self) -> str:
        """Return the names that lead to the node from the root."""
        return join(self.scope.path, node_label(self.node, self.number))


def root(source: Source, where: str = "") -> Scope:
    """Return the root graph of a program, of a graph module, or a graph itself, as a scope.

    Args:
        source: the program or a part of it.
        where: the place of the *graph*, for messages; by default its JSON path inside what was passed.

    Raises:
        TypeError: anything else, for example a package.
    """
    match source:
        case schema.ExportedProgram():
            return Scope(source.graph_module.graph, "", where or "$.graph_module.graph")
        case schema.GraphModule():
            return Scope(source.graph, "", where or "$.graph")
        case schema.Graph():
            pass
        case _:
            raise TypeError(f"source: expected a program, such as package.programs['model'], got {kind_of(source)}")
    return Scope(source, "", where or "$")


def graphs(source: Source, where: str = "") -> Iterator[Scope]:
    """Yield the root graph and every subgraph, each before the ones inside it, in execution order.

    Raises:
        LimitError: subgraphs nest deeper than `MAX_SUBGRAPH_DEPTH`, or dicts of arguments too deep (G11).
    """
    return depth_first(iter([root(source, where)]), _below)


def subgraphs(source: Source, where: str = "") -> Iterator[Scope]:
    """Yield every subgraph, at any depth, without the root graph.

    Raises:
        LimitError: subgraphs nest deeper than `MAX_SUBGRAPH_DEPTH`, or dicts of arguments too deep (G11).
    """
    scopes = graphs(source, where)
    next(scopes)
    return scopes


def walk(source: Source, where: str = "") -> Iterator[Step]:
    """Yield every node of every graph: a node, then the nodes of the subgraphs that it carries, then the next node.

    Raises:
        LimitError: subgraphs nest deeper than `MAX_SUBGRAPH_DEPTH`, or dicts of arguments too deep (G11).
    """
    return depth_first(_steps(root(source, where)), _steps_below)


def depth_first(first: Iterator[T], below: Callable[[T], Iterator[T]]) -> Iterator[T]:
    """Yield items, each before those below it, without recursion."""
    stack = [first]
    while stack:
        for item in stack[-1]:
            yield item
            stack.append(below(item))
            break
        else:
            stack.pop()


def carried(step: Step) -> Iterator[Scope]:
    """Yield the subgraphs of one node, but not those inside them.

    Raises:
        LimitError: dicts of arguments nest too deep (G11).
    """
    scope, _, node = step
    for position, named in enumerate(node.inputs):
        for keys, subgraph in graph_arguments(named.arg):
            inside = "".join(f".as_string_to_argument{path_text((key,))[1:]}" for key in keys)
            place = f"{step.where}.inputs[{position}].arg{inside}.as_graph.graph"
            yield Scope(subgraph.graph, join(step.path, subgraph.name), place, scope.depth + 1)


def check_depth(scope: Scope) -> Scope:
    """Return a graph if its depth is within `MAX_SUBGRAPH_DEPTH`.

    Raises:
        LimitError: it stands deeper (G11).
    """
    if scope.depth > MAX_SUBGRAPH_DEPTH:
        raise LimitError(f"{scope.where}: {TOO_DEEP}", rule=LIMIT_RULE)
    return scope


def node_label(node: schema.Node, number: int) -> str:
    """Return the label of a node: its name, or its index in the list of nodes if it has none (before torch 2.11)."""
    return node.name or f"nodes[{number}]"


def join(path: str, name: str) -> str:
    """Return the path of an item of the graph whose path is `path`."""
    return f"{path}/{name}" if path else name


def _below(scope: Scope) -> Iterator[Scope]:
    for step in _steps(scope):
        for named in step.node.inputs:  # most nodes carry none: this is asked fast
            if named.arg.as_graph is not UNSET or named.arg.as_string_to_argument is not UNSET:
                yield from map(check_depth, carried(step))
                break


def _steps_below(step: Step) -> Iterator[Step]:
    return chain.from_iterable([_steps(check_depth(inner)) for inner in carried(step)])


def _steps(scope: Scope) -> Iterator[Step]:
    return (Step(scope, number, node) for number, node in enumerate(scope.graph.nodes))
