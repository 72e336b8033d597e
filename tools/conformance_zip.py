"""Zip files byte by byte, right ones and wrong ones: what the conformance suite needs to break the rules A1 to A26.

Nothing depends on the clock or on a library's choices: deflated data is made of stored blocks, by hand.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

M16, M32 = 0xFFFF, 0xFFFFFFFF

Records = dict[str, bytes]


@dataclass(frozen=True)
class Entry:
    """One record to write; `local` and `central` override fields of the two headers that would agree otherwise."""

    name: bytes
    content: bytes
    method: int = 0
    flags: int = 0
    data: bytes | None = None
    extra: bytes = b""
    central_extra: bytes = b""
    attributes: int = 0o100644 << 16
    descriptor: bytes = b""
    local: Mapping[str, Any] = field(default_factory=dict)
    central: Mapping[str, Any] = field(default_factory=dict)


def deflate(content: bytes) -> bytes:
    """Raw deflate data of stored blocks."""
    pieces = [content[start : start + M16] for start in range(0, len(content), M16)] or [b""]
    last = len(pieces) - 1
    return b"".join(
        bytes([number == last]) + struct.pack("<2H", len(piece), len(piece) ^ M16) + piece
        for number, piece in enumerate(pieces)
    )


def descriptor(content: bytes, *, wide: bool = False, signed: bool = True, crc: int | None = None) -> bytes:
    """The data descriptor of a stored record."""
    numbers = (zlib.crc32(content) if crc is None else crc, len(content), len(content))
    return (b"PK\7\10" if signed else b"") + struct.pack("<I2Q" if wide else "<3I", *numbers)


def build(
    entries: Iterable[Entry],
    *,
    before: bytes = b"",
    gap: bytes = b"",
    after: bytes = b"",
    zip64: bool = False,
    **end: int,
) -> bytes:
    """Write a zip file.

    Args:
        entries: its records in order.
        before: bytes in front of the first record.
        gap: bytes between the last record and the directory.
        after: bytes behind the end record.
        zip64: write ZIP64 end records, too.
        end: overrides of the end record: count, here, size, offset, disk, comment (length), pos64.
    """
    body, directory = bytearray(before), bytearray()
    count = 0
    for entry in entries:
        offset = len(body)
        body += _local(entry) + (entry.content if entry.data is None else entry.data) + entry.descriptor
        directory += _central(entry, offset)
        count += 1
    body += gap
    return bytes(body) + bytes(directory) + _end(len(body), len(directory), count, zip64, end) + after


def _values(entry: Entry, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a header, those first that both headers have."""
    return {
        "flags": entry.flags,
        "method": entry.method,
        "crc": zlib.crc32(entry.content),
        "packed": len(entry.content if entry.data is None else entry.data),
        "size": len(entry.content),
        "name": entry.name,
        **overrides,
    }


def _local(entry: Entry) -> bytes:
    row = _values(entry, {"signature": b"PK\3\4", **entry.local})
    name = row["name"]
    head = struct.pack(
        "<4s5H3I2H",
        row["signature"],
        20,
        row["flags"],
        row["method"],
        0,
        0x21,
        row["crc"],
        row["packed"],
        row["size"],
        len(name),
        len(entry.extra),
    )
    return head + name + entry.extra


def _central(entry: Entry, offset: int) -> bytes:
    row = _values(entry, {"signature": b"PK\1\2", "offset": offset, "disk": 0, **entry.central})
    name = row["name"]
    head = struct.pack(
        "<4s6H3I5H2I",
        row["signature"],
        0x32D,
        20,
        row["flags"],
        row["method"],
        0,
        0x21,
        row["crc"],
        row["packed"],
        row["size"],
        len(name),
        len(entry.central_extra),
        0,
        row["disk"],
        0,
        entry.attributes,
        row["offset"],
    )
    return head + name + entry.central_extra


def _end(offset: int, size: int, count: int, zip64: bool, end: Mapping[str, int]) -> bytes:
    row = {"disk": 0, "count": count, "here": count, "size": size, "offset": offset, "comment": 0, **end}
    large = b""
    if zip64:
        large = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, offset)
        large += struct.pack("<4sIQI", b"PK\6\7", 0, end.get("pos64", offset + size), 1)
    last = (row[key] for key in ("disk", "disk", "here", "count", "size", "offset", "comment"))
    return large + struct.pack("<4s4H2IH", b"PK\5\6", *last)


def read(source: Path | BytesIO, *, root: bool = True) -> Records:
    """Return the records of a good file in order, by their names below its root folder if it has one."""
    with zipfile.ZipFile(source) as archive:
        return {name.partition("/")[2] if root else name: archive.read(name) for name in archive.namelist()}


def stored(records: Records, root: str = "base/") -> list[Entry]:
    """Entries that hold records as they are."""
    return [Entry((root + name).encode(), content) for name, content in records.items()]


def changed(entries: list[Entry], name: str, **changes: object) -> list[Entry]:
    """The entries with one of them, which ends with a name, changed."""
    return [replace(entry, **changes) if entry.name.endswith(name.encode()) else entry for entry in entries]  # type: ignore[arg-type]


