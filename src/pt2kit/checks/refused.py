"""Operators that reach outside a program, or that trust their arguments with memory: the one table of them (rule X10).

`data/kernels.json` says for each why, what was seen (`python -m tools.kernels` calls every operator that torch
registers with arguments that lie), and for everyday ones which of their arguments have to be what. `pt2kit.load`
refuses a program that calls any other; `check` and `sanitize` say the same. torch calls them like any operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import msgspec

from pt2kit.checks.known_targets import plain_target

_TARGET: Final = "torch.ops."


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where an argument may come from.

    Args:
        operator: the operator that makes it, without overload; "input" for the caller of the program, "computed" for
            whatever calls make of what the caller gave, "file" for what the file stores.
        result: which of its results it is.
        same: pairs of arguments that have to be the same: of the operator that trusts, of the one that made it.
        least: numbers among the arguments of the latter, and the least that each may be.
        most: numbers among them, and the most that each may be.
        numbers: the rule of `stored_numbers.py` that numbers of the file have to keep.
    """

    operator: str
    result: int = 0
    same: tuple[tuple[str, str], ...] = ()
    least: tuple[tuple[str, int], ...] = ()
    most: tuple[tuple[str, int], ...] = ()
    numbers: str = ""


class Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one argument of an everyday operator has to be.

    Args:
        argument: its name.
        origins: where it may come from, unchanged.
        shaped: in the shape that it had there.
        values: what it may be, where it is a truth value.
    """

    argument: str
    origins: tuple[Origin, ...] = ()
    shaped: bool = False
    values: tuple[bool, ...] | None = None

    def text(self) -> str:
        """The condition in words: "result 1 of aten.max_pool2d_with_indices for the same self"."""
        return " or ".join(map(_origin_text, self.origins))


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operator.

    Args:
        reason: why a file should not call it.
        conditions: where its arguments have to come from.
        sizes: the rule of `kernel_sizes.py` that a call has to keep.
        kept: why nothing is asked of it, although it was seen to die.
        evidence: overload -> what was seen: "indices values 2**40: SIGSEGV".
    """

    reason: str
    conditions: tuple[Condition, ...] = ()
    sizes: str = ""
    kept: str = ""
    evidence: dict[str, tuple[str, ...]] = {}

    @property
    def is_refused(self) -> bool:
        """Whether no call is harmless."""
        return not (self.conditions or self.sizes or self.kept)


class Table(msgspec.Struct, frozen=True):
    """What ships.

    Args:
        release: of torch, with which the evidence was made.
        namespaces: namespace -> why a file should not call any operator in it.
        operators: "namespace.name", or with its overload -> row.
    """

    release: str
    namespaces: dict[str, str]
    operators: dict[str, Row]


def _load() -> Table:
    data = (files("pt2kit.checks") / "data" / "kernels.json").read_bytes()
    return msgspec.json.decode(data, type=Table, strict=True)


def _origin_text(origin: Origin) -> str:
    if origin.operator == "input":
        return "an input of the program"
    if origin.operator == "computed":
        return "computed from one"
    if origin.operator == "file":
        return f"stored numbers that are {origin.numbers}, unchanged"
    same = f" for the same {' and '.join(ours for ours, _ in origin.same)}" if origin.same else ""
    return f"result {origin.result} of {origin.operator}{same}, unchanged"


TABLE: Final = _load()

REFUSED_OPERATORS: Final[Mapping[str, str]] = MappingProxyType(
    {name: row.reason for name, row in TABLE.operators.items() if row.is_refused}
)
"""Operator, without overload unless it is about one alone -> why a file should not call it."""

REFUSED_NAMESPACES: Final[Mapping[str, str]] = MappingProxyType(TABLE.namespaces)
"""Namespace -> why a file should not call any operator in it."""

EVERYDAY: Final[Mapping[str, Row]] = MappingProxyType(
    {name: row for name, row in TABLE.operators.items() if row.conditions or row.sizes}
)
"""Everyday operator, without overload unless it is about one alone -> what a call has to keep (`provenance.py`)."""


def refusal(target: str) -> str | None:
    """Why a file should not call an operator ("torch.ops.aten.from_file.default"); None where nothing is against it."""
    row = find_row(target)
    if row is not None:
        return row.reason if row.is_refused else None
    parts = plain_target(target).split(".")
    return REFUSED_NAMESPACES.get(parts[2]) if parts[:2] == ["torch", "ops"] and len(parts) >= 4 else None


def find_row(target: str) -> Row | None:
    """The row of an operator ("torch.ops.aten.from_file.default"); None where the table has none."""
    target = plain_target(target)
    if not target.startswith(_TARGET):
        return None
    parts = target.removeprefix(_TARGET).split(".")
    # What writes its result to a tensor that it gets is the same kernel: "dtype_out" of "dtype".
    overload = ".".join(parts[:3])
    for name in (overload, overload.removesuffix("_out"), ".".join(parts[:2])):
        if name in TABLE.operators:
            return TABLE.operators[name]
    return None


def find_everyday(target: str) -> Row | None:
    """The row of an operator, if a call of it has to keep something."""
    row = find_row(target)
    return row if row is not None and (row.conditions or row.sizes) else None
