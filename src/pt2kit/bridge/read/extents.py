"""How large what a program describes may be: the numbers of a tensor, and the bytes that it spans."""

from __future__ import annotations

from typing import Final

from pt2kit import schema
from pt2kit.checks.sizes import spanned_bytes
from pt2kit.errors import LimitError

MAX_NUMBER: Final = (1 << 63) - 1
"""The largest size, stride or offset that torch counts."""

MAX_STATIC_BYTES: Final = 1 << 40
"""What any one value without symbols may need: more than the memory of any one device."""


def check_extent(meta: schema.TensorMeta, where: str) -> None:
    """Refuse a value that no device could hold.

    Raises:
        LimitError: it has no symbols, and needs more than `MAX_STATIC_BYTES`.
    """
    needed = spanned_bytes(meta)
    if needed > MAX_STATIC_BYTES:
        raise LimitError(f"{where}: expected at most {MAX_STATIC_BYTES} bytes, got {needed}")
