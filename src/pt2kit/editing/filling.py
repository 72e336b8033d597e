"""An argument of the schema and new names -> the argument with those names, and other subgraphs, in it.

The places of an argument that hold names are counted in the order of `graph.references`, those that hold subgraphs in
the order of `graph.graph_arguments`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.schema import (
    Argument,
    CustomObjArgument,
    GraphArgument,
    OptionalTensorArgument,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

Names = Iterator[str]


def fill(argument: Argument, names: Names, graphs: Iterator[schema.Graph]) -> Argument:
    """Put names, and subgraphs, into the places of an argument; what has none is returned as it is.

    Args:
        argument: nested no deeper than `graph.MAX_ARGUMENT_DEPTH`.
        names: at least as many as the argument names values; those that it has are taken.
        graphs: likewise for the subgraphs that it carries.
    """
    arm = argument.type
    if arm == "as_graph":
        return Argument(as_graph=GraphArgument(argument.value.name, next(graphs)))
    if arm == "as_string_to_argument":
        return Argument(
            as_string_to_argument={key: fill(inner, names, graphs) for key, inner in argument.value.items()}
        )
    writer = _WRITERS.get(arm)
    return argument if writer is None else Argument.create(**{arm: writer(argument.value, names)})


def _tensor(_: object, names: Names) -> TensorArgument:
    return TensorArgument(next(names))


def _optional(value: OptionalTensorArgument, names: Names) -> OptionalTensorArgument:
    return value if value.as_tensor is UNSET else OptionalTensorArgument(as_tensor=TensorArgument(next(names)))


def _symbolic(kind: type[Any]) -> Callable[[Any, Names], Any]:
    return lambda value, names: value if value.as_name is UNSET else kind(as_name=next(names))


def _each(one: Callable[[Any, Names], Any]) -> Callable[[Any, Names], Any]:
    return lambda values, names: [one(value, names) for value in values]


def _custom_obj(value: CustomObjArgument, names: Names) -> CustomObjArgument:
    return CustomObjArgument(next(names), value.class_fqn)


_INT, _FLOAT, _BOOL = _symbolic(SymIntArgument), _symbolic(SymFloatArgument), _symbolic(SymBoolArgument)
_WRITERS: Final[Mapping[str, Callable[[Any, Names], Any]]] = MappingProxyType(
    {
        "as_tensor": _tensor,
        "as_tensors": _each(_tensor),
        "as_nested_tensors": _each(_each(_tensor)),
        "as_optional_tensor": _optional,
        "as_optional_tensors": _each(_optional),
        "as_sym_int": _INT,
        "as_sym_ints": _each(_INT),
        "as_sym_float": _FLOAT,
        "as_sym_floats": _each(_FLOAT),
        "as_sym_bool": _BOOL,
        "as_sym_bools": _each(_BOOL),
        "as_custom_obj": _custom_obj,
    }
)
"""Arm of `schema.Argument` that may name values -> what writes names into what it holds."""
