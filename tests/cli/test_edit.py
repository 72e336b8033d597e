"""`pt2 edit`: each option makes its edit; what cannot be made is named, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.cli.run import pt2
from tests.narrow import dense, present
from tests.samples import sample

import pt2kit

MLP = sample("2.13.0", "mlp")
DYNAMIC = sample("2.13.0", "dynamic_batch")


def operators(path: Path) -> list[str]:
    """The operators of a file, in order."""
    with pt2kit.open(path) as package:
        return [
            node.target.removeprefix("torch.ops.aten.") for node in package.programs["model"].graph_module.graph.nodes
        ]


def inputs(path: Path) -> list[str]:
    """The names that a program is called with."""
    with pt2kit.open(path) as package:
        call = present(package.programs["model"].graph_module.module_call_graph[0].signature)
        return list(present(call.forward_arg_names))


def test_edits_are_made_and_told(tmp_path: Path) -> None:
    """Several edits in one call: each is in the file and in the report; what comes out is sound."""
    out = tmp_path / "new.pt2"
    found = pt2(
        *("edit", DYNAMIC, out, "--rename-input", "x=features", "--rename-weight", "a.weight=first.weight"),
        *("--operator", "aten::relu=aten::gelu", "--specialize", "s77=5", "--add-output", "linear", "--pass", "dce"),
    )
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[0] == str(out)
    assert "  rename input x to features: 1 place" in found.out
    assert "  aten::relu to aten::gelu: 1 place" in found.out
    assert operators(out) == ["linear.default", "gelu.default", "linear.default"]
    assert inputs(out) == ["features"]
    with pt2kit.open(out) as package:
        assert "first.weight" in package.weights()
        assert package.programs["model"].range_constraints == {}
        assert len(package.programs["model"].graph_module.signature.output_specs) == 2
        assert pt2kit.check(package).ok


def test_json(tmp_path: Path) -> None:
    """For scripts: the path, the model and each edit with how many places it changed."""
    out = tmp_path / "new.pt2"
    found = pt2("edit", MLP, out, "--cast", "bf16", "--device", "cpu=cuda:0", "--json")
    tree = json.loads(found.out)
    assert (tree["written"], tree["model"]) == (str(out), "model")
    assert [edit["edit"] for edit in tree["edits"]] == ["cast to bf16", "device cpu=cuda:0"]
    assert all(edit["places"] > 0 for edit in tree["edits"])
    with pt2kit.open(out) as package:
        assert {view.describe().partition("[")[0] for view in package.weights().values()} == {"bf16"}
        assert {view.device.type for view in dense(package.weights()).values()} == {"cuda"}


def test_weights_and_programs_from_elsewhere(tmp_path: Path) -> None:
    """Numbers come from a safetensors file, and a program from its text; the rest stays."""
    numbers = tmp_path / "w.safetensors"
    assert pt2("weights", MLP, "--to", numbers).code == 0
    save_file({name: value * 2 for name, value in load_file(numbers).items()}, numbers)
    assert pt2("edit", MLP, tmp_path / "w.pt2", "--weights", numbers).code == 0
    with pt2kit.open(tmp_path / "w.pt2") as package:
        assert {name: view.numpy().tolist() for name, view in package.weights().items()} == {
            name: value.tolist() for name, value in load_file(numbers).items()
        }
    text = tmp_path / "m.txt"
    text.write_text(pt2("show", MLP, "--text").out.replace("aten.relu.default", "aten.sigmoid.default"))
    assert pt2("edit", MLP, tmp_path / "p.pt2", "--program", text).code == 0
    assert "sigmoid.default" in operators(tmp_path / "p.pt2")


def test_weights_apart(tmp_path: Path) -> None:
    """They go next to the file, or nowhere; the file means the same, or says that it has none."""
    assert pt2("edit", MLP, tmp_path / "a.pt2", "--external", "a.safetensors").code == 0
    assert pt2kit.digest(tmp_path / "a.pt2") == pt2kit.digest(MLP)
    assert "a.safetensors" in pt2("show", tmp_path / "a.pt2").out
    assert "a.safetensors" in pt2("show", tmp_path / "a.pt2", "--records").out
    assert json.loads(pt2("show", tmp_path / "a.pt2", "--json").out)["external"] == {"a.safetensors": 848}
    assert pt2("edit", MLP, tmp_path / "s.pt2", "--skeleton").code == 0
    shown = pt2("show", tmp_path / "s.pt2")
    assert shown.code == 0
    assert "4 tensors without data" in shown.out
    assert pt2("check", tmp_path / "s.pt2").code == 0
    filled = tmp_path / "f.pt2"
    assert pt2("weights", tmp_path / "s.pt2", "--from", tmp_path / "a.safetensors", "-o", filled).code == 0
    assert pt2kit.digest(filled).weights == pt2kit.digest(MLP).weights
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "a.pt2").rename(home / "a.pt2")
    refused = pt2("digest", home / "a.pt2")
    assert refused.code == 2
    assert "expected the file 'a.safetensors' next to the archive" in refused.err
    (home / "a.safetensors").symlink_to(tmp_path / "a.safetensors")
    assert "pass weights_root= with a folder" in pt2("digest", home / "a.pt2").err
    assert pt2("--weights-root", tmp_path, "digest", home / "a.pt2").code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--rename-input", "nobody=x"), "rename_input"),
        (("--rename-input", "x"), "expected OLD=NEW, got 'x'"),
        (("--drop-output", "7"), "drop_output"),
        (("--drop-weight", "0.weight"), "drop_weight"),
        (("--pass", "nothing"), "--pass: expected one of"),
        (("--specialize", "s0=x"), "--specialize: expected SYMBOL=N"),
        (("--cast", "nothing"), "nothing"),
        (("--external", "../w.safetensors"), "external: expected a file next to the archive"),
        (("--weights", "gone.safetensors"), "gone.safetensors"),
    ],
)
def test_what_cannot_be_made(tmp_path: Path, options: tuple[str, ...], text: str) -> None:
    """Exit code 2, an error that names the edit, and no file."""
    found = pt2("edit", MLP, tmp_path / "new.pt2", *options)
    assert found.code == 2
    assert text in found.err
    assert list(tmp_path.iterdir()) == []


def test_passes_are_listed() -> None:
    """Without a file."""
    found = pt2("edit", "--list-passes")
    assert found.code == 0
    assert {"dce", "cse"} <= set(found.out.split())


def test_to_standard_output(tmp_path: Path) -> None:
    """`-` writes the file itself, and nothing else, so that `--json` is refused."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "pt2kit", "edit", str(MLP), "-", "--pass", "dce"], capture_output=True, check=True
    )
    (tmp_path / "new.pt2").write_bytes(done.stdout)
    assert pt2kit.check(tmp_path / "new.pt2").ok
    refused = pt2("edit", MLP, "-", "--pass", "dce", "--json")
    assert (refused.code, refused.out) == (2, "")
    assert "expected a path as OUT with --json, got -" in refused.err


