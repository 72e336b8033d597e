"""All rules that `check` knows, by id: what must hold, how much a breach weighs, and what to do about it.

The ids are those that errors and problems carry as `rule` and that the documentation lists. A room that has a table of
its own (archive, graph, signature) keeps its texts there; this module adds severities and hints. An id keeps its
meaning for ever; a rule that is dropped leaves a hole in the numbering.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pt2kit.checks import rule_texts as texts
from pt2kit.errors import Problem, Severity
from pt2kit.graph import rules as graph_rules
from pt2kit.signature import rules as signature_rules
from pt2kit.zip import rules as archive_rules


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Args:
        id: "G3": a letter for the family, and a number in it.
        text: what must hold; for X rules, what a finding says of the file.
        severity: how much a breach weighs where the problem itself does not say ("safety" findings).
        hint: what to do about a breach.
    """

    id: str
    text: str
    severity: Severity
    hint: str


FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A": "archive",
        "J": "JSON",
        "V": "versions",
        "G": "graph",
        "S": "signature",
        "K": "calls and tree specs",
        "E": "expressions and ranges",
        "T": "targets of calls",
        "P": "payloads",
        "B": "payloads beside the archive",
        "M": "migration",
        "O": "operator versions",
        "X": "what torch would run on load",
    }
)
"""Letter -> what the rules with it are about, in the order in which problems are printed."""

_WARNINGS: Final = frozenset(
    (
        *("G5", "G14", "K6", "E2", "V2", "V4", "O1", "O2", "P20", "P21"),
        *("X8", "X9", "X10", "X11", "X12", "X13", "X14"),
    )
)
_NOTES: Final = frozenset(("K7", "T2", "B7"))


def _table() -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    rooms: Iterable[Mapping[str, str]] = (
        *(archive_rules.RULES, texts.CODEC, texts.VERSIONS, graph_rules.RULES, signature_rules.RULES, texts.CALLS),
        *(texts.EXPRESSIONS, texts.TARGETS, texts.PAYLOADS, texts.BESIDE, texts.MIGRATION, texts.SAFETY),
    )
    for room in rooms:
        for rule, text in room.items():
            severity: Severity = "warning" if rule in _WARNINGS else "note" if rule in _NOTES else "error"
            found[rule] = Rule(rule, text, severity, texts.HINTS.get(rule, texts.FAMILY_HINTS[rule[0]]))
    return found


RULES: Final[Mapping[str, Rule]] = MappingProxyType(_table())
"""Rule id -> rule, family by family."""


def severity(problem: Problem) -> Severity:
    """How much a problem weighs; the same as `problem.severity`."""
    return problem.severity
