"""`tools/sample_files.py`: the sample files of a release, as the installed torch writes them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bridge.read import corpus_types
from tests.samples import CURRENT_LAYOUT, sample
from tools import sample_files

import pt2kit
from pt2kit.zip.reader import open_archive

OLDEST = CURRENT_LAYOUT[0]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """torch warns of inputs that it unpickles, with a message whose arguments do not fit."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(disabled)


@pytest.mark.parametrize("name", ["mlp", "kwargs_and_nested_inputs", "saved_to_buffer", "extra_files"])
def test_written_again(name: str, tmp_path: Path) -> None:
    """The program stays, its records keep their names, and the torch of this process wrote it."""
    old, new = sample(OLDEST, name), tmp_path / f"{name}.pt2"
    sample_files.write_again(old, new)
    assert pt2kit.digest(new).program == pt2kit.digest(old).program
    with open_archive(old) as before, open_archive(new) as after:
        assert set(before.records) == set(after.records)


def test_several_programs(tmp_path: Path) -> None:
    """A package of two programs stays one."""
    new = tmp_path / "multi_model_package.pt2"
    sample_files.write_again(sample(OLDEST, "multi_model_package"), new)
    with pt2kit.open(new) as package:
        assert package.layout.models == ("model", "second")


def test_the_release_before(tmp_path: Path) -> None:
    """Releases are compared as numbers."""
    for name in ("2.9.1", "2.10.0", "2.15.0"):
        (tmp_path / name).mkdir()
    assert sample_files.release_before("2.15.0", tmp_path).name == "2.10.0"


def test_what_fails_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that the release cannot read is named with its error, and the command fails; the others are written."""
    (tmp_path / "1.0.0").mkdir()
    (tmp_path / "1.0.0" / "broken.pt2").write_bytes(b"no archive")
    (tmp_path / "1.0.0" / "mlp.pt2").write_bytes(sample(OLDEST, "mlp").read_bytes())
    monkeypatch.setattr(sample_files, "CORPUS", tmp_path)
    for kind in (corpus_types.NT, corpus_types.DC):
        monkeypatch.setattr(kind, "__module__", kind.__module__)  # put back afterwards
    assert sample_files.main() == 1
    said = capsys.readouterr().out
    assert said.startswith("broken.pt2: ")
    assert "1 of 1.0.0's files, 1 failed" in said
