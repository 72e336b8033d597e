"""Calls: the arguments of a node by parameter, as plain Python values.

Every analysis of a graph reads arguments through here. What a value is, is up to the caller: `lookup` returns the fact,
array or name that it has for the name of a value, and everything else of the 31 arms of `schema.Argument` becomes plain
data:

    as_int, as_ints, as_string, as_bool …      the numbers and texts themselves; lists as tuples
    as_tensor, as_sym_int with a name …        lookup(name)
    as_scalar_type, as_device, as_layout …     the objects of the schema
    as_graph, as_operator                      `schema.GraphArgument`, `OperatorName`
    as_none                                    None
"""

from __future__ import annotations

from typing import Any, Final

from pt2kit import schema
from pt2kit.graph.argument_values import ARMS, Lookup
from pt2kit.graph.argument_values import OperatorName as OperatorName

FUNCTION_MODULES: Final = ("_operator.", "math.", "builtins.", "torch.sym_", "torch._sym_")
"""Prefixes of the targets of functions over numbers, whose arguments are known by position."""


def arguments_of(node: schema.Node, lookup: Lookup) -> dict[str, Any]:
    """Return the arguments of a call by parameter.

    Args:
        node: the call. Arguments of functions over numbers are named by their position: "0", "1".
        lookup: returns what stands for a value.

    Raises:
        Whatever `lookup` raises.
    """
    if node.target.startswith(FUNCTION_MODULES):
        return {str(position): plain(named.arg, lookup) for position, named in enumerate(node.inputs)}
    return {named.name or str(position): plain(named.arg, lookup) for position, named in enumerate(node.inputs)}


def plain(argument: schema.Argument, lookup: Lookup) -> Any:
    """Return an argument as a plain value.

    Args:
        argument: the argument.
        lookup: returns what stands for a value.
    """
    arm = argument.type
    return ARMS[arm].plain(getattr(argument, arm), lookup)


def results_of(node: schema.Node, lookup: Lookup) -> list[Any]:
    """Return what a node declares for each result: one entry per output; a list for an output that is a list."""
    return [_listed(plain(output, lookup)) for output in node.outputs]


def _listed(held: Any) -> Any:
    return list(held) if isinstance(held, tuple) else held
