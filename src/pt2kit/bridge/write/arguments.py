"""Write one argument of an fx node as `Argument`; lists as their entries or the operator's schema require."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch.fx import GraphModule, Node

from pt2kit.bridge.callables import target_text
from pt2kit.bridge.operators import from_device, to_schema
from pt2kit.bridge.torch_names import (
    HigherOrderOperator,
    OpOverload,
    ScriptObject,
    is_opaque_value,
    opaque_type_name,
    script_class,
    script_method,
)
from pt2kit.bridge.write.scope import NONE, Scope, make
from pt2kit.errors import GraphError, UnsupportedError, placed
from pt2kit.schema import (
    Argument,
    ComplexValue,
    CustomObjArgument,
    GraphArgument,
    OptionalTensorArgument,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from pt2kit.schema.operators import ValueType

_PLAIN: Mapping[Any, str] = {bool: "bool", int: "int", float: "float", str: "str"}
_ELEMENTS = {"SymInt": "int", "Scalar": "number"}
_LISTS = {
    "bool": "as_bools",
    "int": "as_ints",
    "float": "as_floats",
    "str": "as_strings",
    "number": "as_ints",
    "Tensor": "as_tensors",
    "int[]": "as_int_lists",
    "float[]": "as_float_lists",
    "Tensor[]": "as_nested_tensors",
}
"""Kind of elements -> arm of a list of them."""
_FLOATS = ("float", "number", "float[]")
"""Kinds of elements that may be ints among floats."""


def element_of(kind: ValueType) -> str | None:
    """Return the kind of elements of a list of a type: "int", "float", "Tensor", …; None if the type is no list.

    It has one "[]" per further level of lists.
    """
    levels = kind.suffix.count("[]")
    return f"{_ELEMENTS.get(kind.base, kind.base)}{'[]' * (levels - 1)}" if levels else None


def write_argument(value: Any, scope: Scope, element: str | None = None) -> Argument:
    """Write one argument.

    Args:
        value: an entry of `node.args` or `node.kwargs`.
        scope: the graph being written.
        element: the kind of elements of a list here, from the operator's schema (`element_of`).

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
    """Return the argument for a node that no input or result represents yet: an attribute of the module."""
    if node.op != "get_attr":
        raise GraphError(f"expected one result of node {node.name}, got the node, whose results are used one by one")
    attribute = _attribute(scope.module, str(node.target))
    if isinstance(attribute, GraphModule):
        with placed(f"graph {node.target}"):
            graph = scope.shared.graph(attribute, scope.depth + 1)
        return Argument(as_graph=GraphArgument(str(node.target), graph))
    name, backend = getattr(attribute, "module_name", None), getattr(attribute, "backend_id", None)
    if type(attribute).__name__ == "LoweredBackendModule" and name is not None and backend is not None:
        return Argument(as_string=f"{name}-{backend}")  # code that an ExecuTorch backend compiled
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
    """Return the argument for a subclass of a plain type (an IntFlag, a numpy float), which counts as that type."""
    kinds: tuple[Any, ...] = (int, float, complex, str)
    for kind in kinds:
        if isinstance(value, kind):
            return _BY_TYPE[kind](kind(value), scope)
    raise UnsupportedError(f"expected a value that the format has a kind for, got {type(value).__name__}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise UnsupportedError(f"expected text as keys of a dict, got {type(key).__name__}")
    return key


_BY_TYPE: dict[type, Callable[[Any, Scope], Argument]] = {
    bool: lambda value, _: Argument(as_bool=value),
    int: lambda value, _: Argument(as_int=value),
    str: lambda value, _: Argument(as_string=value),
    float: lambda value, _: Argument(as_float=value),
    complex: lambda value, _: Argument(as_complex=ComplexValue(value.real, value.imag)),
    type(None): lambda _, __: NONE,
    torch.dtype: lambda value, _: Argument(as_scalar_type=to_schema(value)),
    torch.device: lambda value, _: Argument(as_device=from_device(value)),
    torch.memory_format: lambda value, _: Argument(as_memory_format=to_schema(value)),
    torch.layout: lambda value, _: Argument(as_layout=to_schema(value)),
}


SYMBOLIC: Mapping[Any, tuple[type, Any]] = {
    "as_sym_int": (int, SymIntArgument),
    "as_sym_float": (float, SymFloatArgument),
    "as_sym_bool": (bool, SymBoolArgument),
}
"""Arm of a symbolic number -> type of the constants that may be in the same list, and class of the list's entries."""


def write_list(items: Sequence[Any], uses: Any, element: str | None) -> Argument:
    """Write a list or tuple.

    Args:
        items: what fx holds: constants, nodes, None, or lists of them.
        uses: fx node -> its Argument.
        element: the kind of the list's elements, from the operator's schema (`element_of`); None without a
            schema.

    Raises:
        UnsupportedError: a mixture that no kind of the format holds.

    Source: `serialize_input` in torch/_export/serde/serialize.py, 2.13; see docs/differences.md for its refusals.
    """
    is_nested = bool(items) and all(isinstance(item, (list, tuple)) for item in items)
    lists = items if is_nested else [items]
    rows = [[uses(item) if isinstance(item, Node) else item for item in row] for row in lists]
    joined = join(rows, element, is_nested=is_nested)
    if joined is None:
        names = ", ".join(sorted({type(item).__name__ for item in items}))
        got = f"one of {names}" if items else f"an empty one of {element}"
        raise UnsupportedError(f"expected a list of one kind that the format has, got {got}")
    return joined


def join(rows: Sequence[Sequence[Any]], element: str | None = None, *, is_nested: bool = False) -> Argument | None:
    """Return a list, or a list of lists; None for a kind or a mixture that the format does not have.

    Args:
        rows: constants, and the arguments for nodes, of each list.
        element: as for `write_list`.
        is_nested: whether it is a list of lists; else there is one row.

    Raises:
        UnsupportedError: arguments only, of which one is no named value.
    """
    kinds = {_kind(entry) for row in rows for entry in row}
    if element in _FLOATS and int in kinds and not kinds.isdisjoint((float, "as_sym_float")):
        rows = [[float(entry) if type(entry) is int else entry for entry in row] for row in rows]
        kinds = {_kind(entry) for row in rows for entry in row}
    symbolic = next(iter(kinds & SYMBOLIC.keys()), None)
    if symbolic and not is_nested and kinds <= {symbolic, SYMBOLIC[symbolic][0]}:
        constant, entry_type = SYMBOLIC[symbolic]
        arm = f"as_{constant.__name__}"
        return make(
            f"{symbolic}s", [entry_type.create(**{arm: e}) if type(e) is constant else e.value for e in rows[0]]
        )
    suffix = "[]" if is_nested else ""
    named = kinds - {type(None), "as_none"}
    if not kinds:
        name = element or f"Tensor{suffix}"
    elif len(kinds) == 1 and kinds <= _PLAIN.keys():
        name = f"{_PLAIN[kinds.pop()]}{suffix}"
    elif not all(isinstance(kind, str) for kind in named):
        return None
    elif named == kinds:
        name, rows = f"Tensor{suffix}", [[argument_tensor(entry) for entry in row] for row in rows]
    else:
        return None if is_nested else Argument(as_optional_tensors=[optional_tensor(entry) for entry in rows[0]])
    made = [list(row) for row in rows]
    return make(_LISTS[name], made if is_nested else made[0]) if name in _LISTS else None


def _kind(entry: Any) -> Any:
    """Return the arm of an argument, or the type of a constant."""
    return entry.type if isinstance(entry, Argument) else type(entry)


def argument_tensor(argument: Argument) -> TensorArgument:
    """Return an entry of a list of tensors, which holds other values by name as well.

    Raises:
        UnsupportedError: the argument is not one named value.
    """
    arm, value = argument.type, argument.value
    if arm == "as_tensor":
        return value  # type: ignore[no-any-return]
    if arm == "as_custom_obj":
        return TensorArgument(value.name)
    if arm in SYMBOLIC and value.type == "as_name":
        return TensorArgument(value.as_name)
    raise UnsupportedError(f"expected named values in a list of tensors, got {argument!r}")


def optional_tensor(entry: Argument | None) -> OptionalTensorArgument:
    """Return an entry of a list of optional tensors."""
    if entry is None or entry.type == "as_none":
        return OptionalTensorArgument(as_none=True)
    return OptionalTensorArgument(as_tensor=argument_tensor(entry))
