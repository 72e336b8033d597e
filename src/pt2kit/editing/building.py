"""Signatures of operators for calls that are built: names, arguments and results are checked against them.

Signatures are those that ship with `checks`. An operator that is not among them (of a library, or a higher-order one)
is taken at the caller's word: its arguments by name, its results by their metas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from pt2kit.checks.parameter_kinds import parameter_arms
from pt2kit.editing.metas import entry
from pt2kit.errors import GraphError
from pt2kit.graph.traversal import is_custom, operator_namespace
from pt2kit.messages import count_text, kind_of, quote, suggestion
from pt2kit.operators import schemas
from pt2kit.schema.names import HIGHER_ORDER_OPS, OPS
from pt2kit.schema.operators import COMPLETE, Operator, Parameter, nearest
from pt2kit.symbols.functions import TARGETS

_PLAIN_NAMES: Final = ("a", "b", "c")
"""Names that export gives to the arguments of functions over numbers."""

_CHOICE_NAMES: Final = ("b", "t", "f")
_SHOWN: Final = 8


def full_target(operator: str, edit: str) -> str:
    """Return the full name of an operator: "aten::relu" -> "torch.ops.aten.relu.default".

    Raises:
        GraphError: an operator of torch that does not exist, or several overloads and none called "default".
    """
    if not isinstance(operator, str):
        raise GraphError(f"{edit}: expected the name of an operator, such as 'aten.relu', got {kind_of(operator)}")
    if (whole_name := _whole_name(operator)) is not None:
        return whole_name
    name = operator.replace("::", ".").removeprefix(OPS)
    parts = name.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise GraphError(f"{edit}: expected an operator as 'aten.add.Tensor' or '_operator.mul', got {quote(operator)}")
    target = f"{OPS}{name}"
    if operator_namespace(target) == "higher_order" or is_custom(target):
        return target if len(parts) > 2 or parts[0] == "higher_order" else f"{target}.default"
    known = schemas.operators("").schemas
    if len(parts) > 2:
        if name in known or operator_namespace(target) not in COMPLETE:
            return target
        there = _overloads(f"{parts[0]}.{parts[1]}.")
        newest = nearest("")
        message = f"{edit}: no operator {name} in torch {newest}{_instead(there) or _close(name)}"
        raise GraphError(message, rule="T1")
    there = _overloads(f"{name}.")
    if f"{name}.default" in there:
        return f"{target}.default"
    if not there:
        raise GraphError(f"{edit}: no operator {name} in torch {nearest('')}{_close(name)}", rule="T1")
    if len(there) != 1:
        raise GraphError(f"{edit}: expected an operator with its overload, got {name}{_instead(there)}", rule="T1")
    return f"{OPS}{there[0]}"


@lru_cache(maxsize=1024)
def _whole_name(operator: str) -> str | None:
    """Return the full name of an operator that is written in full or has an overload "default"; None for all others."""
    name = operator.replace("::", ".")
    if name in TARGETS or name.startswith("#"):
        return name
    name = name.removeprefix(OPS)
    known = schemas.operators("").schemas
    if name in known:
        return f"{OPS}{name}"
    return f"{OPS}{name}.default" if f"{name}.default" in known else None


@lru_cache(maxsize=1024)
def _overloads(family: str) -> tuple[str, ...]:
    """Return the operators of torch whose names begin with a prefix."""
    return tuple(name for name in schemas.operators("").schemas if name.startswith(family))


def check_call(target: str, names: Sequence[str], results: int, edit: str) -> None:
    """Refuse an operator that lacks parameters of those names, or has another number of results.

    Raises:
        GraphError: it does not (T3, T4, T6); an operator without a signature is not checked.
    """
    function = TARGETS.get(target)
    if function is not None and not function.least <= len(names) <= function.most:
        raise GraphError(
            f"{edit}: expected {function.least} to {count_text(function.most, 'argument')}, got {len(names)}", rule="T4"
        )
    signature = signature_of(target)
    if signature is None or signature.is_open:
        return
    for name in names:
        find_parameter(target, name, edit)
    for parameter in signature.parameters.values():
        if parameter.is_required and parameter.name not in names:
            raise GraphError(f"{edit}: expected the argument {parameter.name} of {_short(target)}, got none", rule="T4")
    if len(signature.results) != results:
        raise GraphError(
            f"{edit}: expected an operator with {count_text(results, 'result')}, got {_short(target)} with "
            f"{len(signature.results)}",
            rule="T6",
        )


def find_parameter(target: str, name: str, edit: str) -> Parameter | None:
    """Return a parameter of an operator; None if its signature is not known, or open.

    Raises:
        GraphError: a parameter that the operator does not have (T3).
    """
    signature = signature_of(target)
    parameter = signature.parameters.get(name) if signature is not None else None
    if signature is not None and parameter is None and not signature.is_open:
        raise GraphError(
            f"{edit}: expected an argument of {_short(target)} ({_listed(signature)}), got {quote(name)}", rule="T3"
        )
    return parameter


def check_argument(target: str, parameter: Parameter, arm: str, edit: str) -> None:
    """Refuse an argument that does not fit its parameter (T5)."""
    arms = parameter_arms(parameter.type)
    if arms is not None and arm not in arms:
        raise GraphError(
            f"{edit}: expected {parameter.type} as the argument {parameter.name} of {_short(target)}, got {arm}",
            rule="T5",
        )


def signature_of(target: str) -> Operator | None:
    """Return the signature of an operator; None if none ships."""
    return schemas.find(target, "") if target.startswith(OPS) else None


def bound_arguments(target: str, args: Sequence[Any], kwargs: Mapping[str, Any], edit: str) -> dict[str, Any]:
    """Return the arguments by parameter, in the order of the schema if there is one."""
    signature = signature_of(target)
    if target in TARGETS:
        names: Sequence[str] = _CHOICE_NAMES if target == "torch.sym_ite" else _PLAIN_NAMES
    elif signature is not None:
        names = [parameter.name for parameter in signature.parameters.values() if not parameter.is_keyword_only]
    elif target.startswith(HIGHER_ORDER_OPS):
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


def result_metas(meta: Any, found: Operator | None, edit: str) -> list[Any]:
    """Return the metas of the results, one for each; a list for a result that is a list."""
    if found is None or found.is_open:
        results = list(meta) if isinstance(meta, tuple) else [meta]
    elif len(found.results) == 1:
        results = [meta]
        if found.results[0].is_list and not isinstance(meta, list | tuple):
            raise GraphError(f"{edit}: expected a list of metas for {found.results[0]}, got one meta")
    else:
        results = list(meta) if isinstance(meta, list | tuple) else [meta]
        if len(results) != len(found.results):
            raise GraphError(
                f"{edit}: expected {count_text(len(found.results), 'meta')}, one for each result, got {len(results)}"
            )
    return [
        [entry(one, edit) for one in result] if isinstance(result, list | tuple) else entry(result, edit)
        for result in results
    ]


def _instead(there: Sequence[str]) -> str:
    return f"; there is {', '.join(there[:_SHOWN])}" if there else ""


def _close(name: str) -> str:
    """Return the operators whose names are close to one that does not exist, for messages."""
    stem = ".".join(name.split(".")[:2])
    known = {one.rpartition(".")[0] for one in schemas.operators("").schemas}
    return suggestion(stem, sorted(known), 0.75)


def _listed(found: Operator) -> str:
    return ", ".join(list(found.parameters)[:12]) or "none"


def _short(target: str) -> str:
    return target.removeprefix(OPS)
