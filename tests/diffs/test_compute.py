"""Differences between two files: models, programs, tensors, records."""

from __future__ import annotations

import random
import re
import zipfile
from pathlib import Path

import pytest
from tests.digests.packing import packed, records, renumbered, shuffled_keys, with_json
from tests.samples import CURRENT_LAYOUT, corpus, release_id, sample

import pt2kit
from pt2kit import codec
from pt2kit.diffs import ValueDifference, diff

LATEST = CURRENT_LAYOUT[-3]
OTHERS = [path for path in corpus(LATEST) if path.stem != "multi_model_package"]


@pytest.mark.parametrize("path", OTHERS, ids=release_id)
def test_a_file_packed_in_another_way_is_the_same(path: Path) -> None:
    """Root folder, compression, order and numbers of records, order of keys."""
    found, rng = records(path), random.Random(0)
    renamed = renumbered(with_json(found, ".json", lambda tree: shuffled_keys(tree, rng)))
    other = dict(rng.sample(list(renamed.items()), len(renamed)))
    assert diff(path, packed(other, root="other", method=zipfile.ZIP_DEFLATED)).changes == ()


def test_releases_wrote_the_same_program() -> None:
    """Only metadata differs between what two releases exported."""
    found = diff(sample(CURRENT_LAYOUT[0], "mlp"), sample(LATEST, "mlp"))
    assert {change.area for change in found.changes if not change.is_described_only} <= {"metadata", "record"}
    assert diff(sample(CURRENT_LAYOUT[0], "mlp"), sample(LATEST, "mlp"), metadata=False).models.keys() == {"model"}


def test_changed_numbers_are_found() -> None:
    """By how much, and where; or not at all, if they are not to be read."""
    path = sample(LATEST, "mlp")
    found = records(path)
    name = next(name for name in found if name.endswith("weight_0"))
    other = packed({**found, name: bytes(4) + found[name][4:]})
    [change] = diff(path, other).changes
    assert (change.kind, change.area, change.model) == ("modified", "weight", "model")
    [detail] = change.details
    assert detail.what == "values"
    assert isinstance(detail.new, ValueDifference)
    assert detail.new.changed == 1
    assert diff(path, other, tensors=False).same
    assert not diff(path, other, tensors=False).tensors_compared


def test_renamed_parameters_are_compared() -> None:
    """A moved module: its parameters have other names and the same numbers."""
    path = sample(LATEST, "mlp")
    moved = {name: data.replace(b'"0.weight"', b'"a.weight"') for name, data in records(path).items()}
    found = diff(path, packed(moved)).changes
    assert {(change.kind, change.area, change.name) for change in found} == {
        ("modified", "input", "a.weight"),
        ("modified", "weight", "a.weight"),
    }
    assert {(detail.what, detail.old, detail.new) for change in found for detail in change.details} == {
        ("name", "0.weight", "a.weight")
    }


def test_an_edited_package_differs_by_its_edits_alone(tmp_path: Path) -> None:
    """Records that an editor hands on are as they were in the file, before it is written and afterwards."""
    path = sample(LATEST, "extra_files")
    with pt2kit.open(path) as package:
        with pt2kit.edit(package) as editor:
            editor.set_weight("weight", editor.weights["weight"].numpy() + 1)
        pt2kit.write(editor.result, tmp_path / "edited.pt2")
        for edited in (editor.result, tmp_path / "edited.pt2"):
            assert [(change.area, change.name) for change in diff(package, edited).changes] == [("weight", "weight")]
        assert not diff(editor.result, tmp_path / "edited.pt2").changes


def test_records_beside_the_programs_are_compared() -> None:
    """Extra files and sample inputs, by their bytes; headers are not."""
    found = records(sample(LATEST, "extra_files"))
    extra = [name for name in found if name.startswith("extra/")]
    changed = {name: data for name, data in found.items() if name != extra[0]}
    changed |= {"extra/new.txt": b"new", ".data/serialization_id": b"0" * 40}
    if len(extra) > 1:
        changed[extra[1]] = found[extra[1]] + b"!"
    told = [(change.kind, change.name) for change in diff(packed(found), packed(changed)).changes]
    assert told[0] == ("removed", extra[0])
    assert ("added", "extra/new.txt") in told
    assert {name for _, name in told} <= {*extra, "extra/new.txt"}
    assert (("modified", extra[1]) in told) == (len(extra) > 1)


def test_models_are_compared_by_name() -> None:
    """Those that came and went are named; the only models of two files correspond whatever they are called."""
    path = sample(LATEST, "multi_model_package")
    found = records(path)
    with pt2kit.open(path) as package:
        models = package.layout.models
    less = {name: data for name, data in found.items() if not re.search(rf"/{models[0]}[._]", name)}
    told = [(change.kind, change.area, change.name) for change in diff(path, packed(less)).changes]
    assert ("removed", "model", models[0]) in told
    assert ("added", "model", models[0]) in [
        (change.kind, change.area, change.name) for change in diff(packed(less), path).changes
    ]
    one = records(sample(LATEST, "mlp"))
    renamed = {name.replace("model.json", "other.json").replace("model_", "other_"): data for name, data in one.items()}
    renamed = {name.replace("sample_inputs/model", "sample_inputs/other"): data for name, data in renamed.items()}
    changes = diff(packed(one), packed(renamed)).changes
    assert (changes[0].kind, changes[0].area, changes[0].name) == ("modified", "model", "other")
    assert {change.area for change in changes} <= {"model", "record"}


def test_keys_that_this_build_does_not_know_are_compared() -> None:
    """In the program and in the configs of its tensors."""
    found = records(sample(LATEST, "mlp"))
    program = packed(with_json(found, "models/model.json", lambda tree: {**tree, "brand_new": 1}))
    config = packed(with_json(found, "weights_config.json", lambda tree: {**tree, "brand_new": 1}))
    assert [change.name for change in diff(packed(found), program).changes] == ["$.brand_new"]
    assert [change.name for change in diff(packed(found), config).changes] == ["weights: $.brand_new"]
    assert diff(program, program).same


def test_differences_are_json() -> None:
    """With a summary that counts them."""
    tree = diff(sample(LATEST, "mlp"), sample(LATEST, "convnet")).to_tree()
    again = codec.parse(codec.encode(tree), "diff")
    assert sum(row["count"] for row in again["summary"]) == len(again["changes"]) > 10
    assert again["same"] is False
    assert {"kind", "area", "model", "name", "module", "old", "new", "details", "graph"} == set(again["changes"][0])
