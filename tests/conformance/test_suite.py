"""The conformance suite: current, complete, and passed by pt2kit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conformance.pt2kit_reader import read
from tools import conformance

from conformance import run
from pt2kit import symbols
from pt2kit.errors import Pt2Error
from pt2kit.rules import RULES

CASES = run.manifest()
VECTORS = json.loads((run.SUITE / "vectors.json").read_text(encoding="utf-8"))
NO_FILE = {
    **dict.fromkeys(("B1", "B2", "B3", "B4", "B5", "B6", "B7"), "of pt2kit's own, about a second file"),
    "A17": "a program asks for a record by name",
    "A27": "a program uses an archive that is closed",
    "M2": "how deep a tree may be depends on the interpreter",
    "M3": "of conversions",
    "O3": "of conversions",
    "K9": "the files of the suite have no sample inputs, which are pickles",
    "P18": "of exports",
    **{rule: "of sanitizing" for rule in RULES if rule.startswith("Z")},
    "S11": "the schema's types see to it",
}
"""Rules that no file can break by itself."""


def name(case: dict[str, Any]) -> str:
    """The id of a case."""
    return str(case["file"])


def test_suite_is_current() -> None:
    """The files are what the generator writes; else: make regen."""
    assert [path.name for path in conformance.stale()] == []


def test_suite_is_small() -> None:
    """Files to read and to refuse stay under three megabytes together; programs to run under one."""
    programs = run.SUITE / "runs"
    sizes = {path: path.stat().st_size for path in run.SUITE.rglob("*") if path.is_file()}
    sizes = {path: size for path, size in sizes.items() if path.suffix != ".pyc"}
    to_run = sum(size for path, size in sizes.items() if programs in path.parents)
    assert to_run < 1_000_000
    assert sum(sizes.values()) - to_run < 3_100_000


def test_every_rule_has_a_file() -> None:
    """Each rule that a file can break has one that does, and the manifest names no others."""
    found = {rule for case in CASES["bad"] for rule in case["rules"]}
    assert found | NO_FILE.keys() == set(RULES)
    assert not found & NO_FILE.keys()


def test_cases_are_complete() -> None:
    """An entry of the manifest says what is wrong and what a reader must do; its file is named after its rule."""
    for case in CASES["bad"]:
        assert case["wrong"]
        assert case["must"] in ("refuse", "report")
        assert case["file"].startswith(f"bad/{case['rules'][0]}_")
    versions = {version for case in CASES["good"] for version in case["schema"]}
    assert versions >= {"1", "2", "5.1", "5.3", "7.3", "8.2", "8.7", "8.8", "8.14", "8.15", "8.17", "8.20", "8.21"}
    assert {case["layout"] for case in CASES["good"]} == {"archive", "archive-2.8", "plain-zip"}


@pytest.mark.parametrize("case", CASES["good"], ids=name)
def test_good_files_are_read(case: dict[str, Any]) -> None:
    """pt2kit reads the file, and what it holds is what is stated."""
    outcome = run.judge_good(case, *read(run.SUITE / case["file"]))
    assert (outcome.verdict, outcome.details, outcome.left_out) == ("passed", [], [])


@pytest.mark.parametrize("case", CASES["bad"], ids=name)
def test_bad_files_are_refused(case: dict[str, Any]) -> None:
    """pt2kit refuses the file by its rule, or reports the rule."""
    outcome = run.judge_bad(case, *read(run.SUITE / case["file"]), strict=True)
    assert (outcome.verdict, outcome.details) == ("passed", [])


@pytest.mark.parametrize("row", [*VECTORS["srepr"], *VECTORS["str"]], ids=lambda row: row["text"])
def test_expressions(row: dict[str, Any]) -> None:
    """An expression is of its kind and yields its value."""
    expr = symbols.parse(row["text"])
    gives = symbols.evaluate(expr, VECTORS["values"])
    assert (symbols.kind(expr), type(gives), gives) == (row["kind"], type(row["gives"]), row["gives"])


@pytest.mark.parametrize("row", VECTORS["guards"], ids=lambda row: row["text"])
def test_guards(row: dict[str, Any]) -> None:
    """A guard yields its truth value."""
    assert bool(symbols.evaluate(symbols.parse_guard(row["text"]).expr, row["values"])) is row["gives"]


def test_refused_texts() -> None:
    """Texts that are no expressions or guards are refused."""
    for text in VECTORS["refused"]:
        with pytest.raises(Pt2Error, match=r"^expression: "):
            symbols.check_constants(symbols.parse(text))
    for text in VECTORS["guards_refused"]:
        with pytest.raises(Pt2Error, match=r"^expression: "):
            symbols.parse_guard(text)
