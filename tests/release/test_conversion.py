"""Converting whole files: up, down, back, and what is refused."""

from __future__ import annotations

import base64
import io
import json
import pickle
import tracemalloc
from collections import UserString
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.narrow import instance
from tests.packages import Stream, edited, rewritten
from tests.release.files import CONSTANTS, WEIGHTS, converted, entry, records, tensors, text, with_entries
from tests.versions.programs import as_read

import pt2kit
from pt2kit import codec
from pt2kit.errors import ArchiveError, ConversionError, OperatorError, VersionError
from pt2kit.package import record_names as names
from pt2kit.pickles.reader import read_payload
from pt2kit.schema import CURRENT, LOG
from pt2kit.tensors import OpaquePayload, TensorView
from pt2kit.versions.check import fits
from pt2kit.versions.encoding import from_wire
from pt2kit.zip.writer import ArchiveWriter

MLP = samples.sample("2.13.0", "mlp")
MUTATION = samples.sample("2.13.0", "buffer_mutation")
TWO = samples.sample("2.13.0", "multi_model_package")
EXTRA = samples.sample("2.13.0", "extra_files")
COMPLEX = samples.sample("2.13.0", "complex_scalar")
SHIPPED = [(version.number, release) for version in LOG for release in version.releases]


def release(path: Path) -> str:
    """The target that a sample file is of."""
    return "torch==" + ".".join(path.parent.name.split(".")[:2])


def plain(data: bytes) -> Any:
    """The tree of a program, constants that are torch.save files inside it by what they hold."""
    tree = codec.parse(data, "program", bare_literals=True)
    constants = tree["graph_module"]["graph"].get("constants") or {}
    for name, held in constants.items():
        tensor = read_payload(base64.b64decode(held), name)
        constants[name] = (tensor.dtype_name, tensor.sizes, tensor.strides, bytes(tensor.storage.read()))
    return tree, constants


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_own_version(path: Path) -> None:
    """A file converted to its own release has the same records, the same JSON and the same tensors."""
    with pt2kit.open(path) as before, pt2kit.open(converted(path, release(path))) as after:
        assert records(before) == records(after)
        for model in before.layout.models:
            assert text(before, model) == text(after, model)
            assert tensors(before, model) == tensors(after, model)


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_up_and_down_again(path: Path) -> None:
    """Raised to the current version and lowered to its own again, a file says what it said: its JSON byte for byte."""
    up = converted(path, CURRENT.number)
    # Some releases wrote what they do not read.
    with pt2kit.open(path) as before, pt2kit.open(converted(up, release(path), allow=["unreadable"])) as after:
        assert records(before) == records(after)
        for model in before.layout.models:
            if b'"constants": {"' in text(before, model):  # torch.save files, whose bytes are ours now
                assert plain(text(before, model)) == plain(text(after, model))
            else:
                assert as_read(text(before, model), path.parent.name) == text(after, model)
            assert tensors(before, model) == tensors(after, model)


@pytest.mark.parametrize(("version", "number"), SHIPPED)
def test_structure(version: str, number: str) -> None:
    """A file converted down has the records, the configs and the keys that real files of the release have, in order."""
    real = next(path for path in samples.corpus() if release(path) == f"torch=={number}" and path.stem == "mlp")
    with pt2kit.open(real) as theirs, pt2kit.open(converted(MLP, f"torch=={number}")) as ours:
        assert records(theirs) == records(ours)
        assert theirs.stored_schema_version == ours.stored_schema_version == version
        trees = [codec.parse(text(package), "x", bare_literals=True) for package in (theirs, ours)]
        assert fits(from_wire(trees[1], version, "x"), version)
        assert skeleton(trees[0], 2) == skeleton(trees[1], 2)
        for config in (WEIGHTS, CONSTANTS):
            if config in records(theirs):
                shapes = [json.loads(bytes(p.archive.read(p.layout.record(config)))) for p in (theirs, ours)]
                assert skeleton(shapes[0], 9) == skeleton(shapes[1], 9)


