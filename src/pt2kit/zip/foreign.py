"""Types of files that are no `.pt2`, by their first bytes, and CRC-32 checksums of large records, by two threads.

A file's description has its type and the tool that reads it.

Pieces of a record are summed in any order and combined. A CRC-32 is linear: the sum of two parts is the first one's
sum, moved over as many zero bytes as the second part has, plus the second one's. Moving is one matrix of 32 x 32 bits
for each bit of that length, computed once.

Writers of a record add its pieces here while they write them. A second thread sums them; if it falls behind, the
writing thread sums some of them. Both zlib and the kernel's writing release the interpreter lock, so gigabytes take
half of what summing and writing take together.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pt2kit.zip.source import Source

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


_STARTS: Final = (
    (b"\x1f\x8b", "a gzip file; unpack it first (gunzip)"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file; unpack it first (unzstd)"),
    (b"\xfd7zXZ\x00", "an xz file; unpack it first (unxz)"),
    (b"BZh", "a bzip2 file; unpack it first (bunzip2)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"Rar!", "a RAR archive; unpack it first"),
    (b"GGUF", "a GGUF file; llama.cpp or the gguf package reads it"),
    (b"ggjt", "a GGML file; llama.cpp converts it"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file; h5py or Keras reads it"),
    (b"\x93NUMPY", "a NumPy array; numpy.load reads it"),
    (b"\x7fELF", "an ELF library or program; pt2kit reads no machine code"),
    (b"MZ", "a Windows library or program; pt2kit reads no machine code"),
    (b"\xcf\xfa\xed\xfe", "a macOS library or program; pt2kit reads no machine code"),
    (b"PAR1", "a Parquet file; pyarrow reads it"),
    (b"ARROW1", "an Arrow file; pyarrow reads it"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"SQLite format 3", "an SQLite database"),
    (b"version https://git-lfs", "a Git LFS pointer and not the file itself; git lfs pull fetches that"),
)
"""First bytes of a file, and its type."""

_FLATBUFFERS: Final = MappingProxyType(
    {
        b"ET1": "an ExecuTorch program; executorch.runtime reads it",
        b"TFL3": "a TensorFlow Lite model; tflite reads it",
    }
)
"""Bytes from the fifth on, which name the kind of a flatbuffer, and its type."""

_HTML: Final = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML: Final = re.compile(rb"\s*<(?:\?xml|Error\b)", re.IGNORECASE)
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05]|[(\]}][dlt(]?p0?\n|c[a-z_]\w*(?:\.\w+)*\n\w+\n")
_LEGACY_TORCH: Final = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""A pickled long, the magic number that torch.save wrote first before 1.6."""
_MODEL_PROTO: Final = (b"\x12", b"\x1a", b"\x22", b"\x28", b"\x32")
"""First bytes of the fields of an ONNX ModelProto that may come before its graph: producer_name, producer_version,
domain, model_version (a number, the others are texts), doc_string. Source: onnx.proto.
"""
_SNIFFED: Final = 1024
_TORCH_SAVE: Final = "a torch.save file (a checkpoint, no program); torch.load(…, weights_only=True) reads it"


def identify(source: Source) -> str:
    """Return the type of a file that is no zip, from its first bytes: "a gzip file; …"; "" if they do not show it."""
    head = bytes(source.read(0, min(source.size, _SNIFFED)))
    if not head:
        return "an empty file"
    for start, what in _STARTS:
        if head.startswith(start):
            return what
    for mark, what in _FLATBUFFERS.items():
        if head[4:8].startswith(mark):
            return what
    if head[257:262] == b"ustar":
        return "a tar archive; unpack it first (tar -xf)"
    if _is_safetensors(source, head):
        return "a safetensors file (weights, no program); the safetensors package reads it"
    if _HTML.match(head):
        return "an HTML page: a server gave a page (a login, an error) instead of the file; look at it and ask again"
    if _XML.match(head):
        return "an XML text: a server may have given an error instead of the file"
    if head.startswith(_LEGACY_TORCH):
        return _TORCH_SAVE
    if _is_onnx(head):
        return "an ONNX model; onnx.load reads it"
    if _PICKLE.match(head):
        return "a pickle; only what wrote it knows what it is, and reading it may run code"
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


def _is_onnx(head: bytes) -> bool:
    """Return whether a ModelProto's ir_version comes first, and its graph or operator sets after other fields."""
    if len(head) < 2 or head[0] != 8 or not 1 <= head[1] <= 31:
        return False
    rest = head[2:]
    for key in _MODEL_PROTO:
        if rest.startswith(key):
            rest = _after_field(rest, is_text=key != b"\x28")
    return rest[:1] in (b"\x3a", b"\x42") or (not rest and len(head) == _SNIFFED)


