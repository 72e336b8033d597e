"""`pt2 explain`: every rule has its text; mistakes get suggestions; ids in output lead to the pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import pt2
from tools import rule_pages

from pt2kit.cli.explain import explain
from pt2kit.rules import FAMILIES, RULES

ROOT = Path(__file__).parents[2]
HOSTILE = samples.DATA / "hostile" / "015_eval_expr_os_exit.pt2"


def test_every_rule_is_explained() -> None:
    """With text, reason and hint; all but those about sanitizing have the long form of the specification."""
    for rule in RULES:
        one = explain(rule)
        assert one.text, rule
        assert one.why, rule
        assert one.hint, rule
        assert one.details or rule[0] == "Z", rule
        if one.example:
            assert (ROOT / one.example["file"]).is_file()
            assert one.example["message"]


def test_a_rule_in_text() -> None:
    """Meaning, reason, example and fix, under headings; small letters do."""
    found = pt2("explain", "x5")
    assert found.code == 0
    assert found.out.startswith("X5  an expression is evaluated as Python")
    headings = [line for line in found.out.splitlines() if line and not line.startswith((" ", "X5"))]
    assert headings == ["meaning", "why", "example", "how to fix"]
    assert "conformance/bad/X5_" in found.out


def test_as_data() -> None:
    """`--json` has the documented keys, of the rules in the order of the command line."""
    [first, second] = json.loads(pt2("explain", "G2", "G1", "--json").out)
    assert (first["rule"], second["rule"], first["load_refuses"]) == ("G2", "G1", True)
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").split("## `pt2 explain", 1)[1].split("\n## ")[0]
    assert all(f"`{key}`" in page for key in (*first, *first["example"]))


def test_the_list() -> None:
    """Without a rule, all of them, family by family."""
    lines = pt2("explain").out.splitlines()
    assert len(lines) == len(RULES) + len(FAMILIES)
    assert "A: archive" in lines


def test_unknown_rules_get_suggestions() -> None:
    """Exit code 2, and the ids that are close."""
    found = pt2("explain", "X99")
    assert (found.code, "did you mean X9?" in found.err) == (2, True)


def test_rule_ids_are_links_in_terminals_that_show_them() -> None:
    """OSC 8 around the id; none without the variable, and none in plain text."""
    shown = pt2("check", HOSTILE, env={"FORCE_COLOR": "1", "FORCE_HYPERLINK": "1", "PT2_DOCS": "https://docs.example"})
    assert "\x1b]8;;https://docs.example/rules/X5.md\x1b\\X5\x1b]8;;\x1b\\" in shown.out
    assert "\x1b]8" not in pt2("check", HOSTILE, env={"FORCE_COLOR": "1", "FORCE_HYPERLINK": "0"}).out
    assert "\x1b]8" not in pt2("check", HOSTILE, env={"FORCE_HYPERLINK": "1"}).out


@pytest.mark.parametrize("letter", FAMILIES)
def test_pages_are_generated(letter: str) -> None:
    """Each rule has its page, as `make regen` writes it, and the index leads to it."""
    index = rule_pages.index()
    for rule in RULES:
        if rule[0] == letter:
            assert (rule_pages.PAGES / f"{rule}.md").read_text(encoding="utf-8") == rule_pages.page(rule)
            assert f"[{rule}]({rule}.md)" in index
