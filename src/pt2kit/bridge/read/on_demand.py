"""The graph module of a loaded program -> one whose Python source is written when it is first looked at.

torch writes and compiles the source of every graph module it makes, a quarter of a load. Few programs are run by it:
`ExportedProgram.module()` makes a module of its own from the graph. Subgraphs are written at once: torch's compiler
looks into those of a call, past whatever would write them.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from torch.fx import Graph, GraphModule
from torch.fx.graph import PythonCode

from pt2kit.bridge.torch_names import SOURCE_OF_MODULES


def hold_source(graph: Graph) -> None:
    """Give modules that are made of a graph from now on the source of an empty one, until `write_on_demand`."""
    graph.python_code = _empty


def write_on_demand(module: GraphModule) -> None:
    """Take the empty source away again: what asks for the module's own next has it written.

    Every graph module has a class of its own, on which torch puts its `forward`. Until then something stands there that
    writes it, so nobody sees a difference; copies are graph modules like any other.

    Source: `GraphModule.recompile` and `__reduce__` in torch/fx/graph_module.py, 2.9 to 2.15.
    """
    del module.graph.python_code
    own = type(module)
    for name in SOURCE_OF_MODULES:
        if name in vars(module):
            delattr(module, name)
            setattr(own, name, _Attribute(name))
    own.forward = _Forward(module)
    own.__reduce__ = _reduce  # type: ignore[assignment]
    own.__reduce_package__ = _reduce_package


class _Forward:
    """Stands on a module's class for the function that `recompile` puts there."""

    def __init__(self, module: GraphModule) -> None:
        self._module = weakref.ref(module)  # its class must not keep it

    def __get__(self, module: GraphModule | None, owner: type[GraphModule]) -> Any:
        written = self._module() if module is None else module
        if written is None:
            raise AttributeError("forward")
        written.recompile()
        return (owner if module is None else module).forward


class _Attribute:
    """Stands on a module's class for what `recompile` puts on the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: GraphModule | None, owner: type[GraphModule]) -> Any:
        if module is None:
            raise AttributeError(self._name)
        module.recompile()
        return vars(module)[self._name]


@functools.cache
def _source_of_nothing() -> PythonCode:
    return Graph().python_code("self")


def _empty(*args: Any, **options: Any) -> PythonCode:
    return _source_of_nothing()


def _reduce(module: GraphModule) -> Any:
    """As of any graph module, whose attributes are copied before its source is written."""
    module.recompile()
    return GraphModule.__reduce__(module)


def _reduce_package(module: GraphModule, exporter: Any) -> Any:
    module.recompile()
    return GraphModule.__reduce_package__(module, exporter)
