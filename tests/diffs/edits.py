"""Programs and the same programs with something edited."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from tests.canonical.programs import node, program, tensor_graph
from tests.graph.build import arg, meta
from tests.narrow import present

from pt2kit import schema
from pt2kit.diffs import Change
from pt2kit.diffs.compute import compare_programs
from pt2kit.diffs.graphs import DiffOptions

LINEAR, RELU, GELU = (f"torch.ops.aten.{name}.default" for name in ("linear", "relu", "gelu"))
ADD = "torch.ops.aten.add.Tensor"


def changes(old: schema.ExportedProgram, new: schema.ExportedProgram, **look: bool) -> list[Change]:
    """The changes between two programs, node metadata left aside unless asked for."""
    return compare_programs(old, new, "model", DiffOptions(**{"metadata": False, **look}))[0]


def told(found: list[Change]) -> list[tuple[str, ...]]:
    """Changes in short: kind, area, name, and what differs."""
    return [(one.kind, one.area, one.name, *(detail.what for detail in one.details)) for one in found]


def stack(module: str) -> dict[str, str]:
    """Metadata of a node of a module."""
    return {"nn_module_stack": f"L__self__,,M;L__self___{module},{module},N"} if module else {}


def with_target(graph: schema.Graph, name: str, target: str) -> schema.Graph:
    """A graph in which one node calls another operator."""
    return with_nodes(graph, lambda nodes: [replace(one, target=target) if one.name == name else one for one in nodes])


def layers(count: int = 3) -> schema.Graph:
    """A stack of layers: linear, relu, and a residual addition; `x` goes in, `layers.<n>.w` are parameters."""
    nodes, last = [], "x"
    for n in range(count):
        where = stack(f"layers.{n}")
        nodes += [
            replace(node(LINEAR, [f"linear_{n}"], arg(as_tensor=last), arg(as_tensor=f"w{n}")), metadata=where),
            replace(node(RELU, [f"relu_{n}"], arg(as_tensor=f"linear_{n}")), metadata=where),
            replace(node(ADD, [f"add_{n}"], arg(as_tensor=last), arg(as_tensor=f"relu_{n}")), metadata=where),
        ]
        last = f"add_{n}"
    return tensor_graph([*(f"w{n}" for n in range(count)), "x"], nodes, [last])


def with_parameters(graph: schema.Graph) -> schema.ExportedProgram:
    """A program whose inputs w0, w1, … are the parameters `layers.0.w`, …."""
    found = program(graph)
    specs = [
        schema.InputSpec(parameter=schema.InputToParameterSpec(tensor, f"layers.{tensor.name[1:]}.w"))
        if tensor.name.startswith("w")
        else schema.InputSpec(user_input=schema.UserInputSpec(schema.Argument(as_tensor=tensor)))
        for tensor in (present(argument.as_tensor) for argument in graph.inputs)
    ]
    signature = replace(found.graph_module.signature, input_specs=specs)
    return replace(found, graph_module=replace(found.graph_module, signature=signature))


def with_nodes(graph: schema.Graph, change: Callable[[list[schema.Node]], list[schema.Node]]) -> schema.Graph:
    """A graph with its list of nodes changed; new values are tensors like all others."""
    nodes = change(list(graph.nodes))
    names = [present(held.as_tensor).name for held in graph.inputs]
    names += [output.as_tensor.name for one in nodes for output in one.outputs]
    return replace(graph, nodes=nodes, tensor_values={name: meta(2, 3) for name in names})


def with_input(one: schema.Node, position: int, held: schema.Argument) -> schema.Node:
    """A node with another argument."""
    inputs = list(one.inputs)
    inputs[position] = replace(inputs[position], arg=held)
    return replace(one, inputs=inputs)