def test_whole_programs(tmp_path: Path) -> None:
    """Another element type, a dynamic dimension and sample inputs, in one call."""
    out, arrays = tmp_path / "new.pt2", tmp_path / "x.npz"
    np.savez(arrays, input=np.ones((5, 8), "f4"))
    found = pt2("edit", MLP, out, "--dynamic", "input.0=batch:1..64", "--sample-inputs", arrays, "--to", "bfloat16")
    assert found.code == 0, found.err
    assert "  input.0 is s0: 1 place\n" in found.out
    with pt2kit.open(out) as package:
        graph = package.graph()
        assert graph.outputs[0].shape == ("s0", 4)
        assert {value.dtype for value in graph.values.values()} == {"bfloat16"}
        held = package.sample_inputs()
        assert held is not None
        assert held[0][0].describe() == "bf16[5, 8]"
        limits = package.programs["model"].range_constraints["s0"]
        assert (limits.min_val, limits.max_val) == (1, 64)


@pytest.mark.parametrize("wish", ["input=1..4", "input.0=", "input.0=1.4", "input.0=batch:x..4"])
def test_a_malformed_dimension_is_a_usage_error(tmp_path: Path, wish: str) -> None:
    """The message shows the form."""
    found = pt2("edit", MLP, tmp_path / "new.pt2", "--dynamic", wish)
    assert found.code == 2
    assert "expected INPUT.DIM=[NAME:]LOW..HIGH, such as x.0=batch:1..64" in " ".join(found.err.split())


def test_errors_about_a_program_as_text_name_its_line(tmp_path: Path) -> None:
    """The line and column of the node, in front of its place in the program."""
    text = tmp_path / "m.txt"
    printed = pt2("show", MLP, "--text").out
    text.write_text(printed.replace("(input=%relu", "(input=%nope"))
    line = next(n for n, one in enumerate(printed.splitlines(), 1) if "(input=%relu" in one)
    found = pt2("edit", MLP, tmp_path / "out.pt2", "--program", text)
    assert found.code == 2
    assert f"m.txt: line {line}, column 3: $.graph_module.graph.nodes[2].inputs[0]: expected" in found.err
