"""Weights without their program, and a program with weights from elsewhere: the same tensors as `load` gives."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tests.packages import bytes_of
from tests.samples import corpus, release_id, sample
from torch import nn

import pt2kit
from pt2kit.bridge.read.reading import Staging
from pt2kit.bridge.read.tensors import Devices, Tensors
from pt2kit.editing.weights import to_view
from pt2kit.errors import ArchiveError, IntegrityError, PayloadError, UnsupportedError
from pt2kit.tensors.safetensors_file import to_safetensors

MLP = sample("2.13.0", "mlp")
SHARED = sample("2.13.0", "shared_weights")
STRIDED = sample("2.13.0", "strided_weights")


def is_dense(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has a storage."""
    return tensor.layout is torch.strided


def ties(tensors: dict[str, torch.Tensor]) -> dict[str, str]:
    """Name -> the first name over the same memory."""
    first: dict[Any, str] = {}
    return {
        name: first.setdefault(tensor.untyped_storage()._cdata, name)
        for name, tensor in tensors.items()
        if is_dense(tensor)
    }


def assert_same(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    """Names, kinds, types, strides, numbers and ties agree."""
    assert list(found) == list(wanted)
    for name, tensor in found.items():
        other = wanted[name]
        assert type(tensor) is type(other), name
        assert (tensor.dtype, tensor.shape, tensor.layout, tensor.requires_grad) == (
            (other.dtype, other.shape, other.layout, other.requires_grad)
        ), name
        if tensor.layout is torch.strided:
            assert tensor.stride() == other.stride(), name
            if not tensor.is_meta:
                assert torch.equal(
                    tensor.detach().reshape(-1).view(torch.uint8), other.detach().reshape(-1).view(torch.uint8)
                )
    assert ties(found) == ties(wanted)


@pytest.mark.parametrize("path", corpus("2.13.0", "2.8.0", "2.4.1", "2.1.2"), ids=release_id)
def test_all_weights(path: Path) -> None:
    """Without names: the state dict of the program that `load` gives; one that takes code to rebuild is refused."""
    try:
        found = pt2kit.load_weights(path)
    except UnsupportedError as error:
        assert "takes code to rebuild" in str(error)
        return
    with pt2kit.open(path) as package:
        assert list(found) == list(package.weights())
    if "custom_op" in path.stem or path.stem in ("kwargs_and_nested_inputs", "namedtuple_io"):
        return  # needs a library, or a class, to load as a program
    assert_same(found, dict(pt2kit.load(path).state_dict))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_weights() -> None:
    """Sparse weights, which torch pickles, are plain data as well; buffers are no parameters."""

    class Sparse(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.eye(3).to_sparse_csr())
            self.weight = torch.nn.Parameter(torch.eye(3).to_sparse())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.rows.to_dense() @ self.weight.to_dense() @ x

    found = pt2kit.load_weights(bytes_of(pt2kit.save, torch.export.export(Sparse(), (torch.ones(3, 3),))))
    assert {name: (tensor.layout, type(tensor)) for name, tensor in found.items()} == {
        "weight": (torch.sparse_coo, torch.nn.Parameter),
        "rows": (torch.sparse_csr, torch.Tensor),
    }
    assert all(torch.equal(tensor.to_dense(), torch.eye(3)) for tensor in found.values())


def test_names() -> None:
    """By name, constants among them, or by a function; another name is refused with those that are close."""
    assert list(pt2kit.load_weights(MLP, ["2.bias", "0.weight"])) == ["0.weight", "2.bias"]
    assert list(pt2kit.load_weights(MLP, lambda name: name.startswith("0."))) == ["0.weight", "0.bias"]
    constants = sample("2.13.0", "constants")
    with pt2kit.open(constants) as package:
        [name, *_] = package.constants()
    assert list(pt2kit.load_weights(constants, [name])) == [name]
    with pytest.raises(PayloadError, match=r"expected a weight or constant '0\.wegiht', got none .* mean 0\.weight"):
        pt2kit.load_weights(MLP, ["0.wegiht"])
    with pytest.raises(TypeError, match="expected several names or a function"):
        pt2kit.load_weights(MLP, "0.weight")
    with pytest.raises(ArchiveError, match=r"expected a program, one of .*, got 'nobody'"):
        pt2kit.load_weights(MLP, model="nobody")


@pytest.mark.parametrize("path", [MLP, SHARED, STRIDED], ids=release_id)
def test_on_the_meta_device(path: Path) -> None:
    """Types, shapes, strides and ties without reading a byte: a damaged file gives the same."""
    found = pt2kit.load_weights(path, device="meta")
    assert {tensor.device.type for tensor in found.values()} == {"meta"}
    whole = pt2kit.load_weights(path)
    assert {name: (one.dtype, one.shape, one.stride()) for name, one in found.items()} == {
        name: (one.dtype, one.shape, one.stride()) for name, one in whole.items()
    }
    assert ties(found) == ties(whole)


def test_devices_by_map() -> None:
    """Devices move as in `load`."""
    found = pt2kit.load_weights(MLP, device={"cpu": "meta"})
    assert {tensor.device.type for tensor in found.values()} == {"meta"}
    with pytest.raises(UnsupportedError, match=r"device cuda:.*: not available here"):
        pt2kit.load_weights(MLP, device="cuda:0" if not torch.cuda.is_available() else "cuda:99")


@pytest.mark.parametrize("piece", [1, 7, 64, 1000, 1 << 20])
@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 1000, 5000])
def test_staging(piece: int, nbytes: int) -> None:
    """Whatever the length of a piece: every byte once, in order; buffers are used in turns."""
    data = bytes(index * 7 % 251 for index in range(nbytes))
    asked = []

    def fill(start: int, buffer: memoryview) -> None:
        asked.append((start, buffer.nbytes))
        buffer[:] = data[start : start + buffer.nbytes]

    made = Staging(torch.device("cpu"), piece).upload(nbytes, fill)
    assert bytes(torch.empty(0, dtype=torch.uint8).set_(made).numpy()) == data
    assert sum(length for _, length in asked) == nbytes
    assert [start for start, _ in asked] == list(range(0, nbytes, piece))
    assert max((length for _, length in asked), default=0) <= piece


