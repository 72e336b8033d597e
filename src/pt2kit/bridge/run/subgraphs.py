"""`Steps` -> `torch.fx.GraphModule`: what higher-order operators take as a subgraph.

torch looks inside the modules that it passes to control flow, for autograd, `torch.compile` and another export, so a
subgraph is a graph of torch.fx here, too. Its values have no metadata, because nothing that runs it asks for them; but
in torch 2.9 autograd asks for that of its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final

import torch
from torch import fx

from pt2kit.bridge.read.append import append_call
from pt2kit.bridge.run.failures import Stopped, explain
from pt2kit.bridge.run.steps import Steps, Value

_STEPS: Final = "pt2kit.steps"
"""Where a subgraph keeps its steps: in its `meta`, which copies of it share."""


class Subgraph(fx.GraphModule):  # type: ignore[misc]
    """A subgraph that adds to an error inside it which of its nodes that was."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        if torch.compiler.is_compiling():
            return super().__call__(*args, **kwargs)
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            explain(error, type(self).forward.__code__, self._stopped)
            raise

    def _stopped(self, trace: TracebackType) -> Stopped | None:
        """The step at which it stopped: the first that has given nothing yet. A variable that is let go of is None."""
        known = trace.tb_frame.f_locals
        steps = (step for step in self.meta[_STEPS] if f"v{step.result.number}" not in known)
        step = next(steps, None)
        return None if step is None else Stopped(step, lambda value: known.get(f"v{value.number}"))


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
