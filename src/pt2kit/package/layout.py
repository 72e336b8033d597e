"""The names of an archive's records -> which layout it has and which releases of torch write that (rules A19 to A26).

`detect` looks at names alone; `verify_header` also reads the few small records that say what the archive is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from pt2kit.errors import ArchiveError, UnsupportedError, VersionError
from pt2kit.package import record_names as names
from pt2kit.zip.foreign import identify_archive
from pt2kit.zip.reader import Archive
from pt2kit.zip.record_name import show_name

LayoutKind = Literal["archive", "archive-2.8", "plain-zip", "json"]

FORMAT: Final = b"pt2"
VERSION: Final = b"0"
DATA_VERSIONS: Final = range(1, 11)
"""The versions of torch's zip conventions that it reads; `.pt2` files say 6. Source: caffe2/serialize/versions.h."""
LAST_PLAIN_VERSION: Final = (8, 8)
"""The newest schema that the development of torch wrote into plain zips; the last release to do so wrote 8.7."""
MAX_HEADER_BYTES: Final = 64
"""Records of the header hold a word or a number; anything longer is something else."""

_DATA_VERSION: Final = re.compile(rb"([0-9]{1,18})\n?")
_PLAIN_VERSION: Final = re.compile(rb"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the records of an archive are arranged.

    Args:
        kind: "archive" (raw payload records), "archive-2.8" (payloads as torch.save files), "plain-zip", or "json" for
            a file that is no archive but a program's JSON.
        releases: the releases of torch that write this, as text.
        root: what stands before every record's name, "mlp/"; "" in a plain zip.
        models: names of the programs in directory order; a plain zip has one, "model".
        methods: name of a program -> the model it is a method of, which the record is named after, and the method's
            name; for the containers of schema 8.6 alone.
    """

    kind: LayoutKind
    releases: str
    root: str
    models: tuple[str, ...]
    methods: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))

    def choose(self, model: str | None) -> str | None:
        """The program that a caller means: the one of that name, or without a name the only one, or "model".

        Returns:
            its name; None where there is none of that name, or several and none is called "model".
        """
        if model is None and len(self.models) == 1:
            return self.models[0]
        wanted = "model" if model is None else model
        return wanted if wanted in self.models else None

    def record(self, relative: str) -> str:
        """The full name of a record given by its name below the root folder."""
        return self.root + relative


def detect(records: Iterable[str], where: str = "archive") -> Layout:
    """Recognise the layout of an archive by the names of its records.

    Args:
        records: full names, folders left out.
        where: what messages call the archive.

    Raises:
        ArchiveError: no known layout (A19), two at once (A26), records missing that name it (A20, A21), or something
            that is not a program where programs are (A24).
    """
    full_names = tuple(records)
    try:
        return _detect(full_names, where)
    except ArchiveError as error:
        if what := identify_archive(full_names):
            raise ArchiveError(f"{where}: expected a .pt2 file, got {what}", rule=error.rule) from error
        raise


def _detect(found: tuple[str, ...], where: str) -> Layout:
    if not names.PLAIN_RECORDS.isdisjoint(found):
        return _detect_plain(where, found)
    root = _find_root(where, found)
    relative = [name[len(root) :] for name in found]
    _check_marks(where, root, relative)
    models = _find_models(where, root, relative)
    configs = [name for name in relative if name.endswith(".json")]
    new = any(names.weights_config_model(name) or names.constants_config_model(name) for name in configs)
    if not new and any(names.weights_payload_model(name) or names.constants_payload_model(name) for name in relative):
        return Layout("archive-2.8", "torch 2.8", root, models)
    return Layout("archive", "torch 2.9 and later", root, models)


def verify_header(archive: Archive) -> Layout:
    """Recognise the layout and check the records that say what the archive is.

    Absent `.data/version`, `byteorder` and `.data/serialization_id` are accepted: nothing is read by them.

    Raises:
        ArchiveError: as `detect`; wrong content of archive_format (A20) or byteorder (A23).
        VersionError: archive_version (A21), .data/version (A22) or byteorder (A23) is one that this build cannot read.
    """
    where = archive.source.name
    layout = detect(archive.records, where)
    if layout.kind == "plain-zip":
        _check_plain_version(where, _content(archive, names.PLAIN_VERSION, "A19"))
        return layout
    content = _content(archive, layout.record(names.ARCHIVE_FORMAT), "A20")
    if content != FORMAT:
        raise ArchiveError(f"{where}: archive_format: expected {FORMAT!r}, got {content!r}", rule="A20")
    content = _content(archive, layout.record(names.ARCHIVE_VERSION), "A21")
    if content != VERSION:
        raise VersionError(f"{where}: archive_version: expected {VERSION!r}, got {content!r}", rule="A21")
    for name in (names.DATA_VERSION, names.DATA_VERSION_SHORT):
        if layout.record(name) in archive.records:
            _check_data_version(where, name, _content(archive, layout.record(name), "A22"))
    if layout.record(names.BYTEORDER) in archive.records:
        _check_byteorder(where, _content(archive, layout.record(names.BYTEORDER), "A23"))
    return layout


def payload_layout(records: Collection[str], layout: Layout, model: str, where: str = "archive") -> LayoutKind:
    """Say how the weights and constants of one program are stored, from names alone.

    An archive may hold programs packed by different releases, so this is asked for each program that is read.

    Raises:
        ArchiveError: a record that describes them is missing (A25).
        UnsupportedError: they are described twice, in two ways (A25).
    """
    if layout.kind == "plain-zip":
        return "plain-zip"
    configs = (names.weights_config(model), names.constants_config(model))
    payloads = (names.weights_payload(model), names.constants_payload(model))
    has_configs = [layout.record(name) in records for name in configs]
    has_payloads = [layout.record(name) in records for name in payloads]
    if any(has_configs) and any(has_payloads):
        raise UnsupportedError(
            f"{where}: {show_name(names.model_json(model))}: expected its weights and constants either in config "
            f"records or in .pt files, got both: "
            f"{', '.join(n for n, there in zip(configs + payloads, has_configs + has_payloads, strict=True) if there)}",
            rule="A25",
        )
    wanted, there = (payloads, has_payloads) if any(has_payloads) else (configs, has_configs)
    for name, is_there in zip(wanted, there, strict=True):
        if not is_there:
            raise ArchiveError(
                f"{where}: {show_name(names.model_json(model))}: expected a record {show_name(name)}, got none",
                rule="A25",
            )
    return "archive-2.8" if wanted is payloads else "archive"


def _detect_plain(where: str, found: tuple[str, ...]) -> Layout:
    plain = [name for name in found if names.is_plain(name)]
    others = [name for name in found if name not in plain]
    if others:
        raise ArchiveError(
            f"{where}: expected the records of one layout, got those of the plain zip of torch 2.1 to 2.7 "
            f"({_some(plain)}) and others ({_some(others)})",
            rule="A26",
        )
    for name in (names.PLAIN_PROGRAM, names.PLAIN_VERSION):
        if name not in plain:
            raise ArchiveError(f"{where}: expected a record {name} in a plain zip, got only {_some(plain)}", rule="A19")
    if names.PLAIN_STATE_DICT_OLD in plain:
        releases = "torch 2.2" if names.PLAIN_CONSTANTS_OLD in plain else "torch 2.1"
    else:
        releases = "torch 2.4 to 2.7" if names.PLAIN_EXAMPLE_INPUTS in plain else "torch 2.3"
    return Layout("plain-zip", releases, "", ("model",))


def _find_root(where: str, found: tuple[str, ...]) -> str:
    """The one folder that everything is in, with its slash."""
    top = [name for name in found if "/" not in name]
    roots = list(dict.fromkeys(name.partition("/")[0] for name in found if "/" in name))
    if top or len(roots) != 1:
        got = f"records at the top: {_some(top)}" if top else f"{len(roots)} folders: {_some(roots)}"
        raise ArchiveError(
            f"{where}: expected a .pt2 archive with all records under one root folder, got "
            f"{got if found else 'no records'}",
            rule="A19",
        )
    return roots[0] + "/"


def _check_marks(where: str, root: str, relative: list[str]) -> None:
    for name, rule in ((names.ARCHIVE_FORMAT, "A20"), (names.ARCHIVE_VERSION, "A21")):
        if name in relative:
            continue
        deeper = [other for other in relative if other.endswith("/" + name)]
        if deeper:
            raise ArchiveError(
                f"{where}: expected {show_name(root + name)}, got {_some([root + other for other in deeper])}: "
                "records must be in one root folder, not deeper",
                rule="A19",
            )
        raise ArchiveError(f"{where}: expected a record {show_name(root + name)}, got none", rule=rule)


def _find_models(where: str, root: str, relative: list[str]) -> tuple[str, ...]:
    models = []
    for name in relative:
        if name.startswith(names.MODELS):
            model = names.model_name(name)
            if model is None:
                raise ArchiveError(f"{where}: expected models/<name>.json, got {show_name(root + name)}", rule="A24")
            models.append(model)
    if not models and not any(name.startswith((names.AOTINDUCTOR, names.EXECUTORCH)) for name in relative):
        raise ArchiveError(
            f"{where}: expected a program ({root}models/<name>.json) or compiled code ({root}{names.AOTINDUCTOR}…), "
            f"got neither among {len(relative)} records",
            rule="A24",
        )
    return tuple(models)


def _content(archive: Archive, name: str, rule: str) -> bytes:
    size = archive.records[name].size
    if size > MAX_HEADER_BYTES:
        raise ArchiveError(
            f"{archive.source.name}: {show_name(name)}: expected at most {MAX_HEADER_BYTES} bytes, got {size}",
            rule=rule,
        )
    return bytes(archive.read(name))


def _check_plain_version(where: str, content: bytes) -> None:
    if not _PLAIN_VERSION.fullmatch(content):
        raise VersionError(f"{where}: version: expected a schema version such as '5.1', got {content!r}", rule="A19")
    if tuple(map(int, content.split(b"."))) > LAST_PLAIN_VERSION:
        newest = ".".join(map(str, LAST_PLAIN_VERSION))
        raise VersionError(
            f"{where}: version: expected at most {newest} in a plain zip, got {content.decode()}: programs of later "
            "schemas are in archives with one root folder",
            rule="A19",
        )


def _check_data_version(where: str, name: str, content: bytes) -> None:
    match = _DATA_VERSION.fullmatch(content)
    if not match or int(match[1]) not in DATA_VERSIONS:
        raise VersionError(
            f"{where}: {name}: expected a number from {DATA_VERSIONS[0]} to {DATA_VERSIONS[-1]}, got {content!r}",
            rule="A22",
        )


def _check_byteorder(where: str, content: bytes) -> None:
    if content == b"big":
        raise VersionError(
            f"{where}: byteorder: expected 'little', got 'big': weights written on a big-endian machine are not read; "
            "save the program again on a little-endian one",
            rule="A23",
        )
    if content != b"little":
        raise ArchiveError(f"{where}: byteorder: expected 'little', got {content!r}", rule="A23")


def _some(found: list[str]) -> str:
    shown = ", ".join(show_name(name) for name in found[:3])
    return f"{shown}, … ({len(found)})" if len(found) > 3 else shown
