"""The report of a conversion as text."""

from __future__ import annotations

from tests import samples

import pt2kit
from pt2kit.errors import Problem
from pt2kit.release.conversion import Report, Side, report_lines
from pt2kit.versions.conversion_log import Note

ENDS = (Side("8.20", "archive", "torch 2.13"), Side("5.3-traces", "plain-zip", ""))


def test_headline() -> None:
    """Both ends and what was lost, each name once."""
    notes = (Note("changed", "", "m", "", ("p",), 1), *(Note("lost", "hints", text, "2", ("p",), 1) for text in "ab"))
    assert str(Report(*ENDS, ("model",), notes)) == (
        "from schema 8.20, archive (torch 2.13) to schema 5.3-traces, plain-zip: 1 change; lost: hints"
    )
    assert str(Report(*ENDS, ("model",))).endswith("plain-zip: 0 changes")


def test_all_of_it() -> None:
    """Every note with three places and a count of the others; what had to be allowed; what was not judged."""
    places = tuple(f"models/model.json: $.nodes[{number}]" for number in range(10))
    notes = (
        Note("changed", "", "another spelling", "", places[:1], 1),
        Note("lost", "persistent", "that a buffer is not persistent", "5.1", places, 12),
    )
    problem = Problem("models/model.json: $.opset_version.mine", "O2", "an unknown one", "warning")
    assert list(report_lines(Report(*ENDS, ("model",), notes, (problem,))))[1:] == [
        "",
        "changed",
        "  another spelling",
        "      models/model.json: $.nodes[0]",
        "",
        "lost",
        "  persistent: that a buffer is not persistent, which came with 5.1 (allowed)",
        "      models/model.json: $.nodes[0]",
        "      models/model.json: $.nodes[1]",
        "      models/model.json: $.nodes[2]",
        "      and 9 more",
        "",
        "not judged",
        "  models/model.json: $.opset_version.mine: an unknown one [O2]",
    ]


def test_a_real_one() -> None:
    """Every line prints."""
    report = pt2kit.convert(samples.sample("2.13.0", "odd_names"), None, target="torch==2.2")
    lines = list(report_lines(report))
    assert all(line == line.rstrip() for line in lines)
    assert any(line.startswith("  sample_inputs: ") for line in lines)
