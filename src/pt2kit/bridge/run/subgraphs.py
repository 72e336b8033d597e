"""Build a `torch.fx.GraphModule` from `Steps`: the subgraph argument of higher-order operators.

torch looks inside the modules that it passes to control flow, for autograd, `torch.compile` and another export, so a
subgraph is a graph of torch.fx here, too. Its values have no metadata, because nothing that runs it asks for them; but
in torch 2.9 autograd asks for that of its inputs.

Fake values are made on demand (`Fakes`): they need sympy and torch's compiler, whose import takes a second that
other programs need not wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx

from pt2kit import schema
from pt2kit.bridge.read.graph_reader import value_name
from pt2kit.bridge.read.tensors import Devices
from pt2kit.bridge.run.failures import Stopped, explain
from pt2kit.bridge.run.steps import Step, Steps, Value
from pt2kit.bridge.torch_names import append_call

if TYPE_CHECKING:
    from pt2kit.bridge.read.values import Values


_STEPS: Final = "pt2kit.steps"
"""Key of a subgraph's steps in its `meta`, which copies of it share."""


class Subgraph(fx.GraphModule):  # type: ignore[misc]
    """A subgraph that adds to an error inside it which of its nodes that was."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        if torch.compiler.is_compiling():
            return super().__call__(*args, **kwargs)
        had_grad = torch.is_grad_enabled()
        try:
            return super().__call__(*args, **kwargs)
        except BaseException as error:
            explain(error, type(self).forward.__code__, self._stopped, had_grad=had_grad)
            raise

    @property
    def steps(self) -> Sequence[Step]:
        """Return the steps that it runs."""
        found: Sequence[Step] = self.meta[_STEPS]
        return found

    def _stopped(self, trace: TracebackType) -> Stopped | None:
        """Return the step at which it stopped: the first without a result. A freed variable is None."""
        known = trace.tb_frame.f_locals
        steps = self.steps
        index = next((n for n, step in enumerate(steps) if f"v{step.result.number}" not in known), None)
        if index is None:
            return None
        return Stopped(steps[:index], steps[index], lambda value: known.get(f"v{value.number}"))


def subgraph_module(steps: Steps, inputs: Sequence[Any] = (), outputs: Sequence[Any] = ()) -> Subgraph:
    """Build a subgraph.

    Args:
        steps: the graph; subgraphs in it are modules already.
        inputs, outputs: fake values of these, where the installed torch asks for them.

    Cost: about 100 microseconds per step.
    """
    graph = fx.Graph()
    owner = torch.nn.Module()
    nodes: dict[int, fx.Node] = {}
    subgraphs: dict[int, str] = {}

    def live(held: Any) -> Any:
        if isinstance(held, Value):
            return nodes[held.number]
        if isinstance(held, fx.GraphModule):
            name = subgraphs.setdefault(id(held), f"graph_{len(subgraphs)}")
            owner.add_module(name, held)
            return graph.create_node("get_attr", name)
        if isinstance(held, (list, tuple)):
            return type(held)(live(item) for item in held)
        if isinstance(held, Mapping):
            return {key: live(item) for key, item in held.items()}
        return held

    for number in range(steps.inputs):
        nodes[number] = graph.placeholder(f"v{number}")
        if inputs:
            nodes[number].meta["val"] = inputs[number]
    for step in steps.steps:
        args, kwargs = live(tuple(step.args)), live(dict(step.kwargs))
        nodes[step.result.number] = append_call(graph, step.target, args, kwargs, f"v{step.result.number}")
    for value, fake in zip(steps.outputs, outputs, strict=bool(outputs)):
        if isinstance(value, Value):
            nodes[value.number].meta.setdefault("val", fake)
    results = live(list(steps.outputs))
    graph.output(results[0] if steps.is_single else tuple(results))
    module = Subgraph(owner, graph)
    module.meta[_STEPS] = steps.steps
    return module


class Fakes:
    """Makes the fake values of one program.

    Args:
        ranges: symbol -> range.
        devices: where its tensors go.
    """

    def __init__(self, ranges: Mapping[str, schema.RangeConstraint], devices: Devices) -> None:
        self._ranges = ranges
        self._devices = devices

    def tensor(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """Return a new fake tensor, as `Values` makes it."""
        return self._values.tensor(meta, where)

    def inputs(self, graph: schema.Graph, where: str) -> list[Any]:
        """Return the fake tensors and symbolic numbers of a subgraph's inputs; None for those that are neither."""
        return [self._value(argument, graph, f"{where}.inputs[{n}]") for n, argument in enumerate(graph.inputs)]

    def outputs(self, graph: schema.Graph, where: str) -> list[Any]:
        """Return the fake tensors and symbolic numbers of a subgraph's outputs; None for those that are neither."""
        return [self._value(argument, graph, f"{where}.outputs[{n}]") for n, argument in enumerate(graph.outputs)]

    def _value(self, argument: schema.Argument, graph: schema.Graph, where: str) -> Any:
        name = value_name(argument) or ""
        meta = graph.tensor_values.get(name) or graph.sym_int_values.get(name)
        return None if meta is None else self._values.value(meta, where)

    @cached_property
    def _values(self) -> Values:
        from pt2kit.bridge.read.shapes import Shapes
        from pt2kit.bridge.read.values import Values

        return Values(Shapes(self._ranges), self._devices)
