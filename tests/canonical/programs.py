"""Small programs to canonicalize, and the same programs written down in another way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace
from tests.graph.build import arg, graph, meta
from tests.narrow import present

from pt2kit import codec, schema
from pt2kit.graph import references, tables

A, B = "torch.ops.aten.a.default", "torch.ops.aten.b.default"


def node(target: str, outputs: Sequence[str], *inputs: schema.Argument) -> schema.Node:
    """A node whose arguments are called a0, a1, …; several outputs are one list."""
    named = [schema.NamedArgument(f"a{i}", held, schema.ArgumentKind.POSITIONAL) for i, held in enumerate(inputs)]
    results = [arg(as_tensor=outputs[0])] if len(outputs) == 1 else [arg(as_tensors=list(outputs))]
    return schema.Node(target, named, results if outputs else [], {}, name=outputs[0] if outputs else None)


def tensor_graph(inputs: Sequence[str], nodes: list[schema.Node], outputs: Sequence[str]) -> schema.Graph:
    """A graph of tensors, all alike."""
    defined = [*inputs, *(ref.name for one in nodes for output in one.outputs for ref in references(output))]
    return graph(
        [arg(as_tensor=name) for name in inputs],
        nodes,
        [arg(as_tensor=name) for name in outputs],
        tensor_values={name: meta(2, 3) for name in defined},
    )


def program(held: schema.Graph, **rest: Any) -> schema.ExportedProgram:
    """A program around a graph whose inputs and outputs are the user's."""
    signature = schema.GraphSignature(
        [schema.InputSpec(user_input=schema.UserInputSpec(argument)) for argument in held.inputs],
        [schema.OutputSpec(user_output=schema.UserOutputSpec(argument)) for argument in held.outputs],
    )
    module = schema.GraphModule(held, signature, [])
    return schema.ExportedProgram(module, {"aten": 10}, {}, schema.SchemaVersion(*schema.CURRENT.pair), **rest)


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12, subgraphs: bool = True) -> schema.Graph:
    """Any graph of tensors; few outputs, so that much leads nowhere, and few operators, so that much is alike."""
    inputs = [f"x{i}" for i in range(draw(st.integers(0, 2)))]
    values = list(inputs)
    nodes = []
    for number in range(draw(st.integers(0, max_nodes))):
        arguments = [_argument(draw, values) for _ in range(draw(st.integers(0, 3)))]
        if subgraphs and draw(st.integers(0, 5)) == 0:
            body = draw(graphs(max_nodes=2, subgraphs=False))
            arguments.append(schema.Argument(as_graph=schema.GraphArgument(f"body_{number}", body)))
        outputs = [f"v{number}_{place}" for place in range(draw(st.sampled_from((1, 1, 1, 0, 2))))]
        nodes.append(node(draw(st.sampled_from((A, A, A, B))), outputs, *arguments))
        values += outputs
    outputs = draw(st.lists(st.sampled_from(values), max_size=2)) if values else []
    return tensor_graph(inputs, nodes, outputs)


def _argument(draw: st.DrawFn, values: list[str]) -> schema.Argument:
    choice = draw(st.integers(0, 6)) if values else 0
    if choice == 0:
        return schema.Argument(as_int=draw(st.integers(0, 1)))
    if choice == 1:
        return arg(as_tensors=draw(st.lists(st.sampled_from(values), max_size=3)))
    if choice == 2:
        inner = {"k": arg(as_tensor=draw(st.sampled_from(values))), "l": schema.Argument(as_int=1)}
        return schema.Argument(as_string_to_argument=inner)
    return arg(as_tensor=draw(st.sampled_from(values)))


