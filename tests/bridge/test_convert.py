"""Files of old releases, converted, in the hands of the installed torch; and files of today, converted down and up."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge import recorded
from tests.bridge.read import corpus_types as corpus_types
from tests.packages import bytes_of, rewritten

import pt2kit

pytestmark = pytest.mark.usefixtures("quiet")

OLD = [path for path in samples.corpus() if path.parent.name not in samples.CURRENT_LAYOUT]
NAMEDTUPLES = {"NT": "corpus.NT"}
SPECIALISED = "result 0: |result 1: "
"""`sym_ops` of 2.1 to 2.7: the exporter wrote the sizes of the example for max and min; no reader can know better."""

INSTALLED = f"torch=={'.'.join(torch.__version__.split('.')[:2])}"
TARGETS = ("8.17", "8.14", "8.8", "8.7", "8.6", "8.2", "7.3", "5.3", "5.3-traces", "5.1", "2", "1", "draft")
LOSSES = ("persistent", "dialect", "class_fqn", "model_name", "extra_files", "example_inputs")
LOADED_AS_THEY_ARE = ("8.17", "8.14", "8.8", "8.7")
"""Older versions that torch reads without our help."""


def loader(data: bytes) -> Callable[[], Any]:
    """Loads a converted file with torch alone."""
    return lambda: torch.export.load(io.BytesIO(data))


def converted(source: Any, target: str) -> bytes:
    """Return the converted file."""
    return bytes_of(pt2kit.convert, source, target=target, allow=LOSSES, namedtuples=NAMEDTUPLES)


@pytest.mark.parametrize("path", OLD, ids=samples.release_id)
def test_old_files_run_in_the_installed_torch(path: Path) -> None:
    """Converted to the installed torch, a file of 2.1 to 2.8 is loaded by it and gives the outputs of its release."""
    load = loader(converted(path, INSTALLED))
    assert recorded.has_outputs(path)
    found = recorded.difference_unless_own(load, path)
    if path.stem == "sym_ops" and path.parent.name < "2.8":
        assert SPECIALISED.split("|")[0] in found or SPECIALISED.split("|")[1] in found
    else:
        assert found == ""


@pytest.mark.parametrize("target", TARGETS)
def test_down_and_up_again(target: str) -> None:
    """A program that an older version can express computes the same after a downgrade and an upgrade."""
    count = 0
    for name in ("dynamic_batch", "shared_weights", "kwargs_and_nested_inputs", "cond"):
        path = samples.sample("2.9.1", name)
        try:
            down = converted(path, target)
        except pt2kit.errors.ConversionError:
            continue
        up = converted(down, INSTALLED)
        assert recorded.difference(torch.export.load(io.BytesIO(up)), path) == "", name
        if target in LOADED_AS_THEY_ARE:
            assert recorded.difference(torch.export.load(io.BytesIO(down)), path) == "", name
        count += 1
    assert count >= 3


def test_the_state_dict_of_an_old_layout_is_what_torch_would_read() -> None:
    """torch.load gives the tensors with their storages shared, parameters as parameters, strides as they are."""
    import zipfile

    with pt2kit.open(samples.sample("2.13.0", "shared_weights")) as package:
        want = {name: view.numpy().tolist() for name, view in package.weights().items()}
        data = converted(package, "torch==2.5")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        state = torch.load(io.BytesIO(archive.read("serialized_state_dict.pt")), weights_only=True)
    assert {name: tensor.tolist() for name, tensor in state.items()} == want
    assert isinstance(state["emb.weight"], torch.nn.Parameter)
    assert state["emb.weight"].data_ptr() == state["out.weight"].data_ptr()
    assert state["base"].untyped_storage().data_ptr() == state["tail"].untyped_storage().data_ptr()


def test_pt2kit_loads_every_version() -> None:
    """`pt2kit.load` runs what was converted to any version, without converting it back first."""
    path = samples.sample("2.9.1", "dynamic_batch")
    for target in TARGETS:
        assert recorded.difference(pt2kit.load(converted(path, target)), path) == "", target


def test_weights_without_data() -> None:
    """Weights on the meta device remain there in every layout, as torch reads it."""
    path = samples.sample("2.7.1", "shared_weights")
    record = "serialized_state_dict.pt"
    with pt2kit.open(path) as package:
        state = torch.load(io.BytesIO(package.archive.read(record)))
    moved = {key: value.to("meta") for key, value in state.items()}
    moved = {key: torch.nn.Parameter(one) if state[key].requires_grad else one for key, one in moved.items()}
    source = rewritten(path, {record: bytes_of(torch.save, moved)})
    data = converted(source, INSTALLED)
    assert list(pt2kit.open(data).weights()) == list(moved)
    assert pt2kit.digest(data) == pt2kit.digest(source)
    again = torch.export.load(io.BytesIO(data)).state_dict
    assert {key: (one.device.type, one.shape) for key, one in again.items()} == {
        key: ("meta", one.shape) for key, one in moved.items()
    }
    down = converted(data, "torch==2.7")
    assert pt2kit.digest(down) == pt2kit.digest(source)
    with pt2kit.open(down) as package:
        older = torch.load(io.BytesIO(package.archive.read(record)), weights_only=True)
    assert {key: (type(one), one.device.type, one.shape, one.stride()) for key, one in older.items()} == {
        key: (type(one), "meta", one.shape, one.stride()) for key, one in moved.items()
    }
