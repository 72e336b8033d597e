"""Files of torch 2.1 to 2.8, and of no release: opened, they give what files of today give."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import samples
from tests.hostile.reading import read_program
from tests.narrow import dense, numbers, present
from tests.packages import rewritten
from tests.pickles import pickle_forge as forge
from tools.golden_maker import tensor

import pt2kit
from pt2kit import codec, schema
from pt2kit.errors import (
    ArchiveError,
    IntegrityError,
    JsonError,
    PayloadError,
    Pt2Error,
    SchemaError,
    UnsupportedError,
    VersionError,
)
from pt2kit.package import record_names as names
from pt2kit.package.open import open_package
from pt2kit.pickles import writer as torch_save
from pt2kit.tensors import OpaquePayload, SparseView, TensorView

OLD = [path for path in samples.corpus() if path.parent.name not in samples.CURRENT_LAYOUT]
GOLDEN = samples.DATA.parent / "golden"
PROGRAMS = sorted((GOLDEN / "programs").glob("[0-9d]*.json"))
LAYOUTS = {"2.8.0": "archive-2.8"}
VERSIONS = {release: row.number for row in schema.LOG for release in row.releases}


def inputs_from_payloads(program: schema.ExportedProgram) -> set[str]:
    """The names that a program takes from its weights and constants."""
    keys = ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name")
    specs = [spec.value for spec in program.graph_module.signature.input_specs]
    return {getattr(spec, key) for spec in specs for key in keys if hasattr(spec, key)}


@pytest.mark.parametrize("path", OLD, ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """Programs are of the current version and sane, payloads complete and readable, sample inputs there from 2.4 on."""
    release = path.parent.name
    with pt2kit.open(path) as package:
        assert package.layout.kind == LAYOUTS.get(release, "plain-zip")
        assert package.producer.startswith(f"torch {release.rpartition('.')[0]}")
        assert package.stored_schema_version == VERSIONS[release.rpartition(".")[0]]
        for model, program in package.programs.items():
            assert (program.schema_version.major, program.schema_version.minor) == schema.CURRENT.pair
            read_program(program)
            payloads = {**package.weights(model), **package.constants(model)}
            assert inputs_from_payloads(program) <= payloads.keys()
            for name, view in payloads.items():
                assert view.name == name
                assert not isinstance(view, OpaquePayload)
                assert view.numpy().shape == view.sizes
            assert (package.sample_inputs(model) is None) == (release < "2.4")
            assert package.unknown(model) == ()
            assert package.stored[model].is_raised


@pytest.mark.parametrize("path", OLD, ids=samples.release_id)
def test_raised_programs_are_programs_of_today(path: Path) -> None:
    """Written as JSON of today and read again, a raised program is the same."""
    with pt2kit.open(path) as package:
        for program in package.programs.values():
            data = codec.encode(program)
            assert codec.encode(codec.decode(data, schema.ExportedProgram, "x").value) == data


def test_tensors_of_torch_save_files_are_views() -> None:
    """Tied weights share their storage, nothing is copied, a sparse buffer comes by its parts."""
    with pt2kit.open(samples.sample("2.5.1", "shared_weights")) as package:
        weights = dense(package.weights())
        assert weights["emb.weight"].shares_storage(weights["out.weight"])
        assert not weights["emb.weight"].numpy().flags.owndata
        assert weights["emb.weight"].is_param
        assert weights["emb.weight"].requires_grad
    with pt2kit.open(samples.sample("2.6.0", "sparse_buffer")) as package:
        [buffer] = package.weights().values()
        assert isinstance(buffer, SparseView)
        assert buffer.numpy().shape == buffer.sizes


def test_constants_inside_a_program() -> None:
    """Schema 1 keeps constants in its JSON; they are among the constants all the same."""
    with pt2kit.open(samples.sample("2.1.2", "constants")) as package:
        assert package.constants().keys() >= inputs_from_payloads(package.programs["model"]) - package.weights().keys()
        assert all(isinstance(view, TensorView) for view in package.constants().values())
        assert package.stored["model"].constants


@pytest.mark.parametrize("release", ["2.1.2", "2.7.1"])
def test_extra_files_of_a_plain_zip(release: str) -> None:
    """They come by the names that their user gave."""
    with pt2kit.open(samples.sample(release, "extra_files")) as package:
        found = {name: bytes(data) for name, data in package.extra_files.items()}
    assert found == {"note.txt": b"hello", "dir/info.json": b'{"a": 1}'}


def test_named_tuples_by_class_name() -> None:
    """The registered name of a class can be passed on opening a file that has the class name alone."""
    path = samples.sample("2.3.1", "namedtuple_io")
    for given, expected in (({}, "NT"), ({"NT": "corpus.NT"}, "corpus.NT")):
        with open_package(path, namedtuples=given) as package:
            assert list(package.programs["model"].graph_module.treespec_namedtuple_fields) == [expected]


def test_todays_files_need_no_migration() -> None:
    """Opening and reading a file of today imports nothing of the subpackage that raises old ones."""
    code = (
        f"import sys, pt2kit; package = pt2kit.open({str(samples.sample('2.13.0', 'mlp'))!r}); "
        "package.programs['model'], package.weights(), package.constants(); "
        "assert not [name for name in sys.modules if name.startswith(('pt2kit.versions', 'numpy'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# Files that are no archive.


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_version_of_the_log_opens(path: Path) -> None:
    """The golden program of every version is read as bare JSON, and is a program of today."""
    with pt2kit.open(path) as package:
        assert package.layout.kind == "json"
        assert list(package.programs) == ["model"]
        assert package.stored_schema_version == path.stem
        program = package.programs["model"]
        assert (program.schema_version.major, program.schema_version.minor) == schema.CURRENT.pair
        assert package.sample_inputs() is None
        assert package.extra_files == {}
        assert [record.size for record in package.records.values()] == [path.stat().st_size]
        package.weights()
        package.constants()


def test_every_version_of_the_log_has_a_golden_program() -> None:
    """No version can be added to the log without one."""
    assert {row.number for row in schema.LOG} | {"draft", "5.3-traces"} == {path.stem for path in PROGRAMS}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1", "torch 2.1"),
        ("5.3", "torch 2.4"),
        ("5.3-traces", "no release: schema 5.3-traces"),
        ("draft", "no release: schema draft"),
        ("8.6", "torch 2.99.0"),
    ],
)
def test_producer(version: str, expected: str) -> None:
    """A file says who wrote it as far as it knows."""
    with pt2kit.open(GOLDEN / "programs" / f"{version}.json") as package:
        assert package.producer == expected


def test_a_draft_reads_its_files_when_they_are_asked_for(tmp_path: Path) -> None:
    """Big-endian bytes inside and next to a draft become little-endian views; a wrong checksum is an error."""
    for name in ("draft.json", "draft.bin"):
        (tmp_path / name).write_bytes((GOLDEN / "programs" / name).read_bytes())
    with pt2kit.open(tmp_path / "draft.json") as package:
        assert {name: view.numpy().tolist() for name, view in package.weights().items()} == {
            "a.weight": [1.0, 2.0, 3.0],
            "a.buf": [1.0, 2.0, 3.0],
        }
        assert package.weights()["a.weight"].is_param
    content = bytearray((tmp_path / "draft.bin").read_bytes())
    content[-1] ^= 1
    (tmp_path / "draft.bin").write_bytes(content)
    with pt2kit.open(tmp_path / "draft.json") as package:
        assert package.weights()["a.weight"].numpy().size == 3
        with pytest.raises(IntegrityError, match="SHA-256"):
            package.weights()["a.buf"].numpy()


def test_a_draft_without_its_folder() -> None:
    """Bytes next to a program are not found where it came as bytes; the message says what to do."""
    with pt2kit.open((GOLDEN / "programs" / "draft.json").read_bytes()) as package:
        assert list(package.records) == ["program.json"]
        assert package.weights()["a.weight"].numpy().size == 3
        with pytest.raises(UnsupportedError, match="open the program by its path"):
            package.weights()["a.buf"].numpy()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{", JsonError, "not JSON"),
        ("{}", SchemaError, "$.schema_version: expected a program, got another JSON object, without keys [M5]"),
        ('{"schema_version": 99}', VersionError, "newer than"),
        ('{"schema_version": {"major": 8, "minor": 20}}', SchemaError, "$: expected the key graph_module, got none"),
        ('{"schema_version": {"major": 8, "minor": 99}}', VersionError, "upgrade pt2kit"),
        ('{"schema_version": 1}', SchemaError, "[M1]"),
        ('{"methods": {}}', SchemaError, "expected a method 'forward', got none"),
        ('{"methods": []}', SchemaError, "expected an object with methods, got none"),
        ("[1]", ArchiveError, "[A2]"),
        (" \n{", JsonError, "not JSON"),
    ],
)
def test_json_that_is_no_program(text: str, error: type[Pt2Error], message: str) -> None:
    """One error that names the record, of the class that fits."""
    with pytest.raises(error) as caught, pt2kit.open(text.encode()) as package:
        package.programs["model"]
    assert message in str(caught.value)


def test_a_bare_file_is_closed_when_it_is_refused(tmp_path: Path) -> None:
    """A file that cannot be read is closed."""
    path = tmp_path / "odd.json"
    path.write_text('{"a": 1}')
    with pytest.raises(SchemaError, match=r"^odd\.json: \$"):
        pt2kit.open(path)
    path.unlink()


# Containers of schema 8.6.


def program_of(release: str, name: str) -> Any:
    """The stored JSON of a sample file of the plain layout, as a tree."""
    with pt2kit.open(samples.sample(release, name)) as package:
        return json.loads(bytes(package.archive.read(names.PLAIN_PROGRAM)))


def container(**more: Any) -> dict[str, Any]:
    """A model whose forward is an MLP."""
    return {
        "name": "m",
        "tensorPaths": {f"{layer}.{kind}": f"blobs/{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")},
        "program": {"methods": {"forward": program_of("2.6.0", "mlp")}},
        "delegates": {},
        "deviceAllocationMap": {},
        "constantPaths": {},
        **more,
    }


def records_of(model: Any) -> dict[str, bytes | None]:
    """The records of an archive with a container, in place of those of a sample file."""
    with pt2kit.open(samples.sample("2.6.0", "mlp")) as package:
        weights = {f"blobs/{name}": data for name, data in numbers(package.weights()).items()}
    gone = (
        names.weights_config("model"),
        names.constants_config("model"),
        names.sample_inputs("model"),
        *(names.weight(number) for number in range(4)),
    )
    return {**dict.fromkeys(gone), names.model_json("model"): json.dumps(model).encode(), **weights}


def packed(model: Any, **records: bytes | None) -> bytes:
    """An archive that holds a container and its payloads."""
    return rewritten(samples.sample("2.13.0", "mlp"), {**records_of(model), **records})


def test_a_container_in_an_archive() -> None:
    """Its program, the raw records that it names, its device map and its delegates are there."""
    other = program_of("2.7.1", "sym_arith_simple")
    model = container(delegates={"npu": {"methods": {"go": other}}}, deviceAllocationMap={"cuda:0": "cpu"})
    with pt2kit.open(packed(model)) as package, pt2kit.open(samples.sample("2.6.0", "mlp")) as plain:
        assert list(package.programs) == ["model"]
        assert package.programs["model"] == plain.programs["model"]
        found = numbers(package.weights())
        assert found == numbers(plain.weights())
        assert all(view.record.endswith(f"/blobs/{name}") for name, view in package.weights().items())
        assert package.constants() == {}
        assert package.unknown() == ()
        held = present(package.stored["model"].model)
        assert (held.name, held.method, dict(held.devices)) == ("m", "forward", {"cuda:0": "cpu"})
        assert {name: list(methods) for name, methods in held.delegates.items()} == {"npu": ["go"]}
        assert held.delegates["npu"]["go"].graph_module.graph.nodes
        assert package.layout.releases == "no release: containers of schema 8.6"


def test_methods_of_a_container() -> None:
    """Each method is a program; forward has the model's name, the others theirs behind it."""
    methods = {"step": program_of("2.7.1", "sym_arith_simple"), "forward": program_of("2.6.0", "mlp")}
    with pt2kit.open(packed(container(program={"methods": methods}))) as package:
        assert list(package.programs) == ["model.step", "model"]
        assert package.weights("model.step") == {}
        assert len(package.weights("model")) == 4
        assert present(package.stored["model.step"].model).method == "step"
        assert package.stored["model.step"].version == "8.7"
    data = json.dumps({"methods": methods}).encode()
    with pt2kit.open(data) as package:
        assert list(package.programs) == ["model.step", "model"]
        assert package.programs["model.step"].graph_module.graph.nodes


