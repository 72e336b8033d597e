"""The table of rules and its use."""

from __future__ import annotations

import re
from pathlib import Path

from pt2kit.zip import rules as rules_module
from pt2kit.zip.rules import RULES

SOURCES = Path(rules_module.__file__).parent
TESTS = Path(__file__).parent
ID = re.compile(r"\bA[0-9]+\b")


def _ids(folder: Path, *, without: str) -> set[str]:
    """The rule ids in a folder's modules, those about pickles aside."""
    paths = [path for path in folder.iterdir() if path.suffix in (".py", ".json")]
    texts = [path.read_text() for path in paths if "pickle" not in path.name and path.name != without]
    return {found for text in texts for found in ID.findall(text)}


def test_every_rule_is_used() -> None:
    """The code raises every rule of the table, and no other."""
    used = _ids(SOURCES, without="rules.py") | _ids(SOURCES.parent / "package", without="")
    assert used == set(RULES)


def test_every_rule_is_tested() -> None:
    """Every rule has a test that names it."""
    tested = _ids(TESTS, without=Path(__file__).name) | _ids(TESTS.parent / "package", without="")
    assert set(RULES) - tested == set()


def test_ids_are_in_order() -> None:
    """Ids run from A1 in the order of the table."""
    assert list(RULES) == [f"A{n}" for n in range(1, len(RULES) + 1)]
