"""An operator's name, plain arguments and metas -> a node, checked against the operator's signature.

Signatures are those that ship with `checks`. An operator that is not among them (of a library, or a higher-order one)
is taken at the caller's word: its arguments by name, its results by their metas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pt2kit import schema
from pt2kit.checks import schemas
from pt2kit.checks.known_targets import argument_counts
from pt2kit.checks.parameter_kinds import parameter_arms
from pt2kit.editing.arguments import to_slot
from pt2kit.editing.graphs import check_name
from pt2kit.editing.metas import entry, kind_of
from pt2kit.editing.nodes import Node
from pt2kit.editing.values import Slot
from pt2kit.errors import GraphError
from pt2kit.graph.view import is_custom, operator_namespace
from pt2kit.messages import quote
from pt2kit.schema.operator_text import Operator

if TYPE_CHECKING:
    from pt2kit.editing.graphs import Graph

Infer: TypeAlias = "str | None"
"""None for what this build infers, "torch" for torch's fake tensors where it cannot."""

_OPS: Final = "torch.ops."
_HIGHER_ORDER: Final = "torch.ops.higher_order."
_PLAIN_NAMES: Final = ("a", "b", "c")
"""What export calls the arguments of functions over numbers."""

_CHOICE_NAMES: Final = ("b", "t", "f")
_SHOWN: Final = 8


def full_target(operator: str, edit: str) -> str:
    """The whole name of an operator: "aten::relu" -> "torch.ops.aten.relu.default".

    Raises:
        GraphError: an operator of torch that does not exist, or several overloads and none called "default".
    """
    if (whole_name := _whole_name(operator)) is not None:
        return whole_name
    name = operator.replace("::", ".").removeprefix(_OPS)
    parts = name.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise GraphError(f"{edit}: expected an operator as 'aten.add.Tensor' or '_operator.mul', got {quote(operator)}")
    target = f"{_OPS}{name}"
    if operator_namespace(target) == "higher_order" or is_custom(target):
        return target if len(parts) > 2 or parts[0] == "higher_order" else f"{target}.default"
    known = schemas.operators("").schemas
    if len(parts) > 2:
        if name in known or operator_namespace(target) not in schemas.COMPLETE:
            return target
        there = _overloads(f"{parts[0]}.{parts[1]}.")
        newest = schemas.nearest("")
        message = f"{edit}: expected an operator of torch {newest}, got {name}{_instead(there)}"
        raise GraphError(message, rule="T1")
    there = _overloads(f"{name}.")
    if f"{name}.default" in there:
        return f"{target}.default"
    if len(there) != 1:
        raise GraphError(f"{edit}: expected an operator with its overload, got {name}{_instead(there)}", rule="T1")
    return f"{_OPS}{there[0]}"


@lru_cache(maxsize=1024)
def _whole_name(operator: str) -> str | None:
    """The whole name of an operator that is written out, or has an overload called "default"; None for all others."""
    name = operator.replace("::", ".")
    if argument_counts(name) is not None or name.startswith("#"):
        return name
    name = name.removeprefix(_OPS)
    known = schemas.operators("").schemas
    if name in known:
        return f"{_OPS}{name}"
    return f"{_OPS}{name}.default" if f"{name}.default" in known else None


@lru_cache(maxsize=1024)
def _overloads(family: str) -> tuple[str, ...]:
    """The operators of torch whose names begin so."""
    return tuple(name for name in schemas.operators("").schemas if name.startswith(family))


def check_call(target: str, names: Sequence[str], results: int, edit: str) -> None:
    """Refuse an operator that does not take arguments of those names, or gives another number of results.

    Raises:
        GraphError: it does not (T3, T4, T6); an operator without a signature is taken as it is.
    """
    counts = argument_counts(target)
    if counts is not None and not counts[0] <= len(names) <= counts[1]:
        raise GraphError(f"{edit}: expected {counts[0]} to {counts[1]} arguments, got {len(names)}", rule="T4")
    signature = schemas.find(target, "") if target.startswith(_OPS) else None
    if signature is None or signature.is_open:
        return
    for name in names:
        if name not in signature.parameters:
            message = f"expected an argument of {_short(target)} ({_listed(signature)}), got {quote(name)}"
            raise GraphError(f"{edit}: {message}", rule="T3")
    for parameter in signature.parameters.values():
        if parameter.is_required and parameter.name not in names:
            raise GraphError(f"{edit}: expected the argument {parameter.name} of {_short(target)}, got none", rule="T4")
    if len(signature.results) != results:
        raise GraphError(f"{edit}: expected an operator with {results} results, got {_short(target)} with "
                         f"{len(signature.results)}", rule="T6")  # fmt: skip


def build_slot(graph: Graph, target: str, name: str, value: Any, edit: str) -> Slot:
    """One argument of a call.

    Raises:
        GraphError: a parameter that the operator does not have (T3), or a value that does not fit it (T5).
    """
    signature = schemas.find(target, "") if target.startswith(_OPS) else None
    parameter = signature.parameters.get(name) if signature is not None else None
    if signature is not None and parameter is None and not signature.is_open:
        raise GraphError(f"{edit}: expected an argument of {_short(target)} ({_listed(signature)}), got {quote(name)}",
                         rule="T3")  # fmt: skip
    slot = to_slot(graph, value, parameter.type if parameter is not None else None, edit)
    slot.name = name
    slot.kind = schema.ArgumentKind.POSITIONAL
    if parameter is not None:
        arms = parameter_arms(parameter.type)
        if arms is not None and slot.template.type not in arms:
            raise GraphError(f"{edit}: expected {parameter.type} as the argument {name} of {_short(target)}, got "
                             f"{slot.template.type}", rule="T5")  # fmt: skip
        if parameter.is_keyword_only:
            slot.kind = schema.ArgumentKind.KEYWORD
    return slot