def test_damage_is_found_while_streaming(tmp_path: Path) -> None:
    """Records copied in pieces are verified by their checksum, files next to the archive by their SHA-256."""
    path = tmp_path / "m.pt2"
    with pt2kit.open(MLP) as package:
        pt2kit.write(package, path, external="w.safetensors")
        offset = {record: package.archive.data_offset(record) for record in package.records}
        [first] = [record for record in offset if record.endswith("weights/weight_0")]
    for file, place in ((path.parent / "w.safetensors", -1), (tmp_path / "c.pt2", offset[first])):
        data = bytearray(file.read_bytes() if file.exists() else MLP.read_bytes())
        data[place] ^= 1
        file.write_bytes(data)
    for file in (path, tmp_path / "c.pt2"):
        with pt2kit.open(file) as package:
            tensors = Tensors(Devices(None), package.archive)  # nothing is mapped: everything is copied
            views = list(package.weights().values())
            with pytest.raises(IntegrityError, match=r"SHA-256|CRC-32"):
                list(map(tensors.any, views))


def test_host_memory_is_bounded(tmp_path: Path) -> None:
    """Streaming a gigabyte through pieces needs memory for pieces: measured in a process of its own."""
    code = """
import resource, sys, torch
import pt2kit
from pt2kit.bridge.read.reading import Staging
from pt2kit.zip.reader import open_archive

class Meta(Staging):
    def upload(self, nbytes, fill):
        part = torch.empty(self._piece, dtype=torch.uint8)
        for number, start in enumerate(range(0, nbytes, self._piece)):
            buffer = self._buffer(number % 2, min(self._piece, nbytes - start))
            fill(start, memoryview(buffer.numpy()))
            part[: buffer.numel()].copy_(buffer)
        return part.untyped_storage()

archive = open_archive(sys.argv[1])
sink = Meta(torch.device("cpu"), 8 << 20)
sink.upload(1 << 10, lambda start, buffer: None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for record in archive.records.values():
    total = archive.sum_of(record.name)
    def fill(start, buffer, record=record):
        archive.read_into(record.name, start, buffer)
        total.add(buffer)
    sink.upload(record.size, fill)
    total.check()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    from pt2kit.zip.writer import ArchiveWriter

    path = tmp_path / "large.pt2"
    with ArchiveWriter(path, root="large") as writer:
        block = bytes(1 << 20)
        for number in range(4):
            writer.write(f"data/weights/weight_{number}", (block for _ in range(64)), size=64 << 20)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64 << 10  # kilobytes, of a file of 256 MB


# Weights from elsewhere.


def numbers(path: Path) -> dict[str, torch.Tensor]:
    """Other numbers for every weight of a file, that agree where they share memory."""
    program = pt2kit.load(path)
    torch.manual_seed(0)
    with torch.no_grad():
        for tensor in program.state_dict.values():
            torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).uniform_()
    return {name: tensor.detach().clone() for name, tensor in program.state_dict.items()}


@pytest.mark.parametrize("path", [MLP, SHARED, STRIDED], ids=release_id)
@pytest.mark.parametrize("how", ["live", "numpy", "views", "file", "index"])
def test_given_weights(path: Path, how: str, tmp_path: Path) -> None:
    """Tensors, arrays, views of another package, a safetensors file, shards: the program has those, laid out alike."""
    own = pt2kit.load(path)
    given = numbers(path)
    source: Any = given
    if how == "numpy":
        source = {name: tensor.numpy() for name, tensor in given.items()}
    elif how == "file":
        save_file({name: tensor.contiguous() for name, tensor in given.items()}, tmp_path / "w.safetensors")
        source = tmp_path / "w.safetensors"
    elif how == "views":
        source = pt2kit.open(bytes_of(pt2kit.save, pt2kit.load(path, weights=given))).weights()
    elif how == "index":
        to_safetensors({name: to_view(name, one.numpy()) for name, one in given.items()}, tmp_path / "a.safetensors")
        index = {"weight_map": dict.fromkeys(given, "a.safetensors")}
        source = tmp_path / "a.safetensors.index.json"
        source.write_text(json.dumps(index))
    loaded = pt2kit.load(path, weights=source)
    for name, tensor in loaded.state_dict.items():
        assert torch.equal(tensor, given[name]), name
        assert tensor.stride() == own.state_dict[name].stride()
        assert type(tensor) is type(own.state_dict[name])
        assert tensor.requires_grad == own.state_dict[name].requires_grad
    assert ties(loaded.state_dict) == ties(own.state_dict)


def test_tied_weights_are_given_once_or_alike() -> None:
    """Under one of its names, or under both with the same numbers; others are refused, naming both."""
    given = numbers(SHARED)
    del given["out.weight"]
    loaded = pt2kit.load(SHARED, weights=given).state_dict
    assert loaded["out.weight"].data_ptr() == loaded["emb.weight"].data_ptr()
    with pytest.raises(
        PayloadError, match=r"'out\.weight': expected the numbers that 'emb\.weight' has, with which it"
    ):
        pt2kit.load(SHARED, weights={**given, "out.weight": given["emb.weight"] + 1})
    with pytest.raises(PayloadError, match=r"expected the numbers that 'base' has"):
        pt2kit.load(SHARED, weights={**given, "tail": given["tail"] + 1})


def test_given_weights_run(caplog: pytest.LogCaptureFixture) -> None:
    """A program without weights computes with those that are given, and nothing is warned of."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    x = torch.randn(2, 3)
    file, skeleton = io.BytesIO(), io.BytesIO()
    pt2kit.save(torch.export.export(model, (x,)), file)
    with pt2kit.open(file.getvalue()) as package:
        pt2kit.write(package, skeleton, skeleton=True)
    with caplog.at_level(logging.WARNING):
        program = pt2kit.load(skeleton.getvalue(), weights=model.state_dict())
    assert [text for text in caplog.messages if "without data" in text] == []
    assert torch.equal(program.module()(x), model(x))
    shared = program.state_dict["0.weight"].untyped_storage().data_ptr()
    assert shared == model[0].weight.untyped_storage().data_ptr()


