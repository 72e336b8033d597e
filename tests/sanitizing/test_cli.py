"""`pt2 sanitize`: what it writes, what it prints, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests import samples
from tests.cli.run import pt2
from tests.packages import edited, rewritten
from tests.sanitizing.files import sanitized

import pt2kit
from pt2kit.cli.frame import load_command
from pt2kit.digests.result import PARTS
from pt2kit.errors import UnsupportedError

MLP = samples.sample("2.13.0", "mlp")


def run(*arguments: object) -> Result:
    """The command's output; its exit code is the return value."""
    return CliRunner().invoke(
        load_command("sanitize"), [str(argument) for argument in arguments], standalone_mode=False
    )


def test_written(tmp_path: Path) -> None:
    """The file that the function writes; the digests of all parts, unchanged, and what was moved."""
    target = tmp_path / "clean.pt2"
    found = run(MLP, target)
    assert found.return_value == 0
    assert target.read_bytes() == sanitized(MLP)[0]
    first, *lines = found.stdout.splitlines()
    assert first == str(target)
    digest = pt2kit.digest(MLP)
    for part, line in zip(PARTS, lines, strict=False):
        assert line.split() == [part, getattr(digest, part), "unchanged"]
    assert lines[len(PARTS) :] == ["  sample inputs moved to raw records:", "    model"]


def test_changed_metadata(tmp_path: Path) -> None:
    """Metadata that was stripped has another digest; the line has both."""
    target = tmp_path / "clean.pt2"
    found = run(MLP, target, "--strip", "traces", "--scrub-paths")
    [line] = [line for line in found.stdout.splitlines() if line.strip().startswith("metadata")]
    assert line.split()[1:] == [
        *(pt2kit.digest(MLP).metadata, "->", pt2kit.digest(target).metadata),
        *("changed,", "as", "asked"),
    ]


def test_kept_and_dropped(tmp_path: Path) -> None:
    """Parts left out are listed, and parts kept because PyTorch needs them."""
    source = tmp_path / "m.pt2"
    source.write_bytes(rewritten(MLP, {"data/aotinductor/m/m.so": b"\x7fELF"}))
    found = run(source, tmp_path / "clean.pt2", "--drop", "compiled")
    assert "  left out:\n    data/aotinductor/m/m.so\n" in found.stdout
    source.write_bytes(edited(MLP, lambda tree: tree.update(guards_code=["L['x'].size()[0] != 3"])))
    found = run(source, tmp_path / "clean.pt2")
    assert "  kept, as PyTorch needs it:\n    X4: guards are conditions on the inputs\n" in found.stdout
    older = run(samples.sample("2.1.2", "constants"), tmp_path / "clean.pt2")
    assert "  raised to the current version:\n    model: " in older.stdout


def test_several_programs(tmp_path: Path) -> None:
    """Each program has its digests."""
    found = run(samples.sample("2.13.0", "multi_model_package"), tmp_path / "clean.pt2")
    assert [line for line in found.stdout.splitlines() if line.startswith("program ")] == [
        "program model",
        "program second",
    ]


def test_refused(tmp_path: Path) -> None:
    """Obstacles are listed line by line, nothing is written, and the exit code is 1."""
    source, target = tmp_path / "m.pt2", tmp_path / "clean.pt2"
    source.write_bytes(rewritten(MLP, {"data/aotinductor/m/m.so": b"\x7fELF", "extra/a.bin": b"\xff"}))
    found = run(source, target)
    assert found.return_value == 1
    first, *lines = found.stdout.splitlines()
    assert first == f"{source}: not written: 2 things cannot be expressed as data"
    assert [line.split(":")[0].strip() for line in lines] == ["extra/a.bin", "data/aotinductor/m/m.so"]
    assert not target.exists()
    tree = json.loads(run(source, target, "--json").stdout)
    assert tree["written"] is None
    assert [problem["rule"] for problem in tree["problems"]] == ["Z2", "X8"]


def test_json(tmp_path: Path) -> None:
    """JSON has what the function reports."""
    target = tmp_path / "clean.pt2"
    tree = json.loads(run(MLP, target, "--json").stdout)
    assert tree == {"written": str(target), **sanitized(MLP)[1].to_tree(), "problems": []}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--drop", "weights"], "drop: expected one of compiled, sample-inputs, extra, unused"),
        (["--strip", "all"], "strip: expected one of traces, provenance, metadata"),
        (["--drop", "extra/nope"], "expected an extra file of"),
    ],
)
def test_wrong_names(arguments: list[str], text: str, tmp_path: Path) -> None:
    """A name that is none of those that may be left out is an error."""
    found = run(MLP, tmp_path / "clean.pt2", *arguments)
    assert isinstance(found.exception, UnsupportedError)
    assert text in str(found.exception)


def test_exit_codes(tmp_path: Path) -> None:
    """0 written, 1 refused, 2 could not run; errors are one line."""
    target = tmp_path / "clean.pt2"
    assert pt2("sanitize", MLP, target).code == 0
    hostile = next(case["path"] for case in samples.hostile() if case["name"] == "pickle_sample_inputs")
    refused = pt2("sanitize", hostile, target)
    assert (refused.code, refused.err) == (1, "")
    for source, text in ((tmp_path / "no.pt2", "No such file"), (target.parent, "")):
        found = pt2("sanitize", source, target)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
        assert text in found.err
    assert "expected the path of a file as DST" in pt2("sanitize", MLP, "-").err
    assert pt2("sanitize", "-", target, stdin=MLP.read_bytes()).code == 0
    assert target.read_bytes() == sanitized(MLP)[0]
