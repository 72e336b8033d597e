"""SHA-256 of values and bytes, with a prefix for the kind of data, so that no kind can be taken for another.

    digest of a value     SHA-256( "pt2kit " kind " 1" NUL encoding )
    digest of bytes       SHA-256( "pt2kit bytes 1" NUL bytes )

"1" numbers the encoding, which is that of all versions of the definition; `docs/digest.md` is normative.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from pt2kit.canonical.encoding import encode_value

PREFIX: Final = "sha256:"
BLOCK: Final = 1 << 24
"""Bytes hashed together, between two reports of progress."""


def hash_value(kind: str, value: Any) -> bytes:
    """Return the digest of a value of some kind, 32 bytes.

    Raises:
        LimitError, UnsupportedError: as `encode_value`.
    """
    return hashlib.sha256(_tag(kind) + encode_value(value)).digest()


def hash_bytes(pieces: Iterable[bytes | memoryview]) -> bytes:
    """Return the digest of bytes that come in pieces, 32 bytes."""
    hasher = hashlib.sha256(_tag("bytes"))
    for piece in pieces:
        hasher.update(piece)
    return hasher.digest()


def text(digest: bytes) -> str:
    """Return a digest as it is written: "sha256:" and 64 hexadecimal digits."""
    return PREFIX + digest.hex()


def _tag(kind: str) -> bytes:
    return f"pt2kit {kind} 1\0".encode()
