"""`pt2 pack`: several programs in one archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.run import pt2
from tests.samples import sample

import pt2kit

MLP = sample("2.13.0", "mlp")
OLD = sample("2.4.1", "mlp")


def test_names_and_extra_files(tmp_path: Path) -> None:
    """Each program has the name that was given, and means what it meant; equal weights are there once."""
    note, out = tmp_path / "note.txt", tmp_path / "both.pt2"
    note.write_text("hello")
    found = pt2("pack", f"new={MLP}", f"again={MLP}", f"old={OLD}", "-o", out, "--extra", f"readme.txt={note}")
    assert (found.code, found.err) == (0, "")
    assert found.out == f"{out}: new, again, old\n"
    with pt2kit.open(out) as package:
        assert bytes(package.extra_files["readme.txt"]) == b"hello"
        assert pt2kit.digest(package, "old").program == pt2kit.digest(OLD).program
        assert {view.record for view in package.weights("new").values()} == {
            view.record for view in package.weights("again").values()
        }


def test_weights_apart(tmp_path: Path) -> None:
    """The weights of all programs go into one file next to the archive; names that two programs have are told apart."""
    out = tmp_path / "both.pt2"
    assert pt2("pack", f"a={MLP}", f"b={sample('2.9.1', 'mlp')}", "-o", out, "--external", "w.safetensors").code == 0
    with pt2kit.open(out) as package:
        assert len({row.tensor for row in package.external.values()}) == len(package.external)
        for model, path in (("a", MLP), ("b", sample("2.9.1", "mlp"))):
            assert pt2kit.digest(package, model).program == pt2kit.digest(path).program


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ((f"a={MLP}", f"a={MLP}"), "expected a different NAME= for each FILE"),
        ((f"a={MLP}", str(MLP)), "expected a different NAME= for each FILE"),
        ((str(MLP), str(MLP)), "expected a name of its own for each program, got 'mlp' again"),
    ],
)
def test_names_that_clash(tmp_path: Path, files: tuple[str, ...], text: str) -> None:
    """Exit code 2, and nothing is written."""
    found = pt2("pack", *files, "-o", tmp_path / "both.pt2")
    assert found.code == 2
    assert text in found.err
    assert list(tmp_path.iterdir()) == []
