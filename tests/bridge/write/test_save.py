"""Files that `save` writes, and the artifact that `serialize` makes."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest
import torch
from tests.bridge.write.trees import content, names, our_file, torch_file, tree
from tests.bridge.zoo.handmade import Sketch
from tests.packages import Stream, bytes_of
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export.pt2_archive._package import load_pt2, package_pt2

from pt2kit import codec
from pt2kit.bridge import save as save_file
from pt2kit.bridge.load import load
from pt2kit.bridge.save import own_version, save, serialize
from pt2kit.errors import ArchiveError, ConversionError, GraphError, Pt2Error, UnsupportedError, VersionError
from pt2kit.package.layouts.detection import detect
from pt2kit.schema import ExportedProgram
from pt2kit.zip.reader import open_archive


class Scaled(torch.nn.Module):
    def __init__(self, layer, by):
        super().__init__()
        self.layer, self.by = layer, by

    def forward(self, x):
        return self.layer(x) * self.by


def program(layer=None, by=1.0):
    return torch.export.export(Scaled(layer or torch.nn.Linear(3, 3), by), (torch.ones(2, 3),))


def broken():
    """A program that cannot be written."""
    s = Sketch()
    x = s.input("x", torch.ones(2))
    call = s.call(torch.ops.aten.add.Tensor, (x, x), s.fake(2))
    live = s.program([call])
    call.args = (x, b"")
    return live


def test_path(tmp_path):
    """A path is written, its folder is named after it, and both torch and this package's strict reader read it."""
    live = program()
    for target in (tmp_path / "model.pt2", str(tmp_path / "other.pt2")):
        save(live, target)
        again = torch.export.load(target)
        assert torch.equal(again.state_dict["layer.weight"], live.state_dict["layer.weight"])
        with open_archive(str(target)) as archive:
            layout = detect(archive)
            assert layout.models == ("model",)
            for name in archive.records:
                archive.read(name)
    assert zipfile.ZipFile(tmp_path / "model.pt2").namelist()[0].startswith("model/")


def test_file_object(tmp_path):
    """A file object is written and rewound."""
    buffer = io.BytesIO()
    save(program(), buffer)
    assert buffer.tell() == 0
    with open(tmp_path / "file.pt2", "w+b") as file:
        save(program(), file)
        assert torch.export.load(file)


def test_pipe():
    """A target that cannot seek gets the same bytes."""
    live, pipe = program(), Stream()
    save(live, pipe)  # type: ignore[arg-type]
    assert pipe.data == our_file(live)


def test_same_bytes():
    """The same program gives the same bytes."""
    live = program()
    assert our_file(live) == our_file(live)


def test_layout():
    """Records have torch's names; JSON is deflated, weights are stored and begin at multiples of 64 bytes."""
    live = program()
    ours, theirs = our_file(live), torch_file(live)
    assert sorted(names(ours)) == sorted(set(names(theirs)) - {".data/serialization_id"})
    for name in ("archive_format", "archive_version", "byteorder", ".data/version", "data/weights/weight_0"):
        assert content(ours, name) == content(theirs, name)
    for info in zipfile.ZipFile(io.BytesIO(ours)).infolist():
        assert info.compress_type == (zipfile.ZIP_DEFLATED if info.filename.endswith(".json") else zipfile.ZIP_STORED)
    with open_archive(ours) as archive:
        assert archive.data_offset("archive/data/weights/weight_0") % 64 == 0


def test_graph_record_is_small():
    """The graph record of a deep model is at least twenty times smaller than torch's."""
    layers = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(100)))
    live = torch.export.export(layers, (torch.ones(1, 2),))
    sizes = [
        zipfile.ZipFile(io.BytesIO(file)).getinfo("archive/models/model.json").compress_size
        for file in (torch_file(live), our_file(live))
    ]
    assert sizes[0] >= 20 * sizes[1]


