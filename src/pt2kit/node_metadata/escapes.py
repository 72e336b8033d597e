"""Percent escapes of names in text without separators, used only if a separator is inside a name.

torch joins names with "," and ";" and escapes nothing, so a name that contains one comes back as two. pt2kit writes
such a character as "%" and its two hexadecimal digits ("," is %2C, ";" is %3B). Text without separators inside names
is unchanged, and torch reads the escaped text too (it shows the escape). A name that itself contains the letters of
an escape has "25" put after its percent sign, so that reading and writing are inverse to each other for every name.
"""

from __future__ import annotations

import re

_CODES = {",": "2C", ";": "3B", "(": "28", ")": "29", "[": "5B", "]": "5D"}
_CHARACTERS = {code: character for character, code in _CODES.items()}


def _pattern(separators: str) -> re.Pattern[str]:
    codes = "|".join(_CODES[character] for character in separators)
    return re.compile(rf"%((?:25)*)({codes})|([{re.escape(separators)}])")


_PATTERNS = {separators: _pattern(separators) for separators in (";", ",;", ",;()[]")}


def encode_name(name: str, separators: str, *, only: str | None = None) -> str:
    """Return a name as text without separators.

    Args:
        name: any text.
        separators: the characters that structure the text around it: ";", ",;" or ",;()[]".
        only: the ones to escape, all by default; literal escapes are protected for all of them.
    """
    if "%" not in name and not any(character in name for character in separators):
        return name

    def write(match: re.Match[str]) -> str:
        character = match.group(3)
        if character is None:
            return f"%25{match.group()[1:]}"
        return f"%{_CODES[character]}" if only is None or character in only else character

    return _PATTERNS[separators].sub(write, name)


def decode_name(text: str, separators: str) -> str:
    """Return the name that `encode_name` wrote with these separators; other text is its own name."""
    if "%" not in text:
        return text

    def read(match: re.Match[str]) -> str:
        protected, code, plain = match.groups()
        if plain is not None:
            return str(plain)
        return f"%{protected[2:]}{code}" if protected else _CHARACTERS[code]

    return _PATTERNS[separators].sub(read, text)


def has_escape(text: str, separators: str) -> bool:
    """Return whether reading the text as escaped would change it."""
    return "%" in text and decode_name(text, separators) != text
