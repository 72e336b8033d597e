"""Torch reads what `zip` writes; `zip` reads what torch writes, at the same offsets."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from tests import samples

from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import open_archive
from pt2kit.zip.writer import ArchiveWriter

torch = pytest.importorskip("torch")

PROGRAMS = ["mlp", "shared_weights", "constants", "dynamic_batch", "saved_to_buffer", "extra_files"]


def repack(path: Path, target: Any, *, deflate: bool = True, pieces: bool = False) -> None:
    """Write an archive again, JSON deflated, payloads stored."""
    with open_archive(path) as old:
        root = detect(old).root
        with ArchiveWriter(target, root=root.rstrip("/")) as writer:
            for name in old.records:
                data = old.read(name)
                writer.write(
                    name[len(root) :],
                    iter([data[:100], data[100:]]) if pieces else data,
                    deflate=deflate and name.endswith(".json"),
                    size=data.nbytes if pieces else None,
                )


def run(program: Any) -> list[Any]:
    """The outputs for the inputs that the program was exported with."""
    args, kwargs = program.example_inputs
    return torch.utils._pytree.tree_leaves(program.module()(*args, **kwargs))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("deflate", [True, False])
def test_export_load_reads_what_we_write(name: str, deflate: bool, tmp_path: Path) -> None:
    """torch.export.load gives the same outputs from a file that went through our reader and writer."""
    path = samples.sample("2.13.0", name)
    copy = tmp_path / path.name
    repack(path, copy, deflate=deflate, pieces=deflate)
    extra = {"note.txt": "", "dir/info.json": ""} if name == "extra_files" else {}
    expected = torch.export.load(path)
    got = torch.export.load(copy, extra_files=extra)
    assert all(extra.values())
    for one, other in zip(run(expected), run(got), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    for key, value in expected.state_dict.items():
        assert torch.equal(value, got.state_dict[key]), key


def test_export_load_reads_from_a_buffer() -> None:
    """torch reads a buffer that we wrote, too."""
    buffer = io.BytesIO()
    path = samples.sample("2.13.0", "mlp")
    repack(path, buffer)
    buffer.seek(0)
    for one, other in zip(run(torch.export.load(path)), run(torch.export.load(buffer)), strict=True):
        assert torch.equal(one, other)


def test_several_programs(tmp_path: Path) -> None:
    """torch finds all programs of a package that we wrote."""
    from torch.export.pt2_archive._package import load_pt2

    copy = tmp_path / "multi_model_package.pt2"
    repack(samples.sample("2.13.0", "multi_model_package"), copy)
    assert set(load_pt2(str(copy)).exported_programs) == {"model", "second"}


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 5000])
def test_torch_and_we_find_the_same_places(size: int, tmp_path: Path) -> None:
    """torch's reader and ours find the same records at the same offsets, whoever wrote the file."""
    content = {"data/weights/weight_0": b"w" * size, "x" * 400: b"long name", "é": b"name", ".data/version": b"6\n"}
    ours, theirs = tmp_path / "ours.pt2", tmp_path / "theirs.pt2"
    with ArchiveWriter(ours) as writer:
        for name, data in content.items():
            writer.write(name, data)
    torch_writer = torch._C.PyTorchFileWriter(str(theirs))
    torch_writer.set_min_version(6)
    for name, data in content.items():
        if name != ".data/version":
            torch_writer.write_record(name, data, len(data))
    torch_writer.write_end_of_file()
    for path in (ours, theirs):
        reader = torch._C.PyTorchFileReader(str(path))
        with open_archive(path) as archive:
            assert [f"{path.stem}/{name}" for name in reader.get_all_records()] == list(archive.records)
            for name, data in content.items():
                full = f"{path.stem}/{name}"
                assert reader.get_record(name) == archive.read(full) == data
                assert reader.get_record_offset(name) == archive.data_offset(full)


def test_torch_lists_the_longest_name(tmp_path: Path) -> None:
    """The longest name that the writer accepts is one that torch still lists whole."""
    path = tmp_path / "m.pt2"
    with ArchiveWriter(path) as writer:
        writer.write("x" * 509, b"content")
        writer.write(".data/version", b"6\n")
    reader = torch._C.PyTorchFileReader(str(path))
    assert "x" * 509 in reader.get_all_records()


def test_torch_save_files(tmp_path: Path) -> None:
    """torch.save files of every kind are archives by our rules, with alignment padding of any size."""
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(1000), "b": torch.zeros(0)}, path)
    with open_archive(path) as archive:
        assert all(archive.read(name).nbytes == record.size for name, record in archive.records.items())
        assert "x/data/0" in archive.records
