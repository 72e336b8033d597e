"""Detection of file types for extra files: a description of a file that is not text."""

from __future__ import annotations

from pt2kit.errors import Pt2Error
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS
from pt2kit.pickles.scan import Uses, scan

_ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")


def not_text(content: memoryview, where: str) -> str:
    """Return what kind of file it is if it is no text: "a zip archive".

    A text counts as a pickle where unpickling it would come to an end, or would call something before it breaks off.

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