def test_the_only_method_is_the_program_by_whatever_name() -> None:
    """A method that is not called forward stands for its model if it is the only one, also in bare JSON."""
    methods = {"step": program_of("2.6.0", "mlp")}
    with pt2kit.open(samples.sample("2.6.0", "mlp")) as plain:
        expected = plain.programs["model"]
    for data in (packed(container(program={"methods": methods})), json.dumps({"methods": methods}).encode()):
        with pt2kit.open(data) as package:
            [name] = package.programs
            assert package.programs[name] == expected
            assert present(package.stored[name].model).method == "step"


def test_payloads_of_a_container_as_torch_save_files() -> None:
    """A named record may also be a torch.save file of one tensor."""
    model = container()
    with pt2kit.open(samples.sample("2.6.0", "mlp")) as package:
        state = package.archive.read(names.PLAIN_STATE_DICT)
        from pt2kit.pickles.reader import read_payload

        weight = read_payload(state, "x")["0.weight"]
    saved = torch_save.dumps(weight, "x")
    with pt2kit.open(packed(model, **{"blobs/0.weight": saved})) as package:
        np.testing.assert_array_equal(
            package.weights()["0.weight"].numpy(), np.frombuffer(weight.storage.read(), "<f4").reshape(16, 8)
        )


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda m: m["tensorPaths"].update({"0.weight": "blobs/none"}), PayloadError, "expected a record 'blobs/none'"),
        (lambda m: m["tensorPaths"].update({"0.weight": "../x"}), PayloadError, "expected a record '../x', got none"),
        (lambda m: m["tensorPaths"].update({"0.weight": "blobs/0.bias"}), PayloadError, "expected at least 512 bytes"),
        (lambda m: m.update(tensorPaths=[]), SchemaError, "$.tensorPaths: expected an object of texts, got list"),
        (lambda m: m.update(delegates=[]), SchemaError, "$.delegates: expected an object, got list"),
    ],
)
def test_containers_that_contradict_themselves(change: Any, error: type[Pt2Error], text: str) -> None:
    """Errors of a path without its record, or of too few bytes, name the tensor."""
    model = container()
    change(model)
    with pytest.raises(error) as caught, pt2kit.open(packed(model)) as package:
        package.weights()
    assert text in str(caught.value)