def skeleton(tree: Any, depth: int) -> Any:
    """The keys of a tree in their order, down to a depth."""
    if isinstance(tree, dict):
        return {key: skeleton(held, depth - 1) for key, held in tree.items()} if depth else list(tree)
    return type(tree).__name__


@pytest.mark.parametrize("version", ["draft", *(row.number for row in LOG), "5.3-traces"])
def test_every_version_and_back(version: str) -> None:
    """Every version can be written, and what it can express comes back from it: names, tensors, results."""
    with pt2kit.open(converted(MLP, version)) as there:
        assert there.stored_schema_version == version
        back = converted(there, CURRENT.number)
    with pt2kit.open(MLP) as before, pt2kit.open(back) as after:
        assert tensors(before) == tensors(after)
        old, new = (package.programs["model"].graph_module for package in (before, after))
        assert [node.target for node in old.graph.nodes] == [node.target for node in new.graph.nodes]
        # Up to 2.3, torch.fx calls the node of an input named after a builtin otherwise.
        called = "input_1" if version in ("draft", "1", "2", "5.1") else "input"
        assert repr(old.signature).replace("'input'", f"'{called}'") == repr(new.signature)


def test_everything_in_the_way_is_listed_once() -> None:
    """One error names every field that the target does not have, with its place and the version that brought it."""
    data = edited(COMPLEX, lambda tree: tree["graph_module"].update(future={"deep": 1}))
    with pytest.raises(ConversionError) as caught:
        converted(data, "torch==2.5")
    message = str(caught.value)
    assert message.startswith("<bytes>: expected a package that schema 7.3 (torch 2.5) can express, got one with:\n")
    place = "models/model.json: $.graph_module"
    assert f"the arm as_complex of Argument (since 8.14): {place}.graph.nodes[0].inputs[1].arg.as_complex" in message
    assert f"a key that no schema here knows; allow 'unknown_keys' to drop it: {place}.future" in message
    assert message.endswith("[M3]")


def test_nothing_is_written_when_something_is_in_the_way(tmp_path: Path) -> None:
    """The target stays what it was, and nothing is next to it."""
    target = tmp_path / "old.pt2"
    target.write_bytes(b"before")
    with pytest.raises(ConversionError, match=r"expected a package that schema 7\.3 \(torch 2\.5\) can express"):
        pt2kit.convert(COMPLEX, target, target="torch==2.5")
    assert [path.name for path in tmp_path.iterdir()] == ["old.pt2"]
    assert target.read_bytes() == b"before"


def test_a_damaged_weight_leaves_the_target_alone(tmp_path: Path) -> None:
    """An error while the file is written leaves the target as it was, too."""
    data = bytearray(MLP.read_bytes())
    with pt2kit.open(MLP) as package:
        [record] = [record for record in package.records if record.endswith("weight_0")]
        weight = bytes(package.archive.read(record))
    place = data.index(weight)
    data[place] ^= 1
    target = tmp_path / "new.pt2"
    target.write_bytes(b"before")
    for version in ("torch==2.15", "torch==2.5"):
        with pytest.raises(ArchiveError, match=r"weight_0: expected CRC-32 .*\[A16\]"):
            pt2kit.convert(bytes(data), target, target=version)
        assert [path.name for path in tmp_path.iterdir()] == ["new.pt2"]
        assert target.read_bytes() == b"before"


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """Without a target the report is the same, and the obstacles are."""
    report = pt2kit.convert(MLP, None, target="torch==2.5")
    assert report == pt2kit.convert(MLP, tmp_path / "x.pt2", target="torch==2.5")
    with pytest.raises(ConversionError, match="as_complex"):
        pt2kit.convert(COMPLEX, None, target="torch==2.5")


