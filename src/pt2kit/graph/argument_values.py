"""An argument -> the values it names, the subgraphs it carries, and the arguments inside it.

`REFERENCES` has an entry for each of the 31 arms of `schema.Argument`; nothing else in this room knows the arms. A
subgraph names no value of the graph around it: everything it uses comes in through its own inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.rules import LIMIT_RULE

MAX_ARGUMENT_DEPTH: Final = 32
"""Levels of dicts inside dicts of arguments; programs use one or two."""

ValueKind = Literal["tensor", "sym_int", "sym_float", "sym_bool", "custom_obj"]


class Reference(NamedTuple):
    """A value that an argument names.

    Args:
        name: the name of the value.
        kind: what the argument takes it for.
        certain: False in lists of tensors, into which torch also puts symbolic values and custom objects.
    """

    name: str
    kind: ValueKind
    certain: bool = True


Reader = Callable[[Any], list[Reference]]


def _tensor(value: schema.TensorArgument) -> list[Reference]:
    return [Reference(value.name, "tensor")]


def _tensors(values: list[schema.TensorArgument]) -> list[Reference]:
    return [Reference(value.name, "tensor", False) for value in values]


def _nested_tensors(rows: list[list[schema.TensorArgument]]) -> list[Reference]:
    return _tensors(list(chain.from_iterable(rows)))


def _optional_tensor(value: schema.OptionalTensorArgument) -> list[Reference]:
    return [] if value.as_tensor is UNSET else [Reference(value.as_tensor.name, "tensor")]


def _optional_tensors(values: list[schema.OptionalTensorArgument]) -> list[Reference]:
    return _tensors([value.as_tensor for value in values if value.as_tensor is not UNSET])


def _custom_obj(value: schema.CustomObjArgument) -> list[Reference]:
    return [Reference(value.name, "custom_obj")]


def _sym(kind: ValueKind) -> Reader:
    return lambda value: [] if value.as_name is UNSET else [Reference(value.as_name, kind)]


def _syms(kind: ValueKind) -> Reader:
    return lambda values: [Reference(value.as_name, kind) for value in values if value.as_name is not UNSET]


def _nothing(_: object) -> list[Reference]:
    return []


REFERENCES: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "as_none": _nothing,
        "as_tensor": _tensor,
        "as_tensors": _tensors,
        "as_int": _nothing,
        "as_ints": _nothing,
        "as_float": _nothing,
        "as_floats": _nothing,
        "as_string": _nothing,
        "as_strings": _nothing,
        "as_sym_int": _sym("sym_int"),
        "as_sym_ints": _syms("sym_int"),
        "as_scalar_type": _nothing,
        "as_memory_format": _nothing,
        "as_layout": _nothing,
        "as_device": _nothing,
        "as_bool": _nothing,
        "as_bools": _nothing,
        "as_sym_bool": _sym("sym_bool"),
        "as_sym_bools": _syms("sym_bool"),
        "as_graph": _nothing,
        "as_optional_tensors": _optional_tensors,
        "as_custom_obj": _custom_obj,
        "as_operator": _nothing,
        "as_sym_float": _sym("sym_float"),
        "as_sym_floats": _syms("sym_float"),
        "as_optional_tensor": _optional_tensor,
        "as_complex": _nothing,
        "as_nested_tensors": _nested_tensors,
        "as_int_lists": _nothing,
        "as_string_to_argument": lambda entries: _entries(entries),
        "as_float_lists": _nothing,
    }
)
"""Arm of `schema.Argument` -> what reads the values out of what the arm holds."""


ONE_VALUE: Final = frozenset({"as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool", "as_custom_obj"})
"""The arms that hold one value, always."""

ONE_CONSTANT: Final = frozenset({"as_none", "as_int", "as_float", "as_bool", "as_string", "as_complex"})
"""The arms that hold one constant of the calling convention."""

TOO_DEEP: Final = f"expected dicts of arguments nested at most {MAX_ARGUMENT_DEPTH} levels deep, got more"


def references(argument: schema.Argument) -> list[Reference]:
    """List the values that an argument names, in the order they are written; dicts of arguments are searched.

    Raises:
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    arm = argument.type
    return REFERENCES[arm](getattr(argument, arm))


def arguments(argument: schema.Argument) -> Iterator[str]:
    """Iterate the names of the values that an argument uses; a value used twice comes twice.

    A subgraph uses nothing of the graph around it; `walk` visits what is inside.

    Raises:
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    return (reference.name for reference in references(argument))


def defined(argument: schema.Argument) -> Iterator[str]:
    """Iterate the names of the values that an output of a node, or an input of a graph, defines.

    Constants and None define nothing.

    Raises:
        GraphError: the argument carries a subgraph, which is no value (G10).
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    if any(leaf.as_graph is not UNSET for _, leaf in leaves(argument)):
        raise GraphError("argument: expected values or constants, got a subgraph", rule="G10")
    return arguments(argument)


def leaves(argument: schema.Argument) -> Iterator[tuple[tuple[str, ...], schema.Argument]]:
    """Iterate the arguments that hold no others, each with the keys that lead to it; () for the argument itself.

    Raises:
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    if argument.as_string_to_argument is UNSET:
        yield (), argument
        return
    stack: list[tuple[tuple[str, ...], dict[str, schema.Argument], Iterator[str]]]
    stack = [((), argument.as_string_to_argument, iter(argument.as_string_to_argument))]
    while stack:
        keys, entries, remaining = stack[-1]
        for key in remaining:
            inner = entries[key].as_string_to_argument
            if inner is UNSET:
                yield (*keys, key), entries[key]
            elif len(stack) == MAX_ARGUMENT_DEPTH:
                raise LimitError(f"argument: {TOO_DEEP}", rule=LIMIT_RULE)
            else:
                stack.append(((*keys, key), inner, iter(inner)))
                break
        else:
            stack.pop()


def graph_arguments(argument: schema.Argument) -> list[tuple[tuple[str, ...], schema.GraphArgument]]:
    """List the subgraphs that an argument carries, each with the keys of the dicts that lead to it.

    Raises:
        LimitError: dicts nest deeper than `MAX_ARGUMENT_DEPTH` (G11).
    """
    if argument.as_graph is not UNSET:
        return [((), argument.as_graph)]
    if argument.as_string_to_argument is UNSET:
        return []
    return [(keys, leaf.as_graph) for keys, leaf in leaves(argument) if leaf.as_graph is not UNSET]


def _entries(entries: dict[str, schema.Argument]) -> list[Reference]:
    """The values that a dict of arguments names, however deep."""
    value_references: list[Reference] = []
    for _, leaf in leaves(schema.Argument(as_string_to_argument=entries)):
        value_references += references(leaf)
    return value_references
