"""`tools/torches.py`: the table of releases, what CI does where a release cannot be had, and what it leaves out."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tools import torches

ROOT = Path(__file__).parents[2]
FIGURES = dict.fromkeys(
    ("files", "reproduced", "zoo", "saved", "same tree", "read by torch", "read by pt2kit", "torch does not"), 8
)


def test_table() -> None:
    """A row for each release that was tried, oldest first, with shares."""
    row = {"torch": "2.11.0+cpu", "schema": "8.17", "figures": {**FIGURES, "reproduced": 7, "torch does not": 1}}
    lines = torches.table({"2.15.0": {**row, "torch": "2.15.0"}, "2.11.0": row}).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 2.11.0", "| 2.15.0"]
    assert lines[2] == "| 2.11.0 | 8.17 | 8 | 7 (87.5%) | 8 | 8 | 8 | 8 | 8 | 1 |"


def test_the_page_shows_the_figures() -> None:
    """The table in `docs/compatibility.md` is the one of the figures that were recorded."""
    page = torches.PAGE.read_text()
    assert page.count(torches.BEGIN) == page.count(torches.END) == 1
    if torches.FIGURES.exists():
        assert page == torches.page_with_table(page, json.loads(torches.FIGURES.read_text()))


def test_what_is_left_out_exists() -> None:
    """Files and tests that a trial leaves out are there, and none is left out by a wrong name."""
    for name in (*sum(torches.LEFT_OUT.values(), ()), *torches.DESELECTED):
        file, _, test = name.partition("::")
        if not file.endswith(".py"):
            assert list((ROOT / "tests" / "bridge" / file).glob("test_*.py"))
            continue
        assert f"def {test.partition('[')[0]}" in (ROOT / "tests" / "bridge" / file).read_text()


@pytest.mark.parametrize("if_possible", [True, False])
def test_a_release_that_cannot_be_had(
    if_possible: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said loudly; CI goes on, `make test-torch` fails; the environment is gone either way."""
    made = []

    def refuse(command: Any, **options: Any) -> Any:
        made.append(Path(command[0]))
        return subprocess.CompletedProcess(command, 1 if "pip" in command else 0)

    monkeypatch.setattr(subprocess, "run", refuse)
    assert torches.try_release("2.99.0", argparse.Namespace(if_possible=if_possible, environment=None)) is if_possible
    assert "!!! torch 2.99.0 could not be installed: NOTHING WAS TRIED WITH IT !!!" in capsys.readouterr().out
    assert not made[-1].parents[1].exists()
