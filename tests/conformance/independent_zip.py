"""The zip of a `.pt2` by docs/format/archive.md: rules A1 to A26, on bytes in memory. Standard library only."""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from dataclasses import dataclass

M16, M32 = 0xFFFF, 0xFFFFFFFF


class Refused(Exception):
    """A file that breaks a rule."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


def need(condition: object, rule: str, message: str) -> None:
    """Refuse the file unless a condition holds."""
    if not condition:
        raise Refused(rule, message)


@dataclass
class Entry:
    """One entry of the directory."""

    name: str
    raw: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    attributes: int
    data: int = 0


def parts_of(extra: bytes, where: str) -> list[tuple[int, bytes]]:
    """The parts of an extra field (A5)."""
    found, at = [], 0
    while at < len(extra):
        need(at + 4 <= len(extra), "A5", f"{where}: extra field")
        tag, length = struct.unpack_from("<2H", extra, at)
        need(at + 4 + length <= len(extra), "A5", f"{where}: extra field")
        found.append((tag, extra[at + 4 : at + 4 + length]))
        at += 4 + length
    return found


def zip64(parts: list[tuple[int, bytes]], where: str) -> list[int]:
    """The values of the ZIP64 part."""
    held = [data for tag, data in parts if tag == 1]
    need(len(held) <= 1 and all(len(data) % 8 in (0, 4) for data in held), "A5", f"{where}: ZIP64 part")
    values: list[int] = []
    for data in held:
        values += struct.unpack_from(f"<{len(data) // 8}Q", data)
        values += struct.unpack("<I", data[-4:]) if len(data) % 8 else ()
    return values


def find_end(file: bytes) -> int:
    """Find the end record (A2)."""
    if file[-22:-18] == b"PK\5\6" and file[-2:] == b"\0\0":
        return len(file) - 22
    at = file.rfind(b"PK\5\6", max(0, len(file) - 22 - M16))
    need(at >= 0 and at + 22 <= len(file), "A2", "no end record")
    need(at + 22 + struct.unpack_from("<H", file, at + 20)[0] == len(file), "A2", "the end record's comment")
    return at


def directory(file: bytes) -> tuple[int, int, int]:
    """The offset, size and number of entries of the directory (A3, A4, A12)."""
    end = find_end(file)
    fields = struct.unpack_from("<4HII", file, end + 4)
    stop = end
    if end >= 20 and file[end - 20 : end - 16] == b"PK\6\7":
        disk, stop, disks = struct.unpack_from("<IQI", file, end - 16)
        need(disk == 0 and disks == 1 and stop + 56 == end - 20, "A3", "the locator")
        need(
            file[stop : stop + 4] == b"PK\6\6" and struct.unpack_from("<Q", file, stop + 4)[0] == 44, "A3", "ZIP64 end"
        )
        large = struct.unpack_from("<2I4Q", file, stop + 16)
        for short, long, mark in zip(fields, large, (M16,) * 4 + (M32,) * 2, strict=True):
            need(short in (long, mark), "A3", "end records differ")
        fields = large
    this, start, here, count, size, offset = fields
    need(this == 0 == start, "A12", "several disks")
    need(here == count, "A4", "entries on this disk")
    need(offset + size == stop and count * 46 <= size, "A4", "place of the directory")
    need(count <= 250_000 and size <= 64 << 20, "A18", "size of the directory")
    return offset, size, count


def check_name(name: str) -> None:
    """A record's name (A6)."""
    need(name and not set("\0\\") & set(name) and name[0] != "/", "A6", f"name {name!r}")
    for part in name.split("/"):
        need(part not in ("", ".", "..") and not re.match("[A-Za-z]:", part), "A6", f"name {name!r}")


def entries(file: bytes) -> list[Entry]:
    """The directory (A4 to A12)."""
    offset, size, count = directory(file)
    at, found, keys = offset, [], set()
    for _ in range(count):
        need(at + 46 <= offset + size and file[at : at + 4] == b"PK\1\2", "A5", "directory entry")
        _, _, flags, method, _, _, crc, packed, plain, n, e, c, disk, _, attributes, header = struct.unpack_from(
            "<6H3I5H2I", file, at + 4
        )
        need(at + 46 + n + e + c <= offset + size, "A5", "directory entry")
        raw = file[at + 46 : at + 46 + n]
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            raise Refused("A6", f"name {raw!r}") from None
        check_name(name[:-1] if len(name) > 1 and name.endswith("/") else name)
        parts = parts_of(file[at + 46 + n : at + 46 + n + e], name)
        need(all(data[5:] == raw for tag, data in parts if tag == 0x7075), "A5", f"{name}: a second name")
        values, marks = zip64(parts, name), [plain == M32, packed == M32, header == M32, disk == M16]
        need(len(values) == sum(marks), "A5", f"{name}: ZIP64 values")
        rest = iter(values)
        plain, packed, header, disk = (
            next(rest) if mark else value for mark, value in zip(marks, (plain, packed, header, disk), strict=True)
        )
        need(disk == 0, "A12", f"{name}: disk")
        entry = Entry(name, raw, flags, method, crc, packed, plain, header, attributes)
        check_entry(entry)
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name.rstrip("/")).casefold())
        need(key not in keys, "A7", f"{name}: twice")
        keys.add(key)
        found.append(entry)
        at += 46 + n + e + c
    need(at == offset + size, "A4", "the directory is not filled")
    deflated = sum(entry.size for entry in found if entry.method == 8)
    need(deflated <= max(64 << 20, 200 * len(file)), "A18", f"{deflated} inflated bytes")
    check_places(file, found, offset)
    return found


