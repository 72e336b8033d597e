"""Validation of record names: the texts that can be names of records, and what is wrong with others.

Names become paths when an archive is unpacked, and keys when a record is looked up; both must mean one thing to
every reader. The meanings of names in a `.pt2` are in `package/record_names.py`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from pt2kit.errors import ArchiveError
from pt2kit.messages import PRINTED, quote

PLAIN_NAME: Final = re.compile(r"\.?[\w-][\w.-]*(?:/\.?[\w-][\w.-]*)*", re.ASCII)
"""Most names there are: components of letters, digits and the like, with at most one dot in front."""


def name_problem(name: str) -> str | None:
    """Return a description of what makes `name` unfit for a record, or None if nothing does (rule A6)."""
    if PLAIN_NAME.fullmatch(name):
        return None
    if not name:
        return "is empty"
    if "\0" in name:
        return "holds a NUL character"
    if "\\" in name:
        return "holds a backslash"
    if name[0] == "/":
        return "is absolute"
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return f"has the component {part!r}"
        if len(part) > 1 and part[1] == ":" and part[0].isascii() and part[0].isalpha():
            return f"has the drive letter {part[:2]!r}"
    return None


def decode_name(raw: bytes, where: str) -> str:
    """Decode a record's name from the bytes of a header and check it; a folder's name keeps its closing slash.

    Raises:
        ArchiveError: the bytes are not UTF-8, or the name is unfit (A6).
    """
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ArchiveError(f"{where}: expected a record name in UTF-8, got {quote(raw, PRINTED)}", rule="A6") from exc
    problem = name_problem(name[:-1] if len(name) > 1 and name.endswith("/") else name)
    if problem:
        raise ArchiveError(
            f"{where}: expected a relative record name, got {quote(name, PRINTED)}, which {problem}", rule="A6"
        )
    return name


def encode_name(name: str, where: str) -> bytes:
    """Encode a record's name for a header, checked as a reader would check it.

    Raises:
        ArchiveError: the name is unfit or cannot be written as UTF-8 (A6).
    """
    problem = name_problem(name)
    if problem:
        raise ArchiveError(
            f"{where}: expected a relative record name, got {quote(name, PRINTED)}, which {problem}", rule="A6"
        )
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ArchiveError(
            f"{where}: expected a record name that UTF-8 can hold, got {quote(name, PRINTED)}", rule="A6"
        ) from exc


def collision_key(name: str) -> str:
    """Return one text for all names that some file system would treat as equal: case and composition are ignored."""
    name = name.rstrip("/")
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def show_name(name: str) -> str:
    """Return a record's name for messages: quoted and escaped if it has unprintable characters, cut if it is long."""
    return name if len(name) <= PRINTED and name.isprintable() else quote(name, PRINTED)
