"""SARIF 2.1.0 output of problems, the format in which code hosts and editors read findings of static checks.

Only rules that were broken are listed. A place inside the file is a logical location; the file itself is the artifact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from pt2kit.errors import Problem
from pt2kit.messages import printable
from pt2kit.rules import FAMILIES, RULES
from pt2kit.text.problems import rule_order

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_CHARACTERS: Final = 2000


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
        {"level": "error", "message": {"text": printable(error, MAX_CHARACTERS)}} for error in (unread or {}).values()
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
        "logicalLocations": [{"fullyQualifiedName": printable(problem.loc, MAX_CHARACTERS), "kind": "member"}],
    }
    return {
        "ruleId": problem.rule,
        "ruleIndex": index,
        "level": problem.severity,
        "message": {"text": printable(f"{problem.loc}: {problem.message}", MAX_CHARACTERS)},
        "locations": [place],
    }


def _uri(file: str) -> str:
    """Return a path as a URI reference, a URL unchanged."""
    if "://" in file:
        return quote(file, safe=":/?#[]@!$&'()*+,;=%~")
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="replace")
