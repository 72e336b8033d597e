"""Report of problems as readable lines, and as data for `--json`.

Lines are grouped by how much they weigh, then by rule: the rule once, each problem under it, and what to do.

SARIF 2.1.0 is the format in which code hosts and editors read findings of static checks. Only rules that were broken
are listed. A place inside the file is a logical location; the file itself is the artifact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from pt2kit.canonical.canonical_labeling import grouped
from pt2kit.errors import Problem
from pt2kit.messages import count_text, printable
from pt2kit.rules import FAMILIES, RULES

MAX_LISTED: Final = 10
"""Problems of one rule that are printed unless all are asked for."""
MAX_CHARACTERS: Final = 400
FOREIGN: Final = "expected a .pt2 file, got "
"""How the problem of a file begins that is of another format; its rule, about zip archives, explains nothing."""

GROUPS: Final[Mapping[str, str]] = MappingProxyType(
    {"error": "errors", "safety": "what torch would run on loading this", "warning": "warnings", "note": "notes"}
)
"""Groups of problems and their headings, in the order of printing. X rules are about safety unless they are notes."""

_ORDER: Final = {letter: number for number, letter in enumerate(FAMILIES)}


def problem_lines(file: str, problems: Sequence[Problem], *, full: bool = False, notes: bool = True) -> Iterator[str]:
    """Yield the lines that `pt2 check` prints.

    Args:
        file: its name.
        problems: as `check` gives them.
        full: list every problem, not only the first few of each rule.
        notes: list notes as well, which are counted in any case.
    """
    if len(problems) == 1 and problems[0].message.startswith(FOREIGN):
        yield f"{printable(file)}: {printable(problems[0].message, MAX_CHARACTERS)} [{problems[0].rule}]"
        return
    yield f"{printable(file)}: {verdict(problems)}"
    groups = grouped(problems, _group)
    for kind, heading in GROUPS.items():
        if (group := groups.get(kind)) and (notes or kind != "note"):
            yield ""
            yield heading
            yield from _by_rule(group, None if full else MAX_LISTED)


def verdict(problems: Iterable[Problem]) -> str:
    """Return one line about all problems: "2 errors, 1 warning, 3 notes", "sound, 1 note", "sound"."""
    counts = Counter(problem.severity for problem in problems)
    words = [count_text(counts[key], key) for key in ("error", "warning", "note") if counts[key]]
    return ", ".join(words if counts["error"] or counts["warning"] else ["sound", *words])


def problems_tree(file: str, problems: Sequence[Problem]) -> dict[str, Any]:
    """Return the data of `pt2 check --json`: counts, and each problem with its rule's text and hint."""
    counts = Counter(problem.severity for problem in problems)
    return {
        "file": file,
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
        "problems": [
            {
                **{key: getattr(problem, key) for key in ("rule", "kind", "severity", "loc", "message")},
                "text": RULES[problem.rule].text if problem.rule in RULES else "",
                "hint": RULES[problem.rule].hint if problem.rule in RULES else "",
            }
            for problem in problems
        ],
    }


def _group(problem: Problem) -> str:
    return "safety" if problem.rule.startswith("X") and problem.kind != "note" else problem.kind


def rule_order(rule: str) -> tuple[int, int]:
    """Return the sort key of a rule id: its family, then its number."""
    number = rule[1:]
    return _ORDER.get(rule[:1], len(_ORDER)), int(number) if number.isdecimal() else 0


def _by_rule(problems: Sequence[Problem], limit: int | None) -> Iterator[str]:
    groups = grouped(problems, lambda problem: problem.rule)
    for rule in sorted(groups, key=rule_order):
        group, known = groups[rule], RULES.get(rule)
        yield f"  {rule:<4}{known.text if known else ''}".rstrip()
        for problem in group[:limit]:
            yield f"      {printable(problem.loc, MAX_CHARACTERS)}: {printable(problem.message, MAX_CHARACTERS)}"
        if limit is not None and len(group) > limit:
            yield f"      … {len(group) - limit:,} more: pt2 check --full"
        if known and any(problem.kind != "note" for problem in group):
            yield f"      -> {known.hint}"


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
SARIF_CHARACTERS: Final = 2000


def sarif_tree(
    found: Mapping[str, Sequence[Problem]], version: str, unread: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the findings of files as one SARIF log with one run.

    Args:
        found: path or URL, as the caller gave it -> problems, as `check` gives them.
        version: of pt2kit.
        unread: path or URL -> why it could not be read; such a run is marked as failed.
    """
    rules = sorted({problem.rule for problems in found.values() for problem in problems}, key=rule_order)
    places = {rule: number for number, rule in enumerate(rules)}
    driver = {
        "name": "pt2kit",
        "version": version,
        "semanticVersion": version,
        "rules": [_rule(rule) for rule in rules],
    }
    results = [
        _result(problem, places[problem.rule], file, number)
        for number, (file, problems) in enumerate(found.items())
        for problem in problems
    ]
    notifications = [
        {"level": "error", "message": {"text": printable(error, SARIF_CHARACTERS)}} for error in (unread or {}).values()
    ]
    run = {
        "tool": {"driver": driver},
        "artifacts": [{"location": {"uri": _uri(file)}} for file in found],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    if notifications:
        run["invocations"] = [{"executionSuccessful": False, "toolExecutionNotifications": notifications}]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: str) -> dict[str, Any]:
    known = RULES[rule]
    return {
        "id": rule,
        "shortDescription": {"text": known.text},
        "help": {"text": known.hint},
        "defaultConfiguration": {"level": known.severity},
        "properties": {"tags": [FAMILIES[rule[0]], *(["security"] if rule.startswith("X") else [])]},
    }


def _result(problem: Problem, index: int, file: str, number: int) -> dict[str, Any]:
    place = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(file), "index": number}},
        "logicalLocations": [{"fullyQualifiedName": printable(problem.loc, SARIF_CHARACTERS), "kind": "member"}],
    }
    return {
        "ruleId": problem.rule,
        "ruleIndex": index,
        "level": problem.severity,
        "message": {"text": printable(f"{problem.loc}: {problem.message}", SARIF_CHARACTERS)},
        "locations": [place],
    }


def _uri(file: str) -> str:
    """Return a path as a URI reference, a URL unchanged."""
    if "://" in file:
        return quote(file, safe=":/?#[]@!$&'()*+,;=%~")
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="replace")
