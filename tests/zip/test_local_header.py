"""Local headers and data descriptors agree with the directory."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import pytest
from tests.zip.zip_forge import Entry, check_refused, forge, simple, zip64

from pt2kit.errors import ArchiveError
from pt2kit.zip.reader import Archive, open_archive

MAX32 = 0xFFFFFFFF
CRC = zlib.crc32(b"second")
FLAGS = 0x0808
ZEROS = {"crc32": 0, "csize": 0, "size": 0}
HERE = 30 + 3 + 5


def padded(length: int) -> bytes:
    """torch's alignment field, `length` bytes in all."""
    return struct.pack("<2H", 0x4246, length - 4) + b"Z" * (length - 4)


# name: (changes to the second of two records, rule, text of the message)
REFUSED: dict[str, tuple[dict[str, object], str, str]] = {
    "signature": (
        {"local": {"signature": b"PK\3\5"}},
        "A13",
        "expected signature b'PK\\x03\\x04', got b'PK\\x03\\x05'",
    ),
    "flags": ({"local": {"flags": 2}}, "A13", "expected flags 0x0000, got 0x0002"),
    "method": ({"local": {"method": 8}}, "A13", "expected method 0, got 8"),
    "name": ({"local_name": b"m/c"}, "A13", "expected name b'm/b', got b'm/c'"),
    "name length": ({"local": {"nlen": 2}}, "A13", "expected name b'm/b', got b'm/'"),
    "crc": ({"local": {"crc32": 1}}, "A13", f"expected CRC-32 {CRC}, got 1"),
    "compressed size": ({"local": {"csize": 4}}, "A13", "expected compressed size 6, got 4"),
    "size": ({"local": {"size": 7}}, "A13", "expected size 6, got 7"),
    "a size of zero with flag 3": (
        {"flags": 0x0808, "local": {"size": 0}, "descriptor": struct.pack("<4s3I", b"PK\x07\x08", CRC, 6, 6)},
        "A13",
        "expected size 6, got 0",
    ),
    "zeros without flag 3": ({"local": ZEROS}, "A13", "expected CRC-32"),
    "sentinel without zip64": ({"local": {"size": MAX32}}, "A13", f"expected size 6, got {MAX32}"),
    "zip64 size": (
        {"local": {"csize": MAX32, "size": MAX32}, "local_extra": zip64(6, 7)},
        "A13",
        "expected ZIP64 sizes 6 and 6, got [6, 7]",
    ),
    "zip64 too short": (
        {"local": {"csize": MAX32, "size": MAX32}, "local_extra": zip64(6)},
        "A13",
        "expected ZIP64 sizes 6 and 6, got [6]",
    ),
    "zip64 that nobody asked for": ({"local_extra": zip64(99)}, "A13", "got [99]"),
    "extra behind the padding": ({"local_extra": padded(20) + zip64(99)}, "A13", "got [99]"),
    "second name": ({"local_extra": struct.pack("<2HBI", 0x7075, 8, 1, 0) + b"m/x"}, "A5", "got a second one"),
    "broken extra": ({"local_extra": b"\1\0\xff\0"}, "A5", "expected well-formed extra fields"),
    "broken padding": ({"local_extra": padded(20)[:-1]}, "A5", "expected well-formed extra fields"),
    "extra length": ({"local": {"xlen": 1}}, "A12", "expected its 6 bytes of data at 72 to end at 77"),
    "huge extra length": ({"local": {"xlen": 0xFFFF}}, "A12", "where the next record begins, got"),
    "gap": ({"gap": b"gap"}, "A12", "to end at 80, where the next record begins, got 77"),
    "an archive in the gap": ({"gap": simple()}, "A12", "where the next record begins"),
    "descriptor without flag 3": ({"descriptor": struct.pack("<3I", CRC, 6, 6)}, "A12", "where the next record begins"),
    "no descriptor": ({"flags": FLAGS, "local": ZEROS}, "A14", "of 12 to 24 bytes up to 77, got 0 bytes"),
    "long descriptor": ({"flags": FLAGS, "descriptor": bytes(25)}, "A14", "got 25 bytes"),
    "descriptor crc": (
        {"flags": FLAGS, "descriptor": struct.pack("<4s3I", b"PK\7\x08", CRC ^ 1, 6, 6)},
        "A14",
        f"with CRC-32 {CRC:#010x}, sizes 6 and 6, got 504b0708",
    ),
    "descriptor size": ({"flags": FLAGS, "descriptor": struct.pack("<3I", CRC, 6, 5)}, "A14", "got "),
    "descriptor signature": ({"flags": FLAGS, "descriptor": struct.pack("<4s3I", b"PK\7\7", CRC, 6, 6)}, "A14", ""),
    "wrong value with flag 3": (
        {"flags": FLAGS, "local": {"size": 5}, "descriptor": struct.pack("<3I", CRC, 6, 6)},
        "A13",
        "expected size 6, got 5",
    ),
    "wrong zip64 with flag 3": (
        {"flags": FLAGS, "local": ZEROS, "local_extra": zip64(5), "descriptor": struct.pack("<3I", CRC, 6, 6)},
        "A13",
        "got [5]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """A local header that says something else than the directory is refused when a local file is opened."""
    changes, rule, text = REFUSED[case]
    check_refused(simple(**changes), rule, text, "m/b: ")


ACCEPTED: dict[str, dict[str, object]] = {
    "python zipfile, zip64": {"local": {"csize": MAX32, "size": MAX32}, "local_extra": zip64(6, 6)},
    "python zipfile, stream": {
        "flags": FLAGS,
        "local": ZEROS,
        "descriptor": struct.pack("<4s3I", b"PK\7\x08", CRC, 6, 6),
    },
    "python zipfile, zip64 stream": {
        "flags": FLAGS,
        "local": {"crc32": 0, "csize": MAX32, "size": MAX32},
        "local_extra": zip64(0, 0),
        "descriptor": struct.pack("<4sI2Q", b"PK\7\x08", CRC, 6, 6),
    },
    "info-zip, stream": {
        "flags": FLAGS,
        "local": {"crc32": 0},
        "descriptor": struct.pack("<4s3I", b"PK\7\x08", CRC, 6, 6),
    },
    "torch": {
        "flags": FLAGS,
        "local": ZEROS,
        "local_extra": padded(25),
        "descriptor": struct.pack("<4s3I", b"PK\7\x08", CRC, 6, 6),
    },
    "torch, record of 4 GiB": {
        "flags": FLAGS,
        "local": ZEROS,
        "local_extra": zip64(6, 0) + padded(25),
        "descriptor": struct.pack("<4sI2Q", b"PK\7\x08", CRC, 6, 6),
    },
    "torch, beyond 4 GiB": {
        "flags": FLAGS,
        "local": ZEROS,
        "local_extra": zip64(HERE) + padded(25),
        "descriptor": struct.pack("<4sI2Q", b"PK\7\x08", CRC, 6, 6),
    },
    "no signature": {"flags": FLAGS, "local": ZEROS, "descriptor": struct.pack("<3I", CRC, 6, 6)},
    "no signature, 64 bits": {"flags": FLAGS, "local": ZEROS, "descriptor": struct.pack("<I2Q", CRC, 6, 6)},
    "no descriptor": {"local_extra": padded(25)},
    "python 3.14's zipfile, which adds a record to torch's": {
        "flags": FLAGS,
        "entry": {"flags": 8},
        "descriptor": struct.pack("<4s3I", b"PK\7\x08", CRC, 6, 6),
    },
    "other time": {"local": {"time": 1, "date": 2, "version": 45}},
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case: str) -> None:
    """The ways in which the common packing tools leave values for later are understood."""
    with open_archive(simple(**ACCEPTED[case])) as archive:
        assert bytes(archive.read("m/b")) == b"second"


@pytest.mark.parametrize("flags", [0, 0x0800])
def test_the_flag_of_names_beyond_ascii_is_compared(flags: int) -> None:
    """With it readers take a name for UTF-8, without it for another encoding; either way it says the same twice."""
    name = "m/\N{GREEK SMALL LETTER BETA}".encode()
    check_refused(
        forge(Entry(b"m/a"), Entry(name, local={"flags": flags ^ 0x0800}, flags=flags)), "A13", "expected flags"
    )


def test_empty_record_beyond_4_gib() -> None:
    """torch writes an empty record without descriptor, and its offset as ZIP64 value even then."""
    entry = Entry(b"m/b", b"", local_extra=zip64(HERE) + padded(25))
    with open_archive(forge(Entry(b"m/a", b"first"), entry)) as archive:
        assert bytes(archive.read("m/b")) == b""


class Pipe:
    """A file that is read by ranges, as a remote one is."""

    name = "x"

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self.read, self.seek, self.tell = self._file.read, self._file.seek, self._file.tell


def outcome(opened: Callable[[], Archive]) -> object:
    """Return the offsets of all records, or the first error up to what was found in the file."""
    try:
        with opened() as archive:
            return {name: (archive.read(name, verify=False), archive.data_offset(name))[1] for name in archive.records}
    except ArchiveError as error:
        return str(error).partition(", got")[0]


@pytest.mark.parametrize(
    "case", ["torch", "torch, record of 4 GiB", "no signature", "python zipfile, stream", "no descriptor", "other time"]
)
def test_files_and_ranges_are_read_alike(case: str) -> None:
    """With any one byte around the data changed, a mapped file and one that is read by ranges are refused alike."""
    data = simple(**ACCEPTED[case])
    with open_archive(data, name="x") as archive:
        record = tuple(archive.records.values())[1]
    for at in range(record.header_offset, record.end_offset):
        for bit in (1, 4, 128):
            changed = bytearray(data)
            changed[at] ^= bit
            mapped = outcome(lambda: open_archive(bytes(changed), name="x"))  # noqa: B023
            assert outcome(lambda: open_archive(Pipe(bytes(changed)))) == mapped, (at, bit)  # type: ignore[arg-type]  # noqa: B023
