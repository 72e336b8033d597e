"""The generated Protocol Buffers definitions -> message classes, made by protoc."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from tests.idl.helpers import package, table

from pt2kit.idl import proto
from pt2kit.idl.sources import versions


@functools.cache
def _files() -> dict[str, Any]:
    """Version -> the compiled description of its file. One run of protoc for all of them."""
    protoc = package("grpc_tools.protoc")
    descriptions = package("google.protobuf.descriptor_pb2")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for version in versions():
            source, target = Path(folder, f"v{version}.proto"), Path(folder, f"v{version}.bin")
            source.write_text(proto.emit(table(version)), encoding="utf-8")
            code = protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={target}", str(source)])
            assert code == 0, f"protoc refuses the definition of {version}"
            (found[version],) = descriptions.FileDescriptorSet.FromString(target.read_bytes()).file
    return found


def description(version: str) -> Any:
    """The compiled description of a version's file."""
    return _files()[version]
