"""Sanitized files as bytes, and what tests look for in them."""

from __future__ import annotations

import io
from typing import Any

import pt2kit
from pt2kit.errors import Pt2Error
from pt2kit.package import record_names as names
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS
from pt2kit.pickles.reader import Uses, scan
from pt2kit.sanitizing import Sanitized

RAW = ("weight", "tensor constant", "other")
"""Kinds of records that hold numbers, which may look like anything."""


def sanitized(source: Any, **options: Any) -> tuple[bytes, Sanitized]:
    """A file without pickles, and what became of it."""
    if isinstance(source, bytes):
        source = io.BytesIO(source)
    buffer = io.BytesIO()
    done = pt2kit.sanitize(source, buffer, **options)
    return buffer.getvalue(), done


def pickles_in(data: bytes) -> list[str]:
    """The records that are zip archives, or pickles as torch or Python would read them."""
    found = []
    with pt2kit.open(data) as package:
        for record in package.records:
            content = bytes(package.archive.read(record))
            is_raw = names.kind(package.relative(record)) in RAW
            if b"PK\x03\x04" in content or (not is_raw and content and _is_pickle(content)):
                found.append(record)
    return found


def _is_pickle(content: bytes) -> bool:
    try:
        return scan(content, "record", DEFAULT_PICKLE_LIMITS, 0, Uses())[1] is None
    except Pt2Error:
        return False