def test_extra_files():
    """Extra files go along, as text or bytes."""
    data = our_file(program(), extra_files={"note.txt": "é", "folder/blob": b"\x00\xff"})
    assert content(data, "extra/note.txt") == "é".encode()
    assert content(data, "extra/folder/blob") == b"\x00\xff"
    found = {"note.txt": ""}
    torch.export.load(io.BytesIO(our_file(program(), extra_files={"note.txt": "é"})), extra_files=found)
    assert found == {"note.txt": "é"}


def test_opset_version():
    """Operator versions that the caller passes are written in addition to the version of aten."""
    data = our_file(program(), opset_version={"mine": 3})
    assert tree(data, "models/model.json")["opset_version"] == {"mine": 3, "aten": torch._C._get_max_operator_version()}
    assert tree(our_file(program(), opset_version={"aten": 7}), "models/model.json")["opset_version"] == {"aten": 7}


def test_pickle_protocol():
    """Pickles are of the protocol that was asked for."""
    data = content(our_file(program(), pickle_protocol=4), "data/sample_inputs/model.pt")
    assert zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl")[:2] == b"\x80\x04"


def test_several_programs():
    """Several programs share an archive, each under its name."""
    programs = {"first": program(by=2.0), "second/one": program(by=3.0)}
    buffer = io.BytesIO()
    save(programs, buffer)
    found = load_pt2(buffer).exported_programs
    assert set(found) == set(programs)
    for name, live in programs.items():
        assert torch.equal(found[name].module()(torch.ones(2, 3)), live.module()(torch.ones(2, 3)))


def test_several_as_torch():
    """Programs that share nothing are written as torch writes several."""
    programs = {"b": program(), "a": torch.export.export(torch.nn.ReLU(), (torch.ones(1),)), "c": program()}
    ours, theirs = io.BytesIO(), io.BytesIO()
    save(programs, ours)
    package_pt2(theirs, exported_programs=programs)
    for name in names(theirs.getvalue()):
        if name.endswith(".json"):
            assert tree(ours.getvalue(), name) == tree(theirs.getvalue(), name), name
        elif name != ".data/serialization_id" and not name.endswith(".pt"):
            assert content(ours.getvalue(), name) == content(theirs.getvalue(), name), name


def test_programs_share_weights():
    """Weights that several programs share are written once; others are numbered on."""
    layer = torch.nn.Linear(3, 3)
    buffer = io.BytesIO()
    save({"a": program(layer), "b": program(layer, 2.0), "c": program()}, buffer)
    data = buffer.getvalue()
    paths = [
        {
            name: meta["path_name"]
            for name, meta in tree(data, f"data/weights/{model}_weights_config.json")["config"].items()
        }
        for model in "abc"
    ]
    assert paths[0] == paths[1] == {"layer.weight": "weight_0", "layer.bias": "weight_1"}
    assert paths[2] == {"layer.weight": "weight_2", "layer.bias": "weight_3"}
    found = load_pt2(buffer).exported_programs
    assert torch.equal(found["b"].state_dict["layer.weight"], layer.weight)


def test_no_programs():
    """An archive without programs may hold extra files."""
    assert content(bytes_of(save, {}, extra_files={"a": "b"}), "extra/a") == b"b"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (torch.nn.ReLU(), "^ep: expected an instance of ExportedProgram, got ReLU$"),
        ({"a": 3}, r"^ep\['a'\]: expected an instance of ExportedProgram, got int$"),
        (None, "^ep: expected an instance of ExportedProgram, got NoneType"),
    ],
)
def test_not_a_program(argument, message, tmp_path):
    """Anything but a program is refused before anything is written."""
    with pytest.raises(TypeError, match=message):
        save(argument, tmp_path / "model.pt2")
    with pytest.raises(TypeError, match=r"^ep: expected an instance of ExportedProgram, got"):
        serialize(argument)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("extra", [{"a": 3}, {3: "a"}])
