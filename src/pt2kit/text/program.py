"""Text of a whole program: inputs, every node with its results, outputs, subgraphs below their owner.

`whole_lines` is the full text of a file for line-based comparison, as in `git diff`: programs, tensors, other records.
It leaves out what depends on how the file is packed, and the metadata of nodes.

Nodes and graph inputs are found with everything that the file has about them (`find`). A node is found by its name, by
that of a value it defines, by its place (`nodes[3]`), and by a path through subgraphs (`cond/true_graph_0/add`). Names
repeat between graphs, so there may be several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from msgspec.structs import replace

from pt2kit.diffs.compute import COMPARED_RECORDS
from pt2kit.digests.compute import digest_parts, payloads_of
from pt2kit.graph.argument_values import arguments, graph_arguments
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, Scope, Source, graphs, join, node_label, node_outputs
from pt2kit.messages import printable
from pt2kit.node_metadata.frames import lenient
from pt2kit.node_metadata.modules import module_of, parse_module_stack
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.schema import Argument, ExportedProgram, Graph, GraphArgument, InputSpec, Node, OutputSpec
from pt2kit.schema.names import OPS, target_of
from pt2kit.text.format import dotted, value_name
from pt2kit.text.values import ValueTexts, argument_text, constant_text, named_text
from pt2kit.treespec.callsig import show_name

_INDENT = "  "
_KINDS = {
    "tensor_constant": "constant",
    "custom_obj": "object",
    "user_input": "input",
    "constant_input": "constant input",
    "user_output": "output",
    "loss_output": "loss",
    "buffer_mutation": "new value of buffer",
    "parameter_mutation": "new value of parameter",
    "gradient_to_parameter": "gradient of parameter",
    "gradient_to_user_input": "gradient of input",
    "user_input_mutation": "new value of input",
}
"""Kinds of inputs and outputs that the text does not call as the schema does."""

MAX_SPEC: Final = 10_000
"""Characters of a tree of inputs or outputs."""


def program_lines(program: ExportedProgram) -> Iterator[str]:
    """Yield the program as text, a line at a time. Linear; only the current line is held in memory."""
    texts = ValueTexts(program)
    graph, signature = program.graph_module.graph, program.graph_module.signature
    yield "inputs"
    yield from _edge_lines(graph, graph.inputs, signature.input_specs, texts)
    yield "nodes"
    yield from _node_lines(graph, texts, 1)
    yield "outputs"
    yield from _edge_lines(graph, graph.outputs, signature.output_specs, texts)
    if ranges := texts.ranges():
        yield "where"
        yield from (f"{_INDENT}{symbol}: {limits}" for symbol, limits in ranges)
    if program.guards_code:
        yield "guards"
        yield from (f"{_INDENT}{printable(code, 2000)}" for code in program.guards_code)


def node_line(graph: Graph, node: Node, texts: ValueTexts) -> str:
    """Return one node as a line: `%y: f32[4] = aten.relu.default(self=%x) # block.act`."""
    types = _types(graph, node.outputs, texts)
    declared = f": {types}" if types else ""
    results = results_text(node)
    call = f"{target_text(node.target)}({', '.join(map(named_text, node.inputs))})"
    place = module_of(node.metadata)
    comment = f"  # {dotted(place)}" if place else ""
    return f"{results}{declared} = {call}{comment}" if results else f"{call}{comment}"


def target_text(target: str) -> str:
    """Return the operator's name without the common prefix: `aten.add.Tensor`, `higher_order.cond`."""
    return printable(target.removeprefix(OPS))


def _node_lines(graph: Graph, texts: ValueTexts, depth: int) -> Iterator[str]:
    indent = _INDENT * depth
    for node in graph.nodes:
        yield indent + node_line(graph, node, texts)
        for _, subgraph in (held for named in node.inputs for held in graph_arguments(named.arg)):
            yield from _subgraph_lines(subgraph, texts, depth + 1)


def _subgraph_lines(subgraph: GraphArgument, texts: ValueTexts, depth: int) -> Iterator[str]:
    indent, graph = _INDENT * depth, subgraph.graph
    if depth > MAX_SUBGRAPH_DEPTH:
        yield f"{indent}@{show_name(subgraph.name)}: …"
        return
    inputs = ", ".join(_typed(graph, argument, texts) for argument in graph.inputs)
    yield f"{indent}@{show_name(subgraph.name)}({inputs}):"
    yield from _node_lines(graph, texts, depth + 1)
    yield f"{indent}{_INDENT}return {', '.join(map(argument_text, graph.outputs)) or '()'}"


