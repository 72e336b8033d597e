"""`pt2kit.write`: a package goes over to a new file whole, with what this build does not know; same in, same out."""

from __future__ import annotations

import io
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests import samples
from tests.narrow import numbers
from tests.packages import bytes_of, edited, rewritten, tree_of

import pt2kit
from pt2kit import schema
from pt2kit.errors import ArchiveError, IntegrityError, Pt2Error, SchemaError, UnsupportedError
from pt2kit.package import record_names as names

MLP = samples.sample("2.13.0", "mlp")
PROGRAM = names.model_json("model")
MAJOR, MINOR = schema.CURRENT.pair


def _written(package: pt2kit.Package, **more: Any) -> bytes:
    return bytes_of(pt2kit.write, package, **more)


def _contents(package: pt2kit.Package) -> dict[str, bytes]:
    return {name: bytes(package.archive.read(name)) for name in package.records}


@pytest.mark.parametrize("path", samples.corpus(*samples.CURRENT_LAYOUT), ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """The same records come back in the same order, byte for byte; writing what was written gives the same file."""
    with pt2kit.open(path) as package:
        first = _written(package)
        with pt2kit.open(first) as copy:
            assert list(_contents(copy).items()) == list(_contents(package).items())
            assert copy.layout == package.layout
            assert _written(copy) == first


def test_weights_can_be_mapped() -> None:
    """Weights are stored at multiples of 64 bytes, JSON of the format is deflated, the user's files are stored."""
    with pt2kit.open(samples.sample("2.13.0", "extra_files")) as package, pt2kit.open(_written(package)) as copy:
        for name, record in copy.records.items():
            kind = names.kind(copy.relative(name))
            assert record.is_stored == (kind not in ("program", "weights config", "constants config"))
            if kind == "weight":
                assert copy.archive.data_offset(name) % 64 == 0


def test_unknown_keys_and_records_go_over() -> None:
    """A file of a newer minor, with keys and records that this build does not know, loses none of them."""

    def change(tree: Any) -> None:
        tree["schema_version"] = {"major": MAJOR, "minor": MINOR + 1}
        tree["novelty"] = [1.5, "Infinity", None]
        tree["graph_module"]["graph"]["nodes"][0]["metadata_v2"] = {"z": 1, "a": 2}

    newer = rewritten(MLP, {"data/novelty/blob": b"\x00\xff", "novelty": b"1"})
    with pt2kit.open(newer) as package:
        content = dict(_contents(package))
    with pt2kit.open(edited(MLP, change)) as package:
        for again in (_written(package), _written(package, programs={"model": package.programs["model"]})):
            with pt2kit.open(again) as copy:
                old = tree_of(package.archive.read(package.layout.record(PROGRAM)))
                assert tree_of(copy.archive.read(copy.layout.record(PROGRAM))) == old
                assert copy.unknown() == package.unknown()
                assert copy.stored_schema_version == f"{MAJOR}.{MINOR + 1}"
    with pt2kit.open(newer) as package, pt2kit.open(_written(package)) as copy:
        assert _contents(copy) == content


def test_a_changed_program_would_lose_unknown_keys() -> None:
    """Replacing a program that has keys this build does not know is refused with their names; nothing is written."""

    def change(tree: Any) -> None:
        tree["novelty"] = 1

    target = io.BytesIO(b"before")
    with pt2kit.open(edited(MLP, change)) as package:
        changed = replace(package.programs["model"], torch_version="2.13.0+other")
        with pytest.raises(SchemaError) as caught:
            pt2kit.write(package, target, programs={"model": changed})
    assert str(caught.value) == (
        "models/model.json: expected no keys of a newer schema, got 1 that rewriting this program would lose "
        "($.novelty); upgrade pt2kit"
    )
    assert target.getvalue() == b"before"


def test_a_replaced_program() -> None:
    """A replaced program is what the new file holds; the rest is the same; the hash of the old content is gone."""
    with pt2kit.open(MLP) as package:
        changed = replace(package.programs["model"], torch_version="2.13.0+other")
        with pt2kit.open(_written(package, programs={"model": changed})) as copy:
            assert copy.programs["model"] == changed
            assert copy.producer == "torch 2.13.0+other"
            old, new = _contents(package), _contents(copy)
            for name in (PROGRAM, names.SERIALIZATION_ID):
                old.pop(package.layout.record(name))
                new.pop(copy.layout.record(name), None)
            assert new == old


def test_an_older_minor_is_written_as_it_was_or_raised() -> None:
    """Copied, a program keeps its version; passed on as it was read, it is written in the current one."""
    with pt2kit.open(samples.sample("2.9.1", "mlp")) as package:
        with pt2kit.open(_written(package)) as copy:
            assert copy.stored_schema_version == "8.14"
        with pt2kit.open(_written(package, programs=dict(package.programs))) as copy:
            assert copy.stored_schema_version == schema.CURRENT.number
            assert copy.programs["model"] == package.programs["model"]


def test_several_models() -> None:
    """One model is replaced, the other goes over as it is; a model that is not there is an error."""
    with pt2kit.open(samples.sample("2.13.0", "multi_model_package")) as package:
        changed = replace(package.programs["second"], torch_version="x")
        with pt2kit.open(_written(package, programs={"second": changed})) as copy:
            assert copy.programs["model"] == package.programs["model"]
            assert copy.programs["second"] == changed
        with pytest.raises(ArchiveError, match="third"):
            _written(package, programs={"third": changed})


def test_over_the_file_itself(tmp_path: Path) -> None:
    """A package may be written over its own file."""
    path = tmp_path / "m.pt2"
    path.write_bytes(MLP.read_bytes())
    with pt2kit.open(path) as package:
        weights = numbers(package.weights())
        pt2kit.write(package, path)
        assert numbers(package.weights()) == weights
    with pt2kit.open(path) as package:
        assert numbers(package.weights()) == weights
    assert os.listdir(tmp_path) == ["m.pt2"]


def test_a_damaged_record_leaves_the_target_alone(tmp_path: Path) -> None:
    """A record that cannot be read is found before the target is replaced."""
    target = tmp_path / "out.pt2"
    target.write_bytes(b"before")
    data = bytearray(MLP.read_bytes())
    with pt2kit.open(MLP) as package:
        data[package.archive.data_offset(package.layout.record(names.weight(1)))] ^= 1
    with pt2kit.open(bytes(data)) as package, pytest.raises(IntegrityError, match=r"weight_1: expected CRC-32 "):
        pt2kit.write(package, target)
    assert target.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["out.pt2"]


def test_deflated_archives_are_written_stored() -> None:
    """A file that was packed again with zip opens, and writing it makes its weights mappable again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(MLP) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    with pt2kit.open(buffer.getvalue()) as package:
        written = _written(package)
    with pt2kit.open(written) as copy, pt2kit.open(MLP) as expected:
        assert _contents(copy) == _contents(expected)
        assert all(copy.records[view.record].is_stored for view in copy.weights().values())


def test_fuzzed_files() -> None:
    """Whatever bytes change in a file, opening, reading and writing it raise this package's errors alone."""
    data, chance = MLP.read_bytes(), random.Random(7)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            changed[chance.randrange(len(data))] = chance.randrange(256)
        try:
            with pt2kit.open(bytes(changed)) as package:
                for model in package.programs:
                    for view in (*package.weights(model).values(), *package.constants(model).values()):
                        view.numpy()
                    package.sample_inputs(model)
                _written(package, programs=dict(package.programs))
        except Pt2Error as error:
            assert str(error).isprintable()


def test_old_layouts_are_copied_whole() -> None:
    """A plain zip is written as one, its records stored as its readers expect; programs in it cannot be replaced."""
    path = samples.sample("2.6.0", "extra_files")
    buffer = io.BytesIO()
    with pt2kit.open(path) as package:
        pt2kit.write(package, buffer)
        expected = {name: bytes(package.archive.read(name)) for name in package.records}
        with pytest.raises(UnsupportedError, match=r"expected a program of schema 8\.14 or later to replace, got 8\.2"):
            pt2kit.write(package, io.BytesIO(), programs=dict(package.programs))
    with pt2kit.open(buffer.getvalue()) as again:
        assert {name: bytes(again.archive.read(name)) for name in again.records} == expected
        assert all(record.is_stored for record in again.records.values())


def test_a_json_file_is_no_archive() -> None:
    """There is nothing to put it into."""
    text = (samples.DATA.parent / "golden" / "programs" / "8.20.json").read_bytes()
    with pt2kit.open(text) as package, pytest.raises(UnsupportedError, match="expected an archive, got a JSON file"):
        pt2kit.write(package, io.BytesIO())