def test_given_weights_of_narrow_types() -> None:
    """Arrays of ml_dtypes are taken as what they are."""
    model = nn.Linear(3, 2).bfloat16()
    file = bytes_of(pt2kit.save, torch.export.export(model, (torch.randn(2, 3).bfloat16(),)))
    given = {
        "weight": np.ones((2, 3), ml_dtypes.bfloat16),
        "bias": np.zeros(2, ml_dtypes.bfloat16),
    }
    program = pt2kit.load(file, weights=given)
    assert torch.equal(program.state_dict["weight"], torch.ones(2, 3).bfloat16())


@pytest.mark.parametrize(
    ("change", "text", "rule"),
    [
        (lambda given: given.pop("0.weight"), r"nothing for \['0\.weight'\]", "P19"),
        (lambda given: given.update(other=torch.zeros(1)), r"got \['other'\] besides them", "P19"),
        (
            lambda given: given.update({"0.weight": given["0.weight"].double()}),
            r"weights: '0\.weight': expected float32 \[.*\], as the program's file has it, got float64",
            "P14",
        ),
        (
            lambda given: given.update({"0.bias": torch.zeros(3)}),
            r"expected float32 \[\d+\], .* got float32 \[3\]",
            "P14",
        ),
    ],
)
def test_given_weights_that_do_not_fit(change: Any, text: str, rule: str) -> None:
    """Names, types and shapes must be those of the file; the message names the weight and both."""
    given = numbers(MLP)
    change(given)
    with pytest.raises(PayloadError, match=text) as caught:
        pt2kit.load(MLP, weights=given)
    assert caught.value.rule == rule


