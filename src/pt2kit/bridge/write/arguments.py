"""One argument of a node, as fx holds it -> `Argument`."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch.fx import GraphModule, Node

from pt2kit.bridge.callables import target_text
from pt2kit.bridge.scalars import SCHEMA_LAYOUTS, SCHEMA_MEMORY_FORMATS, from_dtype
from pt2kit.bridge.torch_names import (
    HigherOrderOperator,
    OpOverload,
    ScriptObject,
    is_opaque_value,
    opaque_type_name,
    script_class,
    script_method,
)
from pt2kit.bridge.write.scope import NONE, Scope
from pt2kit.bridge.write.sequences import write_list
from pt2kit.errors import GraphError, Pt2Error, UnsupportedError, at
from pt2kit.schema import Argument, ComplexValue, CustomObjArgument, GraphArgument


def write_argument(value: Any, scope: Scope, element: str | None = None) -> Argument:
    """Write one argument.

    Args:
        value: what stands in `node.args` or `node.kwargs`.
        scope: the graph being written.
        element: what the operator's schema says a list here holds (`Parameter.element`).

    Raises:
        UnsupportedError: a value that the format has no kind for.
        GraphError: a node that is not a value of this graph.

    Source: `serialize_input` in torch/_export/serde/serialize.py, 2.13.
    """
    kind = type(value)
    if kind is Node:
        return scope.uses.get(value) or _node(value, scope)
    write = _BY_TYPE.get(kind)
    if write is not None:
        return write(value, scope)
    if isinstance(value, (list, tuple)):
        return write_list(value, lambda node: scope.uses.get(node) or _node(node, scope), element)
    if isinstance(value, dict):
        return Argument(as_string_to_argument={_key(key): write_argument(item, scope) for key, item in value.items()})
    if isinstance(value, (OpOverload, HigherOrderOperator)):
        return Argument(as_operator=target_text(value))
    if isinstance(value, ScriptObject):
        return _script_object(value, scope)
    if is_opaque_value(value):
        name = opaque_type_name(type(value))
        return Argument(as_custom_obj=CustomObjArgument(scope.shared.add_object(value), name))
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        raise GraphError(f"expected the node that computes a symbolic number, got the bare number {value}")
    return _subclass(value, scope)


def _node(node: Node, scope: Scope) -> Argument:
    """A node that no input or result stands for yet: an attribute of the module."""
    if node.op != "get_attr":
        raise GraphError(f"expected one result of node {node.name}, got the node, whose results are used one by one")
    attribute = _attribute(scope.module, str(node.target))
    if isinstance(attribute, GraphModule):
        try:
            graph = scope.shared.graph(attribute, scope.depth + 1)
        except Pt2Error as error:
            raise at(f"graph {node.target}", error) from error
        return Argument(as_graph=GraphArgument(str(node.target), graph))
    name, backend = getattr(attribute, "module_name", None), getattr(attribute, "backend_id", None)
    if type(attribute).__name__ == "LoweredBackendModule" and name is not None and backend is not None:
        return Argument(as_string=f"{name}-{backend}")  # code that ExecuTorch has lowered
    raise UnsupportedError(
        f"expected a graph as attribute {node.target!r}, got {type(attribute).__name__}; "
        "tensors and other objects must be inputs of the graph"
    )


def _attribute(module: Any, path: str) -> Any:
    try:
        return attrgetter(path)(module)
    except AttributeError:
        raise GraphError(f"expected an attribute {path!r} of the graph's module, got none") from None


def _script_object(value: Any, scope: Scope) -> Argument:
    if not (script_method(value, "__getstate__") and script_method(value, "__setstate__")):
        raise UnsupportedError(f"expected a script class that can be pickled (def_pickle), got {script_class(value)}")
    name = scope.shared.add_object(value)
    return Argument(as_custom_obj=CustomObjArgument(name, script_class(value)))


def _subclass(value: Any, scope: Scope) -> Argument:
    """A subclass of a plain type (an IntFlag, a numpy float) counts as that type."""
    kinds: tuple[Any, ...] = (int, float, complex, str)
    for kind in kinds:
        if isinstance(value, kind):
            return _BY_TYPE[kind](kind(value), scope)
    raise UnsupportedError(f"expected a value that the format has a kind for, got {type(value).__name__}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise UnsupportedError(f"expected text as keys of a dict, got {type(key).__name__}")
    return key


def _constant(value: Any, scope: Scope) -> Argument:
    return scope.shared.constant(value)


def _memory_format(value: torch.memory_format) -> Argument:
    if value not in SCHEMA_MEMORY_FORMATS:
        raise UnsupportedError(f"expected a memory format of the schema, got {value}")
    return Argument(as_memory_format=SCHEMA_MEMORY_FORMATS[value])


def _layout(value: torch.layout) -> Argument:
    if value not in SCHEMA_LAYOUTS:
        raise UnsupportedError(f"expected a layout of the schema, got {value}")
    return Argument(as_layout=SCHEMA_LAYOUTS[value])


_BY_TYPE: dict[type, Callable[[Any, Scope], Argument]] = {
    bool: _constant,
    int: _constant,
    str: _constant,
    float: lambda value, _: Argument(as_float=value),
    complex: lambda value, _: Argument(as_complex=ComplexValue(value.real, value.imag)),
    type(None): lambda _, __: NONE,
    torch.dtype: lambda value, _: Argument(as_scalar_type=from_dtype(value)),
    torch.device: lambda value, scope: Argument(as_device=scope.shared.values.device(value)),
    torch.memory_format: lambda value, _: _memory_format(value),
    torch.layout: lambda value, _: _layout(value),
}