def test_the_report() -> None:
    """It says where the conversion began and ended, what changed, and what was lost under which name."""
    report = pt2kit.convert(MLP, None, target="torch==2.5")
    assert (report.source.schema, report.source.layout) == ("8.20", "archive")
    assert (report.target.schema, report.target.layout, report.target.release) == ("7.3", "plain-zip", "torch 2.5")
    assert report.models == ("model",)
    assert {note.name for note in report.lost} == {"argument_kinds", "forward_arg_names"}
    assert "weights became a torch.save file" in {note.message for note in report.changed}
    tree = report.to_tree()
    assert json.loads(json.dumps(tree)) == tree
    assert tree["target"] == {"schema": "7.3", "layout": "plain-zip", "release": "torch 2.5"}
    assert str(report).endswith("lost: argument_kinds, forward_arg_names")


def test_several_programs() -> None:
    """They stay together where archives hold several, and are refused where a file holds one."""
    for version in ("torch==2.8", "torch==2.9", "8.6"):
        with pt2kit.open(TWO) as before, pt2kit.open(converted(TWO, version)) as after:
            assert after.layout.models == before.layout.models
            for model in before.layout.models:
                assert tensors(before, model).keys() == tensors(after, model).keys()
        with pt2kit.open(converted(converted(TWO, version), "8.20")) as back:
            assert {name: tensors(back, name) for name in back.layout.models} == {
                name: tensors(pt2kit.open(TWO), name) for name in back.layout.models
            }
    with pytest.raises(ConversionError, match=r"2 programs in one file: 'model', 'second' \(since 8\.8\)"):
        converted(TWO, "torch==2.7")


def test_extra_files_and_sample_inputs() -> None:
    """They go over as they are; sample inputs are lost where the release had no place, which the report says."""
    for version in ("torch==2.8", "torch==2.4", "8.6"):
        with pt2kit.open(EXTRA) as before, pt2kit.open(converted(EXTRA, version)) as after:
            assert {k: bytes(v) for k, v in after.extra_files.items()} == {
                k: bytes(v) for k, v in before.extra_files.items()
            }
            old, new = (package.sample_inputs() for package in (before, after))
            assert old is not None
            assert new is not None
            assert [view.tobytes() for view in old[0]] == [view.tobytes() for view in new[0]]
    report = pt2kit.convert(EXTRA, None, target="torch==2.3")
    assert "sample_inputs" in {note.name for note in report.lost}
    with pytest.raises(ConversionError, match="a JSON text has no place; allow 'extra_files' to drop it"):
        converted(EXTRA, "draft")
    with pt2kit.open(converted(EXTRA, "draft", allow=["extra_files"])) as found:
        assert not found.extra_files


def test_extra_files_that_are_no_text() -> None:
    """Older releases read all of them as text: others are refused there, by a name that can be allowed."""
    data = rewritten(MLP, {"extra/blob": b"\xff\xfe"})
    with pytest.raises(ConversionError, match=r"no UTF-8 text.*; allow 'extra_files' to drop it"):
        converted(data, "torch==2.7")
    with pt2kit.open(converted(data, "torch==2.7", allow=["extra_files"])) as found:
        assert not found.extra_files
    with pt2kit.open(converted(data, "torch==2.8")) as found:
        assert bytes(found.extra_files["blob"]) == b"\xff\xfe"


def test_unknown_keys() -> None:
    """They survive where the version stays, and are lost by name where it does not."""
    data = edited(MLP, lambda tree: tree.update(future=1, schema_version={"major": 8, "minor": 25}))
    with pt2kit.open(converted(data, "8.20")) as found:
        assert json.loads(text(found))["future"] == 1
        assert found.stored_schema_version == "8.20"
    with pytest.raises(ConversionError, match="allow 'unknown_keys' to drop it"):
        converted(data, "8.17")
    report = pt2kit.convert(data, None, target="8.17", allow=["unknown_keys"])
    assert "unknown_keys" in {note.name for note in report.lost}


def test_other_records() -> None:
    """Compiled code and records of other kinds go over between archives, and are lost by name elsewhere."""
    more = {"data/aotinductor/model/code.so": b"\x7fELF", "notes": b"n", "data/weights/stray": b"s"}
    data = rewritten(MLP, more)
    for version in ("torch==2.15", "torch==2.8", "8.6"):
        with pt2kit.open(converted(data, version)) as found:
            assert {name: bytes(found.archive.read(found.layout.record(name))) for name in more} == more
    with pytest.raises(ConversionError) as caught:
        converted(data, "torch==2.7")
    assert "allow 'compiled_code' to drop it" in str(caught.value)
    records = "a record that is no part of the format (since 8.8); allow 'other_records' to drop it: notes and 1 more"
    assert str(caught.value).count(records) == 1
    assert pt2kit.open(converted(data, "torch==2.7", allow=["compiled_code", "other_records"])).programs["model"]


