"""Identification of a parsed program's schema version, and of the frozen table that describes it.

A number between two tables of one major (8.10) is of a development state between two releases: the next newer table
describes it, since minors only add what may be left out. Two versions are recognized by their keys: the design draft,
which has no number, and the other 5.3, which has the number of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pt2kit.errors import SchemaError, VersionError
from pt2kit.messages import listed, quote
from pt2kit.schema import CURRENT, MINIMUM, parse_version
from pt2kit.schema.fieldtable import NAMES
from pt2kit.schema.versions import stated_pair

DRAFT: Final = "draft"
TRACES: Final = "5.3-traces"
_TABLE_KEY: Final = "co_fileinfo_ordered_list"
_NUMBERED: Final = tuple(name for name in NAMES if name not in (DRAFT, TRACES))


@dataclass(frozen=True, slots=True)
class Found:
    """The version that a program declares.

    Args:
        number: as stored: "8.10", "2", or "draft".
        table: the name of the table that describes it: "8.14", "2", "draft", "5.3-traces".
    """

    number: str
    table: str


def find_version(raw: Any, where: str) -> Found:
    """Read the version of a parsed program.

    Args:
        raw: parsed JSON, as it was stored.
        where: the record's name, for messages.

    Raises:
        SchemaError: no program (M5).
        VersionError: a version that no table describes: a newer major, or one that no release wrote (M4).
    """
    if not isinstance(raw, dict):
        raise SchemaError(f"{where}: $: expected an object, got {type(raw).__name__}", rule="M5")
    number = _number(raw, where)
    if number == DRAFT:
        return Found(DRAFT, DRAFT)
    pair = parse_version(number)
    if pair[:1] == parse_version("5.3")[:1] and _has_tables(raw):
        return Found(number, TRACES)
    candidates = [name for name in _NUMBERED if parse_version(name)[0] == pair[0] and parse_version(name) >= pair]
    if candidates:
        return Found(number, candidates[0])
    if pair[0] == CURRENT.pair[0]:  # a newer minor: what it adds is kept as unknown
        return Found(number, CURRENT.number)
    if pair > CURRENT.pair:
        hint = f"newer than {CURRENT.number}, the newest that this build reads; upgrade pt2kit"
    else:
        hint = f"which no release of torch wrote (the oldest is {MINIMUM.number})"
    majors = ", ".join(dict.fromkeys(str(parse_version(name)[0]) for name in _NUMBERED))
    message = f"{where}: $.schema_version: expected a version of major {majors}, got {number}, {hint}"
    raise VersionError(message, rule="M4")


def _number(raw: dict[str, Any], where: str) -> str:
    stated = raw.get("schema_version")
    pair = stated_pair(stated)
    if pair is not None and min(pair) >= 0:
        return str(stated) if isinstance(stated, int) else f"{pair[0]}.{pair[1]}"
    if is_draft(raw):
        return DRAFT
    if "schema_version" not in raw and "graph_module" not in raw:
        keys = f"with the keys {listed([quote(key, 40) for key in raw], 5)}" if raw else "without keys"
        raise SchemaError(f"{where}: $.schema_version: expected a program, got another JSON object, {keys}", rule="M5")
    got = repr(stated)[:80] if "schema_version" in raw else "none"
    raise SchemaError(
        f"{where}: $.schema_version: expected a number or {{major, minor}} of numbers, got {got}", rule="M5"
    )


def is_draft(raw: dict[str, Any]) -> bool:
    """Return whether a program without a version is a design draft."""
    return "schema_version" not in raw and {"graph", "parameters", "buffers"} <= raw.keys()


def _has_tables(raw: Any) -> bool:
    """Return whether any graph has a table of source files; the root graph of a 5.3-traces program always does."""
    match raw:
        case {"graph_module": {"graph": dict(graph)}}:
            return _TABLE_KEY in graph
    return False
