"""Write one argument of an fx node as `Argument`; lists as their entries or the operator's schema require."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

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

_PLAIN = {bool: "as_bools", int: "as_ints", float: "as_floats", str: "as_strings"}
_ELEMENTS = {"SymInt": "int", "Scalar": "number"}
_EMPTY = {kind.__name__: arm for kind, arm in _PLAIN.items()} | {
    "number": "as_ints",
    "Tensor": "as_tensors",
    "int[]": "as_int_lists",
    "float[]": "as_float_lists",
    "Tensor[]": "as_nested_tensors",
}


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


class Symbolic(NamedTuple):
    """Forms of a symbolic number: alone, in a list, and the constants that may be in the same list."""

    constant: type
    list_arm: str
    entry: Any
    constant_arm: str


SYMBOLIC = {
    "as_sym_int": Symbolic(int, "as_sym_ints", SymIntArgument, "as_int"),
    "as_sym_float": Symbolic(float, "as_sym_floats", SymFloatArgument, "as_float"),
    "as_sym_bool": Symbolic(bool, "as_sym_bools", SymBoolArgument, "as_bool"),
}
"""Arm of a symbolic number -> its forms."""


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
    if not items:
        return _empty(element)
    kinds = {type(item) for item in items}
    if len(kinds) == 1 and (arm := _PLAIN.get(next(iter(kinds)))):
        return make(arm, list(items))
    if kinds == {int, float} and element in ("float", "number"):
        return Argument(as_floats=[float(item) for item in items])
    if any(issubclass(kind, Node) for kind in kinds):
        return _with_nodes(items, uses, element)
    if kinds == {type(None)}:
        return Argument(as_optional_tensors=[OptionalTensorArgument(as_none=True) for _ in items])
    if all(issubclass(kind, (list, tuple)) for kind in kinds):
        return _nested(items, uses, element)
    raise _refused(items)


def tensor_name(argument: Argument) -> str:
    """Return the name of the value that an argument represents; lists of tensors hold other values by name as well.

    Raises:
        UnsupportedError: the argument is not one named value.
    """
    arm = argument.type
    if arm in ("as_tensor", "as_custom_obj"):
        return str(argument.value.name)
    if arm in SYMBOLIC and argument.value.type == "as_name":
        return str(argument.value.as_name)
    raise UnsupportedError(f"expected named values in a list of tensors, got {argument!r}")


def _empty(element: str | None) -> Argument:
    """Return an empty list of the kind the schema asks for; if there is none, of tensors, as torch has it."""
    if element is None:
        return Argument(as_tensors=[])
    if element not in _EMPTY:
        raise UnsupportedError(f"expected a list with entries, got an empty one of {element}, which has no form")
    return make(_EMPTY[element], [])


def _with_nodes(items: Sequence[Any], uses: Any, element: str | None) -> Argument:
    """Return a list with at least one node."""
    entries = [uses(item) if isinstance(item, Node) else item for item in items]
    first = next(entry for entry in entries if isinstance(entry, Argument))
    if first.type in SYMBOLIC:
        constant, arm, entry_type, constant_arm = SYMBOLIC[first.type]
        if constant is float and element in ("float", "number"):
            entries = [float(entry) if type(entry) is int else entry for entry in entries]
        if all(type(e) is constant or (isinstance(e, Argument) and e.type == first.type) for e in entries):
            symbols = [e.value if isinstance(e, Argument) else entry_type.create(**{constant_arm: e}) for e in entries]
            return make(arm, symbols)
    if all(isinstance(entry, Argument) and entry.type != "as_none" for entry in entries):
        return Argument(as_tensors=[argument_tensor(entry) for entry in entries])
    if all(entry is None or isinstance(entry, Argument) for entry in entries):
        return Argument(as_optional_tensors=[optional_tensor(entry) for entry in entries])
    raise _refused(items)


def _nested(items: Sequence[Sequence[Any]], uses: Any, element: str | None) -> Argument:
    """Return a list of lists."""
    inner = [entry for item in items for entry in item]
    kinds = {type(entry) for entry in inner}
    if not inner:
        arm = _EMPTY.get(element or "", "as_nested_tensors")
        return make(arm, [[] for _ in items])
    if all(issubclass(kind, Node) for kind in kinds):
        return Argument(as_nested_tensors=[[argument_tensor(uses(entry)) for entry in item] for item in items])
    if kinds == {int}:
        return Argument(as_int_lists=[list(item) for item in items])
    if kinds == {float} or (kinds == {int, float} and element == "float[]"):
        return Argument(as_float_lists=[[float(entry) for entry in item] for item in items])
    raise _refused(items)


def argument_tensor(argument: Argument) -> TensorArgument:
    """Return an entry of a list of tensors.

    Raises:
        UnsupportedError: as `tensor_name`.
    """
    tensor = argument.as_tensor
    if isinstance(tensor, TensorArgument):
        return tensor
    return TensorArgument(tensor_name(argument))


def optional_tensor(entry: Argument | None) -> OptionalTensorArgument:
    """Return an entry of a list of optional tensors."""
    if entry is None or entry.type == "as_none":
        return OptionalTensorArgument(as_none=True)
    return OptionalTensorArgument(as_tensor=argument_tensor(entry))


def _refused(items: Sequence[Any]) -> UnsupportedError:
    names = ", ".join(sorted({type(item).__name__ for item in items}))
    return UnsupportedError(f"expected a list of one kind that the format has, got one of {names}")
