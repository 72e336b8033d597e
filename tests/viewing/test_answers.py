"""Answers: each request of a page, on real files, as JSON; errors as data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.diffs.cases import with_other_bytes

import pt2kit
from pt2kit.symbols.polynomials import hint
from pt2kit.viewing.answers import Answers
from pt2kit.viewing.draw import checked_data

SOME = samples.corpus()[::17]
DYNAMIC = samples.sample("2.13.0", "dynamic_batch")


def ask(answers: Answers, request: str) -> Any:
    """An answer as a tree."""
    return json.loads(answers.answer(request))


@pytest.mark.parametrize("path", SOME, ids=samples.release_id)
def test_everything_of_real_files(path: Path) -> None:
    """Every request of a page has an answer, for files of all releases."""
    answers = Answers(path)
    for request in answers.all_requests(tensors=True):
        found = ask(answers, request)
        if "error" in found and len(found) == 1:
            assert request.startswith("tensor/"), found
            assert "expected a tensor" in found["error"]
    answers.close()


def test_details() -> None:
    """A node's arguments have their names, its values their strides, its trace its frames."""
    answers = Answers(DYNAMIC)
    details = ask(answers, "details/0/0")
    answers.close()
    linear = details[1]
    assert [row["name"] for row in linear["arguments"]] == ["input", "weight", "bias"]
    assert linear["results"][0]["type"] == "f32[s77, 16]"
    assert linear["results"][0]["strides"] == "[16, 1]"
    assert linear["frames"][-1]["line"] > 0
    assert details[0]["results"][0]["name"] == "x"


def test_details_of_several_numbers() -> None:
    """An argument that is a list of numbers of the program has the details of each."""
    answers = Answers(samples.sample("2.13.0", "dynamic_two_dims"))
    [size] = [row for node in ask(answers, "details/0/0") for row in node["arguments"] if row["text"] == "[%mul, %add]"]
    answers.close()
    assert [value["name"] for value in size["values"]] == ["mul", "add"]


