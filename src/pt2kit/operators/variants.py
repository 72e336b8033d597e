"""Derived rules of the operator table: in-place variants, copies of views, lists of tensors.

aten.add_.Tensor            the rule of aten.add.Tensor; returns `self`, if the result fits into it
aten.__iand__.Tensor        the same of aten.__and__.Tensor
aten.permute_copy.default   the rule of aten.permute.default; returns a row-major copy
aten.maximum.out            the rule of aten.maximum.default; returns `out`, if the result fits into it
aten._foreach_add.List      the rule of aten.add.Tensor for each tensor of a list
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pt2kit.operators.facts import Mismatch, Result, Tensor, Unknown, expect, like, may_be, shape_text
from pt2kit.operators.promotion import BOOL, INT, category
from pt2kit.operators.symbolic import Rule, accepted
from pt2kit.schema.operators import ValueType, nearest, operators_of, parse_operator
from pt2kit.tensors.dtypes import short_name

_EACH = ("other", "scalar", "scalars", "exponent")
_LISTS = {"List": "Tensor", "ScalarList": "Scalar"}
"""Overload of an operator over lists -> of that over tensors."""
_OF_RESULTS = {"dtype", "layout", "device", "pin_memory"}
"""Parameters that say what `out` has already."""


def bases(name: str) -> Iterator[tuple[str, Callable[[Rule], Rule]]]:
    """Yield the overloads from which the rule of an overload can be derived, and how.

    Args:
        name: "aten.add_.Tensor".
    """
    namespace, _, rest = name.partition(".")
    operator, _, overload = rest.partition(".")
    if operator.startswith("_foreach_"):
        plain = operator.removeprefix("_foreach_")
        base = plain.rstrip("_")
        for written in (
            f"{base}.{_LISTS.get(overload, overload)}",
            f"{base}.default",
            f"{base}.Tensor_{_LISTS.get(overload, overload)}",
        ):
            yield f"{namespace}.{written}", _no_results if plain.endswith("_") else each
    elif operator.startswith("__i"):
        yield f"{namespace}.__{operator[3:]}.{overload}", in_place
    elif operator.endswith("_copy"):
        yield f"{namespace}.{operator.removesuffix('_copy')}.{overload}", copied
    elif operator.endswith("_"):
        yield f"{namespace}.{operator[:-1]}.{overload}", in_place
    for plain in without_out(name):
        yield plain, into_out


def without_out(name: str) -> tuple[str, ...]:
    """Return the overloads that compute what an overload stores in its parameter `out`: those of equal parameters.

    Names do not tell: `add.out` stores the result of `add.Tensor`, `max.out` that of `max.other`.
    """
    base, _, overload = name.rpartition(".")
    operators = operators_of(nearest("")) if overload.endswith("out") else {}
    wanted = _parameters(operators.get(name, ""))
    if wanted.pop("out", None) is None:
        return ()
    plain = {one: _parameters(operators[one]) for one in operators if one.startswith(f"{base}.")}
    return tuple(
        one
        for one, found in plain.items()
        if wanted.items() <= found.items() and found.keys() - wanted.keys() <= _OF_RESULTS
    )


def _parameters(schema: str) -> dict[str, ValueType]:
    return {name: one.type for name, one in parse_operator(schema).parameters.items()} if schema else {}


def in_place(rule: Rule) -> Rule:
    """Return the rule of the in-place form of an operator: its first argument, if the result fits into it."""

    def write(**arguments: Any) -> Tensor:
        self: Tensor = arguments["self"]
        try:
            result = rule(**accepted(rule, arguments))
        except Unknown:
            return self
        if isinstance(result, Tensor):
            require_fit(result, self)
        return self

    return write


def into_out(rule: Rule) -> Rule:
    """Return the rule of an operator that stores its result in the argument `out`."""

    def write(*, out: Tensor, **arguments: Any) -> Tensor:
        result = rule(**accepted(rule, arguments))
        if not isinstance(result, Tensor):
            raise Unknown("several results are stored in one tensor")
        if not may_be(result.sizes, out.sizes):
            raise Unknown("torch resizes the tensor, or refuses to")
        return out

    return write


def copied(rule: Rule) -> Rule:
    """Return the rule of an operator that returns row-major copies of views."""

    def copy(**arguments: Any) -> Any:
        result: Any = rule(**accepted(rule, arguments))
        return [like(one) for one in result] if isinstance(result, list) else like(result)

    return copy


def each(rule: Rule) -> Rule:
    """Return the rule of an operator over lists of tensors: with one number or tensor for all, or one for each."""

    def map_lists(self: Sequence[Tensor], **arguments: Any) -> Result:
        second = next((arguments[name] for name in _EACH if arguments.get(name) is not None), None)
        others = second if isinstance(second, (tuple, list)) else [second] * len(self)
        expect(len(others) == len(self), f"expected lists of one length, got {len(self)} and {len(others)}", "sizes")
        try:
            return [rule(*[one for one in pair if one is not None]) for pair in zip(self, others, strict=True)]
        except Mismatch as error:
            if error.subject == "dtype":
                raise Unknown("kernels of lists accept other dtypes than those of tensors") from error
            raise

    return map_lists


def _no_results(rule: Rule) -> Rule:
    def write(**arguments: Any) -> Result:
        return ()

    return write


def require_fit(result: Tensor, into: Tensor) -> None:
    """Refuse a result that cannot be written to a tensor.

    Raises:
        Mismatch: the tensor would have to grow, or its dtype is of a lower category.
    """
    text = f"expected a result of sizes {shape_text(into.sizes)}, got {shape_text(result.sizes)}"
    expect(may_be(result.sizes, into.sizes), text, "sizes")
    if result.dtype is None or into.dtype is None:
        return
    categories = category(result.dtype), category(into.dtype)
    if (categories[0] > categories[1] and categories[0] != INT) or categories == (INT, BOOL):
        raise Mismatch(f"expected a result of dtype {short_name(into.dtype)}, got {short_name(result.dtype)}", "dtype")