def test_bad_extra_files(extra, tmp_path):
    """Extra files are names and text or bytes."""
    with pytest.raises(TypeError, match="extra_files: expected names and contents as text or bytes"):
        save(program(), tmp_path / "model.pt2", extra_files=extra)
    assert not list(tmp_path.iterdir())


def test_errors_leave_the_target(tmp_path):
    """An error leaves an old file as it was, and no other behind."""
    target = tmp_path / "model.pt2"
    target.write_bytes(b"old")
    message = r"^node add_tensor \(torch\.ops\.aten\.add\.Tensor\): argument 'other': expected a value .* got bytes$"
    with pytest.raises(UnsupportedError, match=message):
        save(broken(), target)
    with pytest.raises(UnsupportedError, match=r"^program 'b': node add_tensor"):
        save({"a": program(), "b": broken()}, target)
    with pytest.raises(ArchiveError, match=r"expected a relative record name, got .*\[A6\]"):
        save(program(), target, extra_files={"../a": "b"})
    with pytest.raises(FileNotFoundError, match=r"model\.pt2"):
        save(program(), tmp_path / "no" / "model.pt2")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt2"]


@pytest.mark.parametrize(
    ("live", "extra", "message"),
    [
        (broken, {}, "expected a value that the format has a kind for, got bytes"),
        (program, {"../a": "b"}, r"expected a relative record name, got .*\[A6\]"),
        (program, {"a": "b", "A": "c"}, r"expected record names that differ by more than case, .*\[A7\]"),
        (program, {"a" * 600: ""}, r"expected a record name of at most 511 bytes, .*\[A18\]"),
    ],
)
def test_errors_come_first(live, extra, message):
    """A file object is not written to when something is wrong, be it a name."""
    buffer = io.BytesIO()
    with pytest.raises(Pt2Error, match=message):
        save(live(), buffer, extra_files=extra)
    assert buffer.getvalue() == b""


@pytest.mark.parametrize(
    ("names_", "message"),
    [
        ({"../a"}, "expected a relative record name"),
        ({""}, "expected names of programs that a record can have, got ''"),
        ({"a", "A"}, "expected record names that differ by more than case"),
    ],
)
def test_bad_model_names(names_, message):
    """Names of programs must be fit for records."""
    live, buffer = program(), io.BytesIO()
    with pytest.raises(ArchiveError, match=message):
        save(dict.fromkeys(names_, live), buffer)
    assert buffer.getvalue() == b""


def test_invalid_program():
    """A program that breaks torch's own rules is refused, with the rule."""
    live = program()
    live.graph_signature.input_specs.pop()
    with pytest.raises(
        GraphError, match="expected a valid program, got one that breaks its rules: Number of graph inputs"
    ):
        our_file(live)


def test_within_a_mode():
    """Saving works while the caller is in a fake tensor mode."""
    live = program()
    expected = our_file(live)
    with FakeTensorMode():
        assert our_file(live) == expected


def test_without_sample_inputs():
    """A program without example inputs has an empty record for them, which torch reads."""
    live = program()
    live._example_inputs = None
    data = our_file(live)
    assert content(data, "data/sample_inputs/model.pt") == b""
    assert torch.export.load(io.BytesIO(data)).example_inputs is None


def test_artifact():
    """An artifact holds the program as data and shares its tensors."""
    live = program()
    artifact = serialize(live, {"mine": 1})
    assert isinstance(artifact.exported_program, ExportedProgram)
    assert artifact.exported_program.opset_version["mine"] == 1
    assert artifact.weights.config["layer.weight"].path_name == "weight_0"
    assert [record.name for record in artifact.records] == ["data/weights/weight_0", "data/weights/weight_1"]
    with torch.no_grad():
        live.state_dict["layer.weight"].fill_(7)
    assert set(memoryview(b"".join(artifact.records[0].read())).cast("f")) == {7.0}
    assert artifact.to_bytes() == our_file(live, opset_version={"mine": 1})
    assert (
        codec.decode(codec.encode(artifact.exported_program), ExportedProgram, "a").value == artifact.exported_program
    )


