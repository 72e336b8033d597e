"""Large and strange programs as JSON, made without torch: what `pt2 view` is measured and tested with.

    flat          a random graph of binary operators, no modules
    layers        equal layers, each with a few modules, as a transformer has them
    inputs        thousands of inputs, one after another added up
    hub           one value that thousands of nodes use
    deep          modules inside modules, one node in each
    names         names as hostile as names can be

Write one to a file with `python -m benchmarks.pictures KIND SIZE OUT.json`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pt2kit import codec, schema, treespec
from pt2kit.schema import Argument, ScalarType, SymInt, TensorArgument, TensorMeta

META = TensorMeta(
    dtype=ScalarType.FLOAT,
    sizes=[SymInt(as_int=8)],
    requires_grad=False,
    device=schema.Device("cpu"),
    strides=[SymInt(as_int=1)],
    storage_offset=SymInt(as_int=0),
    layout=schema.Layout.Strided,
)


def call(target: str, inputs: Iterable[tuple[str, str]], output: str, stack: str = "") -> schema.Node:
    """One call of an operator on tensors.

    Args:
        target: the operator.
        inputs: (name in its schema, value).
        output: the value it gives; the node has this name, too.
        stack: the text of its module stack.
    """
    metadata = {"nn_module_stack": stack} if stack else {}
    named = [schema.NamedArgument(name, tensor(value), schema.ArgumentKind.POSITIONAL) for name, value in inputs]
    return schema.Node(target, named, [tensor(output)], metadata, name=output)


def tensor(name: str) -> Argument:
    """A tensor as an argument."""
    return Argument(as_tensor=TensorArgument(name))


def stack_of(*path: str, kind: str = "model.Block") -> str:
    """The text of the module stack of a node in a module, given by the names that lead to it."""
    entries = [",,model.Net"]
    entries += [f"k{depth},{'.'.join(path[: depth + 1])},{kind}{depth}" for depth in range(len(path))]
    return ";".join(entries)


def program(
    inputs: Sequence[str], nodes: list[schema.Node], outputs: Sequence[str], parameters: Sequence[tuple[str, str]] = ()
) -> schema.ExportedProgram:
    """A program of the current version around some nodes.

    Args:
        inputs, outputs: names of values.
        nodes: in the order in which they run.
        parameters: (value, name in the module) of inputs before the others.
    """
    given = [value for value, _ in parameters]
    values = [*given, *inputs, *(node.outputs[0].as_tensor.name for node in nodes)]
    input_specs = [
        *(
            schema.InputSpec(parameter=schema.InputToParameterSpec(TensorArgument(value), name))
            for value, name in parameters
        ),
        *(schema.InputSpec(user_input=schema.UserInputSpec(tensor(value))) for value in inputs),
    ]
    output_specs = [schema.OutputSpec(user_output=schema.UserOutputSpec(tensor(value))) for value in outputs]
    return schema.ExportedProgram(
        graph_module=schema.GraphModule(
            graph=schema.Graph(
                inputs=[tensor(value) for value in (*given, *inputs)],
                outputs=[tensor(value) for value in outputs],
                nodes=nodes,
                tensor_values=dict.fromkeys(values, META),
                sym_int_values={},
                sym_bool_values={},
            ),
            signature=schema.GraphSignature(input_specs, output_specs),
            module_call_graph=[schema.ModuleCallEntry("", _signature(inputs, outputs))],
        ),
        opset_version={"aten": 10},
        range_constraints={},
        schema_version=schema.SchemaVersion(8, 20),
        verifiers=["TRAINING"],
        torch_version="2.13.0",
    )


def _signature(inputs: Sequence[str], outputs: Sequence[str]) -> schema.ModuleCallSignature:
    leaves = tuple(treespec.LEAF for _ in inputs)
    args = treespec.TreeSpec("builtins.tuple", '"null"', leaves)
    both = treespec.TreeSpec("builtins.tuple", '"null"', (args, treespec.TreeSpec("builtins.dict", '"[]"')))
    out = treespec.TreeSpec("builtins.tuple", '"null"', tuple(treespec.LEAF for _ in outputs))
    names = [tensor(name) for name in inputs], [tensor(name) for name in outputs]
    return schema.ModuleCallSignature(*names, treespec.dump(both), treespec.dump(out), list(inputs))


def flat(count: int) -> schema.ExportedProgram:
    """A graph whose nodes use values from shortly before them, some from long before."""
    chance = random.Random(1)
    nodes = []
    for number in range(count):
        back = [min(number, int(chance.expovariate(0.15))) for _ in range(2)]
        if chance.random() < 0.01:
            back[1] = chance.randrange(number + 1)
        names = [f"v{number - step - 1}" if step < number else "x" for step in back]
        nodes.append(call("torch.ops.aten.add.Tensor", zip(("self", "other"), names, strict=True), f"v{number}"))
    return program(["x"], nodes, [f"v{count - 1}"])


def layers(count: int) -> schema.ExportedProgram:
    """Equal layers of 24 nodes in four modules each."""
    nodes, parameters, last = list[schema.Node](), list[tuple[str, str]](), "x"
    for layer in range(count):
        for module in ("norm1", "attention", "norm2", "mlp"):
            path, start = ("layers", str(layer), module), last
            weight = f"p_layers_{layer}_{module}_weight"
            parameters.append((weight, f"layers.{layer}.{module}.weight"))
            for step, target in enumerate(
                ("linear.default", "view.default", "transpose.int", "gelu.default", "add.Tensor")
            ):
                name = f"{module}_{layer}_{step}"
                other = {0: [("weight", weight)], 4: [("other", start)]}.get(step, [])
                nodes.append(call(f"torch.ops.aten.{target}", [("self", last), *other], name, stack_of(*path)))
                last = name
            nodes.append(
                call(
                    "torch.ops.aten.add.Tensor",
                    [("self", last), ("other", start)],
                    f"sum_{layer}_{module}",
                    stack_of(*path[:2]),
                )
            )
            last = f"sum_{layer}_{module}"
    return program(["x"], nodes, [last], parameters)


def inputs(count: int) -> schema.ExportedProgram:
    """A program with that many inputs, half of them used by one node."""
    names = [f"input_{number}" for number in range(count)]
    many = schema.NamedArgument("tensors", Argument(as_tensors=[TensorArgument(name) for name in names[: count // 2]]))
    nodes = [schema.Node("torch.ops.aten.cat.default", [many], [tensor("all")], {}, name="all")]
    for number, name in enumerate(names[count // 2 :]):
        before = f"sum_{number - 1}" if number else "all"
        nodes.append(call("torch.ops.aten.add.Tensor", [("self", before), ("other", name)], f"sum_{number}"))
    return program(names, nodes, [nodes[-1].name or ""])


def hub(count: int) -> schema.ExportedProgram:
    """One value that that many nodes use, and one node that uses all of theirs."""
    nodes = [call("torch.ops.aten.relu.default", [("self", "x")], "hub")]
    nodes += [call("torch.ops.aten.sin.default", [("self", "hub")], f"user_{number}") for number in range(count)]
    many = schema.NamedArgument("tensors", Argument(as_tensors=[TensorArgument(f"user_{n}") for n in range(count)]))
    nodes.append(schema.Node("torch.ops.aten.cat.default", [many], [tensor("all")], {}, name="all"))
    return program(["x"], nodes, ["all"])


def deep(count: int) -> schema.ExportedProgram:
    """Modules inside modules, one node in each."""
    nodes, last = list[schema.Node](), "x"
    for depth in range(count):
        path = [f"m{level}" for level in range(depth + 1)]
        nodes.append(call("torch.ops.aten.relu.default", [("self", last)], f"relu_{depth}", stack_of(*path)))
        last = f"relu_{depth}"
    return program(["x"], nodes, [last])


HOSTILE = (
    "<script>window.hit=1</script>",
    "</script><img src=x onerror=window.hit=2>",
    '"><svg onload=window.hit=3>',
    "javascript:window.hit=4",
    "{{constructor.constructor('window.hit=5')()}}",
    "__proto__",
    "constructor",
    "toString",
    "\u202egnp.exe\u2066",
    "\x1b[31mred\x00\x07\r\n",
    "a" * 2000,
    "e\u0301" * 50,
    "‮אבג",
    "' or 1=1 --",
    "../../../etc/passwd",
    "%3Cscript%3E",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "${window.hit=6}",
)
"""Names that a page must show and nothing else."""


def names(length: int) -> schema.ExportedProgram:
    """Nodes, values, modules, operators and traces with hostile names, and a node whose name has some length."""
    nodes, last = list[schema.Node](), "x"
    for name in (*HOSTILE, "n" * length):
        short = name[:2000]
        module = short.replace(";", "").replace(",", "")
        metadata = {
            "nn_module_stack": f",,model.Net;k,{module},{module[:100]}",
            "stack_trace": f'File "{short}", line 1, in {short}\n    {short}',
            short: short,
        }
        inputs = call("", [(short[:100], last), ("other", "x")], name).inputs
        nodes.append(schema.Node(f"torch.ops.{short[:100]}.op.default", inputs, [tensor(name)], metadata, name=name))
        last = name
    return program(["x"], nodes, [HOSTILE[0]])


KINDS = {"flat": flat, "layers": layers, "inputs": inputs, "hub": hub, "deep": deep, "names": names}


def written(kind: str, size: int, path: Path) -> Path:
    """A program as a file, which `pt2kit.open` reads as it is."""
    path.write_bytes(codec.encode(KINDS[kind](size)))
    return path


if __name__ == "__main__":
    written(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
