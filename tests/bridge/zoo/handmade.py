"""Exported programs put together by hand, for graphs that export itself does not produce here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._export.verifier import TrainingIRVerifier
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
    TokenArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree


class Sketch:
    """A graph under construction.

    Attributes:
        graph: the fx graph.
        root: the module that holds its subgraphs.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.root = torch.nn.Module()
        self.mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, Any] = {}
        self.examples: list[torch.Tensor] = []

    def fake(self, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """A fake tensor."""
        with self.mode:
            return torch.empty(*sizes, dtype=dtype)

    def input(self, name: str, example: torch.Tensor) -> Node:
        """An input of the user's."""
        self.examples.append(example)
        self.inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(name), None))
        return self._placeholder(name, self.mode.from_tensor(example, static_shapes=True))

    def token(self, name: str) -> Node:
        """An effect token as an input."""
        self.inputs.append(InputSpec(InputKind.TOKEN, TokenArgument(name), None))
        return self._placeholder(name, self.fake(0))

    def custom(self, name: str, target: str, value: Any, class_fqn: str) -> Node:
        """A custom object as an input."""
        self.constants[target] = value
        argument = CustomObjArgument(name, class_fqn)
        self.inputs.append(InputSpec(InputKind.CUSTOM_OBJ, argument, target))
        return self._placeholder(name, argument)

    def call(self, target: Callable[..., Any], args: Sequence[Any], value: Any, **kwargs: Any) -> Node:
        """A call of an operator with the value fx should know of its results."""
        node = self.graph.call_function(target, tuple(args), kwargs)
        node.meta.update(val=value, nn_module_stack={}, torch_fn=(node.name, "handmade"))
        return node

    def take(self, node: Node, index: int) -> Node:
        """One result of a call."""
        import operator

        return self.call(operator.getitem, (node, index), node.meta["val"][index])

    def subgraph(self, name: str, module: GraphModule) -> Node:
        """A graph as an argument."""
        self.root.add_module(name, module)
        return self.graph.get_attr(name)

    def program(
        self, results: Sequence[Node], tokens: int = 0, verifiers: Sequence[Any] = (TrainingIRVerifier,)
    ) -> ExportedProgram:
        """The program; the first `tokens` results are effect tokens."""
        self.graph.output(tuple(results))
        outputs = [
            OutputSpec(OutputKind.TOKEN, TokenArgument(node.name), None)
            if index < tokens
            else OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None)
            for index, node in enumerate(results)
        ]
        args = tuple(self.examples)
        in_spec = pytree.tree_flatten((args, {}))[1]
        out_spec = pytree.tree_flatten(tuple(range(len(results) - tokens)))[1]
        entry = ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec, [f"a{i}" for i in range(len(args))]))
        module = GraphModule(self.root, self.graph)
        return ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=ExportGraphSignature(self.inputs, outputs),
            state_dict={},
            range_constraints={},
            module_call_graph=[entry],
            example_inputs=(args, {}),
            constants=self.constants,
            verifiers=list(verifiers),
        )

    def _placeholder(self, name: str, value: Any) -> Node:
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        return node


def subgraph_of(sketch: Sketch, function: Callable[..., Any], sizes: Sequence[Sequence[int]]) -> GraphModule:
    """The graph of a function of tensors of these sizes, traced with fake tensors."""
    from torch.fx.experimental.proxy_tensor import make_fx

    with sketch.mode:
        return make_fx(function)(*[torch.empty(*size) for size in sizes])
