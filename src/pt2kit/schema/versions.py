"""Versions of the schema, one line each, oldest first. CURRENT and MINIMUM follow from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pt2kit.errors import VersionError


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the schema.

    Args:
        number: as files carry it ("8.20"; "1" before there were minors).
        releases: the torch releases that write it ("2.12"); empty for a development state.
        note: its changes, in a line.

    Attributes:
        pair: (major, minor).
    """

    number: str
    releases: tuple[str, ...]
    note: str
    pair: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        """Set the pair."""
        object.__setattr__(self, "pair", parse_version(self.number))


def parse_version(number: str) -> tuple[int, int]:
    """Turn "8.20" or "2" into (major, minor).

    Raises:
        VersionError: the text is not one or two decimal numbers.
    """
    if not (match := re.fullmatch(r"([0-9]+)(?:\.([0-9]+))?", number)):
        raise VersionError(f"schema version: expected major.minor like 8.20, got {number!r}")
    return int(match[1]), int(match[2] or 0)


def stated_pair(value: Any) -> tuple[int, int] | None:
    """Return (major, minor) of a parsed `schema_version`: a number, or an object of both; None for anything else."""
    match value:
        case bool():
            return None
        case int(major):
            return major, 0
        case {"major": int(major), "minor": int(minor)} if bool not in (type(major), type(minor)):
            return major, minor
    return None


LOG: tuple[Version, ...] = (
    Version("1", ("2.1",), "first release; flat signature tables, constants inside the graph"),
    Version("2", ("2.2",), "input and output specs, call specs in the module call graph, hints as a union"),
    Version("5.1", ("2.3",), "versions are pairs, unions have one key, custom objects, persistent flag of buffers"),
    Version("5.3", ("2.4",), "effect tokens and constant inputs"),
    Version("7.3", ("2.5",), "verifiers and torch_version replace dialect; metadata on the graph module"),
    Version("8.2", ("2.6",), "wire ids, symbolic floats, uint16; None is true, expressions are srepr"),
    Version("8.6", (), "development state with Program and Model; float8"),
    Version("8.7", ("2.7",), "kinds of arguments, single-tensor returns of higher-order ops, named-tuple fields"),
    Version("8.8", ("2.8",), "optional tensors as outputs"),
    Version("8.14", ("2.9",), "guards, complex values, payload configs, parameter mutation"),
    Version("8.15", ("2.10",), "lists of int lists, dicts of arguments"),
    Version("8.17", ("2.11",), "names of nodes, nested tensor lists"),
    Version("8.20", ("2.12", "2.13", "2.14", "2.15"), "lists of float lists, unsigned 32 and 64 bit, float8 e8m0"),
)

CURRENT: Version = LOG[-1]
MINIMUM: Version = LOG[0]


def release_of(torch_version: str) -> str:
    """Return the release in the torch version of a program: "2.13" of "2.13.0+cpu". Some old files say "<=2.4"."""
    return ".".join(torch_version.split(".")[:2])


def release_written(torch_version: str, stored_version: str) -> str:
    """Return the release of torch that exported a program ("2.13"), as far as the file states it, else "".

    Args:
        torch_version: as the program has it ("2.13.0+cpu", "<=2.4").
        stored_version: the schema version that it was stored in, which shows the release if nothing else does.
    """
    if match := re.match(r"(\d{1,4})\.(\d{1,4})(?:\.|$|\+|a|rc)", torch_version, re.ASCII):
        return f"{match[1]}.{match[2]}"
    releases = next((row.releases for row in LOG if row.number == stored_version), ())
    return releases[0] if len(releases) == 1 else ""
