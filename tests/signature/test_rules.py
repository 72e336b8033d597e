"""The table of rules and its use."""

from __future__ import annotations

import re
from pathlib import Path

from pt2kit.signature import RULES
from pt2kit.signature import rules as rules_module

SOURCES = Path(rules_module.__file__).parent
TESTS = Path(__file__).parent
ID = re.compile(r'["\[](S[0-9]+)["\\]')


def ids(folder: Path, *, without: set[str]) -> set[str]:
    """The rule ids that a folder's modules quote."""
    texts = [path.read_text() for path in folder.glob("*.py") if path.name not in without]
    return {found for text in texts for found in ID.findall(text)}


def test_every_rule_is_used() -> None:
    """The code raises every rule of the table, and no other."""
    assert ids(SOURCES, without={"rules.py"}) == set(RULES)


def test_every_rule_is_tested() -> None:
    """Every rule has a test that names it."""
    assert set(RULES) - ids(TESTS, without={Path(__file__).name}) == set()


def test_ids_are_in_order() -> None:
    """Ids run from S1 in the order of the table."""
    assert list(RULES) == [f"S{number}" for number in range(1, len(RULES) + 1)]