def test_given_weights_from_nowhere(tmp_path: Path) -> None:
    """Neither a mapping nor a file of weights."""
    with pytest.raises(UnsupportedError, match="expected a mapping, or a file named"):
        pt2kit.load(MLP, weights=tmp_path / "w.bin")
    with pytest.raises(FileNotFoundError, match=r"w\.safetensors"):
        pt2kit.load(MLP, weights=tmp_path / "w.safetensors")


def test_weights_beside_the_archive(tmp_path: Path) -> None:
    """They load as the file's own do: mapped where they are aligned, tied, and changed in this process alone."""
    for path in (MLP, SHARED, STRIDED):
        with pt2kit.open(path) as package:
            pt2kit.write(package, tmp_path / "m.pt2", external="w.safetensors")
        before = (tmp_path / "w.safetensors").read_bytes()
        loaded = pt2kit.load(tmp_path / "m.pt2")
        assert_same(dict(loaded.state_dict), dict(pt2kit.load(path).state_dict))
        assert_same(pt2kit.load_weights(tmp_path / "m.pt2"), pt2kit.load_weights(path))
        with torch.no_grad():
            for tensor in loaded.state_dict.values():
                tensor.zero_()
        assert (tmp_path / "w.safetensors").read_bytes() == before
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "w.safetensors").rename(moved / "w.safetensors")
    with pytest.raises(ArchiveError, match=r"expected the file 'w\.safetensors' next to the archive"):
        pt2kit.load(tmp_path / "m.pt2")
    assert_same(
        dict(pt2kit.load((tmp_path / "m.pt2").read_bytes(), weights_root=moved).state_dict),
        dict(pt2kit.load(STRIDED).state_dict),
    )