def test_no_copies(monkeypatch):
    """No tensor becomes Python bytes on its way into the file."""
    seen = []

    class Sink(io.RawIOBase):
        def writable(self):
            return True

        def seekable(self):
            return True

        def seek(self, offset, whence=0):
            return 0

        def tell(self):
            return 0

        def write(self, data):
            if memoryview(data).nbytes > 100_000:
                seen.append(type(memoryview(data).obj))
            return memoryview(data).nbytes

    save(program(torch.nn.Linear(3, 100_000)), Sink())  # type: ignore[arg-type]
    assert seen
    assert bytes not in seen
    assert re.search("ndarray|memory", str(seen[0]))


def test_own_version(monkeypatch):
    """The file has the schema version of the installed torch, or the newest before it that is known."""
    own = ".".join(map(str, torch._export.serde.schema.SCHEMA_VERSION))
    version = tree(our_file(program()), "models/model.json")["schema_version"]
    assert f"{version['major']}.{version['minor']}" == own == own_version().number
    for number, expected in (((8, 16), "8.15"), ((8, 17), "8.17"), ((8, 99), "8.20"), ((9, 0), "8.20")):
        monkeypatch.setattr(save_file, "schema_version", lambda number=number: number)
        assert own_version().number == expected


def test_as_an_older_torch(monkeypatch):
    """With a torch of schema 8.15, nodes have no names, and several programs and extra files go along."""
    monkeypatch.setattr(save_file, "schema_version", lambda: (8, 15))
    buffer = io.BytesIO()
    save({"a": program(), "b": program(by=2.0)}, buffer, extra_files={"note": "x"})
    for model in ("a", "b"):
        found = tree(buffer.getvalue(), f"models/{model}.json")
        assert found["schema_version"] == {"major": 8, "minor": 15}
        assert found["graph_module"]["graph"]["nodes"]
        assert all("name" not in node for node in found["graph_module"]["graph"]["nodes"])
    assert load_pt2(buffer).exported_programs["b"].module()(torch.ones(2, 3)).shape == (2, 3)


@pytest.mark.parametrize(
    ("target", "record", "version"),
    [
        ("2.9", "models/model.json", {"major": 8, "minor": 14}),
        ("torch==2.11", "models/model.json", {"major": 8, "minor": 17}),
        ("2.15.0", "models/model.json", {"major": 8, "minor": 20}),
        ("2.8", "models/model.json", {"major": 8, "minor": 8}),
        ("2.6", "serialized_exported_program.json", {"major": 8, "minor": 2}),
    ],
)
def test_target(target, record, version, tmp_path):
    """`target=` writes what another release writes, to a path or a file object, with the same weights."""
    live = program()
    buffer = io.BytesIO()
    save(live, buffer, target=target)
    assert buffer.tell() == 0
    save(live, tmp_path / "model.pt2", target=target)
    with zipfile.ZipFile(tmp_path / "model.pt2") as archive:
        stored = archive.read(next(name for name in archive.namelist() if name.endswith(record)))
    assert json.loads(stored)["schema_version"] == version
    for file in (buffer, tmp_path / "model.pt2"):
        assert torch.equal(load(file).module()(torch.ones(2, 3)), live.module()(torch.ones(2, 3)))
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt2"]


def test_bad_targets(tmp_path):
    """An unknown target, and a program that the target cannot express, leave the old file alone."""
    target = tmp_path / "model.pt2"
    target.write_bytes(b"old")
    with pytest.raises(VersionError, match=r"target: expected .* got 'torch==1\.13' \[M4\]$"):
        save(program(), target, target="1.13")
    with pytest.raises(ConversionError, match=r"got one with:\n  .*two programs|programs? .*\[M3\]"):
        save({"a": program(), "b": program()}, target, target="2.5")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt2"]
