"""A large archive: what is not asked for is not touched."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from tests.tensors.helpers import FOLDER, WHERE

GIB, MIB = 1 << 30, 1 << 20
SMALL = bytes(range(256)) * (64 * MIB // 256)

SCRIPT = """
import sys
from pt2kit.zip.reader import open_archive
from pt2kit.codec import decode
from pt2kit.schema import PayloadConfig
from pt2kit.tensors import statistics, to_safetensors, views_from_config

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))

path, folder, where = sys.argv[1:4]
archive = open_archive(path)
config = decode(archive.read(where), PayloadConfig, where).value
views = views_from_config(config, archive, folder=folder, where=where)
print([repr(view) for view in views.values()])
assert not {"numpy", "ml_dtypes", "torch", "safetensors"} & set(sys.modules), "listing imported too much"
listed = peak()
total = int(views["small"].numpy().sum(dtype="u8"))
read = peak()
assert statistics(views["small"]).max == 255
counted = peak()
print(total, listed, read, counted)
"""


def write_sparse_archive(path: Path) -> None:
    """A stored zip of 2 GiB, of which the disk holds 64 MiB: the rest is holes."""
    entries = {}
    records: list[tuple[str, int, bytes | None]] = []
    for name, size, data in (("a", GIB, None), ("b", GIB - MIB, None), ("small", len(SMALL), SMALL)):
        record = f"weight_{len(records)}"
        records.append((FOLDER + record, size, data))
        entries[name] = {
            "path_name": record,
            "is_param": True,
            "use_pickle": False,
            "tensor_meta": {
                "dtype": 1,
                "sizes": [{"as_int": size}],
                "requires_grad": False,
                "device": {"type": "cpu", "index": None},
                "strides": [{"as_int": 1}],
                "storage_offset": {"as_int": 0},
                "layout": 7,
            },
        }
    text = json.dumps({"config": entries}).encode()
    records.append((WHERE, len(text), text))
    directory = b""
    with path.open("wb") as file:
        for name, size, data in records:
            # The checksums of the holes are wrong: nobody may find out.
            crc, raw, offset = zlib.crc32(data) if data else 0, name.encode(), file.tell()
            file.write(struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0x800, 0, 0, 33, crc, size, size, len(raw), 0) + raw)
            directory += struct.pack(
                "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0x800, 0, 0, 33, crc, size, size, len(raw), *[0] * 5, offset
            )
            directory += raw
            if data:
                file.write(data)
            else:
                file.seek(size, 1)
        end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(records), len(records), len(directory), file.tell(), 0)
        file.write(directory + end)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_reading_one_tensor_touches_no_other(tmp_path: Path) -> None:
    """Of 2 GiB of weights, listing takes none, and reading 64 MiB takes those and little more, without a copy."""
    path = tmp_path / "large.pt2"
    write_sparse_archive(path)
    assert path.stat().st_size > 2 * GIB
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), FOLDER, WHERE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    listing, numbers = done.stdout.splitlines()
    assert "u8[1073741824]" in listing
    total, listed, read, counted = map(int, numbers.split())
    assert total == sum(SMALL[:256]) * len(SMALL) // 256
    assert listed < 60
    assert read < 160
    assert counted < 200
