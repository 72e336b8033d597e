"""Versions of the schema, one line each, oldest first; variable names that are valid in source that torch generates.

CURRENT and MINIMUM follow from the versions. torch generates source from a graph, with its names as variables.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

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


MAX_NAME: Final = 10_000
"""Characters of one name; torch makes names from module paths, which stay below a few hundred."""

GLOBALS: Final[Mapping[str, str]] = {
    "torch": "import torch",
    "fx_pytree": "import torch.fx._pytree as fx_pytree",
    "pytree": "import torch.utils._pytree as pytree",
    "device": "from torch import device",
    "inf": "from math import inf",
    "nan": "from math import nan",
    "NoneType": "NoneType = type(None)",
}
"""Name of generated source that a variable of the same name would hide -> the statement that binds it.

Source: `_custom_builtins` in torch/fx/graph.py, 2.13.
"""


def is_variable(name: str) -> bool:
    """Return whether a value or argument can have a name: an identifier as Python spells it, no keyword, not `self`."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name not in ("self", "__debug__")  # the parameter of the generated function; what nothing is assigned to
        and len(name) <= MAX_NAME
        and is_own_spelling(name)
    )


def is_own_spelling(name: str) -> bool:
    """Return whether Python keeps the spelling of an identifier; it treats some different spellings as one
    identifier."""
    return name.isascii() or unicodedata.normalize("NFKC", name) == name


def free_name(stem: str, is_taken: Callable[[str], bool], first: int = 1, *, separator: str = "_") -> str:
    """Return the first of "stem_1", "stem_2", … that is not taken.

    Args:
        stem: the beginning of the name.
        is_taken: returns whether a name is taken.
        first: the first number to try.
        separator: what is put between stem and number.
    """
    number = first
    while is_taken(name := f"{stem}{separator}{number}"):
        number += 1
    return name