@pytest.mark.parametrize("name", ["data/sample_inputs/tensor_0", "data/sample_inputs/other.pt"])
def test_sample_inputs_without_a_program(name: str) -> None:
    """Records of sample inputs that no program has are lost as sample inputs, which needs no permission."""
    report = pt2kit.convert(rewritten(MLP, {name: b"s"}), None, target="torch==2.7")
    assert {note.name for note in report.lost} == {"sample_inputs"}


def test_custom_objects_stay_between_archives() -> None:
    """Payloads that only code can rebuild are copied where the layout stays, and refused by name where it does not."""
    objects = {
        "thing": {"path_name": "custom_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None},
        "other": {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None},
    }
    contents = {"data/constants/custom_obj_0": b"torchbind", "data/constants/opaque_obj_0": b"opaque"}
    data = with_entries(MLP, CONSTANTS, objects, contents)
    with pt2kit.open(converted(data, "torch==2.10")) as found:
        assert {name: bytes(instance(OpaquePayload, view).buffer()) for name, view in found.constants().items()} == {
            "thing": b"torchbind",
            "other": b"opaque",
        }
    with pytest.raises(ConversionError) as caught:
        converted(data, "torch==2.8")
    assert "a script object" in str(caught.value)
    assert "a Python object" in str(caught.value)


def test_payloads_that_take_code_stay_between_torch_save_files() -> None:
    """A state dict that refers to code is never read where it can be copied, and blocks where it cannot."""
    source = samples.sample("2.7.1", "mlp")
    pickled = pickle.dumps({"x": UserString("y")}, 2)
    buffer = io.BytesIO()
    with ArchiveWriter(buffer, root="archive") as writer:
        for name, content in (("data.pkl", pickled), ("byteorder", b"little"), ("version", b"3\n")):
            writer.write(name, content)
    data = rewritten(source, {"serialized_constants.pt": buffer.getvalue()})
    with pt2kit.open(converted(data, "torch==2.8")) as found:
        record = found.layout.record(names.constants_payload("model"))
        assert bytes(found.archive.read(record)) == buffer.getvalue()
    with pytest.raises(ConversionError, match=r"refers to .*UserString"):
        converted(data, "torch==2.13")


def test_a_model_of_another_name() -> None:
    """A plain zip has no name for its program: it is lost by name."""
    name = names.model_json("model")
    with pt2kit.open(MLP) as package:
        content = {
            new: bytes(package.archive.read(package.layout.record(old)))
            for old, new in (
                (name, names.model_json("mine")),
                (WEIGHTS, names.weights_config("mine")),
                (CONSTANTS, names.constants_config("mine")),
            )
        }
    data = rewritten(MLP, {**content, name: None, WEIGHTS: None, CONSTANTS: None, names.sample_inputs("model"): None})
    assert pt2kit.open(converted(data, "torch==2.8")).layout.models == ("mine",)
    with pytest.raises(ConversionError, match=r"the name 'mine' of the program.*allow 'model_name'"):
        converted(data, "torch==2.7")
    assert pt2kit.open(converted(data, "torch==2.7", allow=["model_name"])).layout.models == ("model",)


def test_buffers_that_are_not_persistent() -> None:
    """2.2 and older keep them in the state dict: allowed by name, they are there, and the constants without them."""
    source = samples.sample("2.13.0", "nonpersistent_buffer__decomp")
    with pytest.raises(ConversionError, match="allow 'persistent' to drop it"):
        converted(source, "torch==2.2")
    with pt2kit.open(source) as before:
        side_inputs = set(before.constants())
    for version in ("torch==2.2", "torch==2.1", "draft"):
        with pt2kit.open(converted(source, version, allow=["persistent"])) as found:
            assert side_inputs <= set(found.weights())
            assert not side_inputs & set(found.constants())


def test_the_source_may_be_the_target(tmp_path: Path) -> None:
    """A file can take its own place."""
    path = tmp_path / "mlp.pt2"
    path.write_bytes(MLP.read_bytes())
    before = tensors(pt2kit.open(MLP))
    pt2kit.convert(path, path, target="torch==2.5")
    with pt2kit.open(path) as found:
        assert found.stored_schema_version == "7.3"
        assert tensors(found) == before


def test_the_same_bytes_however_they_are_written(tmp_path: Path) -> None:
    """A path, a file object, one that cannot seek, twice: the same bytes, but for the root folder's name."""
    for version in ("torch==2.15", "torch==2.5", "torch==2.8", "8.6"):
        pipe = Stream()
        pt2kit.convert(MUTATION, pipe, target=version)  # type: ignore[arg-type]
        path = tmp_path / "archive.pt2"
        pt2kit.convert(MUTATION, path, target=version)
        assert converted(MUTATION, version) == bytes(pipe.data) == path.read_bytes()


def test_an_open_package_stays_open() -> None:
    """It can be converted again and again."""
    with pt2kit.open(MLP) as package:
        assert converted(package, "torch==2.5") == converted(package, "torch==2.5")
        assert package.weights()


def test_weights_are_not_held(tmp_path: Path) -> None:
    """Weights go through piece by piece: memory does not grow with them, up or down."""
    size = 24 << 20
    data = with_entries(MLP, WEIGHTS, {"big": entry(size // 4, "weight_9")}, {"data/weights/weight_9": bytes(size)})
    source, down, up = tmp_path / "source.pt2", tmp_path / "down.pt2", tmp_path / "up.pt2"
    source.write_bytes(data)
    del data
    pt2kit.convert(MLP, None, target="torch==2.7")  # imports
    steps: list[tuple[int, int]] = []
    tracemalloc.start()
    try:
        pt2kit.convert(source, down, target="torch==2.7", progress=lambda done, total: steps.append((done, total)))
        pt2kit.convert(down, up, target="8.20")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size // 2
    assert steps[-1][0] == steps[-1][1] >= size
    with pt2kit.open(up) as found:
        assert found.weights()["big"].nbytes == size


@pytest.mark.parametrize("target", ["torch==1.13", "9.1", "8.21", "2.5", "", "torch==", "torch==x"])
def test_unknown_targets(target: str) -> None:
    """An unknown target is refused with the list of the known ones."""
    with pytest.raises(VersionError, match=r"target: expected a schema version \(draft, 1, .*torch==2.15.*\[M4\]"):
        converted(MLP, target)


def test_a_patch_release_is_its_release() -> None:
    """torch==2.13.0+cpu is what 2.13 writes."""
    assert converted(MLP, "torch==2.13.0") == converted(MLP, "torch==2.13")


def test_compiled_code_alone_is_no_program() -> None:
    """There is nothing to convert then."""
    gone: dict[str, bytes | None] = dict.fromkeys((names.model_json("model"), WEIGHTS, CONSTANTS))
    data = rewritten(MLP, {**gone, "data/aotinductor/m/code.so": b"x"})
    with pytest.raises(ArchiveError, match="expected a program to convert"):
        converted(data, "torch==2.8")


def test_operator_sets() -> None:
    """Older numbers are raised, newer ones refused with both numbers, unknown namespaces told."""
    old = edited(MLP, lambda tree: tree.update(opset_version={"aten": 3, "mine": 2}))
    report = pt2kit.convert(old, None, target="8.20")
    assert any("from 3 to 10, 0 nodes changed" in note.message for note in report.changed)
    [problem] = report.problems
    assert (problem.rule, problem.kind) == ("O2", "warning")
    assert problem.loc == "models/model.json: $.opset_version.mine"
    with pt2kit.open(converted(old, "8.20")) as found:
        assert found.programs["model"].opset_version == {"aten": 10, "mine": 2}
    new = edited(MLP, lambda tree: tree.update(opset_version={"aten": 12}))
    with pytest.raises(VersionError, match=r"\$\.opset_version\.aten: expected 10 or older, got 12.*\[O1\]"):
        converted(new, "8.20")
    with pytest.raises(VersionError, match=r"\$\.opset_version\.aten: expected 11, got 10;.*\[O1\]"):
        converted(MLP, "8.20", opset_version={"aten": 11})


def test_operator_changes_of_the_caller() -> None:
    """They are applied between the numbers of their namespace, up and down, and are missed where they are not known."""
    from msgspec.structs import replace

    from pt2kit.versions.opset_changes import OperatorChange

    def renamed(old: str, new: str, first: int, last: int) -> OperatorChange:
        def convert(node: Any, graph: Any, place: str) -> Any:
            del graph, place
            return replace(node, target=f"torch.ops.corpus.{new}")

        return OperatorChange("corpus", old, first, last, convert)

    changes = [renamed("addmul.default", "fused.default", 1, 2), renamed("fused.default", "addmul.default", 2, 1)]
    source = samples.sample("2.13.0", "custom_op")
    old = edited(source, lambda tree: tree["opset_version"].update(corpus=1))
    new = converted(old, "torch==2.4", opset_version={"corpus": 2}, operator_changes=changes)
    with pt2kit.open(new) as found:
        assert found.programs["model"].opset_version == {"aten": 10, "corpus": 2}
        assert "torch.ops.corpus.fused.default" in {n.target for n in found.programs["model"].graph_module.graph.nodes}
    back = converted(new, "8.20", opset_version={"corpus": 1}, operator_changes=changes)
    with pt2kit.open(back) as found:
        targets = {node.target for node in found.programs["model"].graph_module.graph.nodes}
    assert "torch.ops.corpus.addmul.default" in targets
    with pytest.raises(VersionError, match="expected 3, got 1; what changed up to 2 is known here"):
        converted(old, "8.20", opset_version={"corpus": 3}, operator_changes=changes)
    wide = [OperatorChange("corpus", "addmul.default", 0, 2, changes[0].convert)]
    with pytest.raises(OperatorError, match=r"a change of it from 0 to 2 \[O3\]"):
        converted(old, "8.20", opset_version={"corpus": 2}, operator_changes=wide)


def test_named_tuples_of_the_first_releases() -> None:
    """Their registered name, which those files do not have, can be given."""
    source = samples.sample("2.1.2", "namedtuple_io")
    for names_given, wanted in (({"NT": "corpus.NT"}, "corpus.NT"), ({}, "NT")):
        with pt2kit.open(converted(source, "8.20", namedtuples=names_given)) as found:
            assert wanted in found.programs["model"].graph_module.treespec_namedtuple_fields


@pytest.mark.parametrize("target", ["torch==2.15", "torch==2.9", "torch==2.5", "torch==2.1"])
@pytest.mark.parametrize("path", samples.corpus("2.1.2", "2.6.0", "2.13.0"), ids=samples.release_id)
def test_what_is_not_lost_keeps_its_digest(path: Path, target: str) -> None:
    """A program means the same in another release, or the report says what was lost."""
    out = io.BytesIO()
    try:
        report = pt2kit.convert(path, out, target=target)
    except ConversionError:
        return  # The target can't express it.
    with pt2kit.open(path) as before, pt2kit.open(out.getvalue()) as after:
        model = before.layout.models[0]
        parts = [pt2kit.digest(package, package.layout.models[0]) for package in (before, after)]
        moved = {name for name, held in before.weights(model).items() if not isinstance(held, TensorView)}
    if moved and parts[0].weights != parts[1].weights:
        # A sparse tensor has parts in one layout, and is pickled in the other: its bytes are what is hashed there.
        assert all(parts[0].tensors[name] == parts[1].tensors[name] for name in parts[0].tensors.keys() - moved)
        assert parts[0].graph == parts[1].graph
        return
    assert report.lost or parts[0].program == parts[1].program
