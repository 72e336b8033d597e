"""Files that are no `.pt2`: each says what it is, and which tool reads it."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from tests.packages import bytes_of

import pt2kit
from pt2kit.errors import ArchiveError


def _zip(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return file.getvalue()


def _npy(write: Callable[[io.BytesIO], None]) -> bytes:
    return bytes_of(write)


def _safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


FILES = {
    "empty": (b"", "an empty file"),
    "gzip": (gzip.compress(b"x"), "a gzip file; unpack it first"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(20), "a Zstandard file"),
    "gguf": (b"GGUF\x03\0\0\0" + bytes(40), "a GGUF file; llama.cpp"),
    "executorch": (struct.pack("<I", 8) + b"ET12" + bytes(40), "an ExecuTorch program; executorch.runtime"),
    "tflite": (struct.pack("<I", 28) + b"TFL3" + bytes(40), "a TensorFlow Lite model"),
    "onnx of torch": (b"\x08\x0a\x12\x07pytorch\x1a\x052.1.0:\x03abc", "an ONNX model; onnx.load"),
    "onnx of a producer with a long name": (
        b"\x08\x0a\x12\x81\x01" + "Übersetzer (2,".encode() + bytes(114) + b"\x22\x02ai(\x80\x80\x042\x03doc:\x03abc",
        "an ONNX model; onnx.load",
    ),
    "onnx with more text than is looked at": (
        b"\x08\x0a2\x80\x10" + b"x" * 2048 + b":\x03abc",
        "an ONNX model; onnx.load",
    ),
    "onnx with its operator sets first": (b"\x08\x0aB\x02\x10\x11", "an ONNX model; onnx.load"),
    "onnx without a producer": (b"\x08\x08:\x10\x0a\x03abc", "an ONNX model; onnx.load"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(40), "an HDF5 file; h5py"),
    "safetensors": (_safetensors(), "a safetensors file (weights, no program); the safetensors package"),
    "npy": (_npy(lambda file: np.save(file, np.ones(3))), "a NumPy array; numpy.load"),
    "npz": (_npy(lambda file: np.savez(file, a=np.ones(3))), "a NumPy .npz file; numpy.load"),
    "tar": (bytes(257) + b"ustar\x0000" + bytes(300), "a tar archive"),
    "tar of a zip": (bytes(257) + b"ustar\x0000" + bytes(248) + _zip("a") + bytes(1024), "a tar archive"),
    "text with a byte-order mark": ("\ufeffsome text".encode(), "a text file"),
    "html": (b"\n<!DOCTYPE html>\n<html><head>", "an HTML page: a server gave a page"),
    "html with a comment": (b"<!-- x --><HTML lang=de>", "an HTML page"),
    "xml": (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "an XML text: a server may have given"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a Git LFS pointer"),
    "pickle": (pickle.dumps({"a": [1, 2]}), "a pickle; only what wrote it knows"),
    "pickle, protocol 2": (pickle.dumps({"a": [1, 2]}, 2), "a pickle; only what wrote it knows"),
    "pickle, protocol 0": (pickle.dumps({"a": [1, 2]}, 0), "a pickle; only what wrote it knows"),
    "torch.save before 1.6": (pickle.dumps(0x1950A86A20F9469CFC6C, 2), "a torch.save file (a checkpoint, no program)"),
    "torch.save": (_zip("m/data.pkl", "m/data/0", "m/version"), "a torch.save file (a checkpoint, no program)"),
    "torchscript": (_zip("m/data.pkl", "m/code/x.py", "m/constants.pkl"), "a TorchScript archive; torch.jit.load"),
    "a .pt2 in a zip": (_zip("x/model.pt2", "README"), "a zip archive with x/model.pt2 in it; unpack it first"),
    "wheel": (_zip("a/__init__.py", "a-1.dist-info/METADATA"), "a Python wheel; pip"),
    "text": (b"just some text\n" * 100, "a text file"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_say_what_they_are(name: str) -> None:
    """Opening one is one error in words that its owner knows."""
    data, text = FILES[name]
    with pytest.raises(ArchiveError) as caught:
        pt2kit.open(data)
    assert str(caught.value).startswith(f"<bytes>: expected a .pt2 file, got {text}")
    assert caught.value.rule in ("A2", "A19", "A20")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("archive_format", "looks like an archive that was unpacked"),
        ("saved_model.pb", "a TensorFlow SavedModel"),
        ("MLmodel", "an MLflow model"),
        ("a.pt2", "got a folder with 1 .pt2 file; name one"),
        ("else.txt", "expected a file, got a folder [A1]"),
    ],
)
def test_folders_say_what_they_are(name: str, text: str, tmp_path) -> None:
    """The error for a folder depends on the files that it contains."""
    (tmp_path / name).touch()
    with pytest.raises(ArchiveError) as caught:
        pt2kit.open(tmp_path)
    assert text in str(caught.value)