def test_a_container_beside_its_files(tmp_path: Path) -> None:
    """A bare JSON container finds its payloads in its folder, and does not leave it."""
    model = container()
    (tmp_path / "blobs").mkdir()
    with pt2kit.open(samples.sample("2.6.0", "mlp")) as package:
        expected = numbers(package.weights())
    for name, data in expected.items():
        (tmp_path / "blobs" / name).write_bytes(data)
    path = tmp_path / "m.json"
    path.write_text(json.dumps(model))
    with pt2kit.open(path) as package:
        assert numbers(package.weights()) == expected
    with (
        pt2kit.open(path.read_bytes()) as package,
        pytest.raises(UnsupportedError, match="open the program by its path"),
    ):
        package.weights()
    model["tensorPaths"]["0.weight"] = "../secret"
    path.write_text(json.dumps(model))
    with pt2kit.open(path) as package, pytest.raises(PayloadError, match="a relative path inside"):
        package.weights()


def test_a_container_behind_the_url_of_a_local_file(tmp_path: Path) -> None:
    """Its payloads are in the same folder as for its path."""
    pytest.importorskip("fsspec")
    folder = tmp_path / "a folder"
    (folder / "blobs").mkdir(parents=True)
    with pt2kit.open(samples.sample("2.6.0", "mlp")) as package:
        expected = numbers(package.weights())
    for name, data in expected.items():
        (folder / "blobs" / name).write_bytes(data)
    path = folder / "m.json"
    path.write_text(json.dumps(container()))
    with pt2kit.open(f"file://{path}") as package:
        assert numbers(package.weights()) == expected


