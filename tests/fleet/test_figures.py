"""The report counts each file once, as it was last, and its page holds nothing of a file but text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.run import pt2

from pt2kit.errors import UnsupportedError

pytest.importorskip("pyarrow", reason="pt2kit[fleet] is not installed")

from pt2kit.fleet.dataset import TABLES, begin, make_folder, make_table, write_part
from pt2kit.fleet.figures import figures_of
from pt2kit.fleet.reading import checked_options

ADD = "torch.ops.aten.add.Tensor"
EVIL = "</script><script>alert(1)</script>\x1b[31m"


def file(name: str, etag: str = "1", outcome: str = "ok", **more: Any) -> dict[str, Any]:
    """A row of `files`."""
    return {
        "url": name,
        "etag": etag,
        "size": 1000,
        "outcome": outcome,
        "release": "torch 2.13.0",
        "seconds": 0.1,
        **more,
    }


def _bytes(**dtypes: int) -> list[dict[str, Any]]:
    return [{"dtype": name, "tensors": 1, "elements": 1, "bytes": count} for name, count in dtypes.items()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of two parts; in the second, one file of the first has changed."""
    made = make_folder(tmp_path / "out")
    begin(made, "digest", checked_options("digest", {}), resume=False)
    parts: list[dict[str, list[dict[str, Any]]]] = [
        {
            "files": [
                file("/m/a.pt2", digest_program="sha256:1", bytes_by_dtype=_bytes(float32=100)),
                file("/m/b.pt2", digest_program="sha256:2", bytes_by_dtype=_bytes(float32=4)),
                file(f"/m/{EVIL}.pt2", outcome="unreadable", rule="A1", error=f"expected 12 bytes, got '{EVIL}'"),
                file("/m/d.pt2", outcome="unreadable", rule="A1", error="expected 7 bytes, got 'x'"),
            ],
            "problems": [
                {"url": "/m/a.pt2", "etag": "1", "rule": "X1", "severity": "note"},
                {"url": "/m/b.pt2", "etag": "1", "rule": "J3", "severity": "error"},
                {"url": "/m/b.pt2", "etag": "1", "rule": "J3", "severity": "error"},
            ],
            "operators": [
                {"url": "/m/a.pt2", "etag": "1", "program": "model", "operator": f"torch.ops.x.{EVIL}", "count": 3},
                {
                    "url": "/m/b.pt2",
                    "etag": "1",
                    "program": "model",
                    "operator": "torch.ops.aten.add.Tensor",
                    "count": 2,
                },
            ],
        },
        {
            "files": [file("/m/a.pt2", "2", digest_program="sha256:2", bytes_by_dtype=_bytes(float32=8, int64=16))],
            "problems": [],
            "operators": [
                {
                    "url": "/m/a.pt2",
                    "etag": "2",
                    "program": "model",
                    "operator": "torch.ops.aten.add.Tensor",
                    "count": 1,
                }
            ],
        },
    ]
    for number, rows in enumerate(parts):
        write_part(made, f"part-{number}", {table: [make_table(table, rows[table])] for table in TABLES})
    return tmp_path / "out"


def test_the_last_state_of_a_file_counts(folder: Path) -> None:
    """Figures are of each file as it was last; causes are told without names and numbers."""
    figures = figures_of(str(folder))
    assert (figures.files, figures.bytes, dict(figures.outcomes)) == (4, 4000, {"ok": 2, "unreadable": 2})
    assert dict(figures.operators) == {ADD: 3}
    assert dict(figures.operator_files) == {ADD: 2}
    assert dict(figures.dtypes) == {"float32": 12, "int64": 16}
    assert dict(figures.rules) == {("J3", "error"): 2}
    assert dict(figures.rule_files) == {("J3", "error"): 1}
    assert dict(figures.causes) == {("unreadable", "A1", "expected … bytes, got …"): 2}
    [group] = figures.groups
    assert (group.digest, group.files, group.bytes, group.examples) == ("sha256:2", 2, 2000, ("/m/a.pt2", "/m/b.pt2"))
    assert figures.equal_files == 2


def test_long_causes_are_cut(tmp_path: Path) -> None:
    """A cause that is too long for the report shows that more followed."""
    made = make_folder(tmp_path / "out")
    begin(made, "digest", checked_options("digest", {}), resume=False)
    row = file("/m/a.pt2", outcome="unreadable", rule="A1", error="much " * 100)
    write_part(made, "part-0", {"files": [make_table("files", [row])]})
    [(_, _, cause)] = figures_of(str(tmp_path / "out")).causes
    assert cause == f"{'much ' * 24}…"


def test_damaged_parts_are_told(folder: Path) -> None:
    """A part that was cut off is left out, and the report names it."""
    cut = folder / "files" / "part-1.parquet"
    cut.write_bytes(cut.read_bytes()[:50])
    assert figures_of(str(folder)).damaged == ("part-1",)
    assert "left out: 1 damaged part;" in pt2("fleet", "report", folder).out


def test_the_report_in_a_pipe(folder: Path) -> None:
    """Tables with bars, and no control character."""
    done = pt2("fleet", "report", folder)
    assert done.code == 0, done.err
    for title in (
        "outcomes",
        "releases",
        "findings by rule",
        "operators",
        "sizes",
        "equal programs",
        "failures by cause",
    ):
        assert re.search(rf"^{title}", done.out, re.MULTILINE)
    assert "█" in done.out
    assert "\x1b" not in done.out


def test_the_report_as_json(folder: Path) -> None:
    """The same as data."""
    import json

    tree = json.loads(pt2("fleet", "report", folder, "--json").out)
    assert (tree["work"], tree["files"]) == ("digest", 4)
    outcomes = next(table for table in tree["tables"] if table["title"] == "outcomes")
    assert [row[:2] for row in outcomes["rows"]] == [["ok", 2], ["unreadable", 2]]


def test_the_page(folder: Path, tmp_path: Path) -> None:
    """One page with bars in each table, which asks for nothing from elsewhere and runs no script."""
    page = tmp_path / "report.html"
    done = pt2("fleet", "report", folder, "--html", page)
    assert (done.code, done.out) == (0, f"{page}\n"), done.err
    text = page.read_text(encoding="utf-8")
    assert "Replace an archive" in pt2("fleet", "report", "--help").out
    assert text.count("<section>") == 8
    assert len(re.findall(r'<div style="width: 100.0%">', text)) >= 7
    assert not re.findall(r"<(?:script|img|iframe|link)|https?://", text)
    assert "default-src &#x27;none&#x27;" in text


def test_what_is_no_dataset(tmp_path: Path) -> None:
    """A folder without a dataset, and one of a later version, are refused."""
    with pytest.raises(UnsupportedError, match=r"expected a dataset, got a folder without fleet\.json"):
        figures_of(str(tmp_path))
    (tmp_path / "fleet.json").write_text('{"format": "pt2kit fleet", "schema": 2, "work": "check"}')
    with pytest.raises(UnsupportedError, match="expected a dataset of schema 1, got 2"):
        figures_of(str(tmp_path))
