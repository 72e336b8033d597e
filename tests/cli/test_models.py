"""Archives of several programs: all of them by default, one by its name or its digest; what is next to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import pt2

import pt2kit

BOTH = samples.sample("2.13.0", "multi_model_package")
MLP = samples.sample("2.13.0", "mlp")
EXTRA = samples.sample("2.13.0", "extra_files")


@pytest.mark.parametrize(
    "args", [["show", "--graph"], ["show", "--text"], ["digest"], ["weights"], ["weights", "--stats"]]
)
def test_all_programs_are_shown(args: list[str]) -> None:
    """Each under its name; one alone as it would be in a file of its own."""
    command, *options = args
    whole = pt2(command, BOTH, *options)
    alone = [pt2(command, BOTH, *options, "--model", model).out for model in ("model", "second")]
    assert whole.code == 0
    assert whole.out == f"program model\n{alone[0]}\nprogram second\n{alone[1]}"


def test_all_programs_as_data() -> None:
    """JSON has the programs by name."""
    graphs = json.loads(pt2("show", BOTH, "--graph", "--json").out)
    assert graphs["second"] == json.loads(pt2("show", BOTH, "--graph", "--json", "--model", "second").out)
    rows = json.loads(pt2("weights", BOTH, "--json").out)
    assert [row["model"] for row in rows] == ["model"] * 4 + ["second"] * 2


def test_nodes_and_modules_are_found_where_they_are() -> None:
    """A name is looked for in all programs; only where none has it, that is an error, which names near ones."""
    assert pt2("show", BOTH, "--node", "relu").out == pt2("show", BOTH, "--node", "relu", "--model", "model").out
    assert pt2("show", BOTH, "--node", "linear").out.count("program ") == 2
    assert pt2("weights", BOTH, "a.*").out == pt2("weights", BOTH, "a.*", "--model", "model").out
    missing = pt2("show", BOTH, "--node", "rela")
    assert (missing.code, "model, second: expected a node or a value 'rela'" in missing.err) == (2, True)
    assert "did you mean relu" in missing.err


def test_digests_of_all_are_verified(tmp_path: Path) -> None:
    """The `--json` output of several programs is compared one by one."""
    path = tmp_path / "both.json"
    path.write_text(pt2("digest", BOTH, "--json").out)
    found = pt2("digest", BOTH, "--verify", path)
    assert (found.code, found.out.count("as expected")) == (0, 14)
    assert pt2("digest", BOTH, "--verify", path, "--model", "second").out.count("as expected") == 7
    tree = json.loads(path.read_text())
    tree["programs"]["second"]["graph"] = tree["programs"]["model"]["graph"]
    path.write_text(json.dumps(tree))
    found = pt2("digest", BOTH, "--verify", path, "--json")
    assert (found.code, json.loads(found.out)["differences"][0]["program"]) == (1, "second")
    other = pt2("digest", MLP, "--verify", path)
    assert (other.code, "got second in the digests alone" in other.err) == (2, True)


def test_a_program_is_named_by_its_digest() -> None:
    """`--model sha256:…` takes the program whose digest begins so, of as many digits as make it clear."""
    digest = pt2kit.digest(BOTH, "second").program
    for name in (digest, digest[:15]):
        assert pt2("show", BOTH, "--model", name).out == pt2("show", BOTH, "--model", "second").out
    for name, text in (("sha256:", "got 2: model, second"), ("sha256:00000", "got none (model sha256:")):
        found = pt2("show", BOTH, "--model", name)
        assert (found.code, text in found.err) == (2, True)


def test_programs_are_paired(tmp_path: Path) -> None:
    """diff takes programs of one name, then those of one digest, or those that are asked for."""
    pt2("unpack", BOTH, tmp_path)
    pt2("pack", f"enc={tmp_path}/model.pt2", f"dec={tmp_path}/second.pt2", "-o", tmp_path / "renamed.pt2")
    found = pt2("diff", BOTH, tmp_path / "renamed.pt2")
    assert found.code == 1
    assert [line for line in found.out.splitlines() if "->" in line][1:] == [
        "      name: model -> enc",
        "      name: second -> dec",
    ]
    same = pt2("diff", BOTH, tmp_path / "renamed.pt2", "--model", "second=dec", "--json")
    assert [change["area"] for change in json.loads(same.out)["changes"]] == ["model"]
    assert pt2("diff", BOTH, BOTH, "--model", "second").code == 0
    assert "nodes" in pt2("diff", BOTH, BOTH, "--model", "second=model").out
    wrong = pt2("diff", BOTH, MLP, "--model", "third=model")
    assert (wrong.code, "expected a program, one of 'model', 'second', got 'third'" in wrong.err) == (2, True)


def test_one_program_goes_alone(tmp_path: Path) -> None:
    """sanitize, convert and check of one program of several."""
    calls: list[list[str | Path]] = [
        ["sanitize", BOTH, tmp_path / "a.pt2"],
        ["convert", BOTH, tmp_path / "a.pt2", "--target", "torch==2.13"],
    ]
    for args in calls:
        assert pt2(*args, "--model", "second").code == 0
        with pt2kit.open(tmp_path / "a.pt2") as package:
            assert list(package.programs) == ["second"]
        assert pt2kit.digest(tmp_path / "a.pt2", "second").program == pt2kit.digest(BOTH, "second").program
    assert "second.pt:" in (found := pt2("check", BOTH, "--model", "second").out)
    assert "model.pt:" not in found


def test_extra_files(tmp_path: Path) -> None:
    """They are listed, printed byte for byte, and written to a folder."""
    assert pt2("extra", EXTRA).out == "note.txt       5 B\ndir/info.json  8 B\n"
    assert pt2("extra", EXTRA, "note.txt").out == "hello"
    assert [row["name"] for row in json.loads(pt2("extra", EXTRA, "--json").out)] == ["note.txt", "dir/info.json"]
    pt2("extra", EXTRA, "--to", tmp_path)
    assert (tmp_path / "note.txt").read_bytes() == b"hello"
    assert (tmp_path / "dir" / "info.json").stat().st_size == 8
    missing = pt2("extra", EXTRA, "nte.txt")
    assert (missing.code, "one of note.txt, dir/info.json, got nte.txt; did you mean note.txt?" in missing.err) == (
        2,
        True,
    )
    assert "no extra files" in pt2("extra", MLP).out


def test_sizes_add_up(tmp_path: Path) -> None:
    """Parts add up to the file, tensors to their records; what stripping saves is what sanitizing takes off."""
    path = samples.sample("2.13.0", "convnet")
    tree = json.loads(pt2("show", path, "--sizes", "--json").out)
    assert sum(part["stored"] for part in tree["parts"]) == tree["bytes"] == path.stat().st_size
    weights = next(part for part in tree["parts"] if part["name"] == "weights")
    assert sum(row["bytes"] for row in tree["modules"]) == weights["bytes"]
    assert [row["name"] for row in tree["tensors"]][:2] == ["conv.weight", "fc.weight"]
    with pt2kit.open(path) as package:
        before = package.records["convnet/models/model.json"].compressed_size
    for option, saved in tree["savings"].items():
        pt2("sanitize", path, tmp_path / "s.pt2", *option.split())
        with pt2kit.open(tmp_path / "s.pt2") as package:
            assert before - package.records["convnet/models/model.json"].compressed_size == saved
    assert json.loads(pt2("show", path, "--sizes", "--json", "--top", "1").out)["tensors"][1:] == []