def test_tied_tensors_of_a_container() -> None:
    """Two names with one path share their storage."""
    model = container()
    model["tensorPaths"]["2.bias"] = model["tensorPaths"]["0.bias"]
    with pt2kit.open(packed(model)) as package:
        weights = dense(package.weights())
        assert weights["2.bias"].shares_storage(weights["0.bias"])


# Errors in torch.save files of old layouts.


def with_state(value: Any, release: str = "2.7.1", record: str = names.PLAIN_STATE_DICT) -> bytes:
    """A sample file with other weights."""
    return rewritten(samples.sample(release, "mlp"), {record: forge.payload(forge.stream(value))})


def test_a_state_dict_that_calls_something() -> None:
    """Code in the weights is refused by its name, and the program can be read all the same."""
    with pt2kit.open(with_state({"0.weight": forge.Call("io.open", ("marker", "w"))})) as package:
        assert package.programs["model"].graph_module.graph.nodes
        with pytest.raises(UnsupportedError, match=r"serialized_state_dict\.pt: .*io\.open"):
            package.weights()
    assert not Path("marker").exists()


def test_objects_among_the_constants_are_listed() -> None:
    """A constant that is an object of another class does not hide the tensors next to it; it is never rebuilt."""
    value = {"t": forge.tensor(), "odd": forge.Call("io.open", ("marker", "w"))}
    with pt2kit.open(with_state(value, record=names.PLAIN_CONSTANTS)) as package:
        found = package.constants()
        assert isinstance(found["t"], TensorView)
        assert isinstance(found["odd"], OpaquePayload)
        assert "io.open" in found["odd"].globals()
        with pytest.raises(UnsupportedError, match=r"io\.open"):
            found["odd"].view()
    assert not Path("marker").exists()


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ([1], PayloadError, "serialized_state_dict.pt: expected a dict from names to tensors, got a list"),
        ({1: forge.tensor()}, PayloadError, "got one with other keys"),
        ({"0.weight": 1.5}, UnsupportedError, "'0.weight': expected a tensor, got a float [P15]"),
        (
            {"0.weight": forge.tensor()},
            PayloadError,
            "sizes: expected [16, 8] as in the graph, got [4] [P14]",
        ),
    ],
)
def test_state_dicts_that_are_none(value: Any, error: type[Pt2Error], text: str) -> None:
    """Weights that are no dict of tensors, or not those of the graph."""
    with pt2kit.open(with_state(value)) as package, pytest.raises(error) as caught:
        package.weights()
    assert text in str(caught.value)


