"""Small graph modules for tests, and a signature with every kind of input and output."""

from __future__ import annotations

from typing import Any

from tests.graph.build import arg, meta

from pt2kit import codec, schema
from pt2kit.signature import (
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
    to_schema,
)

INPUTS = [
    InputSpec(InputKind.TOKEN, TokenArgument("token"), None),
    InputSpec(InputKind.PARAMETER, TensorArgument("p_w"), "w"),
    InputSpec(InputKind.BUFFER, TensorArgument("b_m"), "bn.mean", True),
    InputSpec(InputKind.BUFFER, TensorArgument("b_t"), "tmp", False),
    InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument("c_0"), "lifted_tensor_0"),
    InputSpec(InputKind.CUSTOM_OBJ, CustomObjArgument("obj_q", "__torch__.Queue"), "queue"),
    InputSpec(InputKind.USER_INPUT, TensorArgument("x"), None),
    InputSpec(InputKind.USER_INPUT, ConstantArgument("flag", True), None),
    InputSpec(InputKind.USER_INPUT, ConstantArgument("none", None), None),
    InputSpec(InputKind.USER_INPUT, SymIntArgument("n"), None),
    InputSpec(InputKind.USER_INPUT, SymFloatArgument("f"), None),
    InputSpec(InputKind.USER_INPUT, CustomObjArgument("obj", "__torch__.Queue"), None),
]
OUTPUTS = [
    OutputSpec(OutputKind.TOKEN, TokenArgument("token_1"), None),
    OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument("m_1"), "bn.mean"),
    OutputSpec(OutputKind.PARAMETER_MUTATION, TensorArgument("w_1"), "w"),
    OutputSpec(OutputKind.USER_INPUT_MUTATION, TensorArgument("x_1"), "x"),
    OutputSpec(OutputKind.USER_OUTPUT, TensorArgument("y"), None),
    OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", 3), None),
    OutputSpec(OutputKind.USER_OUTPUT, SymBoolArgument("b"), None),
    OutputSpec(OutputKind.USER_OUTPUT, CustomObjArgument("obj", "__torch__.Queue"), None),
    OutputSpec(OutputKind.LOSS_OUTPUT, TensorArgument("loss"), None),
    OutputSpec(OutputKind.GRADIENT_TO_PARAMETER, TensorArgument("g_w"), "w"),
    OutputSpec(OutputKind.GRADIENT_TO_USER_INPUT, TensorArgument("g_x"), "x"),
]


def everything() -> ExportGraphSignature:
    """A signature with every kind of input and output."""
    return ExportGraphSignature(INPUTS, OUTPUTS)


def graph_of(signature: schema.GraphSignature) -> schema.Graph:
    """A graph whose inputs and outputs are what a signature says; it has no nodes."""
    inputs = [graph_argument(spec) for spec in signature.input_specs]
    outputs = [graph_argument(spec) for spec in signature.output_specs]
    names = [held.as_tensor.name for held in inputs if isinstance(held.as_tensor, schema.TensorArgument)]
    return schema.Graph(inputs, outputs, [], {name: meta(2) for name in names}, {}, {})


def graph_argument(spec: schema.InputSpec | schema.OutputSpec) -> schema.Argument:
    """Return what the graph has at a spec."""
    held = spec.value
    match held:
        case schema.InputToConstantInputSpec():
            return schema.Argument(**{held.value.type: held.value.value})
        case schema.UserInputSpec() | schema.UserOutputSpec():
            return held.arg
        case schema.InputToCustomObjSpec():
            return schema.Argument(as_custom_obj=held.arg)
    return arg(as_tensor=held.arg.name)


def module(signature: ExportGraphSignature | schema.GraphSignature | None = None) -> schema.GraphModule:
    """A graph module with a signature (by default one with every kind) and the graph that goes with it."""
    if not isinstance(signature, schema.GraphSignature):
        signature = to_schema(signature or everything())
    return schema.GraphModule(graph_of(signature), signature, [])


def tree_of(source: schema.GraphModule) -> dict[str, Any]:
    """The JSON of a graph module, to be edited."""
    tree: dict[str, Any] = codec.to_tree(source)
    return tree


def module_of(tree: dict[str, Any]) -> schema.GraphModule:
    """The graph module of some JSON."""
    return codec.convert(tree, schema.GraphModule, "graph module").value
