"""The specification is enough: a reader that was made from it alone reads and refuses as pt2kit does."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import run

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import independent_reader  # noqa: E402
import independent_symbols  # noqa: E402
from independent_zip import Refused  # noqa: E402

FILES = sorted(FOLDER.glob("independent_*.py"))
CASES = run.manifest()
VECTORS = json.loads((run.SUITE / "vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_independent(path: Path) -> None:
    """It imports the standard library and its own parts, nothing else."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    assert found <= sys.stdlib_module_names | {path.stem for path in FILES}


@pytest.mark.parametrize("case", CASES["good"], ids=lambda case: case["file"])
def test_good_files(case: dict[str, Any]) -> None:
    """It prints what the suite says of every file."""
    outcome = run.judge_good(case, *independent_reader.read(run.SUITE / case["file"]))
    assert (outcome.verdict, outcome.details) == ("passed", [])
    assert {path.rpartition("/")[2] for path in outcome.left_out} <= {"digests", "guards"}


@pytest.mark.parametrize("case", CASES["bad"], ids=lambda case: case["file"])
def test_bad_files(case: dict[str, Any]) -> None:
    """It refuses what breaks a rule, by that rule."""
    outcome = run.judge_bad(case, *independent_reader.read(run.SUITE / case["file"]), strict=case["must"] == "refuse")
    assert (outcome.verdict, outcome.details) == ("passed", [])


@pytest.mark.parametrize("row", [*VECTORS["srepr"], *VECTORS["str"]], ids=lambda row: row["text"])
def test_expressions(row: dict[str, Any]) -> None:
    """An expression has the kind and the value that the vectors say."""
    tree = independent_symbols.parse(row["text"])
    kind = {"fraction": "float"}.get(independent_symbols.kind(tree), independent_symbols.kind(tree))
    assert kind == row["kind"]
    assert independent_symbols.evaluate(tree, VECTORS["values"]) == row["gives"]


@pytest.mark.parametrize("text", VECTORS["refused"])
def test_refused_expressions(text: str) -> None:
    """Text that is no expression is refused."""
    with pytest.raises(Refused) as caught:
        independent_symbols.check_constants(independent_symbols.parse(text))
    assert caught.value.rule == "E1"