def test_a_model_with_records_named_twice() -> None:
    """A model that has neither configs nor torch.save files, and is no container, is missing its weights."""
    gone = dict.fromkeys((names.weights_config("model"), names.constants_config("model")))
    with pt2kit.open(rewritten(samples.sample("2.13.0", "mlp"), gone)) as package:
        assert package.programs["model"].graph_module.graph.nodes
        with pytest.raises(ArchiveError, match="A25"):
            package.weights()


@pytest.mark.parametrize("release", ["2.1.2", "2.3.1", "2.7.1", "2.8.0"])
def test_mutated_files_end_in_our_errors(release: str) -> None:
    """Bytes of an old file changed at random, its records or its JSON: it is read, or refused with an error of ours."""
    generator = random.Random(release)
    path = samples.sample(release, "constants")
    with pt2kit.open(path) as package:
        relative = [package.relative(record) for record in package.records]
        contents = {name: bytes(package.archive.read(package.layout.record(name))) for name in relative}
    for _ in range(60):
        name = generator.choice([name for name in relative if contents[name]])
        data = bytearray(contents[name])
        for _ in range(generator.randint(1, 3)):
            place = generator.randrange(len(data))
            data[place] = generator.choice([data[place] ^ (1 << generator.randrange(8)), generator.randrange(256)])
        _read_all(rewritten(path, {name: bytes(data)}))


@pytest.mark.parametrize("version", [path.stem for path in PROGRAMS])
def test_mutated_programs_end_in_our_errors(version: str) -> None:
    """A program of any version with values of its tree exchanged is read, or refused with an error of ours."""
    generator = random.Random(version)
    text = (GOLDEN / "programs" / f"{version}.json").read_text()
    odd: list[Any] = [None, True, -1, 2**70, 0.5, "", "s0 +", [], {}, [[]], {"as_none": None}, "Infinity"]
    for _ in range(25):
        tree = json.loads(text)
        for _ in range(generator.randint(1, 3)):
            holder, key = _place(tree, generator)
            holder[key] = copy.deepcopy(generator.choice(odd))
        _read_all(json.dumps(tree).encode())


def _place(tree: Any, generator: random.Random) -> tuple[Any, Any]:
    """A random place in a tree, as its holder and its key."""
    holder: Any = {"": tree}
    key: Any = ""
    for _ in range(generator.randint(1, 12)):
        inner = holder[key]
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner))) if isinstance(inner, list) else []
        if not keys:
            break
        holder, key = inner, generator.choice(keys)
    return (tree, next(iter(tree))) if key == "" and holder is not tree and "" in holder else (holder, key)


def _read_all(data: bytes) -> None:
    try:
        with pt2kit.open(data) as package:
            for model in package.programs:
                read_program(package.programs[model])
                for payload in (*package.weights(model).values(), *package.constants(model).values()):
                    payload.view() if isinstance(payload, OpaquePayload) else payload.numpy(upcast=True)
                package.sample_inputs(model)
    except Pt2Error as error:
        assert str(error).isprintable() or "\n" in str(error)


def test_helpers() -> None:
    """The tensor that tests are made of is what it is taken for."""
    assert tensor().sizes == (3,)


def test_constants_inside_have_storages_of_their_own() -> None:
    """Each is a torch.save file, so that equal names of storages in two of them mean two storages."""
    with open_package(samples.sample("2.1.2", "constants")) as package:
        records = [view.record for view in dense(package.constants()).values()]
        assert len(records) == len(set(records)) == 2
