"""Digests of files: the same for the same program, however it is stored; others for any other; verified in parts."""

from __future__ import annotations

import json
import random
import zipfile
from dataclasses import replace as with_changes
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.canonical.programs import A, B, node, program, rewritten, tensor_graph
from tests.digests.packing import packed, records, renumbered, shuffled_keys, with_json, without_traces
from tests.graph.build import arg
from tests.narrow import records as records_of
from tests.packages import bytes_of
from tests.samples import CURRENT_LAYOUT, DATA, corpus, release_id, sample

import pt2kit
from pt2kit import codec, schema
from pt2kit.canonical import writes
from pt2kit.digests import Digest, digest, digest_program, payloads_of, verify
from pt2kit.errors import ArchiveError, PayloadError, UnsupportedError
from pt2kit.graph import walk
from pt2kit.tensors import OpaquePayload, Storage

LATEST = CURRENT_LAYOUT[-3]
FILES = corpus(CURRENT_LAYOUT[0], LATEST)
OTHERS = [path for path in FILES if path.stem != "multi_model_package"]


def meaning(found: Digest) -> dict[str, Any]:
    """All digests but that of the metadata."""
    tree = found.to_tree()
    del tree["metadata"]
    return tree


@pytest.mark.parametrize("path", OTHERS, ids=release_id)
def test_digests_are_those_of_the_program_not_of_the_file(path: Path) -> None:
    """Packing, record names and order, JSON layout, names of values, order of nodes: the digests stay."""
    found, rng = records(path), random.Random(0)
    before = digest(path)
    repacked = dict(rng.sample(list(renumbered(found).items()), len(found)))
    rewritten_json = with_json(found, ".json", lambda tree: shuffled_keys(tree, rng))
    assert digest(packed(found, root="other", method=zipfile.ZIP_DEFLATED)) == before
    assert digest(packed(repacked)) == before
    assert digest(packed(rewritten_json)) == before
    assert meaning(digest(packed(with_json(found, "models/model.json", without_traces)))) == meaning(before)

    stored = codec.decode(found["models/model.json"], schema.ExportedProgram, "program").value
    if not _writes(stored):
        other = {**found, "models/model.json": codec.encode(rewritten(stored, 5))}
        assert meaning(digest(packed(other))) == meaning(before)


def _writes(stored: schema.ExportedProgram) -> bool:
    return any(writes(step.node) for step in walk(stored))


def test_one_program_has_one_digest_in_all_releases() -> None:
    """Exports of one model by torch 2.9 and torch 2.15 are one program."""
    found = {digest(sample(release, "mlp")).program for release in CURRENT_LAYOUT if sample(release, "mlp").exists()}
    assert len(found) == 1


def test_models_of_one_package_have_their_own_digests() -> None:
    """Each model is digested with its own weights."""
    with pt2kit.open(sample(LATEST, "multi_model_package")) as package:
        found = [digest(package, model) for model in package.layout.models]
        assert len({one.program for one in found}) == len(found) > 1
        with pytest.raises(ArchiveError, match=r"expected a program, one of .*, got \'nobody\'"):
            digest(package, "nobody")


