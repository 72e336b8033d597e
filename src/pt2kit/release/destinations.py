"""The name of a target -> the schema version, the layout and the records that the release of it writes.

draft               one JSON text, tensors inside
1 (2.1)             plain zip; state dict called .json, constants inside the program, no sample inputs
2 (2.2)             plain zip; state dict and constants called .json, no sample inputs
5.1 (2.3)           plain zip; state dict and constants called .pt, no sample inputs
5.3-traces, 5.3 (2.4), 7.3 (2.5), 8.2 (2.6), 8.7 (2.7)      the same with sample inputs
8.6                 archive whose models are containers (`Model`), one record per tensor
8.8 (2.8)           archive; weights, constants and sample inputs as torch.save files
8.14 and later      archive; weights and constants as raw records listed by configs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pt2kit.package import record_names as names
from pt2kit.schema import parse_version
from pt2kit.versions.containers import VERSION as CONTAINER
from pt2kit.versions.identify import DRAFT, TRACES, parse_target

Kind = Literal["archive", "archive-2.8", "plain-zip", "model", "json"]

ARCHIVE_SINCE: Final = (8, 14)
SAVED_ARCHIVE: Final = "8.8"


@dataclass(frozen=True, slots=True)
class Destination:
    """What a conversion writes.

    Args:
        version: the name of the table ("5.3").
        release: the release of torch that is followed ("2.4"); "" for a version that no release wrote.
        operators: the release whose operators programs may call; "" for a version that no release wrote.
        kind: the layout; "model" for an archive of containers, "json" for one JSON text.
        state_dict, constants, sample_inputs: names of the records of a plain zip; "" where it has none.
    """

    version: str
    release: str
    operators: str
    kind: Kind
    state_dict: str = ""
    constants: str = ""
    sample_inputs: str = ""

    @property
    def has_sample_inputs(self) -> bool:
        """Whether sample inputs have a place."""
        return self.kind not in ("plain-zip", "json") or bool(self.sample_inputs)

    @property
    def is_archive(self) -> bool:
        """Whether it is an archive of any number of programs, with one root folder."""
        return self.kind in ("archive", "archive-2.8", "model")

    @property
    def keeps_all_buffers(self) -> bool:
        """Whether buffers that are not persistent are in the state dict too."""
        return self.version in (DRAFT, "1", "2")

    @property
    def has_constants_inside(self) -> bool:
        """Whether constants are part of the program."""
        return self.version in (DRAFT, "1")


def find_destination(target: str) -> Destination:
    """Read the name of a target: a schema version ("8.7", "draft", "5.3-traces") or a release ("torch==2.4").

    Raises:
        VersionError: neither; the ones there are, are listed (M4).
    """
    parsed = parse_target(target)
    version, release, operators = parsed.version, parsed.release, parsed.operators
    if version == DRAFT:
        return Destination(version, release, operators, "json")
    if version == CONTAINER:
        return Destination(version, release, operators, "model")
    if version == SAVED_ARCHIVE:
        return Destination(version, release, operators, "archive-2.8")
    if version != TRACES and parse_version(version) >= ARCHIVE_SINCE:
        return Destination(version, release, operators, "archive")
    old = version in ("1", "2")
    return Destination(
        version,
        release,
        operators,
        "plain-zip",
        names.PLAIN_STATE_DICT_OLD if old else names.PLAIN_STATE_DICT,
        "" if version == "1" else names.PLAIN_CONSTANTS_OLD if old else names.PLAIN_CONSTANTS,
        "" if old or version == "5.1" else names.PLAIN_EXAMPLE_INPUTS,
    )
