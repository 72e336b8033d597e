"""Refusals for safety: sound files that `load` rejects, and the entry of `trust=` that allows each of them.

A refusal has a rule ("X11"); that of an operator or a class also has a name ("aten.set_"). Either can be passed in
`trust=`, and each message ends with the narrower one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import TypeVar

from pt2kit.checks.known_targets import plain_target
from pt2kit.errors import Pt2Error

_Error = TypeVar("_Error", bound=Pt2Error)


def trusted(trust: Sequence[str] | Set[str]) -> frozenset[str]:
    """Return the entries of `trust=` as a set.

    Raises:
        TypeError: anything but a collection of texts.
    """
    if isinstance(trust, str):
        raise TypeError(f"trust: expected a list of names, got a text: pass trust=({trust!r},)")
    if not isinstance(trust, Iterable):
        raise TypeError(f"trust: expected a list of names, got {trust!r}")
    entries = frozenset(trust)
    if wrong := [entry for entry in entries if not isinstance(entry, str)]:
        raise TypeError(f"trust: expected a list of names, got one with {wrong[0]!r}")
    return entries


def refused(kind: type[_Error], message: str, rule: str, entries: Sequence[str] = ()) -> _Error:
    """Return the error for a refusal.

    Args:
        kind: its class.
        message: place, what was expected, actual value.
        rule: of the refusal.
        entries: what to pass as `trust=` instead of the rule.
    """
    listed = ", ".join(repr(entry) for entry in (entries or (rule,)))
    return kind(f"{message}; if you trust the file, pass trust=({listed},)", rule=rule)


def trusts_operator(trust: Set[str], target: str, rule: str) -> bool:
    """Return whether the caller trusts an operator: by the rule, or by its name with or without overload.

    Args:
        trust: the entries.
        target: "torch.ops.aten.set_.source_Tensor", or the name of a function.
        rule: the rule that refuses it.
    """
    if rule in trust or target in trust:
        return True
    name = target.removeprefix("torch.ops.")
    return name in trust or operator_entry(target) in trust


def operator_entry(target: str) -> str:
    """Return the entry of `trust=` for an operator: "aten.set_"; other targets are their own entries."""
    target = plain_target(target)
    if not target.startswith("torch.ops."):
        return target
    return ".".join(target.split(".")[2:4])
