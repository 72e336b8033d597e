"""A report: a list of problems with views by weight, place and rule."""

from __future__ import annotations

import pytest

from pt2kit.checks import RULES, check
from pt2kit.checks.findings import Report
from pt2kit.errors import Problem

WRONG = Problem("data/weights/w", "P2", "expected 4 bytes, got 3")
RUNS = Problem("models/model.json: $.graph", "X5", "a call", kind="safety")
LESS = Problem("models/model.json: $.graph", "X9", "a class", kind="safety")
NOTE = Problem("models/model.json", "K7", "a note", kind="note")
REPORT = Report([WRONG, RUNS, LESS, NOTE])


def test_what_would_run_is_an_error() -> None:
    """So a file with it is not sound, whatever the kind of the problem is called."""
    assert REPORT.errors == [WRONG, RUNS]
    assert REPORT.warnings == [LESS]
    assert not REPORT.ok
    assert Report([LESS, NOTE]).ok
    assert [problem.severity for problem in REPORT] == ["error", "error", "warning", "note"]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, [WRONG, RUNS, LESS, NOTE]),
        ({"severity": "note"}, [NOTE]),
        ({"where": "models/model.json"}, [RUNS, LESS, NOTE]),
        ({"where": "models/model.json: $", "severity": "error"}, [RUNS]),
        ({"rule": "X"}, [RUNS, LESS]),
        ({"rule": "X1"}, []),
        ({"message": "4 bytes"}, [WRONG]),
    ],
)
def test_filters(conditions: dict[str, str], expected: list[Problem]) -> None:
    """All conditions must be met."""
    assert REPORT.problems(**conditions) == expected  # type: ignore[arg-type]


def test_it_is_what_check_gives() -> None:
    """Also for what is no archive at all."""
    report = check(b"no archive")
    assert isinstance(report, Report)
    assert [problem.rule for problem in report.errors] == [problem.rule for problem in report] == ["A2"]


def test_severities_are_those_of_the_rules() -> None:
    """Of safety findings, too."""
    for rule in RULES.values():
        if rule.id.startswith("X"):
            assert Problem("", rule.id, "", kind="safety").severity == rule.severity
