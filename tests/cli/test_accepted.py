"""`pt2 check --allow` and `--baseline`: what was accepted does not count, everything else does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.run import pt2
from tests.samples import hostile, sample

import pt2kit

MLP = sample("2.13.0", "mlp")
UNSOUND = next(
    Path(case["path"])
    for case in hostile()
    if (found := pt2kit.check(case["path"])).errors and found.errors[0].rule and "[" in found.errors[0].loc
)


def rules(path: Path) -> set[str]:
    """The rules of a file's errors."""
    return {str(problem.rule) for problem in pt2kit.check(path).errors}


def test_allowed_rules(tmp_path: Path) -> None:
    """With all rules of its errors allowed a file is sound; with others it is not; several, with commas or again."""
    listed = sorted(rules(UNSOUND))
    assert pt2("check", UNSOUND).code == 1
    assert pt2("check", UNSOUND, "--allow", ",".join(listed)).code == 0
    assert pt2("check", UNSOUND, *(word for rule in listed for word in ("--allow", rule))).code == 0
    assert pt2("check", UNSOUND, "--allow", "D1" if "D1" in pt2kit.checks.RULES else "E9").code == 1
    found = json.loads(pt2("check", UNSOUND, "--allow", ",".join(listed), "--json").out)
    assert found["errors"] == 0
    unknown = pt2("check", UNSOUND, "--allow", "X99")
    assert (unknown.code, "expected ids of rules, got 'X99'" in unknown.err) == (2, True)


def test_baseline(tmp_path: Path) -> None:
    """Findings in a baseline are accepted, for the file that it names; new ones are not."""
    models, baseline = tmp_path / "models", tmp_path / "accepted.json"
    models.mkdir()
    shutil.copy(UNSOUND, models / "a.pt2")
    shutil.copy(MLP, models / "b.pt2")
    assert pt2("check", models).code == 1
    written = pt2("check", models, "--baseline", baseline, "--write-baseline")
    assert written.code == 0
    assert "findings of 2 files are accepted" in written.out
    assert pt2("check", models, "--baseline", baseline).code == 0
    assert pt2("check", models / "a.pt2", "--baseline", baseline).code == 0
    assert pt2("check", models / "a.pt2", "--baseline", baseline, "--strict", "--sarif").code == 0
    shutil.copy(UNSOUND, models / "c.pt2")
    found = pt2("check", models, "--baseline", baseline)
    assert found.code == 1
    assert "c.pt2: " in found.out


def test_one_more_of_a_kind_counts(tmp_path: Path) -> None:
    """A finding is accepted as often as the baseline says, wherever it is in the file."""
    baseline = tmp_path / "accepted.json"
    assert pt2("check", UNSOUND, "--baseline", baseline, "--write-baseline").code == 0
    tree = json.loads(baseline.read_text())
    [entries] = tree["files"].values()
    assert all("[]" in row["where"] or "[" not in row["where"] for row in entries)
    severities = {str(problem.rule): problem.severity for problem in pt2kit.check(UNSOUND)}
    row = next(row for row in entries if severities[row["rule"]] == "error")
    row["count"] -= 1
    baseline.write_text(json.dumps(tree))
    assert pt2("check", UNSOUND, "--baseline", baseline).code == 1


def test_writing_again_keeps_other_files(tmp_path: Path) -> None:
    """Accepted findings of other files are kept; a file that became sound is left out."""
    baseline, first, second = tmp_path / "accepted.json", tmp_path / "1.pt2", tmp_path / "2.pt2"
    for path in (first, second):
        shutil.copy(UNSOUND, path)
        assert pt2("check", path, "--baseline", baseline, "--write-baseline").code == 0
    assert list(json.loads(baseline.read_text())["files"]) == ["1.pt2", "2.pt2"]
    before = baseline.read_bytes()
    assert pt2("check", first, second, "--baseline", baseline, "--write-baseline").code == 0
    assert baseline.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"format": "x"}', '{"format": "pt2kit check baseline 1", "files": {"a": [{"rule": 1}]}}', "[" * 9999],
)
def test_what_is_no_baseline(text: str, tmp_path: Path) -> None:
    """One line and exit code 2; the file is not replaced."""
    (tmp_path / "b.json").write_text(text)
    for more in ((), ("--write-baseline",)):
        found = pt2("check", MLP, "--baseline", tmp_path / "b.json", *more)
        assert (found.code, len(found.err.splitlines())) == (2, 1)
        assert "--baseline: expected what --write-baseline writes" in found.err
    assert (tmp_path / "b.json").read_text() == text
    assert pt2("check", MLP, "--write-baseline").code == 2
    assert pt2("check", MLP, "--baseline", tmp_path / "none.json").code == 2
