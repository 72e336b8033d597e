"""Detection of the layout of an archive, and checks of the small records that identify it (rules A19 to A26)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pt2kit.errors import ArchiveError, Pt2Error, VersionError
from pt2kit.messages import count_text, listed
from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import PLAIN_MODEL, Layout
from pt2kit.package.layouts.record_archive import MixedArchive, RecordArchive
from pt2kit.package.programs import read_json
from pt2kit.zip.chosen_names import collision_key, show_name

if TYPE_CHECKING:
    from pt2kit.zip.reader import Archive
    from pt2kit.zip.source import Limits, Source

FORMAT: Final = b"pt2"
VERSION: Final = b"0"
DATA_VERSIONS: Final = range(1, 11)
"""Versions of torch's zip conventions that it reads; `.pt2` files contain 6. Source: caffe2/serialize/versions.h."""
LAST_PLAIN_VERSION: Final = (8, 8)
"""The newest schema that the development of torch wrote into plain zips; the last release to do so wrote 8.7."""
MAX_HEADER_BYTES: Final = 64
"""Records of the header hold a word or a number; anything longer is something else."""

_RECORDS: Final = "torch 2.9 and later"
_CONTAINERS: Final = "no release: containers of schema 8.6"
_DATA_VERSION: Final = f"0{{0,16}}(?:{'|'.join(map(str, DATA_VERSIONS))})\n?".encode()
_DATA_VERSION_TEXT: Final = f"a number from {DATA_VERSIONS[0]} to {DATA_VERSIONS[-1]}"
_HEADER: Final = (
    (names.ARCHIVE_FORMAT, "A20", ArchiveError, FORMAT, repr(FORMAT)),
    (names.ARCHIVE_VERSION, "A21", VersionError, VERSION, repr(VERSION)),
    (names.DATA_VERSION, "A22", VersionError, _DATA_VERSION, _DATA_VERSION_TEXT),
    (names.DATA_VERSION_SHORT, "A22", VersionError, _DATA_VERSION, _DATA_VERSION_TEXT),
    (names.BYTEORDER, "A23", ArchiveError, b"little", "'little'"),
)
"""A record that identifies an archive, its rule, the error of another content, the pattern of its content, in words."""
_PLAIN_VERSION: Final = re.compile(rb"[0-9]{1,9}(\.[0-9]{1,9})?")
_JSON_OPENING: Final = re.compile(rb"[ \t\r\n]*\{")
_SNIFFED: Final = 64


def find_json(source: Source, limits: Limits) -> Layout | None:
    """Return the layout of a file that begins as a JSON object does; None for any other, such as a zip.

    Raises: as `bare_json.open_json`.
    """
    if not _JSON_OPENING.match(bytes(source.read(0, min(source.size, _SNIFFED)))):
        return None
    from pt2kit.package.layouts.bare_json import open_json

    return open_json(source, limits)


def detect(archive: Archive) -> Layout:
    """Recognize the layout by the names of the records, and check those that identify the archive.

    Absent `.data/version`, `byteorder` and `.data/serialization_id` are accepted: nothing is read by them.

    Raises:
        ArchiveError: no known layout (A19), two together (A26), records missing that name it (A20, A21), something that
            is not a program in their place (A24), a name in other case (A7); wrong content of archive_format (A20) or
            byteorder (A23).
        VersionError: archive_version (A21), .data/version (A22) or byteorder (A23) is one that this build cannot read.
    """
    where, found = archive.source.name, tuple(archive.records)
    try:
        if not names.PLAIN_RECORDS.isdisjoint(found):
            layout = _plain_zip(archive, where, found)
        else:
            root = _find_root(where, found)
            relative = [name[len(root) :] for name in found]
            _check_marks(where, root, relative)
            models = _find_models(where, root, relative)
            _check_case(where, root, relative, models)
            layout = RecordArchive(archive, root, models, _RECORDS)
    except ArchiveError as error:
        from pt2kit.zip.foreign import identify_archive

        if what := identify_archive(found):
            raise ArchiveError(f"{where}: expected a .pt2 file, got {what}", rule=error.rule) from error
        raise
    if not layout.is_archive:
        _check_plain_version(where, _content(archive, names.PLAIN_VERSION, "A19"))
        return layout
    _check_header(layout, where)
    return _sort_models(layout)


