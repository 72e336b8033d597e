"""The containers of schema 8.6: what is written, what comes back, several methods, delegates, devices."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from tests import samples
from tests.packages import edited
from tests.release.files import converted, records, tensors, text

import pt2kit
from pt2kit import codec
from pt2kit.errors import ConversionError
from pt2kit.package import record_names as names
from pt2kit.schema import CURRENT
from pt2kit.versions.check import check_tree
from pt2kit.versions.encoding import from_wire

SHARED = samples.sample("2.13.0", "shared_weights")
CONSTANTS = samples.sample("2.13.0", "constants__decomp")


def container(data: bytes, model: str = "model") -> dict[str, Any]:
    """The JSON of a container."""
    with pt2kit.open(data) as package:
        tree: dict[str, Any] = json.loads(bytes(package.archive.read(package.layout.record(names.model_json(model)))))
        return tree


def test_a_model_of_one_program() -> None:
    """It is called like the program, has the method forward, and names a record per tensor; tied ones share it."""
    data = converted(SHARED, "8.6")
    tree = container(data)
    check_tree(from_wire(tree, "8.6", "x", root="Model"), "8.6", "x", root="Model")
    assert (tree["name"], list(tree["program"]["methods"])) == ("model", ["forward"])
    assert tree["tensorPaths"]["emb.weight"] == tree["tensorPaths"]["out.weight"]
    assert tree["tensorPaths"]["base"] != tree["tensorPaths"]["emb.weight"]
    with pt2kit.open(data) as package:
        assert {f"data/weights/weight_{number}" for number in range(2)} <= set(records(package))


@pytest.mark.parametrize("name", ["shared_weights", "constants__decomp", "strided_weights", "dtypes", "many_params"])
def test_there_and_back(name: str) -> None:
    """Every tensor comes back as it was: bytes, strides, kind."""
    source = samples.sample("2.13.0", name)
    with pt2kit.open(source) as before, pt2kit.open(converted(converted(source, "8.6"), "8.20")) as after:
        old, new = tensors(before), tensors(after)
        assert old.keys() == new.keys()
        for key, (described, strides, offset, is_param, requires_grad, device, _, data) in old.items():
            assert new[key][:6] == (described, strides, offset, is_param, requires_grad, device), key
            assert new[key][-1] == data


def edited_container(change: Any) -> bytes:
    """A container with a change in its JSON."""
    return edited_file(converted(CONSTANTS, "8.6"), change)


def edited_file(data: bytes, change: Any) -> bytes:
    """A file with a change in the JSON of its model."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.pt2"
        path.write_bytes(data)
        return edited(path, change)


def test_several_methods_stay_together() -> None:
    """They become programs elsewhere, and methods of one model again."""

    def add(tree: Any) -> None:
        methods = tree["program"]["methods"]
        methods["other"] = methods["forward"]

    data = edited_container(add)
    with pt2kit.open(data) as package:
        assert package.layout.models == ("model", "model.other")
    again = container(converted(data, "8.6"))
    assert again["program"]["methods"].keys() == {"forward", "other"}
    assert again == container(data)
    with pt2kit.open(converted(data, "8.20")) as package:
        assert package.layout.models == ("model", "model.other")
        assert tensors(package, "model").keys() == tensors(package, "model.other").keys()
    with pytest.raises(ConversionError, match=r"2 programs in one file: 'model', 'model\.other'"):
        converted(data, "torch==2.7")


def test_devices_and_delegates() -> None:
    """Devices are mapped and delegates lost by name when a program leaves its container; inside one both stay."""

    def add(tree: Any) -> None:
        tree["deviceAllocationMap"] = {"cpu": "cuda:1"}
        tree["delegates"] = {"npu": {"methods": {"forward": tree["program"]["methods"]["forward"]}}}

    data = edited_container(add)
    again = container(converted(data, "8.6"))
    assert (again["deviceAllocationMap"], again["delegates"].keys()) == ({"cpu": "cuda:1"}, {"npu"})
    with pytest.raises(ConversionError, match=r"the delegates 'npu' of the container.*allow 'delegates'"):
        converted(data, "8.20")
    buffer = io.BytesIO()
    report = pt2kit.convert(data, buffer, target="8.20", allow=["delegates"])
    assert "devices, as the container maps them: cpu is cuda:1" in {note.message for note in report.changed}
    with pt2kit.open(buffer.getvalue()) as package:
        values = package.programs["model"].graph_module.graph.tensor_values.values()
        assert {(meta.device.type, meta.device.index) for meta in values} == {("cuda", 1)}


def test_what_8_6_cannot_express() -> None:
    """It is named with its place, as for any other target."""
    with pytest.raises(ConversionError, match=r"as_complex of Argument \(since 8\.14\)"):
        converted(samples.sample("2.13.0", "complex_scalar"), "8.6")
    with pytest.raises(ConversionError, match=r"expected a dense tensor with data, got f32\[.*SparseCoo.*: 'sp'"):
        converted(samples.sample("2.7.1", "sparse_buffer"), "8.6")


def test_a_program_alone() -> None:
    """A JSON text without payloads stays one, at whatever version."""
    with pt2kit.open(SHARED) as package:
        data = text(package)
    for version in ("8.6", "5.3", "2"):
        down = converted(data, version)
        with pt2kit.open(down) as found:
            assert (found.layout.kind, found.stored_schema_version) == ("json", version)
        assert codec.parse(converted(down, CURRENT.number), "x").keys() == codec.parse(data, "x").keys()
    assert converted(data, CURRENT.number) == data