def _typed(graph: Graph, argument: Argument, texts: ValueTexts) -> str:
    types = _types(graph, [argument], texts)
    return f"{argument_text(argument)}: {types}" if types else argument_text(argument)


def _types(graph: Graph, defining: Iterable[Argument], texts: ValueTexts) -> str:
    """Return the known types of the values that some arguments name."""
    names = (name for argument in defining for name in arguments(argument))
    return ", ".join(text for name in names if (text := texts.named(graph, name)))


def _edge_lines(
    graph: Graph, edge: Sequence[Argument], specs: Sequence[InputSpec | OutputSpec], texts: ValueTexts
) -> Iterator[str]:
    """Yield the inputs or the outputs of a graph with their specs, of which there may be too few."""
    for argument, spec in zip_longest(edge, specs[: len(edge)]):
        if spec is not None and spec.type == "constant_input":
            text = f"{value_name(spec.value.name)}: {constant_text(spec.value.value)}  {_KINDS[spec.type]}"
        else:
            text = f"{_typed(graph, argument, texts)}  {_role(spec)}".rstrip()
        yield _INDENT + text


def _role(spec: InputSpec | OutputSpec | None) -> str:
    """Return the role of an input or output: "parameter fc1.weight"."""
    if spec is None:
        return "(no spec)"
    target = target_of(spec)
    fleeting = " (not persistent)" if spec.type == "buffer" and not spec.value.persistent else ""
    return f"{_KINDS.get(spec.type, spec.type)}{'' if target is None else f' {dotted(target)}'}{fleeting}"


def results_text(node: Node) -> str:
    """Return the values that a node defines: `%a, %b`; "" if it defines none."""
    return ", ".join(map(argument_text, node.outputs))


def whole_lines(package: Package) -> Iterator[str]:
    """Yield everything in a package, a line at a time; of each tensor its type and its digest.

    Raises:
        Pt2Error: a part of it cannot be read.

    Cost: reads every tensor once.
    """
    for model in package.layout.models:
        program = package.programs[model]
        ranges = dict(sorted(program.range_constraints.items()))
        program = replace(program, range_constraints=ranges, guards_code=sorted(program.guards_code))
        yield f"model {printable(model)}"
        yield from (f"  {line}" for line in _header_lines(program))
        yield from (f"  {line}" for line in program_lines(program))
        yield from (f"  {line}" for line in _call_lines(program))
        digests = digest_parts(package, ("weights", "constants"), model)
        for kind, table in (("weights", "tensors"), ("constants", "constant_tensors")):
            payloads = payloads_of(package, model, kind)
            if payloads:
                yield f"  {kind}"
            for name in sorted(payloads):
                yield f"    {dotted(name)}: {payloads[name].describe()} {digests[table][name]}"
    yield from _records(package)


def _header_lines(program: ExportedProgram) -> Iterator[str]:
    """Yield the fields of a program's header."""
    versions = program.opset_version
    yield f"operator sets {', '.join(f'{printable(name)} {versions[name]}' for name in sorted(versions))}"
    yield f"verifiers {', '.join(map(printable, program.verifiers))}"
    yield f"torch {printable(program.torch_version)}"


def _call_lines(program: ExportedProgram) -> Iterator[str]:
    """Yield the call signatures of modules that keep theirs, the program itself first."""
    module = program.graph_module
    for entry in sorted(module.module_call_graph, key=lambda entry: entry.fqn):
        if (call := entry.signature) is None:
            continue
        yield f"call of {dotted(entry.fqn) if entry.fqn else '(the program itself)'}"
        if call.forward_arg_names is not None:
            yield f"  parameters {', '.join(map(printable, call.forward_arg_names))}"
        yield from (f"  takes {argument_text(argument)}" for argument in call.inputs)
        yield from (f"  gives {argument_text(argument)}" for argument in call.outputs)
        yield f"  in_spec {printable(call.in_spec, MAX_SPEC)}"
        yield f"  out_spec {printable(call.out_spec, MAX_SPEC)}"
    for name in sorted(module.treespec_namedtuple_fields):
        fields = module.treespec_namedtuple_fields[name].field_names
        yield f"named tuple {printable(name)}: {', '.join(map(printable, fields))}"