def _after_field(message: bytes, is_text: bool) -> bytes:
    """Return the bytes after the first field of a protobuf message, whose key takes one byte."""
    number = 0
    for place, byte in enumerate(message[1:11]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return message[place + 2 + (number if is_text else 0) :]
    return b""


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return False
        text = head[: error.start].decode("utf-8")
    return all(char.isprintable() or char in "\t\r\n" for char in text)


PIECE: Final = 4 << 20
"""Bytes of a piece: few enough to stay in a processor's cache while they are summed and written. A power of two."""
BACKLOG: Final = 8
"""Pieces that may wait for the second thread before the first one helps; they are kept in memory until then."""

_POLYNOMIAL: Final = 0xEDB88320  # of zip's CRC-32, its lowest power in the highest bit


def combine(first: int, second: int, nbytes: int = PIECE) -> int:
    """Return the CRC-32 of two parts from the sums of each.

    Args:
        first: the sum of the first part, which has any length.
        second: the sum of the second part.
        nbytes: length of the second part.
    """
    power = 0
    while nbytes:
        if nbytes & 1:
            first = _times(_columns(power), first)
        nbytes >>= 1
        power += 1
    return first ^ second


class Sums:
    """Sums pieces in the order in which they are added. Closed by `summing`.

    Args:
        pool: has one thread; None to sum everything in the calling one.
    """

    def __init__(self, pool: Executor | None) -> None:
        self._pool = pool
        self._crc32 = 0
        self._last: Future[int] | None = None
        self._waiting: list[tuple[memoryview, Future[int]]] = []

    def add(self, view: memoryview) -> None:
        """Begin to sum bytes, which must not change before `total` is called."""
        if self._pool is None:
            self._crc32 = zlib.crc32(view, self._crc32)
            return
        for start in range(0, view.nbytes, PIECE):
            piece = view[start : start + PIECE]
            if piece.nbytes == PIECE:
                self._waiting.append((piece, self._pool.submit(zlib.crc32, piece)))
            else:  # its sum cannot be moved; it goes on from what comes before
                self._last = self._pool.submit(zlib.crc32, piece, self.total())
        if len(self._waiting) > BACKLOG:
            self._settle(BACKLOG // 2)

    def total(self) -> int:
        """Return the CRC-32 of everything that was added so far."""
        self._settle(0)
        self._finish_last()
        return self._crc32

    def _settle(self, keep: int) -> None:
        """Reduce the waiting pieces to `keep`; the newest of the others are summed here, unless they are already."""
        done: list[int] = []
        while len(self._waiting) > keep and self._waiting[-1][1].cancel():
            done.append(zlib.crc32(self._waiting.pop()[0]))
        if done:
            keep = 0  # The part summed here comes after all that waits.
        while len(self._waiting) > keep:
            piece, future = self._waiting.pop(0)
            self._append(zlib.crc32(piece) if future.cancel() else future.result())
        for crc32 in reversed(done):
            self._append(crc32)

    def _append(self, crc32: int) -> None:
        self._finish_last()
        self._crc32 = combine(self._crc32, crc32)

    def _finish_last(self) -> None:
        if self._last is not None:
            self._crc32, self._last = self._last.result(), None


@contextmanager
def summing(size: int) -> Iterator[Sums]:
    """Yield a sum for a record of `size` bytes: in two threads if the size is worth one."""
    if size < PIECE:
        yield Sums(None)
        return
    from concurrent.futures import ThreadPoolExecutor  # Costs more to import than the rest of this subpackage.

    with ThreadPoolExecutor(1) as pool:
        yield Sums(pool)


@functools.cache
def _columns(power: int) -> tuple[int, ...]:
    """Return the matrix that moves a sum over 2**power zero bytes: the image of each of its bits, lowest first."""
    if power > 0:
        half = _columns(power - 1)
        return tuple(_times(half, column) for column in half)
    columns = [_POLYNOMIAL, *(1 << bit for bit in range(31))]  # one zero bit
    for _ in range(3):
        columns = [_times(columns, column) for column in columns]
    return tuple(columns)


def _times(columns: Sequence[int], vector: int) -> int:
    """Return the product of a matrix of bits and a vector of bits."""
    result = 0
    for column in columns:
        if vector & 1:
            result ^= column
        vector >>= 1
    return result
