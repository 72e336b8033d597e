"""Normal form of calls: arguments in the order of the operator's schema, without kinds, their values renamed.

Every release would write them this way. torch binds the arguments of an operator by name, whatever their order is.
`kind` says how a call in Python would pass them, and is missing before schema 8.6. So for an operator that some release
of torch registers, arguments come in the order of its schema, that of the oldest release that has all their names;
those of other operators stay as stored. A higher-order operator has no schema: its positional arguments have no name,
those passed by name come after them, sorted. All arguments of functions over numbers are positional.

`slots` lists the names of an argument's values in their order, which decides the order of nodes; `rename` renames the
values and subgraphs. Arms that name nothing are returned as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.graph.argument_values import FUNCTION_MODULES, Subgraphs, leaves, references, renamed
from pt2kit.graph.values import HIGHER_ORDER, operator_namespace
from pt2kit.schema import Argument, ArgumentKind, NamedArgument, OptionalTensorArgument
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import find_operator, known_releases

Names = Mapping[str, str]
"""Old name -> new name; a name that is not a key stays."""

Slots = tuple[str | None, ...]

NOTHING: Final[Slots] = (None,)


def usual_graph(graph: schema.Graph) -> schema.Graph:
    """Return a graph in which every call is written the usual way; subgraphs are unchanged.

    Args:
        graph: the graph; shared where nothing is to be done.
    """
    nodes = [usual_call(node) for node in graph.nodes]
    changed = any(one is not other for one, other in zip(nodes, graph.nodes, strict=True))
    return replace(graph, nodes=nodes) if changed else graph


def usual_call(node: schema.Node) -> schema.Node:
    """Return a node with its arguments in the usual order, without kinds; the same node if it is so already."""
    inputs = _usual(node)
    same = len(inputs) == len(node.inputs) and all(map(_is_same, inputs, node.inputs))
    return node if same else replace(node, inputs=inputs)


def _usual(node: schema.Node) -> list[NamedArgument]:
    if node.target.startswith(FUNCTION_MODULES):
        return [NamedArgument("", named.arg) for named in node.inputs]
    if _is_bound_by_name(node.target):
        order = _order(node.target, _names(node.inputs))
        inputs = node.inputs if order is None else [node.inputs[place] for place in order]
        return [NamedArgument(named.name, named.arg) for named in inputs]
    placed = [named for named in node.inputs if not named.name or named.kind is ArgumentKind.POSITIONAL]
    others = [named for named in node.inputs if named.name and named.kind is not ArgumentKind.POSITIONAL]
    by_name = sorted(others, key=lambda named: named.name)
    return [
        *(NamedArgument("", named.arg) for named in placed),
        *(NamedArgument(named.name, named.arg) for named in by_name),
    ]


def _is_bound_by_name(target: str) -> bool:
    """Return whether a target is an operator with a schema: of the dispatcher, or of an extension."""
    return target.startswith("#") or (target.startswith(OPS) and operator_namespace(target) != HIGHER_ORDER)


def _is_same(one: NamedArgument, other: NamedArgument) -> bool:
    return one.arg is other.arg and one.name == other.name and one.kind is other.kind


def _names(inputs: Sequence[NamedArgument]) -> tuple[str, ...]:
    return tuple(named.name for named in inputs)


# A pure function of tables that never change; programs make the same few calls over and over.
@functools.lru_cache(maxsize=4096)
def _order(target: str, names: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the positions of arguments in the order of the operator's schema; None if no release has these names."""
    if len(set(names)) != len(names):
        return None
    name = target.removeprefix(OPS)
    for release in known_releases():
        operator = find_operator(name, release)
        if operator is not None and operator.parameters.keys() >= set(names):
            rank = {parameter: number for number, parameter in enumerate(operator.parameters)}
            return tuple(sorted(range(len(names)), key=lambda place: rank[names[place]]))
    return None


def slots(argument: Argument) -> Slots:
    """List the names of the values that an argument uses, with None for a constant instead of a value.

    An argument that has no place for a value is one None. A dict of arguments is read in the order of its keys.

    Raises:
        LimitError: dicts nest too deep (G11).

    Source: torch/_export/serde/serialize.py, torch 2.13, which puts nodes in order by the ranks of these values.
    """
    if (tensor := argument.as_tensor) is not UNSET:
        return (tensor.name,)
    read = _SLOTS.get(arm := argument.type)
    return read(getattr(argument, arm)) if read else NOTHING


def _sym_slots(value: Any) -> Slots:
    return (None if value.as_name is UNSET else value.as_name,)


def _optional_slots(values: list[OptionalTensorArgument]) -> Slots:
    return tuple(None if value.as_tensor is UNSET else value.as_tensor.name for value in values)


def _entry_slots(entries: dict[str, Argument]) -> Slots:
    keyed_leaves = leaves(Argument(as_string_to_argument=entries))
    inner = [(keys, [reference.name for reference in references(leaf)]) for keys, leaf in keyed_leaves]
    return tuple(name for _, names in sorted(inner) for name in names) or NOTHING


_SLOTS: Final[Mapping[str, Callable[[Any], Slots]]] = MappingProxyType(
    {
        "as_tensors": lambda values: tuple(value.name for value in values),
        "as_nested_tensors": lambda rows: tuple(value.name for row in rows for value in row),
        "as_optional_tensor": lambda value: _optional_slots([value]),
        "as_optional_tensors": _optional_slots,
        **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _sym_slots),
        **dict.fromkeys(
            ("as_sym_ints", "as_sym_floats", "as_sym_bools"),
            lambda values: tuple(name for value in values for name in _sym_slots(value)),
        ),
        "as_custom_obj": lambda value: (value.name,),
        "as_string_to_argument": _entry_slots,
    }
)
"""Arm -> what reads its slots; the arms that have no place for a value are not here."""


def rename(argument: Argument, names: Names, subgraphs: Subgraphs) -> Argument:
    """Rename the values that an argument names.

    Args:
        argument: any argument, with dicts of at most `graph.MAX_ARGUMENT_DEPTH` levels, as `slots` has proved.
        names: old name -> new name.
        subgraphs: the replacement of each subgraph, dicts read in the order of their keys.

    Returns:
        a new argument, dicts in the order of their keys; or the same one where there is nothing to rename.
    """
    return renamed(argument, lambda name: names.get(name, name), subgraphs, by_key=True)
