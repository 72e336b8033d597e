"""The table of rules: every id that a problem can carry, with its text, severity and hint."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from pt2kit import codec, tensors, versions
from pt2kit.checks import FAMILIES, RULES, rule_texts, severity
from pt2kit.checks import rules as rules_module
from pt2kit.errors import Kind, Problem
from pt2kit.graph import rules as graph_rules
from pt2kit.signature import rules as signature_rules
from pt2kit.zip import rules as zip_rules

SRC = Path(rules_module.__file__).parents[1]
QUOTED = re.compile(r'"([A-Z][0-9]{1,2})"')
READING = (
    *("checks", "codec", "graph", "package", "pickles", "signature", "symbols", "tensors", "treespec"),
    *("versions", "zip"),
)
"""The rooms whose errors and problems `check` passes on."""


def _listed(docstring: str | None) -> dict[str, str]:
    """Rule id -> text, as a docstring lists them."""
    found = re.findall(r"^    ([A-Z][0-9]+) +(.*)$", docstring or "", re.MULTILINE)
    return dict(found)


def test_ids_are_in_order() -> None:
    """The ids of a family run from 1 without a hole, family by family in the order of printing."""
    assert list(dict.fromkeys(rule[0] for rule in RULES)) == list(FAMILIES)
    for letter in FAMILIES:
        numbers = [int(rule[1:]) for rule in RULES if rule[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
    assert all(rule.id == key and rule.text and rule.hint for key, rule in RULES.items())


def test_texts_are_those_of_the_rooms() -> None:
    """A rule of another room has the text that the room gives it."""
    opset = importlib.import_module("pt2kit.versions.opset.changes")
    texts = {key: rule.text for key, rule in RULES.items()}
    for room in (zip_rules, graph_rules, signature_rules):
        for key, text in room.RULES.items():
            assert texts[key] == text
    for room in (codec, tensors, versions, opset):
        found = _listed(room.__doc__)
        assert found
        for key, text in found.items():
            assert texts[key] == text


@pytest.mark.parametrize("room", READING)
def test_every_rule_of_the_code_is_in_the_table(room: str) -> None:
    """Whatever rule a room's code names is explained."""
    used = {found for path in (SRC / room).rglob("*.py") for found in QUOTED.findall(path.read_text(encoding="utf-8"))}
    assert used - set(RULES) == set()


def test_every_rule_of_this_room_is_raised() -> None:
    """A rule that this room lists stands in its code."""
    own = {*rule_texts.VERSIONS, *rule_texts.CALLS, *rule_texts.EXPRESSIONS, *rule_texts.TARGETS, *rule_texts.SAFETY}
    own |= {"P19", "P20", "P21"}
    tables = ("rules.py", "rule_texts.py")
    used = {
        found
        for path in (SRC / "checks").glob("*.py")
        if path.name not in tables
        for found in QUOTED.findall(path.read_text(encoding="utf-8"))
    }
    assert own - used == set()


@pytest.mark.parametrize(
    ("rule", "kind", "expected"),
    [
        *(("G1", "error", "error"), ("G5", "warning", "warning"), ("T2", "note", "note")),
        *(("X5", "safety", "error"), ("X8", "safety", "warning"), ("X1", "note", "note"), ("Z9", "safety", "warning")),
    ],
)
def test_severity(rule: str, kind: Kind, expected: str) -> None:
    """A problem weighs as its kind says; what torch would run as its rule says."""
    assert severity(Problem("x", rule, "expected …", kind)) == expected


def test_hints_are_for_rules_that_exist() -> None:
    """No hint is left over from a rule that was dropped."""
    assert set(rule_texts.HINTS) <= set(RULES)
    assert set(rule_texts.FAMILY_HINTS) == set(FAMILIES)
