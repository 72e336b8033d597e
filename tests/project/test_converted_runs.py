"""`tools/converted_runs.py`: what it counts, which failures it excuses, and the tables of the page."""

from __future__ import annotations

import json

from tests.samples import DATA
from tools import converted_runs
from tools.converted_runs import Result

EQUAL = Result("equal", "")
PLACE = "RuntimeError at cond.py:7"
FAILS = Result("fails", f"case 0: {PLACE}: no")


def test_excuses() -> None:
    """A failure at the same place on the release's own file of the model, in any variant of it, excuses; no other."""
    own = {
        "2.4.1/cond": EQUAL,
        "2.4.1/cond__decomp": FAILS,
        "2.4.1/mlp": Result("differs", "case 1: result 0: 1, not 2"),
    }

    def excuse(name: str, outcome: str, why: str) -> str:
        return converted_runs._own_failure(name, Result(outcome, why), own)

    assert excuse("2.13.0/cond", "fails", f"case 1: {PLACE}: other values") == f"2.4.1/cond__decomp: {FAILS.why}"
    assert excuse("2.13.0/cond", "fails", "case 0: RuntimeError at cond.py:8: no") == ""
    assert excuse("2.13.0/map", "fails", FAILS.why) == ""
    assert excuse("2.13.0/mlp", "differs", "case 1: result 0: 3, not 4") == "2.4.1/mlp: case 1: result 0: 1, not 2"
    assert excuse("2.13.0/mlp", "differs", "case 0: result 0: 3, not 4") == ""
    assert excuse("2.13.0/mlp", "refused", "2 results, not 3") == ""


def test_counts_and_tables() -> None:
    """Every file is in one column; the share is of what was converted; releases stand in their order."""
    outcomes = (
        EQUAL,
        Result("random", ""),
        Result("own", "x"),
        FAILS,
        Result("crashes", "exit 1"),
        Result(converted_runs.REFUSED, "no"),
    )
    results = {f"2.13.0/{number}": result for number, result in enumerate(outcomes)} | {"2.9.1/mlp": EQUAL}
    figures = converted_runs.counts(results)
    assert figures == {
        "2.9.1": {"files": 1, "refused": 0, "good": 1, "own": 0, "bad": 0},
        "2.13.0": {"files": 6, "refused": 1, "good": 2, "own": 1, "bad": 2},
    }
    assert converted_runs.row("2.4", figures) == "| 2.4 | 7 | 1 | 6 | 3 | 1 | 2 | 66.7 % |"
    table = converted_runs.matrix({"2.4": figures, "2.5": {"2.13.0": figures["2.13.0"]}})
    assert table.splitlines()[2:] == ["| 2.9.1 | 1 of 1 | - |", "| 2.13.0 | 3 of 5 | 3 of 5 |"]


def test_what_is_refused() -> None:
    """A refusal has its first reason; a converted file is a pair for the runner."""
    path = DATA / "corpus" / "2.13.0" / "multi_model_package.pt2"
    pairs, refused = converted_runs.convert_all([path], "2.4", DATA)
    assert pairs == []
    assert "2 programs in one file: 'model', 'second'" in refused["2.13.0/multi_model_package"].why


def test_the_page_shows_the_figures() -> None:
    """The tables in `docs/compatibility.md` are those of the figures that were recorded."""
    page = converted_runs.PAGE.read_text(encoding="utf-8")
    assert [page.count(mark) for mark in converted_runs.MARKS] == [1, 1]
    assert page == converted_runs.page_with_tables(page, json.loads(converted_runs.FIGURES.read_text()))