def test_programs_can_be_digested_alone() -> None:
    """The parts that need no tensors are those of the file."""
    with pt2kit.open(sample(LATEST, "cond")) as package:
        found = digest_program(package.programs["model"])
        assert found == {part: getattr(digest(package), part) for part in found}
        assert sorted(found) == ["constraints", "graph", "metadata", "signature"]


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all plain values, and of all lists and objects that could be empty instead."""
    found = [path] if not isinstance(tree, dict | list) or tree else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found += leaves(value, (*path, key))
    return found


def changed(tree: Any, path: tuple[Any, ...]) -> Any:
    """A copy of a tree with the value at one place changed into another one of its type."""
    if path:
        key, *rest = path
        copy = dict(tree) if isinstance(tree, dict) else list(tree)
        copy[key] = changed(tree[key], tuple(rest))
        return copy
    if isinstance(tree, bool):
        return not tree
    if isinstance(tree, int):
        return tree + 1
    if isinstance(tree, float):
        return tree + 1.0
    if isinstance(tree, str):
        return f"{tree}x"
    return True if tree is None else type(tree)()


def converted(tree: Any) -> schema.ExportedProgram:
    """The program that a tree is."""
    return codec.convert(tree, schema.ExportedProgram, "program").value


OLDER = json.loads((DATA / "digests_2.json").read_text())
PROGRAMS = ["kwargs_and_nested_inputs", "cond", "dynamic_batch", "none_input", "namedtuple_io", "preserve_module_sig"]
PROGRAMS += [
    "inf_nan_floats",
    "buffer_mutation__decomp",
    "int_list_and_optional_args",
    "constants",
    "training_loss_joint",
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_field_of_a_program_counts(name: str) -> None:
    """Whatever is changed in a program, a digest changes; if it is no metadata, it is the digest of a meaning."""
    stored = codec.decode(records(sample(LATEST, name))["models/model.json"], schema.ExportedProgram, "p").value
    before, tree = digest_program(stored), codec.to_tree(stored)
    counted = 0
    for path in leaves(tree):
        if {"schema_version", "storage_offset"} & {*path} or _is_label(tree, path):
            continue
        try:
            other = converted(changed(tree, path))
            after = digest_program(other)
        except pt2kit.Pt2Error:
            continue
        if codec.encode(other) == codec.encode(stored):
            continue
        counted += 1
        differs = [part for part in before if before[part] != after[part]]
        is_metadata = "metadata" in path or path[-1:] == ("torch_version",)
        assert differs == ["metadata"] if is_metadata else differs, (path, differs)
    assert counted > 50


def _is_label(tree: Any, path: tuple[Any, ...]) -> bool:
    """Return whether a place holds the name of a node or subgraph, or how an argument is passed."""
    holders = [tree]
    for key in path[:-1]:
        holders.append(holders[-1][key])
    holder = holders[-1]
    if not path or not isinstance(holder, dict) or path[-1] not in ("name", "kind"):
        return False
    if {"arg", "kind"} <= holder.keys():  # An argument: what it gets by place has no name that counts.
        target: str = holders[-3]["target"]
        return path[-1] == "kind" or not target.startswith("torch.ops.") or target.startswith("torch.ops.higher_order.")
    return "target" in holder or "graph" in holder


def test_what_is_written_when_counts() -> None:
    """Arguments do not show whether a value is read before it is written or after; the stored order does."""
    write = node("torch.ops.aten.add_.Tensor", ["w"], arg(as_tensor="x"))
    read, other = node(A, ["y"], arg(as_tensor="x")), node(B, ["z"], arg(as_tensor="x"))
    found = [
        digest_program(program(tensor_graph(["x"], order, ["y"])))["graph"]
        for order in ([write, read], [read, write], [read, other, write], [other, read, write])
    ]
    assert len(set(found)) == 3
    assert found[2] == found[3]


def test_the_place_of_a_constant_among_the_arguments_counts() -> None:
    """`f(x, None, y)` and `f(x, y, None)` are called in different ways; the normal form alone forgets it."""
    stored = codec.decode(records(sample(LATEST, "none_input"))["models/model.json"], schema.ExportedProgram, "p").value
    tree = codec.to_tree(stored)
    for holder, key in ((tree["graph_module"]["graph"], "inputs"), (tree["graph_module"]["signature"], "input_specs")):
        holder[key][1], holder[key][2] = holder[key][2], holder[key][1]
    after = digest_program(converted(tree))
    before = digest_program(stored)
    assert [part for part in before if before[part] != after[part]] == ["signature"]


def _with_key(value: int, tree: Any) -> Any:
    return {**tree, "brand_new": value}


def test_keys_that_this_build_does_not_know_count() -> None:
    """A newer minor may give them any meaning; in the program and in the configs of its tensors."""
    found = records(sample(LATEST, "mlp"))
    before = digest(packed(found))
    one, two = (digest(packed(with_json(found, "models/model.json", partial(_with_key, n)))) for n in (1, 2))
    assert len({before.graph, one.graph, two.graph}) == 3
    assert {one.signature, two.signature} == {before.signature}

    def add(tree: Any) -> Any:
        return {"config": {name: {**row, "brand_new": 1} for name, row in tree["config"].items()}}

    config = digest(packed(with_json(found, "weights_config.json", add)))
    assert (config.weights != before.weights, config.constants == before.constants) == (True, True)


def test_bytes_of_tensors_are_read_once_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress goes from nothing to all, and no storage is kept."""
    seen: list[tuple[int, int]] = []
    with pt2kit.open(packed(records(sample(LATEST, "shared_weights")), method=zipfile.ZIP_DEFLATED)) as package:
        reads: list[str] = []
        read = package.archive.read

        def counted(name: str, **options: Any) -> memoryview:
            reads.append(name)
            return read(name, **options)

        monkeypatch.setattr(package.archive, "read", counted)
        digest(package, progress=lambda done, total: seen.append((done, total)))
        payloads = [name for name in reads if "/weight_" in name]
        assert sorted(payloads) == sorted(set(records_of(package.weights().values())))
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1] > 0
    assert seen == sorted(seen)


def test_a_damaged_tensor_is_refused() -> None:
    """A bool that is neither true nor false has no elements to digest."""
    found = records(sample(LATEST, "dtypes"))
    config = json.loads(found["data/weights/model_weights_config.json"])["config"]
    config |= json.loads(found["data/constants/model_constants_config.json"])["config"]
    bools = [row["path_name"] for row in config.values() if (row["tensor_meta"] or {}).get("dtype") == 12]
    if not bools:
        pytest.skip("the sample has no bools")
    name = next(name for name in found if name.endswith(f"/{bools[0]}"))
    with pytest.raises(PayloadError, match="P13"):
        digest(packed({**found, name: b"\x07" * len(found[name])}))


