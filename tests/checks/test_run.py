"""`check` as a whole: it takes anything that can be opened, goes on after what cannot be read, and raises nothing."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.checks.mutations import KEPT, MLP, graph
from tests.packages import edited, rewritten

import pt2kit
from pt2kit.checks import RULES, check
from pt2kit.errors import ArchiveError, Problem
from pt2kit.package import record_names as names
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import open_archive
from pt2kit.zip.source import Limits

MULTI = samples.sample("2.13.0", "multi_model_package")
CASES = {case["name"]: case for case in samples.hostile()}
NOT_CHECKED = {"op_lazy_namespace": "an operator of an unknown namespace may be somebody's; it is a note (T2)"}
"""Hostile files that a safe loader refuses, and that `check` has no complaint about, with the reason."""


def rules(problems: list[Problem]) -> list[str]:
    """The rules of problems, notes aside."""
    return [problem.rule for problem in problems if problem.kind != "note"]


@pytest.mark.parametrize("kind", ["path", "text", "bytes", "file", "package"])
def test_what_can_be_checked(kind: str) -> None:
    """A path, bytes, a file object and an open package give the same; the package stays open."""
    expected = check(MLP)
    data = MLP.read_bytes()
    files: dict[str, Any] = {"path": MLP, "text": str(MLP), "bytes": data, "file": io.BytesIO(data)}
    if kind != "package":
        assert check(files[kind]) == expected
        return
    with pt2kit.open(MLP) as package:
        assert check(package) == expected
        assert package.weights()


def test_closed_package() -> None:
    """It is a mistake of the caller, not of the file."""
    with pt2kit.open(MLP) as package:
        assert check(package).ok
    with pytest.raises(ArchiveError, match=r"\[A27\]"):
        check(package)


def test_a_sound_file() -> None:
    """An ordinary file has one note: its sample inputs are a pickle, of plain data."""
    [problem] = check(MLP, payloads=True)
    assert problem == Problem(
        "data/sample_inputs/model.pt", "X1", "torch unpickles the sample inputs: plain data", "note"
    )


def test_paths_that_cannot_be_opened() -> None:
    """A path that does not exist raises; it is no problem of a file."""
    with pytest.raises(FileNotFoundError, match=r"nowhere\.pt2"):
        check("nowhere.pt2")
    with pytest.raises(TypeError, match="expected a path, a URL, bytes or a binary file object, got int"):
        check(7)  # type: ignore[arg-type]


def test_limits_are_the_callers() -> None:
    """A file that asks for more than the caller allows has that as its problem."""
    [problem] = check(MLP, limits=Limits(max_entries=3))
    assert problem.rule == "A18"


def test_the_rest_goes_on() -> None:
    """A record that cannot be read is one problem; programs, payloads and findings next to it are looked at."""
    broken = rewritten(
        MULTI,
        {
            names.model_json("model"): b"[",
            names.weights_config("second"): b"{}",
            names.aotinductor("m", "x.so"): b"",
        },
    )
    found = check(broken)
    assert {(problem.loc.partition(":")[0], problem.rule) for problem in found if problem.kind != "note"} == {
        ("models/model.json", "J1"),
        ("data/weights/second_weights_config.json", "J5"),
        ("data/aotinductor/m/", "X8"),
    }


def test_all_problems_are_told() -> None:
    """Several breaches in one file are all there, in the order of the subpackages: graph, then operators."""

    def change(tree: Any) -> None:
        nodes = graph(tree)["nodes"]
        nodes[0]["inputs"][0]["arg"] = {"as_tensor": {"name": "ghost"}}
        nodes[1]["inputs"].append({"name": "bogus", "arg": {"as_int": 1}})
        tree["range_constraints"]["s0"] = {"min_val": 5, "max_val": 2}
        graph(tree)["tensor_values"]["relu"]["device"]["type"] = "evil"
        graph(tree)["tensor_values"]["linear"]["device"]["type"] = "worse"

    assert rules(check(edited(MLP, change))) == ["G1", "E3", "T3", "P6", "P6"]


def test_what_keeps_a_program_from_being_opened_is_told_once() -> None:
    """A bad device or range has its problem at its place, although the package gives the program not out."""
    found = check(edited(MLP, lambda tree: graph(tree)["tensor_values"]["relu"]["device"].update(type="evil")))
    assert [(problem.loc, problem.rule) for problem in found if problem.kind != "note"] == [
        ("models/model.json: $.graph_module.graph.tensor_values.relu: device", "P6")
    ]


def test_many_problems_are_counted() -> None:
    """Of one rule a thousand problems are listed, and the number of the others."""

    def change(tree: Any) -> None:
        values = graph(tree)["tensor_values"]
        values |= {f"left_{number}": values["relu"] for number in range(1500)}

    found = [problem for problem in check(edited(MLP, change)) if problem.rule == "G5"]
    assert len(found) == 1001
    assert found[-1].message == "and 500 more like these, the last one here"


def test_places_have_no_root_folder() -> None:
    """Records are named as they are below the root folder, whatever that is called."""
    found = check(rewritten(MLP, {names.weight(3): b"1234567"}))
    assert [(problem.rule, problem.loc) for problem in found if problem.kind == "error"] == [
        ("P10", "data/weights/weight_3: '2.bias'")
    ] or rules(found) == ["P9"]


@pytest.mark.parametrize("name", CASES)
def test_hostile_files(name: str) -> None:
    """A file that a safe loader refuses has an error or a safety finding; no file raises anything."""
    case = CASES[name]
    found = check(case["path"], payloads=True)
    grave = [problem for problem in found if problem.kind in ("error", "safety")]
    if case["safe_reader"]["action"] == "refuse":
        assert bool(grave) == (name not in NOT_CHECKED), found
    if name == "control_benign":
        assert grave == []
    for problem in found:
        assert problem.rule in RULES
        assert problem.severity in ("error", "warning", "note")
        assert len(str(problem)) < 3000
        json.dumps(str(problem))


def test_damaged_bytes_raise_nothing() -> None:
    """Whatever byte of a file is changed, `check` says something or nothing, and raises nothing."""
    data = bytearray(KEPT.read_bytes())
    choose = random.Random(0)
    for _ in range(150):
        place, old = choose.randrange(len(data)), None
        old, data[place] = data[place], choose.randrange(256)
        check(bytes(data), payloads=True)
        data[place] = old


@pytest.mark.parametrize("seed", range(6))
def test_damaged_programs_raise_nothing(seed: int) -> None:
    """Whatever part of a program's JSON is replaced by another part of it, `check` raises nothing."""
    choose = random.Random(seed)
    path = choose.choice(samples.corpus("2.13.0", "2.9.1", "2.8.0", "2.5.1", "2.2.2"))
    with open_archive(path) as archive:
        layout = detect(archive)
        record = layout.relative(layout.program_record(layout.models[0]))
        text = bytes(archive.read(layout.record(record)))
    for _ in range(15):
        tree = json.loads(text)
        places = list(_places(tree))
        for _ in range(choose.randrange(1, 4)):
            holder, key = choose.choice(places)
            other, source = choose.choice(places)
            try:
                holder[key] = choose.choice([other[source], None, -1, "", "x" * 50, [], {}, 2**70])
            except (KeyError, IndexError):
                continue
        try:
            data = json.dumps(tree).encode()
        except (ValueError, RecursionError):
            continue
        check(rewritten(path, {record: data}))


def _places(tree: Any) -> Any:
    """Every holder and key of a tree."""
    stack = [tree]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        for key in keys:
            yield node, key
            if isinstance(node[key], dict | list):
                stack.append(node[key])


def test_showing_needs_no_rules() -> None:
    """The imports of `pt2 show` do not include the table of operators or the rules that need it."""
    code = (
        "import sys, pt2kit.text.summary, pt2kit.checks as c; "
        "sys.exit(any(f'pt2kit.checks.{name}' in sys.modules for name in ('schemas', 'operators', 'run')))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_files_of_other_releases() -> None:
    """A file of each older release is checked like a new one, and its places name its own record."""
    for release in samples.RELEASES:
        path = samples.sample(release, "mlp")
        assert rules(check(path)) == []
        plain = release.split(".") < ["2", "8"] and release not in samples.CURRENT_LAYOUT
        if plain:
            record = names.PLAIN_PROGRAM
            found = check(_without_relu(path, record))
            assert {problem.loc.partition(":")[0] for problem in found if problem.rule == "G1"} == {record}


def _without_relu(path: Path, record: str) -> bytes:
    """A file whose second node is gone."""

    def change(tree: Any) -> None:
        graph(tree)["nodes"].pop(1)

    return edited(path, change, record)
