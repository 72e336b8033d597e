"""Damaged archives: whatever bytes are in a file, only content or errors of ours come out, and content is right."""

from __future__ import annotations

import io
import random
import zlib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests import samples
from tests.zip.zip_forge import (
    END64_FIELDS,
    END_FIELDS,
    ENTRY_FIELDS,
    LOCAL_FIELDS,
    LOCATOR_FIELDS,
    Entry,
    deflated,
    forge,
    zip64,
)

from pt2kit.errors import Pt2Error
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import Archive, open_archive
from pt2kit.zip.source import Limits
from pt2kit.zip.writer import ArchiveWriter

LIMITS = Limits(max_entries=1000, free_inflated_bytes=1 << 20)


class Elsewhere(io.BytesIO):
    """A file object of unknown kind, of which local headers are checked late."""


def _small() -> bytes:
    file = io.BytesIO()
    with ArchiveWriter(file, root="m") as writer:
        writer.write("models/model.json", b'{"a": 1}' * 30, deflate=True)
        writer.write("archive_format", b"pt2")
        writer.write("archive_version", b"0")
    return file.getvalue()


SEEDS = {
    "written here": _small(),
    "torch": samples.sample("2.13.0", "mlp").read_bytes(),
    "zipfile": samples.sample("2.1.2", "mlp").read_bytes(),
}


def survive(data: bytes) -> dict[str, bytes] | None:
    """Read everything there is, in two ways; what was found, or None if the archive is refused."""
    found: dict[str, bytes] | None = None
    for file in (data, Elsewhere(data)):
        try:
            with open_archive(file, limits=LIMITS) as archive:
                contents = _read(archive)
                if file is data:
                    found = contents
                detect(archive)
        except Pt2Error as error:
            assert error.rule.startswith("A")
            assert len(str(error)) < 2000
    return found


def _read(archive: Archive) -> dict[str, bytes]:
    contents = {name: bytes(archive.read(name)) for name in archive.records}
    for name, data in contents.items():
        assert len(data) == archive.records[name].size
        assert zlib.crc32(data) == archive.records[name].crc32
        assert archive.data_offset(name) + archive.records[name].compressed_size <= archive.source.size
    return contents


@pytest.mark.parametrize("seed", SEEDS)
def test_changed_bytes(seed: str) -> None:
    """A few changed bytes anywhere either do not matter or are noticed: content never changes unnoticed."""
    original = SEEDS[seed]
    expected = survive(original)
    assert expected is not None
    rng = random.Random(seed)
    places = [*range(max(0, len(original) - 1500), len(original)), *range(400)]
    for _ in range(1500):
        data = bytearray(original)
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.choice(places) if rng.random() < 0.8 else rng.randrange(len(data))
            data[at] = rng.choice((0, 0xFF, data[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
        assert survive(bytes(data)) in (None, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_bit_of_the_structures(seed: str) -> None:
    """No single bit of the structures around the data changes what is read."""
    original = SEEDS["written here"] if seed == "written here" else SEEDS[seed][-1000:]
    whole = SEEDS[seed]
    start = len(whole) - len(original)
    expected = survive(whole)
    step = 1 if seed == "written here" else 5
    for bit in range(0, len(original) * 8, step):
        data = bytearray(whole)
        data[start + bit // 8] ^= 1 << bit % 8
        try:
            with open_archive(bytes(data), limits=LIMITS) as archive:
                assert _read(archive) == expected
        except Pt2Error:
            continue


@pytest.mark.parametrize("seed", SEEDS)
def test_cut_and_joined(seed: str) -> None:
    """Cut, moved and doubled parts are survived."""
    original = SEEDS[seed]
    rng = random.Random(seed)
    for _ in range(400):
        at, to = sorted(rng.randrange(len(original)) for _ in range(2))
        insert = rng.choice((b"", original[at:to], bytes(to - at), rng.randbytes(9)))
        survive(original[:at] + insert + original[to:])


@given(st.binary(max_size=300))
@example(b"PK\5\6" + bytes(18))
def test_any_bytes(data: bytes) -> None:
    """Any bytes at all are survived, and with an end record after them."""
    survive(data)
    survive(data + b"PK\5\6" + bytes(8) + len(data).to_bytes(4, "little") + bytes(6))


NUMBERS = st.sampled_from([0, 1, 5, 6, 0xFFFF, 0xFFFFFFFE, 0xFFFFFFFF]) | st.integers(0, 0xFFFF)
NARROW = {"time", "date", "nlen", "xlen", "clen", "flags", "method", "version", "made_by", "internal"}
NARROW |= {"disk", "start_disk", "here", "count"}


def fields(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Wrong values for some fields of a structure."""
    options = [name for name in names if name != "signature"]
    return st.dictionaries(st.sampled_from(options), NUMBERS, max_size=3).map(
        lambda found: {name: value & 0xFFFF if name in NARROW else value for name, value in found.items()}
    )


EXTRAS = st.sampled_from([b"", zip64(5), zip64(5, 5), zip64(5, 5, 0), b"FB\4\0ZZZZ", b"\1\0"]) | st.binary(max_size=12)
ENTRIES = st.builds(
    Entry,
    name=st.sampled_from([b"m/a", b"m/b", b"m/archive_format", b"m/x/", b"m/models/m.json", b"version"]),
    data=st.sampled_from([b"", b"first", b"pt2", bytes(5000)]),
    deflate=st.booleans(),
    packed=st.sampled_from([None, None, b"", deflated(b"first"), deflated(bytes(9000)), b"\xff"]),
    flags=st.sampled_from([0x0800, 0, 0x0808, 8]),
    local=fields(LOCAL_FIELDS),
    entry=fields(ENTRY_FIELDS),
    local_extra=EXTRAS,
    entry_extra=EXTRAS,
    descriptor=st.sampled_from([b"", bytes(12), bytes(16), bytes(20), bytes(24)]),
)


@settings(max_examples=400)
@given(
    st.lists(ENTRIES, max_size=4),
    fields(END_FIELDS),
    st.none() | fields(END64_FIELDS),
    fields(LOCATOR_FIELDS),
    st.binary(max_size=4),
)
def test_wrong_fields(
    entries: list[Entry], end: dict[str, Any], end64: dict[str, Any] | None, locator: dict[str, Any], tail: bytes
) -> None:
    """Any wrong values in any fields are survived."""
    survive(forge(*entries, end=end, end64=end64, locator=locator, comment=tail))
