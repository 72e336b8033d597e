"""Conversion targets by name: the schema version, the layout and the records that the release of each writes.

draft               one JSON text, tensors inside
1 (2.1)             plain zip; state dict named .json, constants inside the program, no sample inputs
2 (2.2)             plain zip; state dict and constants named .json, no sample inputs
5.1 (2.3)           plain zip; state dict and constants named .pt, no sample inputs
5.3-traces, 5.3 (2.4), 7.3 (2.5), 8.2 (2.6), 8.7 (2.7)      the same with sample inputs
8.6                 archive whose models are containers (`Model`), one record per tensor
8.8 (2.8)           archive; weights, constants and sample inputs as torch.save files
8.14 and later      archive; weights and constants as raw records listed by configs
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pt2kit.errors import VersionError, attempt
from pt2kit.package import record_names as names
from pt2kit.package.layouts.bare_json import BareJson
from pt2kit.package.layouts.base import Layout
from pt2kit.package.layouts.container import Container
from pt2kit.package.layouts.record_archive import RecordArchive
from pt2kit.package.layouts.torch_save_archive import PlainZip, TorchSaveArchive
from pt2kit.package.open import Package
from pt2kit.package.stored import Kind
from pt2kit.schema import LOG, parse_version
from pt2kit.versions.containers import VERSION as CONTAINER
from pt2kit.versions.identify import DRAFT, TRACES

ARCHIVE_SINCE: Final = (8, 14)
SAVED_ARCHIVE: Final = "8.8"
_OWN_LAYOUTS: Final[Mapping[str, type[Layout]]] = MappingProxyType(
    {DRAFT: BareJson, CONTAINER: Container, SAVED_ARCHIVE: TorchSaveArchive}
)
"""Version -> the layout that it alone has."""
_PLAIN_RECORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "1": (names.PLAIN_STATE_DICT_OLD,),
        "2": (names.PLAIN_STATE_DICT_OLD, names.PLAIN_CONSTANTS_OLD),
        "5.1": (names.PLAIN_STATE_DICT, names.PLAIN_CONSTANTS),
        "5.3": (names.PLAIN_STATE_DICT, names.PLAIN_CONSTANTS, names.PLAIN_EXAMPLE_INPUTS),
    }
)
"""Version -> the records of state dict, constants and sample inputs in a plain zip; later ones have those of 5.3."""
_KINDS: Final[tuple[Kind, ...]] = ("weights", "constants")
_PRODUCER: Final = re.compile(r"torch (\d+\.\d+)")
_RELEASE: Final = re.compile(
    r"torch==(\d+\.\d+)(?:\.\d+)?(?:(?:a|b|rc)\d+)?(?:\.(?:post|dev)\d+)*(?:\+[a-z0-9]+(?:[._-][a-z0-9]+)*)?", re.ASCII
)
"""A release as its own wheels are called."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Target of a conversion.

    Args:
        version: the name of the table ("5.3").
        release: the release of torch that is followed ("2.4"); "" for a version that no release wrote.
        operators: the release whose operators programs may call; "" for a version that no release wrote.
        layout: the layout.
        plain_records: names of the records of state dict, constants and sample inputs in a plain zip, as far as it has
            them.
    """

    version: str
    release: str
    operators: str
    layout: type[Layout]
    plain_records: tuple[str, ...] = ()

    @property
    def has_fixed_name(self) -> bool:
        """Return whether there is only one program, whose name is no part of the file."""
        return not self.layout.is_archive and not self.layout.is_text

    @property
    def holds_containers(self) -> bool:
        """Return whether programs are methods of containers."""
        return self.layout is Container

    def program_record(self, model: str) -> str:
        """Return the name of a program's record below the root folder."""
        return names.PLAIN_PROGRAM if self.has_fixed_name else names.model_json(model)

    def pickles(self, model: str) -> dict[Kind, str]:
        """Return the names of the torch.save files of a program's weights and constants, as far as it has them."""
        if self.layout is TorchSaveArchive:
            return {"weights": names.weights_payload(model), "constants": names.constants_payload(model)}
        return dict(zip(_KINDS, self.plain_records, strict=False))

    def sample_inputs(self, model: str) -> str:
        """Return the name of the record of a program's sample inputs; "" if they have no place."""
        if self.layout.is_archive:
            return names.sample_inputs(model)
        return "".join(self.plain_records[len(_KINDS) :])

    @property
    def keeps_all_buffers(self) -> bool:
        """Return whether buffers that are not persistent are in the state dict too."""
        return self.version in (DRAFT, "1", "2")

    @property
    def has_constants_inside(self) -> bool:
        """Return whether constants are part of the program."""
        return self.version in (DRAFT, "1")


def find_destination(target: str) -> Destination:
    """Read the name of a target: a schema version ("8.7", "draft", "5.3-traces") or a release ("torch==2.4").

    A version stands for the first release that wrote it, and a development state for itself.

    Of a release, what follows its first two numbers ("2.4.1", "2.13.0rc1", "2.13.0+cpu") says nothing about the format.

    Raises:
        VersionError: neither; the ones there are, are listed (M4).
    """
    version, release, operators = _releases_of(target)
    layout = _OWN_LAYOUTS.get(version)
    if layout is None and version != TRACES and parse_version(version) >= ARCHIVE_SINCE:
        layout = RecordArchive
    records = () if layout is not None else _PLAIN_RECORDS.get(version, _PLAIN_RECORDS["5.3"])
    return Destination(version, release, operators, layout or PlainZip, records)


def _releases_of(target: str) -> tuple[str, str, str]:
    """Return the version of a target, the release that is followed, and the one whose operators there are.

    Raises:
        VersionError: as `find_destination`.
    """
    versions = {release: row.number for row in LOG for release in row.releases}
    releases = {DRAFT: (), **{row.number: row.releases for row in LOG}, TRACES: ()}
    if (named := _RELEASE.fullmatch(target)) and (release := named[1]) in versions:
        return versions[release], release, release
    if target in releases:
        return target, *((releases[target][0], releases[target][-1]) if releases[target] else ("", ""))
    number = re.search(r"(\d+\.\d+)(?:\.\d+)?$", target, re.ASCII)
    meant = f"; that release is torch=={number[1]}" if number is not None and number[1] in versions else ""
    raise VersionError(
        f"target: expected a schema version ({', '.join(releases)}) or a release from torch=={next(iter(versions))} to "
        f"torch=={list(versions)[-1]}, got {target!r}{meant}",
        rule="M4",
    )


def own_destination(package: Package) -> Destination:
    """Return the release that wrote a package, or the version of its first program if that is all that is known.

    Raises:
        Pt2Error: the program cannot be read.
    """
    version = package.stored[package.layout.models[0]].version
    if release := _PRODUCER.match(package.producer):
        own = attempt(find_destination, f"torch=={release[1]}")  # None for one newer than all that are known
        if own is not None and own.version == version and isinstance(package.layout, own.layout):
            return own
    return find_destination(version)
