"""Rule ids: one meaning each, in one table; the code uses exactly those."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from pt2kit import checks

SRC = Path(__file__).parents[2] / "src" / "pt2kit"
SUBPACKAGES = {"A": "zip", "J": "codec", "P": "tensors", "G": "graph", "S": "signature"}
SUBPACKAGES |= dict.fromkeys("BEKTVX", "checks")
"""Letter -> the subpackage with its rules. `checks` has the table of all, and some of its own among those of others."""
QUOTED = re.compile(r'"([A-Z])([0-9]{1,2})"')
LISTED = re.compile(r"(?:^|[ ·,])([A-Z])([0-9]{1,2})(?= )", re.MULTILINE)


def table(letter: str) -> set[str]:
    """The ids that a subpackage lists, in `RULES` or in its docstring, and those that the table of all adds."""
    subpackage = importlib.import_module(f"pt2kit.{SUBPACKAGES[letter]}")
    found = set(getattr(subpackage, "RULES", ())) or {a + b for a, b in LISTED.findall(subpackage.__doc__ or "")}
    return {rule for rule in found | set(checks.RULES) if rule.startswith(letter)}


def used() -> dict[str, set[str]]:
    """Rule id -> the subpackages that raise it. Tables do not count."""
    found: dict[str, set[str]] = {}
    for path in SRC.rglob("*.py"):
        if path.name != "rules.py":
            for letter, number in QUOTED.findall(path.read_text(encoding="utf-8")):
                if letter in SUBPACKAGES:
                    found.setdefault(letter + number, set()).add(path.relative_to(SRC).parts[0].removesuffix(".py"))
    return found


def test_every_rule_that_is_used_is_listed() -> None:
    """An id in the code is in the table of the subpackage whose letter it has."""
    listed = set().union(*map(table, SUBPACKAGES))
    assert set(used()) - listed == set()


@pytest.mark.parametrize("letter", SUBPACKAGES)
def test_every_rule_that_is_listed_is_used(letter: str) -> None:
    """An id in a table is raised somewhere, by the subpackage it belongs to or by one above it."""
    limits = {"G11"}  # stands as a constant in the table's own module
    assert table(letter) - set(used()) - limits == set()
    assert table(letter)


def test_docstrings_list_what_tables_hold() -> None:
    """A subpackage's docstring does not name a rule that its table lacks."""
    for letter, name in SUBPACKAGES.items():
        subpackage = importlib.import_module(f"pt2kit.{name}")
        named = {a + b for a, b in LISTED.findall(subpackage.__doc__ or "") if a == letter}
        assert named - table(letter) == set()
