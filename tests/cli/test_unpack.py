"""`pt2 unpack`: each program of an archive as a file of its own."""

from __future__ import annotations

from pathlib import Path

from tests.cli.run import pt2
from tests.samples import sample

import pt2kit

MLP = sample("2.13.0", "mlp")
OTHER = sample("2.13.0", "shared_weights")


def test_each_is_what_it_was(tmp_path: Path) -> None:
    """A file for each program, named after it, with its weights alone."""
    both, folder = tmp_path / "both.pt2", tmp_path / "apart"
    assert pt2("pack", f"a={MLP}", f"b={OTHER}", "-o", both).code == 0
    found = pt2("unpack", both, folder)
    assert (found.code, found.err) == (0, "")
    assert {path.name for path in folder.iterdir()} == {"a.pt2", "b.pt2"}
    assert all(str(folder / name) in found.out for name in ("a.pt2", "b.pt2"))
    for name, path in (("a", MLP), ("b", OTHER)):
        assert pt2kit.digest(folder / f"{name}.pt2", name).program == pt2kit.digest(path).program
        with pt2kit.open(folder / f"{name}.pt2") as package, pt2kit.open(path) as whole:
            assert list(package.weights(name)) == list(whole.weights())


def test_what_is_no_archive(tmp_path: Path) -> None:
    """Exit code 2, and no folder of files."""
    (tmp_path / "bad.pt2").write_bytes(b"nothing")
    found = pt2("unpack", tmp_path / "bad.pt2", tmp_path / "apart")
    assert found.code == 2
    assert "error:" in found.err
    assert not list((tmp_path / "apart").glob("*"))
