"""Files of tests as bytes: written by a function, or a sample with some records changed; and a stream to write to."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import pt2kit
from pt2kit.package import record_names as names
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import open_archive
from pt2kit.zip.writer import ArchiveWriter


def bytes_of(write: Callable[..., object], *arguments: Any, **options: Any) -> bytes:
    """The file that a function writes, which takes a file object as its last argument: `bytes_of(pt2kit.save, p)`."""
    file = io.BytesIO()
    write(*arguments, file, **options)
    return file.getvalue()


def rewritten(path: Path | bytes | IO[bytes], records: Mapping[str, bytes | None]) -> bytes:
    """A file with other records.

    Args:
        path: the file, or its bytes.
        records: name below the root folder -> new content; None leaves the record out, new names are added.
    """
    buffer = io.BytesIO()
    with open_archive(path) as archive:
        root = detect(archive).root
        with ArchiveWriter(buffer, root=root.rstrip("/")) as writer:
            old = {name.removeprefix(root): archive.read(name) for name in archive.records}
            for name, data in {**old, **records}.items():
                if data is not None:
                    writer.write(name, data)
    return buffer.getvalue()


def edited(
    path: Path | bytes | IO[bytes], change: Callable[[Any], object], record: str = names.model_json("model")
) -> bytes:
    """A file in which the JSON tree of one record was changed in place."""
    with open_archive(path) as archive:
        tree = json.loads(bytes(archive.read(detect(archive).record(record))))
    change(tree)
    return rewritten(path, {record: json.dumps(tree).encode()})


def tree_of(data: bytes | memoryview) -> Any:
    """JSON bytes as a plain tree, keys of objects in their order."""
    return json.loads(bytes(data), object_pairs_hook=lambda pairs: dict(pairs))


def errors(package: pt2kit.Package) -> list[str]:
    """The errors that `check` finds in a package."""
    return [str(problem) for problem in pt2kit.check(package) if problem.kind == "error"]


class Stream(io.RawIOBase):
    """Takes bytes, a few at a time, and cannot seek."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.data = bytearray()
        self.most = most

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data[: self.most])
        self.data += part
        return len(part)
