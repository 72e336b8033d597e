"""`pt2 check`: text, JSON, SARIF, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import samples
from tests.checks.mutations import MLP
from tests.checks.test_mutations import TABLE
from tests.cli.run import in_terminal, pt2
from tests.text.test_sarif import validate

from pt2kit.checks import RULES

HOSTILE = {case["name"]: case["path"] for case in samples.hostile()}


def _file(folder: Path, rule: str) -> Path:
    path = folder / f"{rule}.pt2"
    path.write_bytes(TABLE[rule]().data)
    return path


def test_sound() -> None:
    """A sound file ends with 0, reported as sound."""
    found = pt2("check", MLP, "--payloads", "--strict")
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines() == [
        f"{MLP}: sound, 1 note",
        "",
        "notes",
        "  X1  sample inputs are a pickle",
        "      data/sample_inputs/model.pt: torch unpickles the sample inputs: plain data",
    ]


@pytest.mark.parametrize(
    ("rule", "code", "strict"), [("G1", 1, 1), ("G5", 0, 1), ("T2", 0, 0), ("X7", 1, 1), ("X8", 0, 1), ("A20", 1, 1)]
)
def test_exit_codes(tmp_path: Path, rule: str, code: int, strict: int) -> None:
    """Errors end with 1, warnings only with `--strict`, notes never."""
    path = _file(tmp_path, rule)
    found = pt2("check", path)
    assert (found.code, found.err) == (code, "")
    assert f"  {rule:<4}{RULES[rule].text}" in found.out
    assert (RULES[rule].hint in found.out) == (rule != "T2")
    assert pt2("check", path, "--strict").code == strict


def test_json(tmp_path: Path) -> None:
    """`--json` has the counts and every problem with its rule."""
    found = pt2("check", _file(tmp_path, "G1"), "--json")
    tree = json.loads(found.out)
    assert (found.code, tree["errors"], tree["warnings"], tree["notes"]) == (1, 1, 0, 1)
    assert tree["problems"][0]["rule"] == "G1"
    assert tree["problems"][0]["hint"] == RULES["G1"].hint


def test_json_keys_are_documented() -> None:
    """The keys of `--json` stand in the page of commands."""
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.split("## `pt2 check", 1)[1].split("\n## ")[0]
    tree = json.loads(pt2("check", MLP, "--json").out)
    for key in (*tree, *tree["problems"][0]):
        assert f"`{key}`" in section


def test_sarif(tmp_path: Path) -> None:
    """`--sarif` is a SARIF log; it goes with the same exit codes."""
    found = pt2("check", _file(tmp_path, "G5"), "--sarif", "--strict")
    log = json.loads(found.out)
    validate(log)
    assert found.code == 1
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["G5", "X1"]
    assert pt2("check", MLP, "--sarif", "--json").code == 2


def test_payloads(tmp_path: Path) -> None:
    """Only `--payloads` reads the weights."""
    path = _file(tmp_path, "P21").rename(tmp_path / "nan.pt2")
    assert "P21" not in pt2("check", path).out
    found = pt2("check", path, "--payloads", "--strict")
    assert (found.code, "P21" in found.out) == (1, True)


def test_standard_input() -> None:
    """`-` is standard input."""
    found = pt2("check", "-", stdin=MLP.read_bytes())
    assert (found.code, found.out.splitlines()[0]) == (0, "stdin: sound, 1 note")


def test_what_cannot_run() -> None:
    """A path that is not there ends with 2; a file that is no `.pt2` is a problem of the file."""
    found = pt2("check", "nowhere.pt2")
    assert (found.code, found.out) == (2, "")
    assert "No such file" in found.err
    found = pt2("check", HOSTILE["zip_text_file"])
    assert (found.code, found.err) == (1, "")
    assert found.out.endswith("expected a .pt2 file, got a text file [A2]\n")


def test_terminal(tmp_path: Path) -> None:
    """On a terminal, headings and rules have colours, and names from the file no control characters."""
    found = in_terminal("check", _file(tmp_path, "G1"))
    assert found.code == 1
    assert "\x1b[31m  G1" in found.out
    assert "\x1b[2m      -> " in found.out
    found = in_terminal("check", HOSTILE["fx_string_arg_quote"])
    assert "\x1b[33m  X12" in found.out