def test_a_picture_that_was_prepared_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page gets the picture prepared while the browser starts."""
    answers = Answers(DYNAMIC)
    answers.prepare()
    monkeypatch.setattr("pt2kit.viewing.answers.draw", None)
    assert ask(answers, "program/0")["nodes"]
    answers.close()


def test_an_error_of_preparing_waits_for_the_page(tmp_path: Path) -> None:
    """A program that cannot be read stops nothing before a page asks for it."""
    broken = tmp_path / "broken.json"
    broken.write_bytes(b'{"graph_module": 1, "schema_version": {"major": 8, "minor": 20}}')
    for path in (broken, tmp_path / "missing.pt2"):
        answers = Answers(path)
        answers.prepare()
        assert answers.index().error or "error" in ask(answers, "program/0")
        answers.close()


def test_facts() -> None:
    """The call, the tree, the signature and the symbols."""
    answers = Answers(DYNAMIC)
    facts = ask(answers, "facts/0")
    answers.close()
    assert facts["call"] == ["forward(x: f32[s77, 8]) -> f32[s77, 4]"]
    assert facts["symbols"] == [["s77", "2 … 64"]]
    assert facts["inputs"][0] == ["parameter", "p_a_weight", "a.weight", "f32[16, 8]"]
    assert [2, "[0]", "f32[s77, 8]"] in facts["tree"]


def test_tensor() -> None:
    """Numbers of a tensor: statistics, a histogram of all elements, a slice."""
    answers = Answers(DYNAMIC)
    found = ask(answers, "tensor/0/0")
    with pt2kit.open(DYNAMIC) as package:
        array = package.weights()["a.weight"].numpy()
    answers.close()
    assert found["statistics"]["max"] == pytest.approx(float(array.max()))
    assert sum(found["counts"]) == found["counted"] == array.size
    assert found["heat"]["rows"], found["heat"]["columns"] == array.shape
    assert found["heat"]["cells"][3][5] == pytest.approx(float(array[3, 5]))


def test_findings_name_their_node(tmp_path: Path) -> None:
    """Findings of `check` have the number of their node, or of the node that defines their value."""
    from benchmarks.pictures import written

    answers = Answers(written("layers", 1, tmp_path / "layers.json"))
    findings = ask(answers, "findings/0")
    picture = ask(answers, "program/0")
    answers.close()
    [first] = [row for row in findings if row["place"].endswith("nodes[0].inputs[0].name")]
    assert first["rule"] == "T3"
    assert picture["texts"][picture["nodes"]["name"][first["node"]]] == "norm1_0_0"


def test_changes() -> None:
    """Two files: what is new is marked, what is gone is drawn, each change says where it is."""
    answers = Answers(samples.sample("2.13.0", "convnet"), DYNAMIC)
    picture, changes = ask(answers, "program/0"), ask(answers, "changes/0")
    answers.close()
    nodes = {picture["texts"][name]: number for number, name in enumerate(picture["nodes"]["name"])}
    assert picture["nodes"]["status"][nodes["conv2d"]] == 1
    assert 2 in picture["nodes"]["status"]
    gone = picture["nodes"]["status"].index(2)
    assert gone in picture["edges"]["target"]
    [row] = [change for change in changes if change["area"] == "node" and change["name"] == "conv2d"]
    assert (row["kind"], row["node"]) == ("added", nodes["conv2d"])
    assert any(change["weight"] >= 0 for change in changes if change["area"] == "weight")


def test_costs() -> None:
    """Costs are numbers of the drawn nodes at the sizes of the export; inputs, outputs and removed nodes have none."""
    answers = Answers(DYNAMIC, samples.sample("2.13.0", "convnet"))
    picture, costs = ask(answers, "program/0"), ask(answers, "costs/0")
    answers.close()
    with pt2kit.open(DYNAMIC) as package:
        expected = {node.path: hint(node.flops) for node in pt2kit.cost(package).nodes}
    nodes = picture["nodes"]
    found = zip(nodes["name"], nodes["kind"], nodes["status"], costs["FLOPs"], strict=True)
    for name, kind, status, flops in found:
        assert flops == (expected.get(picture["texts"][name]) if kind == 0 and status != 2 else None)
    assert max(flops or 0 for flops in costs["FLOPs"]) > 0
    assert set(costs) == {"FLOPs", "bytes moved", "activation memory"}


def test_errors_of_two_runs() -> None:
    """Results of `compare_runs` are shown by node; nodes of other sizes have no number."""
    old, new = with_other_bytes("mlp", "weights")
    data = checked_data(pt2kit.compare_runs(old, new), "data")
    assert set(data) == {"largest error", "mean error", "1 - cosine"}
    assert max(data["largest error"].values()) > 0
    assert all(math.isfinite(number) for column in data.values() for number in column.values())
    assert 'data-request="data"' in pt2kit.view(new, old, data=pt2kit.compare_runs(old, new)).page


def test_a_file_compared_with_itself() -> None:
    """Nothing is marked and nothing listed."""
    answers = Answers(DYNAMIC, DYNAMIC)
    assert ask(answers, "changes/0") == []
    assert set(ask(answers, "program/0")["nodes"]["status"]) == {0}
    answers.close()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The index says why; there is no program."""
    path = tmp_path / "bad.pt2"
    path.write_bytes(b"nothing")
    answers = Answers(path)
    index = ask(answers, "index")
    assert index["programs"] == []
    assert "bad.pt2" in index["error"]
    with pytest.raises(KeyError, match="program 0"):
        answers.answer("program/0")


def test_a_missing_file() -> None:
    """A path that is not there is an error in the page, too."""
    assert "No such file" in Answers("no-such-file.pt2").index().error


def test_an_open_package_stays_open() -> None:
    """A package that was handed in is not closed."""
    with pt2kit.open(DYNAMIC) as package:
        Answers(package).close()
        assert package.weights()["a.weight"].numpy().shape == (16, 8)