def build_node(
    graph: Graph,
    before: Node | None,
    edit: str,
    operator: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    meta: Any,
    name: str | None,
    metadata: Mapping[str, str] | None,
    infer: Infer,
) -> Node:
    """Make a node that is in no graph yet; `Graph.append` explains the arguments.

    Raises:
        GraphError: as there; the graph is as it was.
    """
    target = full_target(operator, edit)
    slots = [build_slot(graph, target, key, value, edit) for key, value in _bound(target, args, kwargs, edit).items()]
    if target.startswith(_HIGHER_ORDER):
        for slot in slots[: len(args)]:
            slot.name = ""
    for slot in slots:
        graph.check_defined(edit, slot.values, before)
    signature = schemas.find(target, "") if target.startswith(_OPS) else None
    if signature is not None:
        check_call(target, [slot.name for slot in slots], len(signature.results), edit)
    if meta is None:
        from pt2kit.editing.inference import infer_meta

        meta = infer_meta(target, slots, infer, edit)
    results = _results(meta, signature, edit)
    wish = name or target.removeprefix(_OPS).split(".")[1] if "." in target else name or target
    is_single = not isinstance(meta, list | tuple) if target.startswith(_HIGHER_ORDER) else None
    if name is not None:
        check_name(edit, name)
    node = Node(graph, schema.Node(target, [], [], {}, is_single, None))
    for slot in slots:
        slot.node = node
    node.slots = slots
    node.metadata = dict(metadata or {})
    node.edit = edit
    _define(graph, node, wish, results)
    return node


def _bound(target: str, args: Sequence[Any], kwargs: Mapping[str, Any], edit: str) -> dict[str, Any]:
    """The arguments by parameter, in the order of the schema where there is one."""
    signature = schemas.find(target, "") if target.startswith(_OPS) else None
    counts = argument_counts(target)
    if counts is not None:
        names: Sequence[str] = _CHOICE_NAMES if target == "torch.sym_ite" else _PLAIN_NAMES
    elif signature is not None:
        names = [parameter.name for parameter in signature.parameters.values() if not parameter.is_keyword_only]
    elif target.startswith(_HIGHER_ORDER):
        names = [str(position) for position in range(len(args))]
    else:
        names = ()
    if len(args) > len(names):
        why = "by name, as no signature of it ships" if not names else f"at most {len(names)} without a name"
        raise GraphError(f"{edit}: expected arguments {why}, got {len(args)}", rule="T3")
    by_parameter = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key in by_parameter:
            raise GraphError(f"{edit}: expected {quote(key)} once, got it twice", rule="T3")
        by_parameter[key] = value
    if signature is None:
        return by_parameter
    order = list(signature.parameters)
    return dict(sorted(by_parameter.items(), key=lambda row: order.index(row[0]) if row[0] in order else len(order)))


def _results(meta: Any, found: Operator | None, edit: str) -> list[Any]:
    """The metas of the results, one for each, a list for one that is a list."""
    if found is None or found.is_open:
        results = list(meta) if isinstance(meta, tuple) else [meta]
    elif len(found.results) == 1:
        results = [meta]
        if found.results[0].is_list and not isinstance(meta, list | tuple):
            raise GraphError(f"{edit}: expected a list of metas for {found.results[0]}, got one meta")
    else:
        results = list(meta) if isinstance(meta, list | tuple) else [meta]
        if len(results) != len(found.results):
            raise GraphError(f"{edit}: expected {len(found.results)} metas, one for each result, got {len(results)}")
    return [
        [entry(one, edit) for one in result] if isinstance(result, list | tuple) else entry(result, edit)
        for result in results
    ]


def _define(graph: Graph, node: Node, wish: str, results: Sequence[Any]) -> None:
    """Give a node its name and its results theirs; nothing is refused from here on."""
    single = len(results) == 1 and not isinstance(results[0], list)
    if not single:
        node.name = graph.unique(wish)
        graph.take(node.name)
    number = 0
    for result in results:
        metas = result if isinstance(result, list) else [result]
        values = []
        for meta in metas:
            name = graph.unique(wish if single else f"{wish}_{number}")
            values.append(graph.define(name, kind_of(meta, node.edit), meta, node))
            number += 1
        node.outputs_.append(result_slot(values, node, is_list=isinstance(result, list)))
    if single:
        node.name = node.output.name
        graph.take(node.name)


def result_slot(values: Sequence[Any], node: Node | None, *, is_list: bool) -> Slot:
    """The slot of a result of a node, or of an input or output of a graph."""
    if is_list:
        template = schema.Argument(as_tensors=[schema.TensorArgument(value.name) for value in values])
    else:
        [value] = values
        arms: Mapping[str, Any] = {
            "tensor": lambda name: {"as_tensor": schema.TensorArgument(name)},
            "sym_int": lambda name: {"as_sym_int": schema.SymIntArgument(as_name=name)},
            "sym_float": lambda name: {"as_sym_float": schema.SymFloatArgument(as_name=name)},
            "sym_bool": lambda name: {"as_sym_bool": schema.SymBoolArgument(as_name=name)},
            "custom_obj": lambda name: {"as_custom_obj": schema.CustomObjArgument(name, value.meta.class_fqn)},
        }
        template = schema.Argument.create(**arms[value.kind](value.name))
    return Slot(template, list(values), (), node)


def _instead(there: Sequence[str]) -> str:
    return f"; there is {', '.join(there[:_SHOWN])}" if there else ""


def _listed(found: Operator) -> str:
    return ", ".join(list(found.parameters)[:12]) or "none"


def _short(target: str) -> str:
    return target.removeprefix(_OPS)
