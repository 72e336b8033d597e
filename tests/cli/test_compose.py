"""`pt2 compose`: two programs become one."""

from __future__ import annotations

from pathlib import Path

from tests.cli.run import pt2
from tests.samples import sample

import pt2kit

MLP = sample("2.13.0", "mlp")


def test_halves_become_the_whole(tmp_path: Path) -> None:
    """A program cut in two and joined is the same program."""
    first, second, out = tmp_path / "a.pt2", tmp_path / "b.pt2", tmp_path / "both.pt2"
    assert pt2("extract", MLP, first, "--to-value", "relu").code == 0
    assert pt2("extract", MLP, second, "--from-value", "relu").code == 0
    found = pt2("compose", first, second, out, "--connect", "relu=relu")
    assert (found.code, found.err) == (0, "")
    assert str(out) in found.out
    assert pt2kit.digest(out).program == pt2kit.digest(MLP).program


def test_prefixes_and_names(tmp_path: Path) -> None:
    """Prefixes go in front of the weights of each; the new program has the name that was asked for."""
    first, second, out = tmp_path / "a.pt2", tmp_path / "b.pt2", tmp_path / "both.pt2"
    pt2("extract", MLP, first, "--to-value", "relu")
    pt2("extract", MLP, second, "--from-value", "relu")
    options = ("--connect", "relu=relu", "--prefix", "enc", "--prefix", "dec", "--name", "joined")
    assert pt2("compose", first, second, out, *options).code == 0
    with pt2kit.open(out) as package:
        assert package.layout.models == ("joined",)
        assert list(package.weights("joined")) == ["enc.0.weight", "enc.0.bias", "dec.2.weight", "dec.2.bias"]


def test_an_output_goes_to_several_inputs(tmp_path: Path) -> None:
    """One output connected twice becomes two inputs; the joined program takes neither."""
    attention, both = sample("2.13.0", "sdpa"), tmp_path / "both.pt2"
    assert pt2("compose", attention, attention, both, "--connect", "0=q", "--connect", "0=k", "--prove").code == 0
    assert [value.name for value in pt2kit.open(both).graph().inputs] == ["q", "k", "v", "m", "v_1", "m_1"]


def test_what_does_not_fit(tmp_path: Path) -> None:
    """Sizes that differ are told with both; nothing is written."""
    found = pt2("compose", MLP, MLP, tmp_path / "both.pt2", "--connect", "linear_1=input")
    assert found.code == 2
    assert "linear_1 -> input: expected sizes (3, 8), got (3, 4)" in found.err
    assert list(tmp_path.iterdir()) == []
