"""The results of one fx node -> the values it defines, with the names torch gives them.

fx has one value per node and takes a tuple apart with `operator.getitem` nodes. The format has nodes with many results
and no getitem: result number i bears the name of the getitem node that takes it, or "<node>_unused_<i>" where nothing
does. Several getitem nodes that take the same result become one name.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from torch.fx import Node

from pt2kit.bridge.write.scope import NONE, Scope, make
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.schema import Argument, OptionalTensorArgument

_LISTS = {"as_sym_int": "as_sym_ints", "as_sym_float": "as_sym_floats", "as_sym_bool": "as_sym_bools"}


def define_one(node: Node, value: Any, scope: Scope) -> Argument:
    """Define the single result of a node, under the node's own name."""
    result = scope.define(node.name, value)
    scope.uses[node] = result
    return result


def define_results(node: Node, value: Any, returns: Sequence[str], scope: Scope) -> list[Argument]:
    """Define the results of an operator that has a schema.

    Args:
        node: the call.
        value: what fx knows of the results.
        returns: the kind of each result (`Operator.returns`).
        scope: the graph being written.

    Raises:
        GraphError: the value does not fit the schema, or the node's results are used in a way the format cannot say.
        UnsupportedError: a kind of result that the format does not have.

    Source: `serialize_outputs` in torch/_export/serde/serialize.py, 2.13.
    """
    if not returns:
        return []
    if len(returns) == 1 and not isinstance(value, (list, tuple)):
        return [define_one(node, value, scope)]
    if not isinstance(value, (list, tuple)):
        raise GraphError(f"expected {len(returns)} results, got {type(value).__name__}")
    if len(returns) == 1:
        return [_define_list((node,), f"{node.name}_unused", value, scope)]
    return _define_tuple(node, value, scope)


def define_untyped(node: Node, value: Any, scope: Scope) -> list[Argument]:
    """Define the results of a higher-order operator or a plain function, which have no schema.

    Source: `serialize_hoo_outputs` in torch/_export/serde/serialize.py, 2.13.
    """
    if isinstance(value, (tuple, list)):
        return _define_tuple(node, value, scope)
    if isinstance(value, dict):  # the results of a triton kernel, by parameter
        takers = _takers((node,), None)
        tensors = [
            _define(takers.get(key, ()), f"{node.name}_unused_{key}", item, scope) for key, item in value.items()
        ]
        return [Argument(as_tensors=[_tensor(tensor) for tensor in tensors])]
    return [define_one(node, value, scope)]


def _define_tuple(node: Node, values: Sequence[Any], scope: Scope) -> list[Argument]:
    takers = _takers((node,), len(values))
    results = []
    for index, value in enumerate(values):
        define = _define_list if isinstance(value, (list, tuple)) else _define
        results.append(define(takers.get(index, ()), f"{node.name}_unused_{index}", value, scope))
    return results


def _define_list(owners: Sequence[Node], unused: str, values: Sequence[Any], scope: Scope) -> Argument:
    """Define the entries of a result that is a list.

    Args:
        owners: the nodes whose users take the entries.
        unused: what the name of an entry that nothing takes begins with.
        values: what fx knows of the entries.
        scope: the graph being written.
    """
    takers = _takers(owners, len(values))
    entries = [_define(takers.get(i, ()), f"{unused}_{i}", value, scope) for i, value in enumerate(values)]
    arms = {entry.type for entry in entries}
    if arms <= {"as_tensor"}:
        return Argument(as_tensors=[_tensor(entry) for entry in entries])
    if len(arms) == 1 and (arm := _LISTS.get(next(iter(arms)))):
        return make(arm, [entry.value for entry in entries])
    if arms <= {"as_tensor", "as_none"}:
        return Argument(as_optional_tensors=[_optional(entry) for entry in entries])
    raise UnsupportedError(f"expected a list of one kind as result, got one of {', '.join(sorted(arms))}")


def _define(takers: Sequence[Node], unused: str, value: Any, scope: Scope) -> Argument:
    """Define one result under the name of the first node that takes it."""
    name = takers[0].name if takers else unused
    result = scope.define(name, value)
    for taker in takers:
        scope.uses[taker] = result
        if taker.name != name:
            scope.renamed[taker.name] = name
    return result


def _takers(owners: Sequence[Node], count: int | None) -> dict[Any, list[Node]]:
    """Which getitem nodes take which result, in the order of use, which is the order torch looks in.

    Args:
        owners: the nodes that hold the results.
        count: how many results there are, to make sense of a negative index; None where keys are not indices.
    """
    takers: dict[Any, list[Node]] = {}
    for owner in owners:
        for user in owner.users:
            if user.target is not operator.getitem or user.args[0] is not owner:
                raise GraphError(f"expected its results to be taken one by one, got node {user.name} using them whole")
            key: Any = user.args[1]
            if count is not None:
                if not isinstance(key, int) or not -count <= key < count:
                    raise GraphError(f"expected an index below {count} in node {user.name}, got {key}")
                key = int(key) % count
            takers.setdefault(key, []).append(user)
    return takers


def _tensor(argument: Argument) -> Any:
    if argument.type != "as_tensor":
        raise UnsupportedError(f"expected tensors in a list of results, got {argument.type}")
    return argument.value


def _optional(entry: Argument) -> OptionalTensorArgument:
    if entry is NONE:
        return OptionalTensorArgument(as_none=True)
    return OptionalTensorArgument(as_tensor=_tensor(entry))
