"""`compress=False` and `--store`: no record is deflated; the file means the same, to torch as well."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.cli.run import pt2
from tests.samples import sample

import pt2kit

MLP = sample("2.13.0", "mlp")


def kinds(path: Path) -> set[int]:
    """How the records of a file are written."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {entry.compress_type for entry in archive.infolist()}


def save(path: Path, **options: Any) -> None:
    """A live program, saved."""
    pt2kit.save(pt2kit.load(MLP), path, **options)


def save_for(path: Path, **options: Any) -> None:
    """The same for an older release, which goes through a conversion."""
    pt2kit.save(pt2kit.load(MLP), path, target="2.9", **options)


def write(path: Path, **options: Any) -> None:
    """A package, written."""
    pt2kit.write(MLP, path, **options)


def convert(path: Path, **options: Any) -> None:
    """A package, converted."""
    pt2kit.convert(MLP, path, target="torch==2.13", **options)


@pytest.mark.parametrize("way", [save, save_for, write, convert])
def test_no_record_is_deflated(way: Callable[..., None], tmp_path: Path) -> None:
    """Stored records alone with compress=False, deflated JSON by default; the same digest, and torch loads both."""
    stored, deflated = tmp_path / "stored.pt2", tmp_path / "deflated.pt2"
    way(stored, compress=False)
    way(deflated)
    assert kinds(stored) == {zipfile.ZIP_STORED}
    assert kinds(deflated) == {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    assert pt2kit.digest(stored).program == pt2kit.digest(deflated).program
    for path in (stored, deflated):
        x = torch.export.load(path).example_inputs[0]
        assert torch.equal(torch.export.load(path).module()(*x), pt2kit.load_module(MLP)(*x))


def test_streams() -> None:
    """A file object that is written to is no different."""
    out = io.BytesIO()
    pt2kit.save(pt2kit.load(MLP), out, compress=False)
    with zipfile.ZipFile(out) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_command(tmp_path: Path) -> None:
    """`pt2 convert --store`, of one file and of several."""
    path = tmp_path / "m.pt2"
    assert pt2("convert", MLP, path, "--target", "torch==2.9", "--store").code == 0
    assert kinds(path) == {zipfile.ZIP_STORED}
    both = (MLP, sample("2.13.0", "cond"))
    assert pt2("convert", *both, tmp_path / "all", "--target", "torch==2.13", "--store").code == 0
    assert {kind for file in (tmp_path / "all").rglob("*.pt2") for kind in kinds(file)} == {zipfile.ZIP_STORED}
