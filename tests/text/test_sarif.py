"""Problems as SARIF 2.1.0: what the standard asks for, place by place."""

from __future__ import annotations

from typing import Any

import pytest
from tests import samples
from tests.checks.test_mutations import TABLE

from pt2kit.checks import check
from pt2kit.errors import Problem
from pt2kit.text.problems import sarif_tree

LEVELS = {"none", "note", "warning", "error"}


def validate(log: Any) -> None:
    """Demands of SARIF 2.1.0 (OASIS, sections 3.13 to 3.28) on the parts that are used."""
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS
        assert len(set(rule["properties"]["tags"])) == len(rule["properties"]["tags"])
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in LEVELS
        assert result["message"]["text"].isprintable()
        [place] = result["locations"]
        artifact = place["physicalLocation"]["artifactLocation"]
        assert run["artifacts"][artifact["index"]]["location"]["uri"] == artifact["uri"]
        assert artifact["uri"].isascii()
        assert " " not in artifact["uri"]
        assert place["logicalLocations"][0]["fullyQualifiedName"]


def test_every_rule() -> None:
    """A log of every problem that a file can have holds together."""
    problems = [problem for make in TABLE.values() for problem in check(make().data, payloads=True)]
    log = sarif_tree({"some model.pt2": problems}, "1.0")
    validate(log)
    found = log["runs"][0]["results"]
    assert [result["level"] for result in found] == [problem.severity for problem in problems]
    assert len(log["runs"][0]["tool"]["driver"]["rules"]) == len({problem.rule for problem in problems})


def test_no_problems() -> None:
    """A log without results is one."""
    log = sarif_tree({"m.pt2": []}, "1.0")
    validate(log)
    assert log["runs"][0]["results"] == []


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b/m.pt2", "a%20b/m.pt2"),
        ("/data/é.pt2", "file:///data/%C3%A9.pt2"),
        ("https://host/m.pt2?x=1", "https://host/m.pt2?x=1"),
        ("stdin", "stdin"),
        ("x\udcff.pt2", "x%3F.pt2"),
    ],
)
def test_uris(file: str, uri: str) -> None:
    """Paths become references, URLs stay, and nothing that is no URI comes out."""
    log = sarif_tree({file: [Problem("p", "G2", "x")]}, "1.0")
    validate(log)
    assert log["runs"][0]["artifacts"][0]["location"]["uri"] == uri


def test_real_files() -> None:
    """A log of several real files holds together, one that could not be read among them."""
    found = {str(path): check(path) for path in samples.corpus("2.13.0")[:10]}
    log = sarif_tree(found, "1.0", {"none.pt2": "no such file"})
    validate(log)
    [run] = log["runs"]
    assert len(run["artifacts"]) == 10
    assert run["invocations"][0]["executionSuccessful"] is False
