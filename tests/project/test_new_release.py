"""`tools/new_release.py`: what it says of a release whose answers are given here, and of one that the project knows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.samples import sample
from tools import new_release, operator_schemas, torches

from pt2kit.schema.operators import known_releases


def test_version() -> None:
    """A release that the log has under its number is alike; another is to be named there, a new number first logged."""
    assert new_release.compare_version("2.15", "8.20").lines == ()
    later = new_release.compare_version("2.99", "8.20")
    assert later.lines == ("torch 2.99 writes 8.20",)
    assert "add '2.99' to the releases of 8.20 in LOG" in later.todo
    assert "9.0 is new" in new_release.compare_version("2.99", "9.0").todo


def test_operator_set() -> None:
    """Another number of aten is to be followed by the changes of its operators."""
    assert new_release.compare_operator_set("10").lines == ()
    assert new_release.compare_operator_set("11").lines == ("aten 11, not 10",)


def test_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field more and a type that changed are told; how torch writes types does not matter."""
    fields = {"op": {"type": "str"}, "sizes": {"type": "Optional[List[Dict[str, int]]]", "default": "None"}}
    (tmp_path / "8.20.yaml").write_text(json.dumps({"types": {"Node": {"kind": "struct", "fields": fields}}}))
    theirs = {"Node": {"fields": {**fields, "op": {"type": "int"}, "new": {"type": "List[int]"}}}}
    (tmp_path / "schema.yaml").write_text(json.dumps(theirs))
    monkeypatch.setattr(new_release, "HISTORY", tmp_path)
    monkeypatch.setattr(new_release, "run", lambda *_: f"{tmp_path}\n")
    found = new_release.compare_schema(tmp_path, "8.20")
    assert found.lines == ("- Node.op: str", "+ Node.new: list[int]", "+ Node.op: int")


def test_layout(tmp_path: Path) -> None:
    """A record that the release before does not write is listed, whatever its number and extra files' names."""
    saved = tmp_path / "saved.pt2"
    shutil.copy(sample("2.13.0", "mlp"), saved)
    assert new_release.compare_layout(saved, "2.14.0").lines == ()
    older = new_release.compare_layout(saved, "2.8.0")
    assert "+ data/weights/weight_0" in older.lines
    assert older.what == "records of a file, against 2.7.1"


def test_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators that went, came and changed are told in the order of their names; what the table has is not."""
    newest = known_releases()[-1]
    lines = operator_schemas.lines_of_table(newest)
    gone = next(line for line in sorted(lines) if line.startswith("aten::add.Tensor("))
    dump = {
        "release": "2.99.0",
        "schemas": [*(lines - {gone}), "aten::zzz(Tensor self) -> Tensor", gone.replace("alpha=1", "alpha=2")],
        "higher_order": [],
        "functions": [],
    }
    monkeypatch.setattr(new_release, "run", lambda *_: json.dumps(dump))
    found = new_release.compare_operators(tmp_path, "2.99", tmp_path, write=False)
    assert found.lines == (f"- {gone}", f"+ {gone.replace('alpha=1', 'alpha=2')}", "+ aten::zzz(Tensor self) -> Tensor")
    dump["schemas"] = sorted(lines)
    assert new_release.compare_operators(tmp_path, newest, tmp_path, write=False).lines == ()


def test_lists() -> None:
    """A release that is tried is in every list of the project; a later one is missed in each."""
    assert new_release.compare_lists(torches.RELEASES[-1]).lines == ()
    assert [line.partition(": ")[2] for line in new_release.compare_lists("2.99.0").lines] == [
        "RELEASES in tools/torches.py",
        "its figures in docs/releases.json",
        "sample files in tests/data/corpus",
    ]


def test_an_environment_that_fails() -> None:
    """The error contains Python's own error."""
    import sys

    environment = Path(sys.executable).parents[1]
    with pytest.raises(RuntimeError, match=r"expected it to run, got (?s:.*)ZeroDivisionError"):
        new_release.run(environment, "-c", "1 / 0")