def test_digests_are_verified() -> None:
    """All of them, some parts, single tensors; what was expected and is not there; what is there and was not."""
    path = sample(LATEST, "mlp")
    found = digest(path)
    assert verify(path, found) == []
    assert verify(path, json.loads(json.dumps(found.to_tree()))) == []
    assert verify(path, {"program": found.program}) == []
    other = records(path)
    name = next(name for name in other if name.endswith("weight_0"))
    damaged = packed({**other, name: bytes(8) + other[name][8:]})
    differs = {mismatch.what for mismatch in verify(damaged, found)}
    tensor = next(what for what in differs if what.startswith("tensors["))
    assert differs == {"program", "weights", tensor}
    assert verify(damaged, found, parts=["graph", "signature"]) == []
    assert str(verify(damaged, found, parts=["weights"])[0]).startswith(
        f"weights: expected {found.weights}, got sha256:"
    )
    damaged_name = tensor.removeprefix("tensors['").removesuffix("']")
    for tensor_name in found.tensors:
        assert len(verify(damaged, found, tensors=[tensor_name])) == (tensor_name == damaged_name)
    fewer = with_changes(found, tensors={key: found.tensors[key] for key in list(found.tensors)[1:]})
    assert [one.expected for one in verify(path, fewer, parts=["weights"])] == [None]


BAD = [
    ([], "expected an object of digests, got list"),
    ({"format": "x"}, "format: expected 'pt2kit digest 3' or 'pt2kit digest 2', got 'x'"),
    ({"graph": "sha256:12"}, "graph: expected sha256: and 64 hexadecimal digits, got 'sha256:12'"),
    ({"graph": 5}, "graph: expected sha256: and 64 hexadecimal digits, got '5'"),
    ({"graf": "sha256:" + 64 * "0"}, "got 'graf'"),
    ({"tensors": {"a": "sha256:" + 64 * "G"}}, "tensors['a']: expected sha256:"),
]


@pytest.mark.parametrize(("tree", "text"), BAD, ids=str)
def test_malformed_expectations_are_refused(tree: Any, text: str) -> None:
    """Text that is no digest is refused, with its place."""
    with pytest.raises(UnsupportedError) as caught:
        verify(sample(LATEST, "mlp"), tree)
    assert text in str(caught.value)


def test_what_was_not_expected_cannot_be_verified() -> None:
    """Parts and tensors that the expectation lacks are named."""
    path = sample(LATEST, "mlp")
    with pytest.raises(UnsupportedError, match="expected that of 'weights', got none"):
        verify(path, {"graph": digest(path).graph}, parts=["weights"])
    with pytest.raises(UnsupportedError, match="expected that of tensor 'nobody', got none"):
        verify(path, digest(path), tensors=["nobody"])


def test_payloads_are_named_by_kind() -> None:
    """Weights and constants are what the package gives."""
    with pt2kit.open(sample(LATEST, "constants")) as package:
        assert payloads_of(package, "model", "weights") == package.weights()
        assert payloads_of(package, "model", "constants") == package.constants()


@pytest.mark.parametrize("release", ["2.4.1", "2.8.0"])
def test_who_pickled_a_tensor_does_not_count(release: str) -> None:
    """A sparse weight has one digest: in a pickle of all weights, in a record of its own, and converted."""
    path = sample(release, "sparse_buffer")
    with pt2kit.edit(path) as editor:
        editor.rename_input(editor.user_inputs[0].name, "renamed")
    file = bytes_of(pt2kit.write, editor.result)
    converted = bytes_of(pt2kit.convert, path, target="torch==2.13")
    was = digest(path)
    for data in (file, converted):
        with pt2kit.open(data) as package:
            assert isinstance(package.weights()["sp"], OpaquePayload)
        assert digest(data).weights == was.weights
        assert digest(data).tensors == was.tensors
        assert not [change for change in pt2kit.diff(path, data).changes if change.area == "weight"]
    with pt2kit.edit(file) as again:
        again.rename_weight("sp", "other")
    assert digest(again.result).tensors["other"] == was.tensors["sp"]


def test_a_pickle_that_takes_code_is_bytes() -> None:
    """A payload that is no plain data has the digest of its bytes, marked as a pickle."""
    payload = OpaquePayload(
        "x", Storage("r", 17, lambda: memoryview(b"\x80\x02cposix\nsystem\n.")), "pickle", None, True
    )
    assert payload.meaning() is payload


@pytest.mark.parametrize("file", list(OLDER)[::9])
def test_digests_of_the_second_definition_are_verified(file: str) -> None:
    """With their format, and without it; a wrong one still differs."""
    release, _, name = file.partition("/")
    with pt2kit.open(sample(release, name)) as package:
        for model, stated in OLDER[file].items():
            assert verify(package, {"format": "pt2kit digest 2", **stated}, model) == []
            assert verify(package, stated, model) == []
            assert verify(package, {"format": "pt2kit digest 2", "program": stated["metadata"]}, model) != []
            if "from_node" in str(package.programs[model]):
                assert verify(package, {"format": "pt2kit digest 3", **stated}, model) != []