Case = tuple[str, tuple[str, ...], str, Callable[[list[Entry]], bytes]]
"""Name of the file, rules, what is wrong, and what writes it from good entries."""


def zip64_extra(*values: int) -> bytes:
    """A ZIP64 part."""
    return struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values)


def named(name: bytes) -> Callable[[list[Entry]], bytes]:
    """Return a builder that adds an entry of that name."""
    return lambda entries: build([*entries, Entry(name, b"x")])


WEIGHT = "weight_0"


def archive_cases() -> Iterator[Case]:
    """Files that are no zip archive with one meaning (A1 to A18)."""
    yield "text", ("A2",), "no zip file at all", lambda _: b"not a zip file\n"
    yield "empty", ("A2", "A1"), "no bytes", lambda _: b""
    yield "cut", ("A2",), "the last 100 bytes are missing", lambda entries: build(entries)[:-100]
    yield "trailing_data", ("A2",), "bytes follow the end record", lambda entries: build(entries, after=b"xyz")
    yield "comment_too_long", ("A2",), "the comment ends behind the file", lambda e: build(e, comment=5)
    yield "zip64_elsewhere", ("A3",), "the locator points elsewhere", lambda e: build(e, zip64=True, pos64=10)
    yield "zip64_differs", ("A3",), "the two end records differ", lambda e: build(e, zip64=True, count=1, here=1)
    yield "directory_offset", ("A4", "A1", "A5"), "the directory's offset is wrong", lambda e: build(e, offset=5)
    yield "directory_count", ("A4",), "one entry more than are there", lambda e: build(e, count=99, here=99)
    yield "entries_here", ("A4",), "the two counts differ", lambda e: build(e, here=1)
    yield "disk", ("A12",), "the end record is on disk 1", lambda e: build(e, disk=1)
    yield "entry_signature", ("A5",), "an entry without its signature", _weight(central={"signature": b"PK\1\1"})
    yield "extra_cut", ("A5",), "an extra field that is cut off", _weight(central_extra=b"\1\2\3")
    yield "zip64_unasked", ("A5",), "a ZIP64 value that nothing asks for", _weight(central_extra=zip64_extra(7))
    path = struct.pack("<2HBI", 0x7075, 9, 1, 0) + b"evil"
    yield "second_name", ("A5",), "an extra field gives another name", _weight(central_extra=path)
    yield "name_not_utf8", ("A6",), "a name that is no UTF-8", named(b"base/\xff\xfe")
    yield "name_parent", ("A6",), "a name with ..", named(b"base/../x")
    yield "name_absolute", ("A6",), "an absolute name", named(b"/base/x")
    yield "name_backslash", ("A6",), "a name with a backslash", named(b"base\\x")
    yield "name_nul", ("A6",), "a name with a NUL", named(b"base/x\0y")
    yield "name_drive", ("A6",), "a name with a drive letter", named(b"C:/x")
    yield "name_empty_part", ("A6",), "a name with an empty part", named(b"base//x")
    yield "twice", ("A7",), "two records of one name", lambda e: build([*e, e[0]])
    yield "twice_case", ("A7",), "two names that differ by case", named(b"base/ARCHIVE_FORMAT")
    yield "twice_unicode", ("A7",), "two names that differ by composition", _unicode
    yield "symlink", ("A8",), "a symbolic link", _weight(attributes=0o120777 << 16)
    yield "folder_content", ("A8",), "a folder with content", named(b"base/folder/")
    yield "encrypted", ("A9",), "an encrypted record", _weight(flags=1)
    yield "flag_unknown", ("A9",), "a patched record (flag 5)", _weight(flags=0x20)
    yield "method_12", ("A10",), "a record packed with bzip2's number", _weight(method=12)
    yield "sizes_differ", ("A11",), "a stored record with two sizes", _weight(central={"size": 9}, local={"size": 9})
    yield "deflate_claim", ("A11",), "deflated data that cannot make so much", _claim
    yield "before_first", ("A12",), "bytes before the first record", lambda e: build(e, before=b"junk")
    yield "gap", ("A12",), "bytes between the last record and the directory", lambda e: build(e, gap=b"junk")
    yield "overlap", ("A12",), "two records at one place", _overlap
    yield (
        "local_name",
        ("A13",),
        "a local header with another name",
        _weight(local={"name": b"base/data/weights/weight_9"}),
    )
    yield "local_size", ("A13",), "a local header with another size", _weight(local={"size": 1})
    yield "local_crc", ("A13",), "a local header with another CRC-32", _weight(local={"crc": 1})
    yield "local_method", ("A13",), "a local header with another method", _weight(local={"method": 8})
    yield "local_signature", ("A13", "A12"), "no local header", _weight(local={"signature": b"PK\3\3"})
    yield "descriptor_missing", ("A14",), "flag 3 without a descriptor", _weight(flags=8)
    yield "descriptor_wrong", ("A14",), "a descriptor with another CRC-32", _descriptor
    yield "deflate_broken", ("A15",), "deflated data that is none", _deflated(lambda _: b"\xff" * 30)
    yield "deflate_short", ("A15",), "deflated data with less content", _deflated(lambda c: deflate(c[:-1]))
    yield "deflate_long", ("A15",), "deflated data with more content", _deflated(lambda c: deflate(c + b"!"))
    yield "deflate_rest", ("A15",), "bytes behind the deflated data", _deflated(lambda c: deflate(c) + b"rest")
    yield "crc", ("A16",), "a content without the stated CRC-32", _weight(local={"crc": 1}, central={"crc": 1})
    yield "bomb", ("A18", "A15"), "65 MiB stated of 66 KiB", _bomb


