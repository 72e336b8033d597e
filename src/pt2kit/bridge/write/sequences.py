"""A list among a node's arguments -> the list kind of `Argument` that its entries or the operator's schema ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import Node

from pt2kit.bridge.write.scope import make
from pt2kit.errors import UnsupportedError
from pt2kit.schema import (
    Argument,
    OptionalTensorArgument,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

_PLAIN = {bool: "as_bools", int: "as_ints", float: "as_floats", str: "as_strings"}
_EMPTY = {
    "bool": "as_bools",
    "int": "as_ints",
    "number": "as_ints",
    "float": "as_floats",
    "str": "as_strings",
    "Tensor": "as_tensors",
    "int[]": "as_int_lists",
    "float[]": "as_float_lists",
    "Tensor[]": "as_nested_tensors",
}
_SYMBOLIC = {
    # the arm of an entry -> the type of constants that may stand beside it, the arm of the list, its entries
    "as_sym_int": (int, "as_sym_ints", SymIntArgument, "as_int"),
    "as_sym_float": (float, "as_sym_floats", SymFloatArgument, "as_float"),
    "as_sym_bool": (bool, "as_sym_bools", SymBoolArgument, "as_bool"),
}


def write_list(items: Sequence[Any], uses: Any, element: str | None) -> Argument:
    """Write a list or tuple.

    Args:
        items: what fx holds: constants, nodes, None, or lists of them.
        uses: fx node -> the Argument that stands for it.
        element: what the operator's schema says the list holds (`Parameter.element`); None where there is no schema.

    Raises:
        UnsupportedError: a mixture that no kind of the format holds.

    Source: `serialize_input` in torch/_export/serde/serialize.py, 2.13; see docs/differences.md for what it refuses.
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
    """The name of the value that an argument stands for; lists of tensors hold other values by name as well.

    Raises:
        UnsupportedError: the argument is not one named value.
    """
    arm = argument.type
    if arm in ("as_tensor", "as_custom_obj"):
        return str(argument.value.name)
    if arm in _SYMBOLIC and argument.value.type == "as_name":
        return str(argument.value.as_name)
    raise UnsupportedError(f"expected named values in a list of tensors, got {argument!r}")


def _empty(element: str | None) -> Argument:
    """An empty list of the kind the schema asks for; where there is none, of tensors, as torch has it."""
    if element is None:
        return Argument(as_tensors=[])
    if element not in _EMPTY:
        raise UnsupportedError(f"expected a list with entries, got an empty one of {element}, which has no form")
    return make(_EMPTY[element], [])


def _with_nodes(items: Sequence[Any], uses: Any, element: str | None) -> Argument:
    """A list with at least one node."""
    entries = [uses(item) if isinstance(item, Node) else item for item in items]
    first = next(entry for entry in entries if isinstance(entry, Argument))
    if first.type in _SYMBOLIC:
        constant, arm, entry_type, constant_arm = _SYMBOLIC[first.type]
        if constant is float and element in ("float", "number"):
            entries = [float(entry) if type(entry) is int else entry for entry in entries]
        if all(type(e) is constant or (isinstance(e, Argument) and e.type == first.type) for e in entries):
            symbols = [e.value if isinstance(e, Argument) else entry_type.create(**{constant_arm: e}) for e in entries]
            return make(arm, symbols)
    if all(isinstance(entry, Argument) and entry.type != "as_none" for entry in entries):
        return Argument(as_tensors=[_tensor(entry) for entry in entries])
    if all(entry is None or isinstance(entry, Argument) for entry in entries):
        return Argument(as_optional_tensors=[_optional(entry) for entry in entries])
    raise _refused(items)


def _nested(items: Sequence[Sequence[Any]], uses: Any, element: str | None) -> Argument:
    """A list of lists."""
    inner = [entry for item in items for entry in item]
    kinds = {type(entry) for entry in inner}
    if not inner:
        arm = _EMPTY.get(element or "", "as_nested_tensors")
        return make(arm, [[] for _ in items])
    if all(issubclass(kind, Node) for kind in kinds):
        return Argument(as_nested_tensors=[[_tensor(uses(entry)) for entry in item] for item in items])
    if kinds == {int}:
        return Argument(as_int_lists=[list(item) for item in items])
    if kinds == {float} or (kinds == {int, float} and element == "float[]"):
        return Argument(as_float_lists=[[float(entry) for entry in item] for item in items])
    raise _refused(items)


def _tensor(argument: Argument) -> TensorArgument:
    tensor = argument.as_tensor
    if isinstance(tensor, TensorArgument):
        return tensor
    return TensorArgument(tensor_name(argument))


def _optional(entry: Argument | None) -> OptionalTensorArgument:
    if entry is None or entry.type == "as_none":
        return OptionalTensorArgument(as_none=True)
    return OptionalTensorArgument(as_tensor=_tensor(entry))


def _refused(items: Sequence[Any]) -> UnsupportedError:
    names = ", ".join(sorted({type(item).__name__ for item in items}))
    return UnsupportedError(f"expected a list of one kind that the format has, got one of {names}")
