"""Rows of the operator table as objects, and the computation of a call's results by a rule.

The parameters of a rule are those of the operator's schema that it needs, under the schema's names and with the
schema's defaults. It returns a fact for each result, or raises `Unknown` or `Mismatch` (`facts.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pt2kit.operators.facts import UNKNOWN, Result, Unknown
from pt2kit.operators.rows import TextRule
from pt2kit.symbols.polynomials import Undecided

Rule = Callable[..., Result]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_SLIPS = (TypeError, ValueError, AttributeError, IndexError, KeyError, ArithmeticError, RecursionError)
"""Errors that a rule may raise for arguments of kinds that the operator does not take (rule T5 of `check`)."""


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One operator overload: its rule and FLOPs. Schema, aliasing and tags are generated from torch
    (`pt2kit.operators.describe` shows all of it).

    Args:
        name: "aten.permute.default".
        rule: computes facts of the results from facts of the arguments; None if there is no rule.
        flops: computes the floating-point operations of a call, as a size; None for operators that count as free.
            Its parameters are those of the schema, and `result` for the facts of the results.
        shown: the arguments worth showing to people, besides tensors.
    """

    name: str
    rule: Rule | None = None
    flops: Rule | None = None
    shown: tuple[str, ...] = ()


def accepted(rule: Rule, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments of a call that a rule has parameters for: all of them if it has `**arguments`.

    Arguments of functions over numbers, which are named by position ("0", "1"), are bound by position.
    """
    if isinstance(rule, TextRule):
        names: Sequence[str] = rule.names
    else:
        code = rule.__code__
        if code.co_flags & inspect.CO_VARKEYWORDS:
            return dict(arguments)
        names = code.co_varnames[: code.co_argcount]
    given = {}
    for position, name in enumerate(names):
        if name in arguments:
            given[name] = arguments[name]
        elif (place := str(position)) in arguments:
            given[name] = arguments[place]
    return given


def call_rule(rule: Rule, arguments: Mapping[str, Any], *, is_strict: bool = False) -> Any:
    """Call a rule with those arguments of a call that it has parameters for.

    Args:
        rule: of a row.
        arguments: plain values by parameter name, as `graph.calls` reads them; with facts for values.
        is_strict: let errors inside the rule through, for tests; otherwise they count as `Unknown`.

    Raises:
        Unknown: the rule is not certain of the result.
        Mismatch: torch refuses such arguments.
    """
    given = accepted(rule, arguments)
    for name, value in given.items():
        if value is UNKNOWN or (type(value) is tuple and any(one is UNKNOWN for one in value)):
            raise Unknown(f"nothing is known of {name}")
    try:
        return rule(**given)
    except Undecided as error:
        raise Unknown(str(error)) from error
    except _SLIPS as error:
        if is_strict:
            raise
        raise Unknown(f"its arguments are not understood ({error})") from error
