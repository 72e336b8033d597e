"""The table of rules: every id that a problem can carry, with its text, severity and hint; each is used and tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pt2kit import rules as rules_module
from pt2kit.errors import Kind, Problem
from pt2kit.rules import FAMILIES, RULES

SRC = Path(rules_module.__file__).parent
TESTS = Path(__file__).parent
ID = re.compile(r"\b([A-Z][0-9]{1,2})\b")
QUOTED = re.compile(r'"([A-Z][0-9]{1,2})"')
HOMES = {
    "A": ("zip", "package"),
    "J": ("codec",),
    "V": ("checks", "treespec", "package", "versions"),
    "G": ("graph", "checks"),
    "S": ("signature", "checks"),
    "K": ("checks",),
    "E": ("checks",),
    "T": ("checks",),
    "P": ("tensors", "checks", "pickles", "package"),
    "B": ("zip", "tensors", "package", "checks"),
    "M": ("versions",),
    "O": ("versions",),
    "X": ("checks", "bridge"),
    "Z": ("sanitizing",),
}
"""The subpackages in which the rules of a family are raised, and in whose tests they are named."""


def quoted(subpackage: str) -> set[str]:
    """The rule ids that a subpackage's modules quote."""
    return {
        rule for path in (SRC / subpackage).rglob("*.py") for rule in QUOTED.findall(path.read_text(encoding="utf-8"))
    }


def named(subpackage: str) -> set[str]:
    """The rule ids that the tests of a subpackage name."""
    files = [path for path in (TESTS / subpackage).rglob("*") if path.suffix in (".py", ".json")]
    return {rule for path in files for rule in ID.findall(path.read_text(encoding="utf-8"))}


def test_ids_are_in_order() -> None:
    """The ids of a family run from 1 without a gap, family by family in the order of printing."""
    assert list(dict.fromkeys(rule[0] for rule in RULES)) == list(FAMILIES) == list(HOMES)
    for letter in FAMILIES:
        numbers = [int(rule[1:]) for rule in RULES if rule[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
    assert all(rule.id == key and rule.text and rule.hint for key, rule in RULES.items())


@pytest.mark.parametrize(
    "subpackage", sorted({subpackage for subpackages in HOMES.values() for subpackage in subpackages} | {"symbols"})
)
def test_every_rule_of_the_code_is_in_the_table(subpackage: str) -> None:
    """Whatever rule a subpackage's code names is explained."""
    assert {rule for rule in quoted(subpackage) if rule[0] in FAMILIES} - set(RULES) == set()


@pytest.mark.parametrize("letter", FAMILIES)
def test_every_rule_is_raised_and_tested(letter: str) -> None:
    """A rule of the table stands in the code of its subpackages, and in their tests."""
    own = {rule for rule in RULES if rule[0] == letter}
    assert own - {rule for subpackage in HOMES[letter] for rule in quoted(subpackage)} == set()
    assert own - {rule for subpackage in HOMES[letter] for rule in named(subpackage)} == set()


@pytest.mark.parametrize(
    ("rule", "kind", "expected"),
    [
        *(("G1", "error", "error"), ("G5", "warning", "warning"), ("T2", "note", "note")),
        *(("X5", "safety", "error"), ("X8", "safety", "warning"), ("X1", "note", "note"), ("X11", "safety", "warning")),
    ],
)
def test_severity(rule: str, kind: Kind, expected: str) -> None:
    """A problem weighs as its kind says; what torch would run as its rule says."""
    assert Problem("x", rule, "expected …", kind).severity == expected
