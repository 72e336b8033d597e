"""The table of safety rules and its use."""

from __future__ import annotations

import re
from pathlib import Path

from pt2kit.checks import RULES
from pt2kit.checks import rules as rules_module

ID = re.compile(r'"(X[0-9]+)"')


def _ids(folder: Path, *, without: str) -> set[str]:
    return {found for path in folder.glob("*.py") if path.name != without for found in ID.findall(path.read_text())}


def test_every_rule_is_used_and_tested() -> None:
    """The code raises every rule of the table and no other, and every rule has a test that names it."""
    assert _ids(Path(rules_module.__file__).parent, without="rules.py") == set(RULES)
    assert set(RULES) <= _ids(Path(__file__).parent, without="test_rules.py")


def test_ids_are_in_order() -> None:
    """Ids run from X1 in the order of the table."""
    assert list(RULES) == [f"X{number}" for number in range(1, len(RULES) + 1)]