def _records(package: Package) -> Iterator[str]:
    rows = {package.relative(name): record for name, record in package.records.items()}
    shown = sorted(name for name in rows if names.kind(name) in COMPARED_RECORDS)
    if shown:
        yield "records"
    for name in shown:
        yield f"  {printable(name)}: {rows[name].size:,} bytes, crc32 {rows[name].crc32:08x}"


@dataclass(frozen=True, slots=True)
class Found:
    """A node, or a graph input, and its location.

    Args:
        path: names that lead to it from the root.
        scope: its graph.
        node: the node; None for a graph input.
        values: the names of the values it defines.
    """

    path: str
    scope: Scope
    node: Node | None
    values: tuple[str, ...]


def entries(source: Source) -> Iterator[Found]:
    """Yield every graph input and every node of a program, subgraphs included.

    Raises:
        GraphError, LimitError: a graph that cannot be walked.
    """
    for scope in graphs(source):
        for argument in scope.graph.inputs:
            yield from (Found(join(scope.path, name), scope, None, (name,)) for name in arguments(argument))
        for number, node in enumerate(scope.graph.nodes):
            yield Found(join(scope.path, node_label(node, number)), scope, node, node_outputs(node))


def find(program: ExportedProgram, name: str) -> list[Found]:
    """Find the node or input of a path, or every node and input of a name."""
    matches = [
        entry
        for entry in entries(program)
        if name in entry.values or name in (entry.path, entry.path.rpartition("/")[2])
    ]
    return [entry for entry in matches if entry.path == name] or matches


def found_lines(found: Found, texts: ValueTexts) -> Iterator[str]:
    """Yield everything about one node or graph input: arguments, results, users, metadata."""
    graph, node = found.scope.graph, found.node
    if node is None:
        name = found.values[0]
        yield f"{value_name(name)}: {texts.named(graph, name) or '?'}, an input of {_graph_text(found.scope)}"
    else:
        label = value_name(node.name) if node.name else results_text(node) or found.path.rpartition("/")[2]
        yield f"{label}: {printable(node.target)}, in {_graph_text(found.scope)}"
        yield from _argument_lines(graph, node, texts)
    users = list(users_of(graph, found.values))
    yield "used by"
    yield from (f"  {printable(user)}" for user in users)
    if not users:
        yield "  nothing"
    for key, text in node.metadata.items() if node else ():
        yield f"metadata {show_name(key)}"
        yield from (f"  {printable(line, 2000)}" for line in _metadata_lines(key, text))


def users_of(graph: Graph, values: tuple[str, ...]) -> Iterator[str]:
    """Yield label and operator of the nodes that use one of some values, and the graph's output if it uses one."""
    wanted = frozenset(values)
    for number, node in enumerate(graph.nodes):
        if any(not wanted.isdisjoint(arguments(named.arg)) for named in node.inputs):
            yield f"{node_label(node, number)}  {node.target.removeprefix('torch.ops.')}"
    if any(not wanted.isdisjoint(arguments(argument)) for argument in graph.outputs):
        yield "the graph's outputs"


def _graph_text(scope: Scope) -> str:
    return f"the subgraph {dotted(scope.path.replace('/', '.'))}" if scope.path else "the graph"


def _argument_lines(graph: Graph, node: Node, texts: ValueTexts) -> Iterator[str]:
    inputs = [(named_text(named), named.arg) for named in node.inputs]
    outputs = [(argument_text(output), output) for output in node.outputs]
    for title, rows in (("inputs", inputs), ("outputs", outputs)):
        yield title
        for text, argument in rows:
            types = _types(graph, [argument], texts)
            yield f"  {text}{f'  : {types}' if types else ''}"


def _metadata_lines(key: str, text: str) -> list[str]:
    if key == "nn_module_stack" and (stack := lenient(parse_module_stack, text)):
        return [f"{entry.path}  {entry.type or ''}".rstrip() for entry in stack]
    return text.splitlines() or [""]
