"""Formatting of numbers as short text: `31.2 kB`, `4 tensors`, `12,345`."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def bytes_text(count: int) -> str:
    """Return a number of bytes with a decimal unit: 31200 -> "31.2 kB"."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count and its unit: "1 tensor", "1,200 tensors"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
