"""`Steps` -> `torch.fx.GraphModule`: what higher-order operators take as a subgraph.

torch looks inside the modules that it passes to control flow, for autograd, `torch.compile` and another export, so a
subgraph is a graph of torch.fx here, too. Its values have no metadata: nothing that runs it asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from pt2kit.bridge.read.append import append_call
from pt2kit.bridge.run.steps import Steps, Value


def subgraph_module(steps: Steps) -> fx.GraphModule:
    """Build a subgraph.

    Args:
        steps: the graph; subgraphs in it are modules already.

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
    for step in steps.steps:
        args, kwargs = live(tuple(step.args)), live(dict(step.kwargs))
        nodes[step.result.number] = append_call(graph, step.target, args, kwargs, f"v{step.result.number}")
    results = live(list(steps.outputs))
    graph.output(results[0] if steps.is_single else tuple(results))
    return fx.GraphModule(owner, graph)