def check_entry(entry: Entry) -> None:
    """Kind, flags, method and sizes (A8 to A11)."""
    folder = entry.name.endswith("/")
    need((entry.attributes >> 28) in (0, 4 if folder else 8), "A8", f"{entry.name}: file type")
    need(not (folder and entry.size), "A8", f"{entry.name}: a folder with content")
    need(not entry.flags & ~0x080E, "A9", f"{entry.name}: flags")
    need(entry.method in (0, 8), "A10", f"{entry.name}: method")
    if entry.method == 0:
        need(entry.size == entry.packed, "A11", f"{entry.name}: sizes")
    else:
        need(entry.size <= 1032 * (entry.packed + 1), "A11", f"{entry.name}: sizes")


def check_places(file: bytes, found: list[Entry], offset: int) -> None:
    """Records, their local headers and descriptors (A12 to A14)."""
    ordered = sorted(found, key=lambda entry: entry.offset)
    need((ordered[0].offset if ordered else offset) == 0, "A12", "something before the first record")
    for entry, end in zip(ordered, [*(entry.offset for entry in ordered[1:]), offset], strict=True):
        least = entry.offset + 30 + len(entry.raw) + entry.packed
        late = bool(entry.flags & 8)
        need(least <= end <= least + M16 + (24 if late else 0), "A12", f"{entry.name}: place")
        fields = struct.unpack_from("<4s5H3I2H", file, entry.offset)
        signature, _, flags, method, _, _, crc, packed, size, n, e = fields
        name = file[entry.offset + 30 : entry.offset + 30 + n]
        same = (signature, flags, method, name) == (b"PK\3\4", entry.flags, entry.method, entry.raw)
        need(same, "A13", f"{entry.name}: local header")
        entry.data = entry.offset + 30 + n + e
        rest = end - entry.data - entry.packed
        need(rest in (12, 16, 20, 24) if late else True, "A14", f"{entry.name}: descriptor")
        need(late or rest == 0, "A12", f"{entry.name}: space behind it")
        parts = parts_of(file[entry.data - e : entry.data], entry.name)
        need(all(data[5:] == entry.raw for tag, data in parts if tag == 0x7075), "A5", f"{entry.name}: second name")
        values = zip64(parts, entry.name)
        pairs = ((crc, entry.crc), (packed, entry.packed), (size, entry.size))
        for index, (got, truth) in enumerate(pairs):
            fits = got == truth or (late and got == 0) or (index and got == M32 and values)
            need(fits, "A13", f"{entry.name}: sizes in the local header")
        moved = [truth for got, truth in ((size, entry.size), (packed, entry.packed)) if got == M32]
        if moved and not late:
            need(values[: len(moved)] == moved, "A13", f"{entry.name}: ZIP64 sizes")
        else:
            known = {entry.size, entry.packed, entry.offset} | ({0} if late else set())
            need(known.issuperset(values), "A13", f"{entry.name}: ZIP64 sizes")
        if late:
            numbers = (entry.crc, entry.packed, entry.size)
            forms = [struct.pack("<I2Q", *numbers)]
            forms += [struct.pack("<3I", *numbers)] if max(numbers[1:]) <= M32 else []
            tail = file[end - rest : end]
            need(tail in forms or (tail[:4] == b"PK\7\10" and tail[4:] in forms), "A14", f"{entry.name}: descriptor")


def read_zip(file: bytes) -> dict[str, bytes]:
    """The records of a zip: name -> content, in directory order (A1 to A16)."""
    return {entry.name: content(file, entry) for entry in entries(file) if not entry.name.endswith("/")}


def content(file: bytes, entry: Entry) -> bytes:
    """The content of a record (A15, A16)."""
    data = file[entry.data : entry.data + entry.packed]
    if entry.method == 8:
        engine = zlib.decompressobj(-15)
        try:
            data = engine.decompress(data, entry.size + 1)
        except zlib.error as error:
            raise Refused("A15", f"{entry.name}: {error}") from None
        whole = engine.eof or (len(data) == entry.size and engine.decompress(engine.unconsumed_tail, 1) == b"")
        need(
            len(data) == entry.size and whole and engine.eof and not engine.unused_data, "A15", f"{entry.name}: deflate"
        )
    need(zlib.crc32(data) == entry.crc, "A16", f"{entry.name}: CRC-32")
    return data


