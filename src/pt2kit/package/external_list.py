"""List of external payloads (`data/external_payloads.json`): payload records in files next to the archive (rule B1).

    {"format": "pt2kit external payloads 1",
     "records": {"data/weights/weight_0": {"url": "model.safetensors", "tensor": "fc.weight", "dtype": "F32",
                                           "shape": [16, 8], "sha256": "…64 hexadecimal digits…"}}}

The configs go on naming `weight_0`, and no record of that name is in the archive: a reader without support for this
list misses a record, and takes nothing for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from pt2kit import codec
from pt2kit.errors import PayloadError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.tensors.bounds import INT64_MAX
from pt2kit.tensors.safetensors_header import itemsize_of
from pt2kit.zip.chosen_names import show_name

RECORD: Final = "data/external_payloads.json"
"""The record of the list, below the root folder."""

FORMAT: Final = "pt2kit external payloads 1"
"""Format name in the list; the number is that of the definition in `docs/format/external.md`."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Location of the bytes of one payload record.

    Args:
        url: of a `.safetensors` file, relative to the archive's folder.
        tensor: the name that it has there.
        dtype: its element type there ("F32").
        shape: its sizes there, row-major. All bytes of a storage: the config lists its tensors.
        sha256: of the bytes.
    """

    url: str
    tensor: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def nbytes(self) -> int:
        """Return the length of the record."""
        return math.prod(self.shape) * (itemsize_of(self.dtype) or 0)


def decode(data: bytes | memoryview, records: Mapping[str, Any], root: str) -> dict[str, Reference]:
    """Read a list of external payloads: name of a payload record, below the root folder -> location of its bytes.

    Args:
        data: the record.
        records: those of the archive, by their full names.
        root: the root folder, with its slash.

    Raises:
        JsonError: no JSON.
        PayloadError: a list of another form, or an entry that is no payload or is in the archive as well (B1).
    """
    tree = codec.parse(data, RECORD)
    rows = tree.get("records") if isinstance(tree, dict) else None
    if isinstance(rows, dict) and tree.keys() == {"format", "records"} and tree["format"] == FORMAT:
        return {record: _reference(record, row, records, root) for record, row in rows.items()}
    got = tree.get("format") if isinstance(tree, dict) else type(tree).__name__
    raise PayloadError(
        f"{RECORD}: expected an object of 'format': {FORMAT!r} and 'records', got {quote(str(got))}", rule="B1"
    )


def encode(references: Mapping[str, Reference]) -> bytes:
    """Return the content of a list."""
    rows = {record: {**asdict(row), "shape": list(row.shape)} for record, row in references.items()}
    return codec.encode({"format": FORMAT, "records": rows})


def _reference(record: str, row: Any, records: Mapping[str, Any], root: str) -> Reference:
    where = f"{RECORD}: {show_name(record)}"
    if names.kind(record) not in ("weight", "tensor constant"):
        raise PayloadError(f"{where}: expected the record of a weight or tensor constant, got another one", rule="B1")
    if root + record in records:
        raise PayloadError(
            f"{where}: expected a payload in the archive or next to it, got one in both; drop one of them", rule="B1"
        )
    match row:
        case {"url": str(url), "tensor": str(tensor), "dtype": str(dtype), "shape": [*shape], "sha256": str(sha256)}:
            pass
        case _:
            raise PayloadError(
                f"{where}: expected url, tensor, dtype, shape and sha256, got {quote(str(row))}", rule="B1"
            )
    if len(row) != 5 or not _SHA256.fullmatch(sha256) or itemsize_of(dtype) is None:
        raise PayloadError(
            f"{where}: expected five keys, an element type of safetensors and 64 hexadecimal digits, got "
            f"{quote(str(row))}",
            rule="B1",
        )
    if not all(type(size) is int and 0 <= size <= INT64_MAX for size in shape) or math.prod(shape) > INT64_MAX // 16:
        raise PayloadError(f"{where}: shape: expected sizes of a tensor, got {quote(str(shape))}", rule="B1")
    return Reference(url, tensor, dtype, tuple(shape), sha256)
