"""`pt2 convert`: what it writes, prints, and how it ends."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import in_terminal, pt2

import pt2kit
from pt2kit.release.conversion import HARMLESS

MLP = samples.sample("2.13.0", "mlp")
COMPLEX = samples.sample("2.13.0", "complex_scalar")


def test_down_and_up(tmp_path: Path) -> None:
    """Losses are named, then a line names both versions; the files are of the requested versions."""
    down, up = tmp_path / "down.pt2", tmp_path / "up.pt2"
    found = pt2("convert", MLP, down, "--target", "torch==2.5")
    assert (found.code, found.err) == (0, "")
    assert found.out == (
        "loses argument_kinds: which arguments a call gives by position (3 places)\n"
        "loses forward_arg_names: the argument names input\n"
        "from schema 8.20, archive (torch 2.13.0+cpu) to schema 7.3, plain-zip (torch 2.5): 2 changes; "
        "lost: argument_kinds, forward_arg_names\n"
    )
    assert pt2("convert", down, up, "--target", "torch==2.13").code == 0
    with pt2kit.open(down) as old, pt2kit.open(up) as new:
        assert (old.stored_schema_version, new.stored_schema_version) == ("7.3", "8.20")


def test_report(tmp_path: Path) -> None:
    """`--report` prints every note with its places; `--json` the same for scripts; `--dry-run` writes nothing."""
    target = tmp_path / "x.pt2"
    found = pt2("convert", MLP, target, "--target", "torch==2.3", "--report")
    lines = found.out.splitlines()
    assert lines[lines.index("changed") - 2].startswith("from schema 8.20")
    assert all(line.startswith("loses ") for line in lines[: lines.index("changed") - 2])
    assert "  weights became a torch.save file" in lines
    assert "      serialized_state_dict.pt" in lines
    assert "  sample_inputs: the inputs that the program was exported with, which came with 5.3" in lines
    found = pt2("convert", MLP, "--target", "torch==2.3", "--dry-run", "--json")
    tree = json.loads(found.out)
    assert tree["converted"] is True
    assert tree["target"] == {"schema": "5.1", "layout": "plain-zip", "release": "torch 2.3"}
    assert {note["name"] for note in tree["notes"] if note["kind"] == "lost"} >= {"sample_inputs"}


def test_stored_json(tmp_path: Path) -> None:
    """`--store` alone keeps the version of the file, and deflates nothing."""
    old, new = tmp_path / "old.pt2", tmp_path / "new.pt2"
    assert pt2("convert", MLP, old, "--target", "torch==2.7").code == 0
    assert pt2("convert", old, new, "--store").code == 0
    with pt2kit.open(old) as before, pt2kit.open(new) as after:
        assert before.stored_schema_version == after.stored_schema_version == "8.7"
    with zipfile.ZipFile(new) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_obstacles(tmp_path: Path) -> None:
    """Exit code 1, every obstacle on its line, nothing written; as JSON too."""
    target = tmp_path / "x.pt2"
    found = pt2("convert", COMPLEX, target, "--target", "torch==2.5")
    assert (found.code, found.err) == (1, "")
    assert "the arm as_complex of Argument (since 8.14)" in found.out
    assert not target.exists()
    found = pt2("convert", COMPLEX, "--dry-run", "--target", "torch==2.5", "--json")
    tree = json.loads(found.out)
    assert (found.code, tree["converted"]) == (1, False)
    [obstacle] = tree["obstacles"]
    assert "as_complex" in obstacle


def test_allowing_a_loss(tmp_path: Path) -> None:
    """A loss that is refused by name is allowed by that name."""
    source, target = samples.sample("2.13.0", "nonpersistent_buffer__decomp"), tmp_path / "x.pt2"
    found = pt2("convert", source, target, "--target", "torch==2.2")
    assert found.code == 1
    assert "allow 'persistent' to drop it" in found.out
    found = pt2("convert", source, target, "--target", "torch==2.2", "--allow", "persistent", "--report")
    assert found.code == 0
    assert "(allowed)" in found.out


def test_keeping(tmp_path: Path) -> None:
    """Losses allowed by default can be refused by name; the help names them."""
    target = tmp_path / "x.pt2"
    found = pt2("convert", MLP, target, "--target", "torch==2.4", "--keep", "torch_version")
    assert (found.code, target.exists()) == (1, False)
    assert "allow 'torch_version' to drop it" in found.out
    page = pt2("convert", "--help").out
    assert [name for name in HARMLESS if name not in page] == []


def test_a_dry_run_with_a_target(tmp_path: Path) -> None:
    """Nothing is written, and that is said."""
    target = tmp_path / "x.pt2"
    found = pt2("convert", MLP, target, "--dry-run", "--target", "8.7")
    assert (found.code, target.exists()) == (0, False)
    assert found.out.endswith(f"{target}: not written (--dry-run)\n")


def test_standard_input_and_output() -> None:
    """`-` on either side; the report stays away from the file."""
    found = pt2("convert", "-", "--dry-run", "--target", "8.7", stdin=MLP.read_bytes())
    assert found.code == 0
    assert "to schema 8.7, plain-zip (torch 2.7)" in found.out
    found = pt2("convert", MLP, "-", "--target", "8.7", "--report")
    assert found.code == 2
    assert "expected a path as DST with --json and --report" in found.err


def test_named_tuples_and_operator_sets() -> None:
    """Names of named tuples and numbers of operator sets can be given."""
    source = samples.sample("2.1.2", "namedtuple_io")
    found = pt2("convert", source, "--dry-run", "--target", "8.20", "--namedtuple", "NT=corpus.NT", "--opset", "aten=9")
    assert found.code == 0
    assert pt2("convert", MLP, "--dry-run", "--target", "8.20", "--opset", "aten=11").code == 2


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([MLP, "--target", "8.7"], "expected SRC and DST, or SRC --output DST, got one argument"),
        ([MLP, "x"], "expected --target TARGET, or --normalize"),
        ([MLP, "--dry-run", "--target", "8.7", "--opset", "aten"], "--opset: expected NS=NUMBER, got 'aten'"),
        ([MLP, "--dry-run", "--target", "8.7", "--namedtuple", "NT"], "--namedtuple: expected CLASS=NAME, got 'NT'"),
    ],
)
def test_wrong_usage(args: list[str | Path], text: str) -> None:
    """A command line that makes no sense says why."""
    found = pt2("convert", *args)
    assert found.code == 2
    assert text in found.err


def test_what_cannot_run() -> None:
    """An unknown target and a missing file are one line."""
    found = pt2("convert", MLP, "--dry-run", "--target", "torch==1.0")
    assert found.code == 2
    assert found.err.startswith("error: target: expected a schema version")
    for option in ("allow", "keep"):
        found = pt2("convert", MLP, "--dry-run", "--target", "8.7", f"--{option}", "sample_input")
        assert (found.code, found.out) == (2, "")
        assert found.err.startswith(f"error: {option}: expected names of losses (argument_kinds, assertions, ")
        assert found.err.endswith(", got 'sample_input'\n")
    assert pt2("convert", "nowhere.pt2", "--dry-run", "--target", "8.7").code == 2


def test_progress_in_a_terminal(tmp_path: Path) -> None:
    """A terminal sees a bar while weights are written, and the headline afterwards."""
    found = in_terminal("convert", MLP, tmp_path / "x.pt2", "--target", "8.7")
    assert found.code == 0
    assert "to schema 8.7" in found.out
