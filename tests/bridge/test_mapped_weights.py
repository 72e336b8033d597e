"""Weights in memory, and weights that are mapped from a file which somebody changes: never other numbers, unsaid."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.samples import sample
from torch import nn

import pt2kit
from pt2kit.errors import IntegrityError
from pt2kit.tensors.safetensors_file import to_safetensors

ONE = torch.ones(1, 4)
LARGE = 5000


class Scale(nn.Module):
    """A program whose results are its weight."""

    def __init__(self, value: float, count: int = 4) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((count,), value))
        self.small = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> Any:
        return x * self.weight[:4] + self.small


def export(value: float, count: int = 4) -> torch.export.ExportedProgram:
    return torch.export.export(Scale(value, count), (ONE,))


def overwrite(path: Path, value: float, count: int = 4) -> None:
    """Write an existing file in place, as torch.export.save does."""
    before = path.stat().st_ino
    torch.export.save(export(value, count), path)
    assert path.stat().st_ino == before
    status = path.stat()  # One that was saved within the same tick of the file system's clock.
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


LOADS: dict[str, Callable[..., Any]] = {
    "load": lambda path, **options: pt2kit.load(path, **options).module(),
    "load_weights": lambda path, **options: Given(pt2kit.load_weights(path, **options)),
    "load_module": pt2kit.load_module,
}


class Given:
    """Weights as if they were a module."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        self._weights = weights

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self._weights["weight"][:4]


@pytest.mark.parametrize("options", [{}, {"mmap": False}], ids=["default", "unmapped"])
@pytest.mark.parametrize("way", LOADS)
def test_the_file_is_written_in_place(way: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Save to the path that a model was loaded from, larger, as large and smaller: the model stays what it was."""
    path = tmp_path / "m.pt2"
    torch.export.save(export(1.0), path)
    loaded = LOADS[way](path, **options)
    for value, count in ((7.0, 4), (8.0, 400), (9.0, 1)):
        overwrite(path, value, count)
        assert torch.equal(loaded(ONE), ONE)
    path.write_bytes(b"")
    assert torch.equal(loaded(ONE), ONE)


@pytest.mark.parametrize("change", ["rewritten", "larger", "truncated", "one byte", "touched"])
def test_a_mapped_file_changes_under_a_module(change: str, tmp_path: Path) -> None:
    """A module whose weights are mapped refuses the next call, and says what to do; it does not die of a signal."""
    path = tmp_path / "m.pt2"
    torch.export.save(export(1.0), path)
    module = pt2kit.load_module(path, mmap=True)
    assert torch.equal(module(ONE), ONE)
    if change == "truncated":
        os.truncate(path, 10)
    elif change == "one byte":
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(b"\x01")
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))
    elif change == "touched":
        os.utime(path, ns=(0, 0))
    else:
        overwrite(path, 7.0, 400 if change == "larger" else 4)
    what = "another size" if change in ("truncated", "larger") else "another time of modification"
    for called in (module, copy.deepcopy(module) if change != "truncated" else module):
        with pytest.raises(IntegrityError, match=rf"m\.pt2: expected the file .*, got {what}; .*mmap=False"):
            called(ONE)


def test_a_mapped_file_is_replaced(tmp_path: Path) -> None:
    """Replacing the file, as pt2kit.save does, leaves the mapped one unchanged: no reason to refuse."""
    path = tmp_path / "m.pt2"
    pt2kit.save(export(1.0), path)
    module = pt2kit.load_module(path, mmap=True)
    pt2kit.save(export(7.0), path)
    assert torch.equal(module(ONE), ONE)
    path.unlink()
    assert torch.equal(module(ONE), ONE)


def test_weights_that_left_the_file(tmp_path: Path) -> None:
    """Once no tensor is mapped from the file, it may change: after .double(), or load_state_dict(assign=True)."""
    path = tmp_path / "m.pt2"
    pt2kit.save(export(1.0), path)
    cast, assigned = pt2kit.load_module(path, mmap=True), pt2kit.load_module(path, mmap=True)
    cast.double()
    assigned.load_state_dict({name: value.clone() for name, value in assigned.state_dict().items()}, assign=True)
    overwrite(path, 7.0)
    assert torch.equal(cast(ONE.double()), ONE.double())
    assert torch.equal(assigned(ONE), ONE)


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """Modules that are gone hold no file open."""
    path = tmp_path / "m.pt2"
    pt2kit.save(export(1.0), path)
    count = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        pt2kit.load_module(path, mmap=True)(ONE)
    assert len(os.listdir("/proc/self/fd")) == count


def test_large_weights_are_mapped_by_load_module(tmp_path: Path) -> None:
    """Weights of more than 64 MiB together are mapped by load_module, small ones too; mmap=False reads all."""
    path = tmp_path / "m.pt2"
    pt2kit.save(export(1.0, LARGE * LARGE), path)
    module, in_memory, mapped = (pt2kit.load_module(path, mmap=mmap) for mmap in (None, False, True))
    loaded = pt2kit.load(path)
    names = ("weight", "small")
    places = [is_mapped(getattr(each, name), path) for each in (module, in_memory, mapped) for name in names]
    assert places == [True, True, False, False, True, True]
    assert not any(is_mapped(loaded.state_dict[name], path) for name in names)
    overwrite(path, 7.0, LARGE * LARGE)
    for each in (module, mapped):
        with pytest.raises(IntegrityError, match="expected the file that weights are mapped from"):
            each(ONE)
    assert torch.equal(in_memory(ONE), ONE)
    assert torch.equal(loaded.module()(ONE), ONE)


def is_mapped(tensor: torch.Tensor, path: Path) -> bool:
    """Return whether a tensor's memory is that of a file, as the system lists it."""
    address = tensor.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, *_ = line.split()
        start, end = (int(text, 16) for text in place.split("-"))
        if start <= address < end:
            return line.endswith(str(path))
    raise AssertionError("not in memory at all")


def test_external_files(tmp_path: Path) -> None:
    """Weights next to the archive, and those of weights=: the same policy, and the file that changed is named."""
    path, external, given = tmp_path / "m.pt2", tmp_path / "w.safetensors", tmp_path / "g.safetensors"
    pt2kit.save(export(1.0), tmp_path / "whole.pt2")
    with pt2kit.open(tmp_path / "whole.pt2") as package:
        pt2kit.write(package, path, external="w.safetensors")
        to_safetensors({"weight": package.weights()["weight"]}, given)
        to_safetensors({"small": package.weights()["small"]}, tmp_path / "small.safetensors")
        header = given.read_bytes()
    # A given file is mapped if its data are aligned: they begin at a multiple of 64 bytes.
    length = int.from_bytes(header[:8], "little")
    padded = header[8 : 8 + length] + b" " * (-(8 + length) % 64)
    given.write_bytes(len(padded).to_bytes(8, "little") + padded + header[8 + length :])
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"weight": "g.safetensors", "small": "small.safetensors"}}')
    modules = [pt2kit.load_module(path, mmap=True), pt2kit.load_module(path, mmap=True, weights=index)]
    in_memory = [
        pt2kit.load_module(path),
        pt2kit.load_module(path, weights=index),
        pt2kit.load(path, weights=index).module(),
    ]
    for file in (external, given):
        data = file.read_bytes()
        file.write_bytes(data[:-16] + b"\x07" * 16)
        os.utime(file, ns=(0, 0))
    for module, name in zip(modules, ("w.safetensors", "g.safetensors"), strict=True):
        with pytest.raises(IntegrityError, match=name):
            module(ONE)
    assert all(torch.equal(module(ONE), ONE) for module in in_memory)


