"""The operator table: every row of every family, and the operators that users registered."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from pt2kit.operators.facts import Result, Unknown
from pt2kit.operators.rows import texts
from pt2kit.operators.specs import OperatorSpec, Rule, call_rule
from pt2kit.operators.variants import bases

PREFIX: Final = "torch.ops."

_registered: Final[dict[str, OperatorSpec]] = {}
_lock: Final = threading.Lock()


# Rows never change; only those that somebody asks for are compiled.
@cache
def _row(name: str) -> OperatorSpec | None:
    """Return the row of an overload, or of its variant: one that writes its result to `self`, or copies a view."""
    written = texts().get(name)
    if written is not None:
        return OperatorSpec(
            name, written.compile("->"), written.compile("flops"), tuple(written.value("shown").split())
        )
    for base, variant in bases(name):
        if (row := _row(base)) is not None and row.rule is not None:
            return OperatorSpec(name, variant(row.rule), row.flops, row.shown)
    return None


def rows() -> Mapping[str, OperatorSpec]:
    """Return the rows that are written: name ("aten.add.Tensor") -> row; `find` derives those of variants."""
    return {name: row for name in texts() if (row := _row(name)) is not None}


def find(target: str) -> OperatorSpec | None:
    """Return the row of an operator; None if there is none.

    Args:
        target: as a node calls it: "torch.ops.aten.add.Tensor", "_operator.mul", or without "torch.ops.".
    """
    name = target.removeprefix(PREFIX)
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
        ValueError: the table of pt2kit has a row for it.
    """
    name = name.replace("::", ".").removeprefix(PREFIX)
    if name.count(".") == 1 and not name.startswith("_operator."):
        name = f"{name}.default"
    if _row(name) is not None:
        raise ValueError(f"{name}: expected an operator without a row, got one that pt2kit describes")
    with _lock:
        _registered[name] = OperatorSpec(name, rule, flops, tuple(shown))


def unregister(name: str) -> None:
    """Remove a row that `register` added; nothing happens if there is none."""
    name = name.replace("::", ".").removeprefix(PREFIX)
    with _lock:
        _registered.pop(name, None)
        _registered.pop(f"{name}.default", None)


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