def rewritten(held: schema.ExportedProgram, seed: int) -> schema.ExportedProgram:
    """The same program: nodes in another topological order, other names, maps in another order, other node metadata."""
    rng = random.Random(seed)
    module = held.graph_module
    new, names = _rewritten_graph(module.graph, rng)
    tree = codec.to_tree(module.signature)
    _rename(tree, names)
    signature = codec.convert(tree, schema.GraphSignature, "signature").value
    calls = codec.to_tree(module.module_call_graph)
    _rename(calls, names)
    rng.shuffle(calls)
    return replace(
        held,
        graph_module=replace(
            module,
            graph=new,
            signature=signature,
            module_call_graph=codec.convert(calls, list[schema.ModuleCallEntry], "calls").value,
            treespec_namedtuple_fields=_shuffled(module.treespec_namedtuple_fields, rng),
        ),
        opset_version=_shuffled(held.opset_version, rng),
        range_constraints=_shuffled(held.range_constraints, rng),
        guards_code=rng.sample(held.guards_code, len(held.guards_code)),
    )


def _shuffled(mapping: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    items = list(mapping.items())
    rng.shuffle(items)
    return dict(items)


def _rewritten_graph(held: schema.Graph, rng: random.Random) -> tuple[schema.Graph, dict[str, str]]:
    old = [name for table in tables(held).values() for name in table]
    new = [rng.choice(("_{}", "v_{}", "_{}_")).format(number) for number in range(len(old))]
    rng.shuffle(new)
    names = dict(zip(old, new, strict=True))
    numbers = _topological(held, rng)
    bodies: dict[int, list[schema.Graph]] = {}
    for number, one in enumerate(held.nodes):
        bodies[number] = [
            _rewritten_graph(present(named.arg.as_graph).graph, rng)[0]
            for named in one.inputs
            if named.arg.type == "as_graph"
        ]
    tree = codec.to_tree(held)
    tree["nodes"] = [tree["nodes"][number] for number in numbers]
    for key in tree:
        if key.endswith("_values"):
            tree[key] = _shuffled({names[name]: value for name, value in tree[key].items()}, rng)
    for one, number in zip(tree["nodes"], numbers, strict=True):
        one["name"] = f"n{rng.randrange(10**9)}"
        one["metadata"] = {"stack_trace": f"line {rng.randrange(10)}"}
        for named in one["inputs"]:
            if "as_graph" in named["arg"]:
                body = bodies[number].pop(0)
                named["arg"]["as_graph"] = {"name": f"g{rng.randrange(10**9)}", "graph": codec.to_tree(body)}
            else:
                _rename(named, names)
        _rename(one["outputs"], names)
    _rename(tree["inputs"], names)
    _rename(tree["outputs"], names)
    _rename(tree["custom_obj_values"], names)
    return codec.convert(tree, schema.Graph, "graph").value, names


_NAMING = ("as_tensor", "as_tensors", "as_nested_tensors", "as_custom_obj", "as_optional_tensors", "as_optional_tensor")


def _rename(tree: Any, names: dict[str, str]) -> None:
    """Rename the values that a tree names, in place: independent of how the code under test does it."""
    stack = [(tree, False)]
    while stack:
        current, holds_value = stack.pop()
        if isinstance(current, list):
            stack += [(entry, holds_value) for entry in current]
        elif isinstance(current, dict):
            if "user_input_name" in current:
                current["user_input_name"] = names.get(current["user_input_name"], current["user_input_name"])
            if "as_name" in current:
                current["as_name"] = names.get(current["as_name"], current["as_name"])
            if (holds_value or "class_fqn" in current) and "name" in current:
                current["name"] = names.get(current["name"], current["name"])
            for key, entry in current.items():
                # The part of a spec under `arg` is a value itself, or an argument, which is a union.
                stack.append((entry, key in _NAMING or (key == "arg" and "name" in entry)))


def _topological(held: schema.Graph, rng: random.Random) -> list[int]:
    """Some topological order of the nodes' numbers."""
    definer = {
        ref.name: number
        for number, one in enumerate(held.nodes)
        for output in one.outputs
        for ref in references(output)
    }
    needs = [
        {definer[ref.name] for named in one.inputs for ref in references(named.arg) if ref.name in definer}
        for one in held.nodes
    ]
    waiting = [len(found) for found in needs]
    users: dict[int, list[int]] = {number: [] for number in range(len(needs))}
    for number, found in enumerate(needs):
        for used in found:
            users[used].append(number)
    ready = [number for number, count in enumerate(waiting) if count == 0]
    done = []
    while ready:
        place = rng.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        done.append(ready.pop())
        for user in users[done[-1]]:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return done
