"""`pt2 show`: what is in a file, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.cli.run import pt2
from tests.packages import edited, rewritten
from tests.text.golden import FOLDER, GRAPHS, SUMMARIES
from tests.zip.range_server import serve

from pt2kit.package import record_names as names

MLP = samples.sample("2.13.0", "mlp")
COND = samples.sample("2.13.0", "cond_params")
TWO = samples.sample("2.13.0", "multi_model_package")


def _json(*args: str | Path) -> Any:
    found = pt2("show", *args, "--json")
    assert (found.code, found.err) == (0, "")
    return json.loads(found.out)


def _written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "changed.pt2"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", SUMMARIES[:4])
def test_summary(name: str) -> None:
    """Without an option: one line about the file, then its summary."""
    path = samples.sample("2.13.0", name)
    found = pt2("show", path)
    first, rest = found.out.split("\n", 1)
    assert (found.code, found.err) == (0, "")
    assert first.startswith(f"{path}  ")
    assert rest == (FOLDER / f"{name}.summary.txt").read_text(encoding="utf-8")


def test_summary_as_json() -> None:
    """The keys of the summary are those of the documentation."""
    tree = _json(COND)
    assert (tree["file"], tree["producer"], tree["records"]) == (str(COND), "torch 2.13.0+cpu", 14)
    [model] = tree["models"]
    assert model["parameters"] == {
        "total": {"tensors": 4, "elements": 40, "bytes": 160},
        "dtypes": {"float32": {"tensors": 4, "elements": 40, "bytes": 160}},
        "opaque": {},
    }
    assert model["modules"]["children"][0]["fqn"] == "a"
    assert tree["safety"] == [
        {
            "loc": "data/sample_inputs/model.pt",
            "rule": "X1",
            "message": "torch unpickles the sample inputs: plain data",
            "kind": "note",
        }
    ]


def test_standard_input() -> None:
    """A dash reads standard input, a pipe included."""
    found = pt2("show", "-", stdin=MLP.read_bytes())
    assert found.code == 0
    assert found.out.split("\n")[1:] == pt2("show", MLP).out.split("\n")[1:]


def test_url() -> None:
    """A URL is read like a file."""
    with serve(MLP.parent) as server:
        found = pt2("show", server.url(MLP.name))
    assert (found.code, found.err) == (0, "")
    assert found.out.split("\n")[1:] == pt2("show", MLP).out.split("\n")[1:]


@pytest.mark.parametrize("name", GRAPHS[:2])
def test_graph(name: str) -> None:
    """`--graph` prints the whole program."""
    found = pt2("show", samples.sample("2.13.0", name), "--graph")
    assert (found.code, found.out) == (0, (FOLDER / f"{name}.graph.txt").read_text(encoding="utf-8"))


def test_graph_as_json(tmp_path: Path) -> None:
    """`--graph --json` is the program, raised to the current version, with the keys that this build does not know."""
    tree = _json(MLP, "--graph")
    assert [node["target"] for node in tree["graph_module"]["graph"]["nodes"]][1] == "torch.ops.aten.relu.default"
    path = _written(tmp_path, edited(MLP, lambda tree: tree.update(novelty=[1])))
    assert _json(path, "--graph") == {**tree, "novelty": [1]}


def test_node() -> None:
    """`--node` prints a node, by its name or a value's, with those who use it."""
    found = pt2("show", COND, "--node", "getitem")
    assert found.code == 0
    assert found.out.startswith("%cond: torch.ops.higher_order.cond, in the graph\ninputs\n")
    assert "used by\n  add  aten.add.Tensor\n" in found.out
    [entry] = _json(COND, "--node", "cond/true_graph_0/sum_1")
    assert entry["path"] == "cond/true_graph_0/sum_1"
    assert entry["values"] == ["sum_1"]
    assert entry["node"]["target"] == "torch.ops.aten.sum.dim_IntList"
    assert entry["users"] == ["the graph's outputs"]
    assert len(_json(COND, "--node", "linear")) == 2
    assert _json(COND, "--node", "x")[0]["node"] is None


def test_module() -> None:
    """`--module` prints the tensors and nodes of a module and those below it; "" is the root."""
    found = pt2("show", samples.sample("2.13.0", "dynamic_batch"), "--module", "a")
    assert found.code == 0
    assert [line.split()[0] for line in found.out.splitlines()] == ["2", "a.weight", "a.bias", "1", "%linear:"]
    tree = _json(samples.sample("2.13.0", "dynamic_batch"), "--module", "")
    assert (tree["module"], len(tree["tensors"]), len(tree["nodes"])) == ("", 4, 3)
    assert pt2("show", samples.sample("2.13.0", "empty_graph"), "--module", "").out == "0 nodes\n"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--node", "rel"], "expected a node or a value 'rel', got none of that name; did you mean relu?"),
        (["--node", "zzz\x1b"], "'zzz\\x1b', got none of that name\n"),
        (["--module", "7"], "expected a module '7', got no node or tensor of it\n"),
        (["--model", "nope"], "expected a program, one of 'model', got 'nope'"),
    ],
)
def test_what_is_not_there(args: list[str], text: str) -> None:
    """A name that is not in the file ends with 2 and one line; a name like it is offered."""
    found = pt2("show", MLP, *args)
    assert (found.code, found.out) == (2, "")
    assert text in found.err
    assert found.err.count("\n") == 1


def test_models() -> None:
    """`--model` chooses; without it the summary shows all of them, and the graph is that of "model"."""
    assert pt2("show", TWO, "--model", "second").out.startswith("second  schema 8.20, 1 node\n")
    assert _json(TWO, "--model", "second")["name"] == "second"
    assert pt2("show", TWO, "--graph").out != pt2("show", TWO, "--graph", "--model", "second").out


