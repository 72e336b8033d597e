"""Several files at once: every command that takes them answers for each, once for all, and ends with the worst."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import pt2
from tests.packages import rewritten

import pt2kit

MLP = samples.sample("2.13.0", "mlp")
BAD = samples.DATA / "hostile" / "000_pickle_sample_inputs.pt2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tree with a sound file, a bad one, and one with two programs below."""
    shutil.copy(MLP, tmp_path / "a.pt2")
    shutil.copy(BAD, tmp_path / "b.pt2")
    (tmp_path / "sub").mkdir()
    shutil.copy(samples.sample("2.13.0", "multi_model_package"), tmp_path / "sub" / "c.pt2")
    (tmp_path / "note.txt").write_text("no program")
    return tmp_path


def test_check(folder: Path) -> None:
    """A line for each sound file, all about each other one, a summary; the exit code is the worst."""
    found = pt2("check", folder)
    lines = found.out.splitlines()
    assert found.code == 1
    assert lines[0] == f"{folder}/a.pt2: sound, 1 note"
    assert lines[1] == f"{folder}/b.pt2: 1 error"
    assert f"{folder}/sub/c.pt2: sound, 2 notes" in lines
    assert lines[-1] == "3 files: 2 sound, 1 with errors"
    assert "notes" not in lines
    assert "notes" in pt2("check", folder, "--full").out.splitlines()
    assert pt2("check", folder / "a.pt2", folder / "sub").code == 0
    missing = pt2("check", folder / "a.pt2", folder / "none.pt2", folder / "b.pt2")
    assert missing.code == 2
    assert missing.out.endswith("3 files: 1 sound, 1 with errors, 1 not readable\n")
    assert missing.err == f"error: {folder}/none.pt2: No such file or directory\n"


def test_jobs_change_nothing(folder: Path) -> None:
    """Two processes print what one prints, in the same order."""
    for command in ("check", "show", "digest"):
        one, two = pt2(command, folder, folder / "none.pt2"), pt2(command, folder, folder / "none.pt2", "--jobs", "2")
        assert (one.code, one.out, one.err) == (two.code, two.out, two.err)


def test_check_as_data(folder: Path) -> None:
    """One JSON text and one SARIF run for all files; each result says of which file it is."""
    tree = json.loads(pt2("check", folder, "--json").out)
    assert [row["file"] for row in tree["files"]] == [f"{folder}/{name}" for name in ("a.pt2", "b.pt2", "sub/c.pt2")]
    assert tree["summary"] == {"files": 3, "errors": 1, "warnings": 0, "notes": 3}
    [run] = json.loads(pt2("check", folder, folder / "none.pt2", "--sarif").out)["runs"]
    assert [artifact["location"]["uri"] for artifact in run["artifacts"]] == [
        Path(row["file"]).as_uri() for row in tree["files"]
    ]
    [error] = [result for result in run["results"] if result["level"] == "error"]
    assert error["locations"][0]["physicalLocation"]["artifactLocation"]["index"] == 1
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "none.pt2" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_show(folder: Path) -> None:
    """Each file is shown as it is alone, one after another, then a line of totals."""
    found = pt2("show", folder / "a.pt2", folder / "sub")
    alone = [pt2("show", folder / name).out for name in ("a.pt2", "sub/c.pt2")]
    assert found.out == f"{alone[0]}\n{alone[1]}\n2 files: 3 programs, 31 kB\n"
    tree = json.loads(pt2("show", folder / "a.pt2", folder / "sub", "--json").out)
    assert [row["shown"] for row in tree["files"]] == [
        json.loads(pt2("show", folder / name, "--json").out) for name in ("a.pt2", "sub/c.pt2")
    ]
    assert tree["summary"]["programs"] == 3


def test_digest(folder: Path) -> None:
    """A line for each program, as sha256sum has them; blocks where more is asked for."""
    lines = pt2("digest", folder / "a.pt2", folder / "sub").out.splitlines()
    assert lines == [
        f"{pt2kit.digest(folder / 'a.pt2').program}  {folder}/a.pt2",
        *(f"{pt2kit.digest(folder / 'sub/c.pt2', name).program}  {folder}/sub/c.pt2  {name}" for name in MODELS),
    ]
    assert "  graph " in pt2("digest", folder, "--only", "program", "--only", "graph").out
    wrong = pt2("digest", folder, "--verify", lines[0].split()[0])
    assert (wrong.code, "expected one file with --verify" in wrong.err) == (2, True)


MODELS = ("model", "second")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_sanitize(folder: Path, tmp_path: Path, jobs: str) -> None:
    """Results keep their places below the folder; what is refused is listed, and is no reason to leave out the rest."""
    target = tmp_path / "clean"
    found = pt2("sanitize", folder, target, "--jobs", jobs)
    assert found.code == 1
    assert {str(path.relative_to(target)) for path in target.rglob("*.pt2")} == {"a.pt2", "sub/c.pt2"}
    assert f"{folder}/b.pt2: not written: 1 thing cannot be expressed as data" in found.out
    assert found.out.endswith("3 files: 2 written, 1 refused\n")
    assert pt2kit.digest(target / "a.pt2").program == pt2kit.digest(MLP).program


def test_convert(folder: Path, tmp_path: Path) -> None:
    """Each file is converted or says what is in its way; a dry run writes nothing."""
    target = tmp_path / "old"
    dry = pt2("convert", folder, "--target", "torch==2.5", "--dry-run")
    assert dry.out.endswith("3 files: 2 would be converted, 1 not expressible\n")
    assert not target.exists()
    found = pt2("convert", folder, f"{target}/", "--target", "torch==2.5")
    assert found.code == 1
    assert "2 programs in one file: 'model', 'second'" in found.out
    assert found.out.endswith("3 files: 2 converted, 1 not expressible\n")
    assert pt2kit.open(target / "a.pt2").layout.kind == "plain-zip"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["check", "-", "-"], "expected standard input once"),
        (["sanitize", "a.pt2"], "expected SRC and DST"),
        (["sanitize", "a.pt2", "b.pt2", "-"], "expected paths for several files"),
        (
            ["convert", "a.pt2", "b.pt2", "a.pt2", "--target", "torch==2.5"],
            "a.pt2: expected a folder to write several files to",
        ),
        (["check", "none/*.pt2"], "expected a pattern that matches files"),
    ],
)
def test_what_cannot_be_meant(folder: Path, args: list[str], text: str) -> None:
    """Arguments that make no sense end with 2 before anything is done."""
    found = pt2(*args, cwd=folder)
    assert (found.code, found.out) == (2, "")
    assert text in found.err


def test_compiled_code_alone(tmp_path: Path) -> None:
    """An archive of compiled code has nothing to digest or to sanitize; the error says what is there instead."""
    path = tmp_path / "compiled.pt2"
    path.write_bytes(rewritten(MLP, {"models/model.json": None, "data/aotinductor/m/m.so": b"\x7fELF"}))
    clean: list[str | Path] = ["sanitize", path, tmp_path / "x.pt2", "--drop", "compiled"]
    for args in (["digest", path], clean, ["weights", path]):
        found = pt2(*args)
        assert (found.code, found.out) == (2, "")
        assert "expected a program, got an archive without one: it has compiled code alone (of m)" in found.err
    assert pt2("show", path).code == 0
    assert pt2("check", path).code == 0
