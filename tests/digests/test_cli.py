"""`pt2 digest`: what it prints, what it compares, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.digests.packing import packed, records
from tests.samples import sample

from pt2kit.cli.frame import load_command
from pt2kit.digests import PARTS, digest
from pt2kit.errors import Pt2Error

MLP = str(sample("2.13.0", "mlp"))


def run(*arguments: str) -> Result:
    """The command's output; its exit code is the return value."""
    return CliRunner().invoke(load_command("digest"), list(arguments), standalone_mode=False)


def test_digests_are_printed_part_by_part() -> None:
    """The program first, its parts below it, tensors when asked for."""
    found = digest(MLP)
    lines = run(MLP).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(PARTS)
    assert [line.split()[1] for line in lines] == [getattr(found, part) for part in PARTS]
    listed = run(MLP, "--tensors", "--only", "weights").stdout.splitlines()
    assert listed[1] == "weights"
    assert {line.split()[0]: line.split()[1] for line in listed[2:]} == dict(found.tensors)


def test_json_is_what_verify_reads(tmp_path: Path) -> None:
    """A file of all digests; the file it is of is as expected, another one is not."""
    path = tmp_path / "mlp.digest.json"
    path.write_text(run(MLP, "--json").stdout)
    assert json.loads(path.read_text()) == digest(MLP).to_tree()
    fine = run(MLP, "--verify", str(path))
    assert (fine.return_value, {line.split(maxsplit=1)[1] for line in fine.stdout.splitlines()}) == (0, {"as expected"})

    found = records(Path(MLP))
    name = next(name for name in found if name.endswith("weight_0"))
    other = tmp_path / "other.pt2"
    other.write_bytes(packed({**found, name: bytes(len(found[name]))}))
    differs = run(str(other), "--verify", str(path))
    assert differs.return_value == 1
    assert "graph         as expected\n" in differs.stdout
    assert "weights       differs\n" in differs.stdout
    assert "tensors['" in differs.stdout
    assert run(str(other), "--verify", str(path), "--only", "graph").return_value == 0
    rows = json.loads(run(str(other), "--verify", str(path), "--json").stdout)
    assert (rows["as_expected"], rows["differences"][0]["what"]) == (False, "program")
    tensor = next(row["what"] for row in rows["differences"] if row["what"].startswith("tensors"))[9:-2]
    assert run(str(other), "--verify", str(path), "--tensor", tensor).return_value == 1
    rest = [one for one in digest(MLP).tensors if one != tensor]
    fine = run(str(other), "--verify", str(path), "--tensor", rest[0], "--tensor", rest[1])
    assert (fine.return_value, fine.stdout) == (0, "2 tensors as expected\n")


def test_one_digest_can_be_given() -> None:
    """That of the program, or of the part that --only names."""
    found = digest(MLP)
    assert run(MLP, "--verify", found.program).return_value == 0
    assert run(MLP, "--verify", found.graph, "--only", "graph").return_value == 0
    assert run(MLP, "--verify", found.graph).return_value == 1


BAD = [
    (("--only", "everything"), "--only: expected one of program, graph"),
    (("--tensor", "w"), "expected --tensor with --verify, got it alone"),
    (("--verify", "sha256:0", "--only", "graph", "--only", "weights"), "expected one --only with one digest, got 2"),
    (("--verify", "sha256:0"), "expected sha256: and 64 hexadecimal digits, got 'sha256:0'"),
    (("--model", "nobody"), "expected a program, one of 'model', got 'nobody'"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD, ids=str)
def test_wrong_questions_are_refused(arguments: tuple[str, ...], text: str) -> None:
    """With what was expected and what was got."""
    error = run(MLP, *arguments).exception
    assert isinstance(error, click.ClickException | Pt2Error)
    assert text in (error.message if isinstance(error, click.ClickException) else str(error))