def _check_header(layout: Layout, where: str) -> None:
    for name, rule, error, pattern, expected in _HEADER:
        record = layout.record(name)
        if record not in layout.archive.records:
            continue
        content = _content(layout.archive, record, rule)
        if name == names.BYTEORDER and content == b"big":
            raise VersionError(
                f"{where}: byteorder: expected 'little', got 'big': weights written on a big-endian machine are not "
                "read; save the program again on a little-endian one",
                rule=rule,
            )
        if not re.fullmatch(pattern, content):
            raise error(f"{where}: {name}: expected {expected}, got {content!r}", rule=rule)


def _sort_models(layout: Layout) -> Layout:
    """Return the layout that all programs of an archive have, or one with a layout for each.

    An archive may hold programs that were packed by different releases.
    """
    layouts: dict[str, Layout] = {}
    for model in layout.models:
        if layout.first(names.weights_payload(model), names.constants_payload(model)):
            from pt2kit.package.layouts.torch_save_archive import TorchSaveArchive

            found: Layout = TorchSaveArchive(layout.archive, layout.root, (model,), "torch 2.8")
        elif layout.first(names.weights_config(model), names.constants_config(model)):
            found = layout
        else:
            found = _container(layout, model) or layout
        for name in found.models if found is not layout else (model,):
            if name in layouts:
                raise ArchiveError(
                    f"{layout.archive.source.name}: expected programs of different names, got {name!a} twice",
                    rule="A24",
                )
            layouts[name] = found
    if not layouts:
        return layout
    kinds = {type(found): found for found in layouts.values()}
    methods = {name: method for one in layouts.values() for name, method in one.methods.items()}
    if len(kinds) > 1:
        return MixedArchive(layout.archive, layout.root, tuple(layouts), _RECORDS, methods, layouts=layouts)
    [(cls, found)] = kinds.items()
    return cls(layout.archive, layout.root, tuple(layouts), found.releases, methods)


def _container(layout: Layout, model: str) -> Layout | None:
    """Return the layout of the programs in a container; None if the record is none. It has no payloads of its name."""
    from pt2kit.package.layouts.container import Container
    from pt2kit.package.legacy_programs import list_programs

    record = layout.program_record(model)
    method_by_program: Mapping[str, str | None] = {model: None}
    with suppress(Pt2Error):  # reading the program reports what is wrong with it
        method_by_program = list_programs(read_json(layout.archive, record, record), record, model)
    methods = {name: (model, method) for name, method in method_by_program.items() if method is not None}
    return Container(layout.archive, layout.root, tuple(methods), _CONTAINERS, methods) if methods else None


def _plain_zip(archive: Archive, where: str, found: tuple[str, ...]) -> Layout:
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
    from pt2kit.package.layouts.torch_save_archive import PlainZip

    if names.PLAIN_STATE_DICT_OLD in plain:
        releases = "torch 2.2" if names.PLAIN_CONSTANTS_OLD in plain else "torch 2.1"
    else:
        releases = "torch 2.4 to 2.7" if names.PLAIN_EXAMPLE_INPUTS in plain else "torch 2.3"
    return PlainZip(archive, "", (PLAIN_MODEL,), releases)


def _find_root(where: str, found: tuple[str, ...]) -> str:
    """Return the one folder that everything is in, with its slash."""
    top = [name for name in found if "/" not in name]
    roots = list(dict.fromkeys(name.partition("/")[0] for name in found if "/" in name))
    if top or len(roots) != 1:
        got = f"records at the top: {_some(top)}" if top else f"{count_text(len(roots), 'folder')}: {_some(roots)}"
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
            f"got neither among {count_text(len(relative), 'record')}",
            rule="A24",
        )
    return tuple(models)


def _check_case(where: str, root: str, relative: list[str], models: tuple[str, ...]) -> None:
    """Refuse a record with the name of one that torch looks up, but for case, which torch's reader ignores."""
    looked_up = {collision_key(name): name for model in models for name in names.looked_up(model)}
    for name in relative:
        if (meant := looked_up.get(collision_key(name), name)) != name:
            raise ArchiveError(
                f"{where}: expected {show_name(root + meant)}, got {show_name(root + name)}: torch's reader, which "
                "ignores case, takes one for the other",
                rule="A7",
            )


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


def _some(found: list[str]) -> str:
    return listed([show_name(name) for name in found], 3)
