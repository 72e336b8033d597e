"""Models of schema 8.6: programs, delegates, payload paths and devices."""

from __future__ import annotations

import json

import pytest
from tests.versions.programs import copied, golden, release_version, stored_programs
from tools.golden_maker import tensor

from pt2kit.codec import parse
from pt2kit.errors import PayloadError, SchemaError
from pt2kit.pickles import writer as torch_save
from pt2kit.versions import encoding
from pt2kit.versions.containers import (
    container_of,
    map_devices,
    read_model,
    read_model_payload,
)
from pt2kit.versions.program import downgrade_program, upgrade_program
from pt2kit.zip.reader import Storage

PATHS = {"a.weight": "data/weights/weight_0"}
CONSTANTS = {"a.cst": "data/constants/tensor_0"}
DEVICES = {"cuda:1": "cpu"}


def storage(data):
    """A record of bytes."""
    return Storage("r", len(data), lambda: memoryview(data))


def stored(version="8.6"):
    """A golden program as its version writes it."""
    return encoding.to_wire(golden(version), version, "x")


def model(**more):
    """A Model as parsed JSON."""
    program = {"methods": {"forward": stored(), "other": stored("8.7")}}
    return {
        "name": "m",
        "tensorPaths": PATHS,
        "program": program,
        "delegates": {"npu": {"methods": {"forward": stored()}}},
        "deviceAllocationMap": DEVICES,
        "constantPaths": CONSTANTS,
        **more,
    }


def test_containers_are_known_by_their_keys():
    """A program alone is none."""
    assert container_of(model()) == "Model"
    assert container_of({"methods": {}}) == "Program"
    assert container_of(stored()) is None
    assert container_of([]) is None
    assert container_of({}) is None


def test_a_model_is_read():
    """Its programs are raised when they are asked for; its delegates are read on their own."""
    raw = model()
    before = copied(raw)
    found = read_model(raw, "models/m.json")
    assert raw == before
    current = upgrade_program(stored(), "x").tree
    assert found.name == "m"
    assert {name: read().found.number for name, read in found.methods.items()} == {"forward": "8.6", "other": "8.7"}
    assert found.methods["forward"]().tree == current
    assert (found.weight_paths, found.constant_paths, found.devices) == (PATHS, CONSTANTS, DEVICES)


def test_a_program_container_is_a_model_without_a_name():
    """It has methods and nothing else."""
    found = read_model({"methods": {"forward": stored()}}, "x")
    assert (found.name, list(found.methods), found.weight_paths) == ("", ["forward"], {})


BAD = [
    ({"a": 1}, r"^x: \$: expected a Model or a Program of schema 8\.6, got neither \[M5\]"),
    (model(name=3), r"^x: \$\.name: expected the name of a model"),
    (model(tensorPaths={"w": 3}), r"^x: \$\.tensorPaths: expected an object of texts"),
    (model(deviceAllocationMap=[]), r"^x: \$\.deviceAllocationMap: expected an object of texts, got list"),
    (model(program={}), r"^x: \$\.program: expected an object with methods"),
    (model(program={"methods": {"f": 3}}), r"^x: \$\.program\.methods\.f: \$: expected an object"),
]


@pytest.mark.parametrize(("raw", "message"), BAD)
def test_what_is_no_model(raw, message):
    """With its place."""
    with pytest.raises(SchemaError, match=message):
        _ = [read() for read in read_model(raw, "x").methods.values()]


META = {
    "dtype": 7,
    "sizes": [{"as_int": 3}],
    "requires_grad": True,
    "device": {"type": "cpu", "index": None},
    "strides": [{"as_int": 1}],
    "storage_offset": {"as_int": 0},
    "layout": 7,
}


def test_raw_payloads():
    """The graph describes what the bytes are."""
    data = bytes(tensor().storage.read())
    found = read_model_payload(storage(data), META, "w", "data/weights/weight_0", kind="parameter")
    assert (found.dtype_name, found.sizes, found.requires_grad, found.kind) == ("float32", (3,), True, "parameter")
    assert bytes(found.storage.read()) == data
    cuda = {**META, "device": {"type": "cuda", "index": 1}}
    assert read_model_payload(storage(data), cuda, "w", "r").device == "cuda:1"
    empty = {**META, "sizes": [{"as_int": 0}]}
    assert read_model_payload(storage(b""), empty, "w", "r").sizes == (0,)


def test_pickled_payloads():
    """A torch.save file of one tensor says it itself."""
    data = torch_save.dumps(tensor(), "x")
    assert read_model_payload(storage(data), META, "w", "r").sizes == (3,)
    with pytest.raises(PayloadError, match=r"^r: expected one tensor for 'w', got dict"):
        read_model_payload(storage(torch_save.dumps({}, "x")), META, "w", "r")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [{"as_int": 4}]}, r"^r: 'w': expected at least 16 bytes for float32 \[4\], got 12"),
        ({"storage_offset": {"as_int": 1}}, "expected at least 16 bytes"),
        ({"strides": []}, "expected as many strides as sizes, got 0 and 1"),
        ({"sizes": [{"as_expr": {"expr_str": "s0", "hint": None}}]}, "expected concrete sizes"),
        ({"sizes": [{"as_int": -1}]}, "expected concrete sizes"),
        ({"dtype": 33}, r"expected a dtype of schema 8\.6 for 'w', got 33"),
    ],
)
def test_payloads_that_do_not_fit(change, message):
    """Sizes and bytes must agree."""
    with pytest.raises(PayloadError, match=message):
        read_model_payload(storage(b"\0" * 12), {**META, **change}, "w", "r")


def test_devices_are_mapped():
    """In values and in arguments; others stay."""
    tree = golden("8.20")
    new = map_devices(tree, {"cuda:1": "cuda:0", "cpu": "meta"}, "x")
    text = json.dumps(new)
    assert '"cuda", "index": 1' not in text
    assert '{"type": "cuda", "index": 0}' in text
    assert '"cpu"' not in text
    assert map_devices(tree, {"xpu:3": "cpu"}, "x") is tree


@pytest.mark.parametrize("device", ["", "cuda:", "cuda:x", "cuda:-1", "a b", "cuda:1000", ":1"])
def test_devices_that_are_none(device):
    """A map names devices on both sides."""
    for devices in ({device: "cpu"}, {"cpu": device}):
        with pytest.raises(SchemaError, match=r"^x: deviceAllocationMap: expected a device such as cuda:0, got"):
            map_devices(golden("8.20"), devices, "x")


def test_release_files_as_a_model():
    """Programs of a release fit into a model."""
    record, data = next((record, data) for path, record, data in stored_programs("2.7.1") if path.stem == "mlp")
    assert release_version("2.7.1") == "8.7"
    tree = upgrade_program(parse(data, record), record).tree
    lowered = encoding.to_wire(downgrade_program(tree, "8.6", "x").tree, "8.6", "x")
    again = read_model(model(program={"methods": {"forward": lowered}}), "x")
    assert again.methods["forward"]().tree == tree
