"""Symbolic number rows of the operator table (sizes, arithmetic, assertions), and rows as objects (`OperatorSpec`).

Functions over numbers (`_operator.add`, `torch.sym_max`) are called by position. Ints and symbolic sizes are computed,
as are the numbers of tensors; a float or truth value that depends on symbols is `Symbolic`.

`call_rule` computes a call's results by the rule of a row. The parameters of a rule are those of the operator's schema
that it needs, under the schema's names and with the schema's defaults. It returns a fact for each result, or raises
`Unknown` or `Mismatch` (`facts.py`).
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pt2kit.operators.facts import UNKNOWN, Result, Scalar, Symbolic, Tensor, Unknown, expect, shape_text
from pt2kit.operators.promotion import INT, category, number_type
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.symbols.polynomials import Undecided, largest, product, same, smallest, unknown
from pt2kit.tensors.bounds import parse_device

Rule = Callable[..., Result]

ARGUMENT_ERRORS: Final = (
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    NameError,
    ArithmeticError,
    RecursionError,
)
"""Errors that a rule may raise for arguments of kinds that the operator does not take (rule T5 of `check`)."""

_MAX_POWER: Final = 64


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
        looks_up: the operand of which as much is read as is returned; "" if all are read whole.
        has_gradient: whether results require a gradient if an operand does.
        answers: "places" or "factors" if several answers are right, as `rows` says; "" if one is.
    """

    name: str
    rule: Rule | None = None
    flops: Rule | None = None
    shown: tuple[str, ...] = ()
    looks_up: str = ""
    has_gradient: bool = True
    answers: str = ""


def accepted(rule: Rule, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments of a call that a rule has parameters for: all of them if it has `**arguments`.

    Arguments of functions over numbers, which are named by position ("0", "1"), are bound by position.
    """
    code = rule.__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return dict(arguments)
    given = {}
    for position, name in enumerate(code.co_varnames[: code.co_argcount]):
        if name in arguments:
            given[name] = arguments[name]
        elif (place := str(position)) in arguments:
            given[name] = arguments[place]
    return given


_FIELDS: Final[Mapping[str, type]] = MappingProxyType({"dtype": ScalarType, "device": Device, "layout": Layout})
"""Parameter that rules pass on as a field of a result -> its type."""


def call_rule(rule: Rule, arguments: Mapping[str, Any], *, is_strict: bool = False) -> Any:
    """Call a rule with those arguments of a call that it has parameters for.

    Args:
        rule: of a row.
        arguments: plain values by parameter name, as `graph.argument_values` reads them; with facts for values.
        is_strict: let errors inside the rule through, for tests; otherwise they count as `Unknown`.

    Raises:
        Unknown: the rule is not certain of the result.
        Mismatch: torch refuses such arguments.
    """
    given = accepted(rule, arguments)
    if isinstance(device := given.get("device"), str):  # torch accepts the text of a device as well
        given["device"] = parse_device(device)
    for name, value in given.items():
        if value is UNKNOWN or (type(value) is tuple and any(one is UNKNOWN for one in value)):
            raise Unknown(f"nothing is known of {name}")
        # A dtype may be its number, also in a tensor; other values are those of a damaged file.
        if name in _FIELDS and value is not None and not isinstance(value, _FIELDS[name]):
            raise Unknown(f"{name} is not known")
    try:
        return rule(**given)
    except Undecided as error:
        raise Unknown(str(error)) from error
    except ARGUMENT_ERRORS as error:
        if is_strict:
            raise
        raise Unknown(f"its arguments are not understood ({error})") from error


def _is_integer(number: Scalar) -> bool:
    return category(number_type(number)) <= INT


def _is_plain(number: Scalar) -> bool:
    return isinstance(number, (int, float)) and not isinstance(number, bool)


def computed(compute: Callable[..., Any], *numbers: Scalar) -> Any:
    """Return the result of a function that yields an int for ints, otherwise a float."""
    return _computed(compute, *numbers) if all(map(_is_integer, numbers)) else as_float(compute, *numbers)


def _computed(compute: Callable[..., Any], *numbers: Scalar) -> Any:
    if any(isinstance(number, Symbolic) for number in numbers):
        return unknown(-math.inf)
    try:
        return compute(*[int(number) if isinstance(number, bool) else number for number in numbers])
    except (ZeroDivisionError, OverflowError) as error:
        raise Unknown(str(error)) from error


def as_float(compute: Callable[..., Any], *numbers: Scalar) -> Any:
    """Return the result of a function that yields a float; of sizes, it is not computed."""
    return _computed(compute, *numbers) if all(map(_is_plain, numbers)) else Symbolic(float)


def power(base: Any, exponent: Any) -> Any:
    """Raise a number or a size to a power."""
    if isinstance(base, int) and isinstance(exponent, int):
        if not -_MAX_POWER <= exponent <= _MAX_POWER:
            raise Unknown("a large power")
        return base**exponent
    if not isinstance(exponent, int) or not 0 <= exponent <= _MAX_POWER:
        raise Unknown("a power that depends on symbols")
    return product([base] * exponent)


def greatest(a: Any, b: Any) -> Any:
    """Return the greater one of two numbers; a float if one of them is."""
    return largest(a, b) if _is_integer(a) and _is_integer(b) else float(max(a, b))


def least(a: Any, b: Any) -> Any:
    """Return the smaller one of two numbers; a float if one of them is."""
    return smallest(a, b) if _is_integer(a) and _is_integer(b) else float(min(a, b))


def total(*numbers: Any) -> Any:
    """Return the sum of numbers."""
    return sum(numbers)


def absolute(a: Any) -> Any:
    """Return a number without its sign."""
    return a if isinstance(a, float) else largest(a, -a)


def rounded(compute: Callable[[float], int], a: Scalar) -> Any:
    """Return the result of a function that yields an int."""
    if isinstance(a, Symbolic):
        return unknown(-math.inf)
    if isinstance(a, float) and not math.isfinite(a):
        raise Unknown("an infinite number is made an integer")
    return compute(a) if isinstance(a, float) else a


def compared(compare: Callable[[Any, Any], bool], a: Scalar, b: Scalar) -> Any:
    """Return whether a comparison of two numbers holds."""
    if isinstance(a, Symbolic) or isinstance(b, Symbolic):
        return Symbolic(bool)
    if compare in (operator.eq, operator.ne) and _is_integer(a) and _is_integer(b):
        equal = same(a, b)  # type: ignore[arg-type]  # Both are sizes.
        return Symbolic(bool) if equal is None else equal is (compare is operator.eq)
    try:
        return compare(a, b)
    except (Undecided, TypeError):
        return Symbolic(bool)


def sym_ite(condition: Any, then: Scalar, otherwise: Scalar) -> Any:
    """Choose one of two numbers."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    kinds = {number_type(then), number_type(otherwise)}
    if kinds == {ScalarType.LONG}:
        return then if then == otherwise else unknown(-math.inf)
    return Symbolic(bool if kinds == {ScalarType.BOOL} else float)


def require_one_element(tensor: Tensor) -> None:
    """Refuse a tensor of several elements."""
    expect(same(tensor.numel, 1), f"expected a tensor of one element, got {shape_text(tensor.sizes)}", "sizes")