PLAIN = {
    "serialized_exported_program.json",
    *(f"serialized_{what}.{suffix}" for what in ("state_dict", "constants") for suffix in ("pt", "json")),
    "serialized_example_inputs.pt",
    "version",
}


@dataclass
class Model:
    """Places of the parts of one program; payloads are "configs" or "pickles"."""

    program: bytes
    stored_as: str
    weights: bytes
    constants: bytes
    samples: bytes
    folders: tuple[dict[str, bytes], dict[str, bytes]]


def layout(records: dict[str, bytes]) -> tuple[str, dict[str, Model], dict[str, bytes]]:
    """The layout, the models by name, and the extra files (A19 to A26)."""
    if PLAIN & records.keys():
        return plain(records)
    roots = {name.partition("/")[0] for name in records if "/" in name}
    need(len(roots) == 1 and all("/" in name for name in records), "A19", "one root folder")
    root = f"{roots.pop()}/"
    inner = {name[len(root) :]: data for name, data in records.items()}
    for name, rule, wanted in (("archive_format", "A20", b"pt2"), ("archive_version", "A21", b"0")):
        deeper = any(other.endswith(f"/{name}") for other in inner)
        need(name in inner, "A19" if deeper else rule, f"no {name}")
        need(inner[name] == wanted, rule, f"{name} is {inner[name][:20]!r}")
    for name in (".data/version", "version"):
        number = re.fullmatch(rb"(\d{1,18})\n?", inner.get(name, b"6"))
        need(number and 1 <= int(number[1]) <= 10, "A22", f"{name} is {inner.get(name, b'')[:20]!r}")
    need(inner.get("byteorder", b"little") == b"little", "A23", "byteorder")
    names = []
    for name in inner:
        if name.startswith("models/"):
            need(re.fullmatch(r"models/.+\.json", name, re.DOTALL), "A24", f"record {name}")
            names.append(name[7:-5])
    compiled = any(name.startswith(("data/aotinductor/", "data/executorch/")) for name in inner)
    need(names or compiled, "A24", "no program")
    models = {name: archive_model(inner, name) for name in names}
    configs = any(re.fullmatch(r"data/(weights|constants)/.+_config\.json", name) for name in inner)
    pickles = any(re.fullmatch(r"data/(weights|constants)/.+\.pt", name) for name in inner)
    extra = {name[6:]: data for name, data in inner.items() if name.startswith("extra/") and len(name) > 6}
    return "archive-2.8" if pickles and not configs else "archive", models, extra


def archive_model(inner: dict[str, bytes], name: str) -> Model:
    """The parts of one program of an archive (A25)."""
    configs = [inner.get(f"data/{kind}/{name}_{kind}_config.json") for kind in ("weights", "constants")]
    pickles = [inner.get(f"data/{kind}/{name}.pt") for kind in ("weights", "constants")]
    either = [part for part in configs if part is not None], [part for part in pickles if part is not None]
    need(not (either[0] and either[1]), "A25", "payloads described twice")
    chosen = pickles if either[1] else configs
    need(None not in chosen, "A25", "payloads not described")
    folders = tuple(
        {path.rpartition("/")[2]: data for path, data in inner.items() if path.rpartition("/")[0] == f"data/{kind}"}
        for kind in ("weights", "constants")
    )
    samples = inner.get(f"data/sample_inputs/{name}.pt", b"")
    stored_as = "pickles" if either[1] else "configs"
    return Model(inner[f"models/{name}.json"], stored_as, chosen[0] or b"", chosen[1] or b"", samples, folders)  # type: ignore[arg-type]


def plain(records: dict[str, bytes]) -> tuple[str, dict[str, Model], dict[str, bytes]]:
    """The plain zip of 2.1 to 2.7."""
    extra = {name[12:]: data for name, data in records.items() if name.startswith("extra_files/") and len(name) > 12}
    others = [name for name in records if name not in PLAIN and not name.startswith("extra_files/")]
    need(not others, "A26", f"records of two layouts: {others[:3]}")
    program, version = records.get("serialized_exported_program.json"), records.get("version")
    need(program is not None and version is not None, "A19", "no program or version")
    need(re.fullmatch(rb"\d{1,9}(\.\d{1,9})?", version or b""), "A19", "the version")
    found = [records.get(f"serialized_state_dict.{suffix}") for suffix in ("pt", "json")]
    need(found != [None, None], "A25", "no state dict")
    constants = records.get("serialized_constants.pt") or records.get("serialized_constants.json") or b""
    samples = records.get("serialized_example_inputs.pt", b"")
    model = Model(program or b"", "pickles", found[0] or found[1] or b"", constants, samples, ({}, {}))
    return "plain-zip", {"model": model}, extra
