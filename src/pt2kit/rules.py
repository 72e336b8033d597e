"""Every rule of `check`, by id: the requirement on a file, its severity, and what to do if a file breaks it.

`rules.txt` has a line for each; severity, hint, order, `docs/format/rules.md` and what `load` refuses follow from it.

The ids are those that errors and problems carry as `rule`, and that the documentation lists. An id keeps its meaning
for ever; that of a rule that is dropped is not used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pt2kit import errors
from pt2kit.data_files import data_file
from pt2kit.errors import Pt2Error, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Args:
        id: "G3": a letter for the family, and a number in it.
        text: what must hold; for X rules, what a finding says of the file.
        severity: how much a breach weighs where the problem itself does not say ("safety" findings).
        hint: what to do about a breach.
        refuses: whether `load` and `load_module` refuse a file that breaks it; warnings and notes never refuse.
        error: the class of error that they refuse it with.
    """

    id: str
    text: str
    severity: Severity
    hint: str
    refuses: bool
    error: type[Pt2Error]


def _read() -> tuple[dict[str, str], dict[str, str], dict[str, Rule]]:
    families: dict[str, str] = {}
    reasons: dict[str, str] = {}
    rules: dict[str, Rule] = {}
    family_hint = family_error = ""
    for line in data_file("rules.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        head, text, *more = line.split(" | ")
        id, *flags = head.split()
        if id == "=":
            letter, family_error = flags
            families[letter], (family_hint, reasons[letter]) = text, more
            continue
        severity: Severity = "warning" if "warning" in flags else "note" if "note" in flags else "error"
        refuses = severity == "error" and "check-only" not in flags
        error = next((flag for flag in flags if hasattr(errors, flag)), family_error)
        rules[id] = Rule(id, text, severity, more[0] if more else family_hint, refuses, getattr(errors, error))
    return families, reasons, rules


_FAMILIES, _REASONS, _RULES = _read()
FAMILIES: Final[Mapping[str, str]] = MappingProxyType(_FAMILIES)
"""Letter -> what the rules with it are about, in the order in which problems are printed."""
REASONS: Final[Mapping[str, str]] = MappingProxyType(_REASONS)
"""Letter -> why there are rules with it."""
RULES: Final[Mapping[str, Rule]] = MappingProxyType(_RULES)
"""Rule id -> rule, family by family."""
