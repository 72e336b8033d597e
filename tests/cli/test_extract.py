"""`pt2 extract`: a part of a program as a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.run import pt2
from tests.samples import sample

import pt2kit

MLP = sample("2.13.0", "mlp")
NESTED = sample("2.13.0", "preserve_module_sig")


def test_between_values(tmp_path: Path) -> None:
    """The part between two values has the weights that it uses."""
    out = tmp_path / "part.pt2"
    found = pt2("extract", MLP, out, "--to-value", "relu")
    assert (found.code, found.err) == (0, "")
    assert found.out == f"{out}: 2 of 3 nodes, 2 of 4 weights; no sample inputs\n"
    with pt2kit.open(out) as package:
        assert list(package.weights()) == ["0.weight", "0.bias"]
        assert pt2kit.check(package).ok


def test_a_module(tmp_path: Path) -> None:
    """By its path."""
    found = pt2("extract", NESTED, tmp_path / "part.pt2", "--module", "mid.inner")
    assert found.code == 0
    with pt2kit.open(tmp_path / "part.pt2") as package:
        assert list(package.weights()) == ["mid.inner.l.weight", "mid.inner.l.bias"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "expected --module, or --from-value and --to-value"),
        (("--module", "a", "--to-value", "relu"), "expected --module, or --from-value and --to-value, got both"),
        (("--module", "nobody"), "expected the path of a module with nodes"),
        (("--to-value", "nobody"), "expected the name of a value, got 'nobody'"),
    ],
)
def test_what_cannot_be_cut(tmp_path: Path, options: tuple[str, ...], text: str) -> None:
    """Exit code 2, the reason, and no file."""
    found = pt2("extract", MLP, tmp_path / "part.pt2", *options)
    assert found.code == 2
    assert text in found.err
    assert list(tmp_path.iterdir()) == []
