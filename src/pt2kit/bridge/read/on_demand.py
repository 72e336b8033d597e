"""Lazy source code of graph modules: the Python source of a loaded program is written when it is first needed.

torch writes and compiles the source of every graph module it makes, a quarter of a load. Few programs are run by it:
`ExportedProgram.module()` makes a module of its own from the graph. Subgraphs are written immediately: torch's compiler
looks into those of a call, past whatever would write them.

`ExportedProgram.module()` writes and compiles the source four times and uses the last. The copy of the graph that it
works on gets a source once. An argument of the model that is called like something that the source uses (`device`,
`inf`) hides it from torch's own source, which then fails or computes other numbers; here the source binds it again.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from torch.fx import Graph, GraphModule
from torch.fx.graph import PythonCode

from pt2kit.bridge.torch_names import SOURCE_OF_MODULES, UNLIFT, UNLIFT_LAST, argument_names, copy_codegen
from pt2kit.schema.names import GLOBALS


def hold_source(graph: Graph) -> None:
    """Make graph modules built from a graph use the source of an empty one, until `write_on_demand`."""
    graph.python_code = _empty


def write_on_demand(module: GraphModule) -> None:
    """Remove the empty source, so that the module's own is written when something asks for it.

    Every graph module has a class of its own, on which torch puts its `forward`. Until then a descriptor is there that
    writes it, so nobody sees a difference; copies are graph modules like any other.

    Source: `GraphModule.recompile` and `__reduce__` in torch/fx/graph_module.py, 2.9 to 2.15.
    """
    del module.graph.python_code
    module.graph.__deepcopy__ = functools.partial(_copy, module.graph)
    own = type(module)
    for name in SOURCE_OF_MODULES:
        if name in vars(module):
            delattr(module, name)
            setattr(own, name, _Written(name))
    own.forward = _Written("forward", weakref.ref(module))  # its class must not keep it
    own.__reduce__ = _reduce  # type: ignore[assignment]
    own.__reduce_package__ = _reduce_package


class _Written:
    """Descriptor on a module's class in place of what `recompile` puts there, or on the module.

    Args:
        name: of the attribute.
        module: of an attribute that the class has, too: returns the module while it exists.
    """

    def __init__(self, name: str, module: Callable[[], GraphModule | None] = lambda: None) -> None:
        self._name = name
        self._module = module

    def __get__(self, module: GraphModule | None, owner: type[GraphModule]) -> Any:
        written = self._module() if module is None else module
        if written is None:
            raise AttributeError(self._name)
        written.recompile()
        return getattr(owner if module is None else module, self._name)


@functools.cache
def _source_of_nothing() -> PythonCode:
    return Graph().python_code("self")


def _empty(*args: Any, **options: Any) -> PythonCode:
    return _source_of_nothing()


def _copy(graph: Graph, memo: dict[int, Any] | None = None) -> Graph:
    """Copy a graph as `copy.deepcopy` does; a copy for `ExportedProgram.module()` has its source written once."""
    copied = Graph.__deepcopy__(graph, memo)
    if _variables_of(UNLIFT) is not None:
        copied.python_code = functools.partial(_write_last, copied)
    return copied


def _write_last(graph: Graph, *args: Any, **options: Any) -> PythonCode:
    """Write the source of a graph that `module()` works on only if that will not write it again.

    Until then its module has a function of the right signature, which writes the source if anybody calls it.

    Source: `_unlift_exported_program_lifted_states` in torch/export/_unlift.py, 2.9 to 2.15.
    """
    outer = _variables_of(UNLIFT)
    if outer is not None and "unlift_gm" not in outer:
        if _variables_of(UNLIFT_LAST) is None:
            return PythonCode("forward = held", {"held": _held(graph, None)}, None)
        placeholders = graph.find_nodes(op="placeholder")
        if outer.get("check_guards") and placeholders and outer["ep"].example_inputs:
            short = Graph()
            for node in placeholders:
                short.node_copy(node)
            copy_codegen(graph, short)
            short.output(())
            code = short.python_code(*args, **options)
            held = functools.partial(_held, graph)
            return PythonCode(f"{code.src}\nforward = held(forward)", {**code.globals, "held": held}, None)
    _release(graph)
    return graph.python_code(*args, **options)


def _held(graph: Graph, forward: Callable[..., Any] | None) -> Callable[..., Any]:
    def write_and_call(self: GraphModule, *args: Any, **options: Any) -> Any:
        _release(graph)
        self.recompile()
        return self.forward(*args, **options)

    return write_and_call if forward is None else functools.wraps(forward)(write_and_call)


def _release(graph: Graph) -> None:
    """Let a graph write its source, which first binds the names that arguments of the model hide."""
    if vars(graph).pop("python_code", None) is not None and (hidden := GLOBALS.keys() & argument_names(graph)):
        binding = [f"{GLOBALS[name]}\n" for name in sorted(hidden)]
        graph.on_generate_code(lambda _: binding.__add__)


def _variables_of(function: str) -> Mapping[str, Any] | None:
    """Return the local variables of a function of torch that is running, or None if it is not among the callers."""
    frame = inspect.currentframe()
    for _ in range(_DEPTH):
        if frame is None:
            return None
        if frame.f_code.co_name == function and frame.f_globals.get("__name__", "").startswith("torch."):
            return frame.f_locals
        frame = frame.f_back
    return None


_DEPTH = 12
"""Limit of calls between the functions of torch that are searched for and the code that searches for them."""


def _reduce(module: GraphModule) -> Any:
    """Reduce any graph module for pickling; its attributes are copied before its source is written."""
    module.recompile()
    return GraphModule.__reduce__(module)


def _reduce_package(module: GraphModule, exporter: Any) -> Any:
    module.recompile()
    return GraphModule.__reduce_package__(module, exporter)
