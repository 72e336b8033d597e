"""What `load` refuses for safety, although the file is sound, and the entry of `trust=` that lets each of it pass.

A refusal has a rule ("X11"); that of an operator or a class also has a name ("aten.set_"). Either goes into `trust=`,
and each message ends with the narrower one.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TypeVar

from pt2kit.checks.known_targets import plain_target
from pt2kit.errors import Pt2Error

_Error = TypeVar("_Error", bound=Pt2Error)


def trusted(trust: Sequence[str] | Set[str]) -> frozenset[str]:
    """The entries of `trust=` as a set.

    Raises:
        TypeError: a text instead of a sequence of texts.
    """
    if isinstance(trust, str):
        raise TypeError(f"trust: expected a sequence of names and rules, got a text: pass trust=({trust!r},)")
    return frozenset(trust)


def refused(kind: type[_Error], message: str, rule: str, entries: Sequence[str] = ()) -> _Error:
    """The error for something that is refused.

    Args:
        kind: its class.
        message: place, what was expected, what it got.
        rule: of the refusal.
        entries: what to pass as `trust=` instead of the rule.
    """
    listed = ", ".join(repr(entry) for entry in (entries or (rule,)))
    return kind(f"{message}; if you trust the file, pass trust=({listed},)", rule=rule)


def trusts_operator(trust: Set[str], target: str, rule: str) -> bool:
    """Whether a caller lets an operator pass: by the rule, or by its name with or without overload.

    Args:
        trust: the entries.
        target: "torch.ops.aten.set_.source_Tensor", or the name of a function.
        rule: that keeps it out.
    """
    if rule in trust or target in trust:
        return True
    name = target.removeprefix("torch.ops.")
    return name in trust or operator_entry(target) in trust


def operator_entry(target: str) -> str:
    """What `trust=` calls an operator: "aten.set_"; other targets stand there as they are."""
    target = plain_target(target)
    if not target.startswith("torch.ops."):
        return target
    return ".".join(target.split(".")[2:4])