def test_no_program(tmp_path: Path) -> None:
    """A package of compiled code alone has a summary and records; its graph is asked for in vain."""
    changes = {names.model_json("model"): None, names.aotinductor("m", "m.so"): b"code"}
    path = _written(tmp_path, rewritten(MLP, changes))
    found = pt2("show", path)
    assert found.code == 0
    assert "compiled code for m\n" in found.out
    assert "X8  data/aotinductor/m/: torch loads compiled code (1 record)" in found.out
    assert pt2("show", path, "--records").code == 0
    found = pt2("show", path, "--graph")
    assert (
        found.code,
        "expected a program, got an archive without one: it has compiled code alone (of m)" in found.err,
    ) == (2, True)


def test_records() -> None:
    """`--records` lists every record with its kind and sizes."""
    found = pt2("show", MLP, "--records")
    rows = _json(MLP, "--records")
    assert found.out.count("\n") == len(rows) + 1
    assert found.out.startswith(f"{len(rows)} records, ")
    assert set(rows[0]) == {"name", "kind", "bytes", "stored_bytes", "method", "crc32"}
    assert {row["kind"] for row in rows} >= {"program", "weight", "weights config", "sample inputs", "header"}


def test_records_of_a_broken_program(tmp_path: Path) -> None:
    """Records are listed without reading any program."""
    path = _written(tmp_path, rewritten(MLP, {names.model_json("model"): b"{"}))
    assert pt2("show", path, "--records").code == 0
    assert pt2("show", path).code == 2


def test_trouble_is_exit_code_1(tmp_path: Path) -> None:
    """A file that is shown, but contradicts itself, ends with 1; the summary has the problem."""
    path = _written(tmp_path, rewritten(MLP, {names.weight(0): None}))
    found = pt2("show", path)
    assert (found.code, found.err) == (1, "")
    assert "\n  problems     " in found.out
    assert pt2("show", path, "--json").code == 1
    assert pt2("show", path, "--model", "model").code == 1


def test_older_layouts() -> None:
    """A file of an older release is shown, or refused in one line that names its layout."""
    for release in ("2.1.2", "2.5.1", "2.8.0"):
        found = pt2("show", samples.sample(release, "mlp"))
        assert found.code in (0, 2)
        if found.code == 2:
            assert "plain zip" in found.err or "2.8" in found.err
            assert found.err.count("\n") == 1


@pytest.mark.parametrize(
    ("release", "text"),
    [
        ("2.1.2", "written by   torch 2.1, layout of torch 2.1\n"),
        ("2.6.0", "written by   torch 2.6.0+cu124, layout of torch 2.4 to 2.7\n"),
        ("2.8.0", "written by   torch 2.8.0+cu128, layout of torch 2.8\n"),
    ],
)
def test_old_files(release: str, text: str) -> None:
    """A file of any release is shown like one of today, its extra files among it."""
    found = pt2("show", samples.sample(release, "extra_files"))
    assert (found.code, found.err) == (0, "")
    assert text in found.out
    assert "extra files\n  note.txt" in found.out
    assert "  forward(" in found.out


def test_records_of_a_plain_zip() -> None:
    """Each is named by what it is."""
    kinds = {row["name"]: row["kind"] for row in _json(samples.sample("2.7.1", "extra_files"), "--records")}
    assert kinds == {
        "serialized_exported_program.json": "program",
        "serialized_state_dict.pt": "weights payload",
        "serialized_constants.pt": "constants payload",
        "serialized_example_inputs.pt": "sample inputs",
        "version": "header",
        "extra_files/note.txt": "extra file",
        "extra_files/dir/info.json": "extra file",
    }


def test_bare_json() -> None:
    """A program's JSON without an archive is shown too."""
    found = pt2("show", samples.DATA.parent / "golden" / "programs" / "draft.json")
    assert (found.code, found.err) == (0, "")
    assert "written by   no release: schema draft, layout of a JSON file without an archive\n" in found.out


def test_containers(tmp_path: Path) -> None:
    """Delegates and devices of an 8.6 container are shown."""
    program = json.loads((samples.DATA.parent / "golden" / "8.6" / "ExportedProgram.json").read_text())
    model = {
        "name": "m",
        "tensorPaths": {},
        "program": {"methods": {"forward": program}},
        "delegates": {"npu": {"methods": {"go": program}}},
        "deviceAllocationMap": {"cuda:0": "cuda:1"},
        "constantPaths": {},
    }
    path = tmp_path / "m.json"
    path.write_text(json.dumps(model))
    found = pt2("show", path)
    assert "  delegate     npu: go\n  devices      cuda:0 to cuda:1\n" in found.out
    [row] = _json(path)["models"]
    assert (row["delegates"], row["devices"], row["oldest_version"]) == ({"npu": ["go"]}, {"cuda:0": "cuda:1"}, "")


@pytest.mark.parametrize(
    ("name", "version", "release"), [("mlp", "1", "2.1"), ("float8", "8.7", "2.7"), ("complex_scalar", "8.14", "2.9")]
)
def test_oldest_release(name: str, version: str, release: str) -> None:
    """On demand: the oldest release that could read a program, once it is converted."""
    path = samples.sample("2.13.0", name)
    text = f"  oldest       torch {release} could read it, once converted to schema {version}\n"
    assert text in pt2("show", "--oldest", path).out
    assert "  oldest " not in pt2("show", path).out
    assert _json(path, "--oldest")["models"][0]["oldest_version"] == version
    assert _json(path, "--oldest", "--model", "model")["oldest_version"] == version
