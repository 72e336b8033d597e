"""Options of sanitizing by name: extra files, metadata and paths to remove; file types of extra files.

An extra file that is not text is refused with a description of its type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.node_metadata.redaction import PROVENANCE_KEYS, STACK_TRACE_KEYS
from pt2kit.package import record_names as names
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS
from pt2kit.pickles.reader import Uses, scan

DROPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compiled": "compiled code",
        "sample-inputs": "the inputs that programs were exported with",
        "extra": "all extra files",
        "unused": "records that nothing refers to",
    }
)
"""Droppable items and their descriptions; the name of one extra file's record ("extra/note.txt") is valid, too."""

STRIPS: Final[Mapping[str, frozenset[str] | None]] = MappingProxyType(
    {"traces": STACK_TRACE_KEYS, "provenance": PROVENANCE_KEYS, "metadata": None}
)
"""Strip option -> the removed keys of node metadata; None for all, and the graph module's own with them."""

_ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")


@dataclass(frozen=True, slots=True)
class Options:
    """The items that the new file omits.

    Args:
        drop: names of `DROPS`, and records of extra files.
        strip: names of `STRIPS`.
        scrub_paths: whether absolute paths in metadata lose what is particular to a machine.
    """

    drop: frozenset[str] = frozenset()
    strip: frozenset[str] = frozenset()
    scrub_paths: bool = False

    @property
    def stripped_keys(self) -> frozenset[str] | None:
        """Return the removed keys of node metadata; None for all."""
        keys = [STRIPS[name] for name in self.strip]
        return None if None in keys else frozenset().union(*(group for group in keys if group is not None))

    def drops_extra(self, record: str) -> bool:
        """Return whether an extra file is dropped, by its record's name below the root folder."""
        return "extra" in self.drop or record in self.drop


def make_options(drop: Collection[str] = (), strip: Collection[str] = (), scrub_paths: bool = False) -> Options:
    """Check what a caller names.

    Raises:
        TypeError: one text, or anything else that is no collection of texts; a `scrub_paths` that is no bool.
        UnsupportedError: a name that is none of those that may be dropped or stripped.
    """
    _check_names("drop", drop)
    _check_names("strip", strip)
    if not isinstance(scrub_paths, bool):
        raise TypeError(f"scrub_paths: expected True or False, got {scrub_paths!r:.80}")
    for name in drop:
        if name not in DROPS and names.extra_name(name) is None:
            raise UnsupportedError(
                f"drop: expected one of {', '.join(DROPS)}, or the record of an extra file such as 'extra/note.txt', "
                f"got {name[:80]!r}"
            )
    for name in strip:
        if name not in STRIPS:
            raise UnsupportedError(f"strip: expected one of {', '.join(STRIPS)}, got {name[:80]!r}")
    return Options(frozenset(drop), frozenset(strip), scrub_paths)


def _check_names(argument: str, given: object) -> None:
    """Refuse what would be taken apart into other names than the caller meant."""
    if isinstance(given, str):
        raise TypeError(f"{argument}: expected a collection of names, got one text; write {argument}=[{given[:80]!r}]")
    if not isinstance(given, Collection) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"{argument}: expected a collection of names, got {type(given).__name__}: {given!r:.80}")


def not_text(content: memoryview, where: str) -> str:
    """Return the kind of a file that is no text: "a zip archive"; "" for text.

    A text counts as a pickle if unpickling it would succeed, or would call something before it fails.

    Args:
        content: its bytes.
        where: its record, for messages.
    """
    raw = bytes(content)
    if any(mark in raw for mark in _ZIP_MARKS):
        return "a zip archive"
    if raw and _is_pickle(raw, where):
        return "a pickle"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"no text: byte {error.start} is not UTF-8"
    return ""


def _is_pickle(raw: bytes, where: str) -> bool:
    uses = Uses()
    try:
        _, broken = scan(raw[: DEFAULT_PICKLE_LIMITS.stream_bytes], where, DEFAULT_PICKLE_LIMITS, 0, uses)
    except Pt2Error:
        return False
    return broken is None or bool(uses.changed or uses.shaped)
