"""Every part of every program is found in the archives of all releases."""

from __future__ import annotations

import io
import zipfile

import pytest
from tests.samples import RELEASES, corpus, sample

from pt2kit import codec, schema
from pt2kit.archive.layout import Layout, verify_header
from pt2kit.archive.pickle_values import PickledTensor
from pt2kit.archive.reader import open_archive
from pt2kit.errors import ArchiveError, JsonError, PayloadError
from pt2kit.migrate import layouts, torch_save

OLD = [release for release in RELEASES if [int(n) for n in release.split(".")] < [2, 9]]


def wanted(tree):
    """The names that a program's inputs take from the payloads."""
    names = set()
    for spec in layouts.input_specs(tree):
        for held in spec.values():
            names |= {text for key, text in held.items() if key.endswith("_name")}
    return names


@pytest.mark.parametrize("release", OLD)
def test_payloads_of_old_releases_are_complete(release):
    """Everything that a program takes from its payloads is there, described without torch."""
    for path in corpus(release):
        with open_archive(path) as archive:
            layout = verify_header(archive)
            for model in layout.models:
                place = layouts.parts(archive, layout, model)
                program = layouts.read_program(archive, place.program)
                weights = layouts.read_weights(archive, place)
                constants = layouts.read_constants(archive, place, program)
                assert place.stored_as == "torch.save"
                assert wanted(program.tree) <= {*weights, *constants}, path.stem


@pytest.mark.parametrize("release", RELEASES)
def test_programs_of_all_releases_are_read(release):
    """Raised to the current version, they are programs of the schema with nothing unknown in them."""
    for path in corpus(release):
        with open_archive(path) as archive:
            layout = verify_header(archive)
            for model in layout.models:
                place = layouts.parts(archive, layout, model)
                assert {place.program, place.weights} <= set(archive.records)
                program = layouts.read_program(archive, place.program)
                decoded = codec.convert(program.tree, schema.ExportedProgram, path.stem)
                assert decoded.unknown == ()


def test_new_archives_name_their_configs():
    """From 2.9 on, `tensors` reads the payloads."""
    with open_archive(sample("2.13.0", "mlp")) as archive:
        place = layouts.parts(archive, verify_header(archive), "model")
    assert place == layouts.Parts(
        "mlp/models/model.json",
        "records",
        "mlp/data/weights/model_weights_config.json",
        "mlp/data/constants/model_constants_config.json",
        "mlp/data/sample_inputs/model.pt",
    )


def test_parts_of_a_plain_zip():
    """2.1 has neither constants nor sample inputs."""
    found = {}
    for release in ("2.1.2", "2.2.2", "2.7.1"):
        with open_archive(sample(release, "mlp")) as archive:
            found[release] = layouts.parts(archive, verify_header(archive), layouts.PLAIN_MODEL)
    program = "serialized_exported_program.json"
    assert found["2.1.2"] == layouts.Parts(program, "torch.save", "serialized_state_dict.json", None, None)
    assert found["2.2.2"].constants == "serialized_constants.json"
    assert found["2.7.1"].sample_inputs == "serialized_example_inputs.pt"


@pytest.mark.parametrize(("release", "prefix"), [("2.1.2", "extra_files/"), ("2.13.0", "extra_files/extra/")])
def test_extra_files(release, prefix):
    """Found under their own names in either layout."""
    with open_archive(sample(release, "extra_files")) as archive:
        found = layouts.extra_files(archive, verify_header(archive))
    assert found
    assert all(record == prefix + name for name, record in found.items())


def test_bare_json():
    """A program's JSON alone is enough for the program."""
    with open_archive(sample("2.3.1", "mlp")) as archive:
        data = bytes(archive.read("serialized_exported_program.json"))
    program = layouts.read_bare_program(data, "mlp.json")
    assert program.found.number == "5.1"
    with pytest.raises(JsonError, match=r"^mlp\.json: "):
        layouts.read_bare_program(data[:-1], "mlp.json")


def archive_of(**records):
    """An archive with some records, and a plain layout for it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in records.items():
            file.writestr(name, data)
    return open_archive(buffer.getvalue(), name="x"), Layout("plain-zip", "", "", ("model",))


def test_a_plain_zip_without_weights_is_refused():
    """The record that is missing is named."""
    archive, layout = archive_of(version=b"1")
    with pytest.raises(ArchiveError, match=r"^x: expected a record serialized_state_dict\.pt in a plain zip, got none"):
        layouts.parts(archive, layout, "model")


STATES = [
    (torch_save.dumps([1], "x"), r"^state: expected a dict from names to tensors, got list"),
    (torch_save.dumps({1: 2}, "x"), r"^state: expected names as keys, got '1' \(int\)"),
    (b"nothing", "^state: "),
]


@pytest.mark.parametrize(("data", "message"), STATES)
def test_what_is_no_state_dict(data, message):
    """A torch.save file of something else is refused with its record."""
    archive, _ = archive_of(state=data)
    with pytest.raises(PayloadError, match=message):
        layouts.read_state(archive, "state")


def test_weights_are_tensors():
    """A constant may be another value, a weight may not."""
    archive, _ = archive_of(state=torch_save.dumps({"w": 3}, "x"))
    assert layouts.read_state(archive, "state") == {"w": 3}
    place = layouts.Parts("p", "torch.save", "state", None, None)
    with pytest.raises(PayloadError, match=r"^state: 'w': expected a tensor, got int"):
        layouts.read_weights(archive, place)


def test_empty_records_hold_nothing():
    """2.8 writes an empty record where there are no constants to write; 2.1 has no record at all."""
    archive, _ = archive_of(state=b"")
    assert layouts.read_state(archive, "state") == {}
    assert layouts.read_state(archive, None) == {}


def test_constants_of_schema_1_come_from_the_program():
    """They are inside the JSON, and are described like any other."""
    with open_archive(sample("2.1.2", "constants")) as archive:
        place = layouts.parts(archive, verify_header(archive), "model")
        program = layouts.read_program(archive, place.program)
        constants = layouts.read_constants(archive, place, program)
    assert sorted(constants) == ["_tensor_constant0", "_tensor_constant1"]
    first = constants["_tensor_constant0"]
    assert isinstance(first, PickledTensor)
    assert bytes(first.storage.data) == b"\0\0\x80?\0\0\0@\0\0@@"
