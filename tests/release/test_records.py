"""Views -> raw records and configs, and back through the reader of archives."""

from __future__ import annotations

import io

from tests import samples

import pt2kit
from pt2kit.package import record_names as names
from pt2kit.package.plan import Numbering, PlannedPickle, of_storage, write_records
from pt2kit.release.models import pack, plain_tensor
from pt2kit.schema import ScalarType
from pt2kit.tensors import OpaquePayload, TensorView, views_from_config
from pt2kit.zip.reader import Storage, open_archive
from pt2kit.zip.writer import ArchiveWriter


def written(packed):
    """The records in an archive, and what the config says of them there."""
    buffer = io.BytesIO()
    with ArchiveWriter(buffer) as writer:
        write_records(writer, packed[0])
    archive = open_archive(buffer.getvalue())
    return views_from_config(packed[1], archive, folder="archive/data/weights/", where="config")


def view(name: str, storage: Storage, dtype=ScalarType.FLOAT, sizes=(2,), offset=0, **more):
    """A row over a storage."""
    return TensorView(name, dtype, sizes, (1,), offset, storage, **more)


def test_a_state_dict() -> None:
    """Tensors of a torch.save file come out as they were, tied ones in one record."""
    with pt2kit.open(samples.sample("2.7.1", "shared_weights")) as package:
        weights = {name: plain_tensor(payload) for name, payload in package.weights().items()}
        packed = pack(weights, {}, Numbering(), names.weight)
        assert [record.name for record in packed[0]] == ["data/weights/weight_0", "data/weights/weight_1"]
        found = written(packed)
        assert list(found) == list(weights)
        for name, one in weights.items():
            other = found[name]
            assert isinstance(one, TensorView)
            assert isinstance(other, TensorView)
            assert other.tobytes() == one.tobytes()
            assert (other.strides, other.is_param, other.requires_grad) == (
                one.strides,
                one.is_param,
                one.requires_grad,
            )
            assert other.storage.nbytes == one.storage.nbytes


def test_types_and_empty_storages() -> None:
    """A record holds elements of one type, whole ones; empty storages share a record."""
    storage = Storage("r", 11, lambda: memoryview(bytes(range(11))))
    empty = [Storage(name, 0, lambda: memoryview(b"")) for name in "ab"]
    views = {
        "floats": view("floats", storage),
        "bytes": view("bytes", storage, ScalarType.BYTE, (3,), 8),
        "none": view("none", empty[0], sizes=(0,)),
        "nothing": view("nothing", empty[1], sizes=(0,)),
    }
    assert of_storage("r", views["floats"].storage, 4).size == 8
    found = written(pack(views, {}, Numbering({names.weight: 5}), names.weight))
    assert {name: one.record for name, one in found.items()} == {
        "floats": "archive/data/weights/weight_5",
        "bytes": "archive/data/weights/weight_6",
        "none": "archive/data/weights/weight_7",
        "nothing": "archive/data/weights/weight_7",
    }
    assert found["bytes"].tobytes() == bytes((8, 9, 10))


def test_values_that_are_not_the_bytes() -> None:
    """A tensor negated late is written as its values."""
    storage = Storage("r", 8, lambda: memoryview(b"\0\0\x80\x3f\0\0\0\x40"))
    found = written(pack({"n": view("n", storage, neg=True)}, {}, Numbering(), names.weight))
    assert found["n"].numpy().tolist() == [-1.0, -2.0]


def test_sparse_tensors_are_pickled() -> None:
    """They are torch.save files in a record, described by the graph."""
    with pt2kit.open(samples.sample("2.8.0", "sparse_buffer")) as package:
        meta = next(iter(package.programs["model"].graph_module.graph.tensor_values.values()))
        packed = pack({"sp": plain_tensor(package.weights()["sp"])}, {"sp": meta}, Numbering(), names.weight)
        [record], config = packed
        assert isinstance(record, PlannedPickle)
        entry = config.config["sp"]
        assert (entry.use_pickle, entry.tensor_meta) == (True, meta)
        payload = written(packed)["sp"]
        assert isinstance(payload, OpaquePayload)
        want = package.weights()["sp"].numpy().tolist()
        assert payload.view().numpy().tolist() == want
