"""The operator table: rows of all families, operators that users registered, and every fact of an overload as data.

`find` and `infer` use the rows. Those of many overloads are derived from rows that are written (`bases`):

aten.add_.Tensor            the rule of aten.add.Tensor; returns `self`, if the result fits into it
aten.__iand__.Tensor        the same of aten.__and__.Tensor
aten.permute_copy.default   the rule of aten.permute.default; returns a row-major copy
aten.maximum.out            the rule of aten.maximum.default; returns `out`, if the result fits into it
aten._foreach_add.List      the rule of aten.add.Tensor for each tensor of a list

As data, rows are for readers in any language:

describe("aten.permute.default", "2.13")     one row: schema, tags, aliasing, writes, rule, FLOPs, requirement
overloads("2.13")                            all overloads of a release, in order of their names
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from pt2kit.errors import OperatorError, UnsupportedError
from pt2kit.operators.aliasing import aliases, is_measured, written
from pt2kit.operators.facts import Mismatch, Result, Tensor, Unknown, expect, like, may_be
from pt2kit.operators.rows import texts
from pt2kit.operators.schemas import similar, tags_of
from pt2kit.operators.symbolic import OperatorSpec, Rule, accepted, call_rule
from pt2kit.operators.vocabulary import require_fit
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import ValueType, find_operator, known_releases, nearest, operators_of

_registered: Final[dict[str, OperatorSpec]] = {}
_lock: Final = threading.Lock()


# Rows never change; only those that somebody asks for are compiled.
@cache
def _row(name: str) -> OperatorSpec | None:
    """Return the row of an overload, or of its variant: one that writes its result to `self`, or copies a view."""
    written = texts().get(name)
    if written is not None:
        shown, has_gradient = tuple(written.value("shown").split()), written.value("gradient") != "none"
        rule, flops = written.compile("->"), written.compile("flops")
        looks_up, answers = written.value("looks_up"), written.value("answers")
        return OperatorSpec(name, rule, flops, shown, looks_up, has_gradient, answers)
    for base, variant in bases(name):
        if (row := _row(base)) is not None and row.rule is not None:
            return replace(row, name=name, rule=variant(row.rule))
    return None


def find(target: str) -> OperatorSpec | None:
    """Return the row of an operator; None if there is none.

    Args:
        target: as a node calls it: "torch.ops.aten.add.Tensor", "_operator.mul", or without "torch.ops.".
    """
    name = target.removeprefix(OPS)
    row = _row(name)
    return _registered.get(name) if row is None else row


def register(
    name: str,
    rule: Rule | None = None,
    *,
    flops: Rule | None = None,
    shown: Sequence[str] = (),
) -> None:
    """Add a row for an operator of another library; `check`, the editor, `cost` and `runtime` use it.

    Args:
        name: "torchvision.nms.default", or "torchvision::nms".
        rule: computes facts of the results; its parameters are those of the operator's schema that it needs.
        flops: counts floating-point operations.
        shown: the arguments worth showing to people.

    Raises:
        OperatorError: no name of an operator.
        UnsupportedError: the table of pt2kit has a row for it.
    """
    name = overload_name(name)
    if _row(name) is not None:
        raise UnsupportedError(f"{name}: expected an operator without a row, got one that pt2kit describes")
    with _lock:
        _registered[name] = OperatorSpec(name, rule, flops, tuple(shown))


def unregister(name: str) -> None:
    """Remove a row that `register` added; nothing happens if there is none."""
    with _lock:
        _registered.pop(overload_name(name), None)


def overload_name(name: str) -> str:
    """Return the full name of an overload: "corpus::addmul" -> "corpus.addmul.default".

    Raises:
        OperatorError: no name of an operator.
    """
    parts = name.removeprefix(OPS).replace("::", ".").split(".")
    if len(parts) not in (2, 3) or not all(part.isidentifier() for part in parts):
        raise OperatorError(f"register: expected a name such as 'corpus::addmul', got {name[:80]!a}")
    return ".".join(parts if len(parts) == 3 or parts[0] == "_operator" else (*parts, "default"))


def infer(target: str, arguments: Mapping[str, Any], *, is_strict: bool = False) -> Result:
    """Compute the facts of the results of a call.

    Args:
        target: the operator.
        arguments: plain values and facts by parameter name.
        is_strict: let errors inside a rule through, for tests.

    Raises:
        Unknown: the operator has no rule, or the rule is not certain.
        Mismatch: torch refuses such arguments.
    """
    row = find(target)
    if row is None or row.rule is None:
        raise Unknown("it has no result rule")
    result: Result = call_rule(row.rule, arguments, is_strict=is_strict)
    return result


def describe(name: str, release: str = "") -> dict[str, Any]:
    """Return the facts about one operator overload, as plain data with stable keys.

    Args:
        name: "aten.permute.default"; with or without "torch.ops.".
        release: the release of torch ("2.9"); the newest one that has the overload by default.

    Returns:
        A dict with the keys name, release, releases, schema, tags, aliases, writes, measured, result_rule, flops,
        shown, requires and refused.

    Raises:
        OperatorError: no such overload in that release.
        VersionError: no release that the table has.
    """
    from pt2kit.operators.requirements import find_row  # It reads the table of kernels, which few need.

    name = name.removeprefix(OPS).replace("::", ".")
    releases = [one for one in known_releases() if name in operators_of(one)]
    release = release or (releases[-1] if releases else nearest(""))
    text = operators_of(release).get(name)
    if text is None:
        there = f"; torch {releases[0]} to {releases[-1]} has it" if releases else ""
        where = there or similar(name, operators_of(release))
        raise OperatorError(
            f"{name[:80]}: expected an operator overload of torch {release}, got none of that name{where}"
        )
    row, kernel = find(name) or OperatorSpec(name), find_row(f"{OPS}{name}")
    return {
        "name": name,
        "release": release,
        "releases": releases,
        "schema": text,
        "tags": sorted(tags_of(name, release)),
        "aliases": [alias._asdict() for alias in aliases(name, release)],
        "writes": sorted(written(name, release)),
        "measured": is_measured(name),
        "result_rule": row.rule is not None,
        "flops": row.flops is not None,
        "shown": list(row.shown),
        "requires": kernel.requires or None if kernel is not None else None,
        "refused": kernel.reason if kernel is not None and kernel.is_refused else None,
    }


def overloads(release: str = "") -> Iterator[dict[str, Any]]:
    """Yield the rows of all overloads of a release, in order of their names.

    Args:
        release: "2.9"; the newest one by default.

    Raises:
        VersionError: no release that the table has.
    """
    release = release or nearest("")
    yield from (describe(name, release) for name in sorted(operators_of(release)))


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
        base, kind = operator.removeprefix("_foreach_").rstrip("_"), _LISTS.get(overload, overload)
        for plain in (kind, "default", f"Tensor_{kind}"):
            yield f"{namespace}.{base}.{plain}", _no_results if operator.endswith("_") else each
    elif operator.startswith("__i"):
        yield f"{namespace}.__{operator[3:]}.{overload}", in_place
    elif operator.endswith("_copy"):
        yield f"{namespace}.{operator.removesuffix('_copy')}.{overload}", copied
    elif operator.endswith("_"):
        yield f"{namespace}.{operator[:-1]}.{overload}", in_place
        wanted = _parameters(name)
        # Names of overloads differ: pow_.Tensor writes what pow.Tensor_Tensor returns.
        for plain in _overloads().get(f"{namespace}.{operator[:-1]}", ()):
            if _parameters(plain) == wanted:
                yield plain, in_place
    for plain in without_out(name):
        yield plain, into_out


def without_out(name: str) -> tuple[str, ...]:
    """Return the overloads that compute what an overload stores in its parameter `out`: those of equal parameters.

    Names do not tell: `add.out` stores the result of `add.Tensor`, `max.out` that of `max.other`.
    """
    wanted = _parameters(name) if name.endswith("out") else {}
    if wanted.pop("out", None) is None:
        return ()
    plain = {one: _parameters(one) for one in _overloads()[name.rpartition(".")[0]]}
    return tuple(
        one
        for one, found in plain.items()
        if wanted.items() <= found.items() and found.keys() - wanted.keys() <= _OF_RESULTS
    )


@cache
def _overloads() -> Mapping[str, list[str]]:
    """Return the overloads of each operator of the newest release, by its name without them."""
    found: dict[str, list[str]] = {}
    for name in operators_of(nearest("")):
        found.setdefault(name.rpartition(".")[0], []).append(name)
    return found


def _parameters(name: str) -> dict[str, ValueType]:
    """Return the parameters of an operator and their types, whether it writes to them or not; {} if there is none."""
    operator = find_operator(name, nearest(""))
    return {one.name: replace(one.type, alias="") for one in operator.parameters.values()} if operator else {}


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
    return lambda **arguments: ()