def _weight(**changes: object) -> Callable[[list[Entry]], bytes]:
    return lambda entries: build(changed(entries, WEIGHT, **changes))


def _content_of(entries: list[Entry], name: str) -> bytes:
    """Return the content of the record that ends with a name."""
    return next(entry.content for entry in entries if entry.name.endswith(name.encode()))


def _unicode(entries: list[Entry]) -> bytes:
    return build([*entries, Entry("base/extra/é".encode(), b""), Entry("base/extra/e\u0301".encode(), b"")])


def _claim(entries: list[Entry]) -> bytes:
    size = {"size": 1 << 20}
    return build([*entries, Entry(b"base/extra/x", b"x", 8, data=deflate(b"x"), local=size, central=size)])


def _overlap(entries: list[Entry]) -> bytes:
    last = entries[-1]
    return build([*entries, replace(last, name=b"base/extra/x", central={"offset": 0})])


def _descriptor(entries: list[Entry]) -> bytes:
    content = _content_of(entries, WEIGHT)
    return build(changed(entries, WEIGHT, flags=8, descriptor=descriptor(content, crc=1)))


def _deflated(pack: Callable[[bytes], bytes]) -> Callable[[list[Entry]], bytes]:
    def write(entries: list[Entry]) -> bytes:
        return build(changed(entries, WEIGHT, method=8, data=pack(_content_of(entries, WEIGHT))))

    return write


def _bomb(entries: list[Entry]) -> bytes:
    """A record whose stated size is the most that so many deflated bytes can make; nothing is inflated to refuse it."""
    size, zeros = {"size": 65 << 20}, bytes(66 << 10)
    return build([*entries, Entry(b"base/extra/zeros", zeros, 8, data=deflate(zeros), local=size, central=size)])


def layout_cases() -> Iterator[Case]:
    """Zip files that are no `.pt2` (A19 to A26)."""
    yield "no_root", ("A19",), "a record at the top", lambda e: build([*e, Entry(b"x", b"")])
    yield "two_roots", ("A19",), "two root folders", lambda e: build([*e, Entry(b"other/x", b"")])
    yield "deeper", ("A19",), "the root folder is inside another", _deeper
    yield "plain_version", ("A19",), "a plain zip whose version is a word", _plain_version
    yield "no_format", ("A20",), "no archive_format", _without("archive_format")
    yield "format", ("A20",), "archive_format is pt3", _content("archive_format", b"pt3")
    yield "format_newline", ("A20",), "archive_format ends with a newline", _content("archive_format", b"pt2\n")
    yield "no_version", ("A21",), "no archive_version", _without("archive_version")
    yield "version", ("A21",), "archive_version is 1", _content("archive_version", b"1")
    yield "data_version", ("A22",), ".data/version is 99", _content(".data/version", b"99")
    yield "data_version_text", ("A22",), ".data/version is a word", _content(".data/version", b"six")
    yield "big_endian", ("A23",), "byteorder is big", _content("byteorder", b"big")
    yield "byteorder", ("A23",), "byteorder is a word", _content("byteorder", b"middle")
    yield "models_other", ("A24",), "a record under models/ that is no program", named(b"base/models/readme.txt")
    yield "no_model", ("A24",), "no program", _without("models/model.json")
    yield "no_config", ("A25",), "no weights config", _without("model_weights_config.json")
    yield "both_payloads", ("A25",), "payloads described in two ways", _both
    yield "two_layouts", ("A26",), "the records of two layouts", named(b"serialized_exported_program.json")


def _content(name: str, content: bytes) -> Callable[[list[Entry]], bytes]:
    return lambda entries: build(changed(entries, name, content=content))


def _without(name: str) -> Callable[[list[Entry]], bytes]:
    return lambda entries: build([entry for entry in entries if not entry.name.endswith(name.encode())])


def _deeper(entries: list[Entry]) -> bytes:
    return build([replace(entry, name=b"outer/" + entry.name) for entry in entries])


def _both(entries: list[Entry]) -> bytes:
    more = [Entry(f"base/data/{kind}/model.pt".encode(), b"") for kind in ("weights", "constants")]
    return build([*entries, *more])


def _plain_version(entries: list[Entry]) -> bytes:
    program = _content_of(entries, "models/model.json")
    return build([Entry(b"serialized_exported_program.json", program), Entry(b"version", b"newest")])