@pytest.mark.parametrize("way", LOADS)
@pytest.mark.parametrize("record", ["weight_0", "weight_1"])
def test_damage_beyond_the_first_bytes(way: str, record: str, tmp_path: Path) -> None:
    """All that is read is compared with its checksum, in many pieces and threads as in one."""
    path = tmp_path / "m.pt2"
    pt2kit.save(export(1.0, 6_000_000), path)
    with pt2kit.open(path) as package:
        [name] = [name for name in package.records if name.endswith(record)]
        place = package.archive.data_offset(name) + package.records[name].size - 1
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match=rf"{record}: expected CRC-32"):
        LOADS[way](path)
    with pytest.raises(IntegrityError, match=rf"{record}: expected CRC-32"):
        LOADS[way](path, mmap=True, verify=True)
    LOADS[way](path, mmap=True)


@pytest.mark.parametrize("name", ["mlp", "shared_weights", "strided_weights", "constants"])
def test_the_same_tensors(name: str) -> None:
    """Mapped or read, with one thread or several: the same names, numbers, strides and ties."""
    path = sample("2.13.0", name)
    read, mapped = pt2kit.load_weights(path), pt2kit.load_weights(path, mmap=True)
    assert list(read) == list(mapped)
    for key, tensor in read.items():
        assert torch.equal(tensor, mapped[key])
        assert tensor.stride() == mapped[key].stride()
    ties = [
        [
            one.untyped_storage()._cdata == other.untyped_storage()._cdata
            for one in found.values()
            for other in found.values()
        ]
        for found in (read, mapped)
    ]
    assert ties[0] == ties[1]


def test_compiled_calls_do_not_look_at_the_file(tmp_path: Path) -> None:
    """torch.compile traces a mapped module whole; what it compiled has no point at which to look at a file."""
    path = tmp_path / "m.pt2"
    pt2kit.save(export(1.0), path)
    module = pt2kit.load_module(path, mmap=True)
    assert torch.equal(torch.compile(module, fullgraph=True, backend="eager")(ONE), ONE)


def test_load_fine_tune_save_in_one_process(tmp_path: Path) -> None:
    """The issue's program, in a process of its own because it died of a signal."""
    path = tmp_path / "m.pt2"
    torch.export.save(export(1.0, 1 << 20), path)
    code = """
import sys, torch, pt2kit
x = torch.ones(1, 4)
module, program = pt2kit.load_module(sys.argv[1]), pt2kit.load(sys.argv[1])
class Small(torch.nn.Module):
    def forward(self, x):
        return x * 7
torch.export.save(torch.export.export(Small(), (x,)), sys.argv[1])
print(module(x).sum().item(), program.module()(x).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "4.0 4.0"), done.stderr
