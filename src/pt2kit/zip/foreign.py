"""Types of files that are no `.pt2`, by their first bytes or by the names of their records.

A file's description has its type and the tool that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from pt2kit.zip.source import Source

LEGACY_MAGIC: Final = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""A pickled long and its end: the magic number that torch.save wrote first before 1.6, after the protocol."""
_SNIFFED: Final = 1024
_TORCH_SAVE: Final = "a torch.save file (a checkpoint, no program); torch.load(…, weights_only=True) reads it"
_KINDS: Final = (
    (rb"\x1f\x8b", "a gzip file; unpack it first (gunzip)"),
    (rb"\x28\xb5\x2f\xfd", "a Zstandard file; unpack it first (unzstd)"),
    (rb"\xfd7zXZ\x00", "an xz file; unpack it first (unxz)"),
    (rb"BZh", "a bzip2 file; unpack it first (bunzip2)"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (rb"Rar!", "a RAR archive; unpack it first"),
    (rb"GGUF", "a GGUF file; llama.cpp or the gguf package reads it"),
    (rb"ggjt", "a GGML file; llama.cpp converts it"),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file; h5py or Keras reads it"),
    (rb"\x93NUMPY", "a NumPy array; numpy.load reads it"),
    (rb"\x7fELF", "an ELF library or program; pt2kit reads no machine code"),
    (rb"MZ", "a Windows library or program; pt2kit reads no machine code"),
    (rb"\xcf\xfa\xed\xfe", "a macOS library or program; pt2kit reads no machine code"),
    (rb"PAR1", "a Parquet file; pyarrow reads it"),
    (rb"ARROW1", "an Arrow file; pyarrow reads it"),
    (rb"%PDF", "a PDF document"),
    (rb"\x89PNG", "a PNG picture"),
    (rb"\xff\xd8\xff", "a JPEG picture"),
    (rb"SQLite format 3", "an SQLite database"),
    (rb"version https://git-lfs", "a Git LFS pointer and not the file itself; git lfs pull fetches that"),
    (rb".{4}ET1", "an ExecuTorch program; executorch.runtime reads it"),
    (rb".{4}TFL3", "a TensorFlow Lite model; tflite reads it"),
    (rb".{257}ustar", "a tar archive; unpack it first (tar -xf)"),
    (
        rb"(?i)\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body)\b",
        "an HTML page: a server gave a page (a login, an error) instead of the file; look at it and ask again",
    ),
    (rb"(?i)\s*<(?:\?xml|Error\b)", "an XML text: a server may have given an error instead of the file"),
    (rb"\x80\x02" + re.escape(LEGACY_MAGIC), _TORCH_SAVE),
    # ir_version, then the key of another field: producer_name, producer_version, domain, model_version, doc_string,
    # graph or opset_import. Source: onnx.proto.
    (rb"\x08[\x01-\x1f][\x12\x1a\x22\x28\x32\x3a\x42]", "an ONNX model; onnx.load reads it"),
    (
        rb"\x80[\x02-\x05]|[(\]}][dlt(]?p0?\n|c[a-z_]\w*(?:\.\w+)*\n\w+\n",
        "a pickle; only what wrote it knows what it is, and reading it may run code",
    ),
)
"""The pattern that a file begins with -> the type of file. Flatbuffers name their kind at 4."""


def identify(source: Source) -> str:
    """Return the type of a file that is no zip, from its first bytes: "a gzip file; …"; "" if they do not show it."""
    head = bytes(source.read(0, min(source.size, _SNIFFED)))
    if not head:
        return "an empty file"
    if _is_safetensors(source, head):
        return "a safetensors file (weights, no program); the safetensors package reads it"
    for pattern, what in _KINDS:
        if re.match(pattern, head, re.DOTALL):
            return what
    return "a text file" if _is_text(head) else ""


def identify_archive(records: Collection[str]) -> str:
    """Return the type of a zip archive that is no `.pt2`, from the names of its records; "" if they do not show it."""
    last = {name.rpartition("/")[2] for name in records}
    inside = {name.partition("/")[2] for name in records}
    if "constants.pkl" in last and "data.pkl" in last:
        return "a TorchScript archive; torch.jit.load reads it"
    if "data.pkl" in inside:
        return _TORCH_SAVE
    if records and all(name.endswith(".npy") for name in records):
        return "a NumPy .npz file; numpy.load reads it"
    if any(name.endswith(".dist-info/METADATA") for name in records):
        return "a Python wheel; pip installs it"
    if any(name.endswith(".mlmodel") for name in records):
        return "a Core ML package; coremltools reads it"
    if {"config.json", "model.weights.h5"} <= last:
        return "a Keras model; keras.models.load_model reads it"
    if "META-INF/MANIFEST.MF" in records:
        return "a Java archive (torch.package and MAR files among them)"
    if ".data/extern_modules" in inside or any(name.endswith("/.data/python_version") for name in records):
        return "a torch.package archive; torch.package.PackageImporter reads it"
    inner = [name for name in records if name.endswith(".pt2")]
    return f"a zip archive with {inner[0][:100]} in it; unpack it first" if inner else ""


def _is_safetensors(source: Source, head: bytes) -> bool:
    """Return whether a length of 8 bytes comes first, and a JSON object of that length after it."""
    length = int.from_bytes(head[:8], "little")
    return 1 < length <= source.size - 8 and head[8:9] == b"{"


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return False
        text = head[: error.start].decode("utf-8-sig")
    return all(char.isprintable() or char in "\t\r\n" for char in text)
