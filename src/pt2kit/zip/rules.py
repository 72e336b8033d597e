"""The rules an archive must keep, by id: the ids that errors carry as `rule` and that the documentation lists.

An id keeps its meaning for ever; a rule that is dropped leaves a hole in the numbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A1": "every byte range that the directory points to can be read from the source, and only by byte ranges",
        "A2": "the file ends with one end record, whose comment ends exactly where the file ends",
        "A3": "ZIP64 end records, where present, stand right before the end record and agree with it",
        "A4": "the directory has exactly the stated offset, size and entry count, and ends where the end records begin",
        "A5": "every directory entry is well formed, its extra fields included",
        "A6": "a record name is a relative path in UTF-8: no NUL, backslash, drive letter or component '', '.' or '..'",
        "A7": "no two records have the same name, also when case or Unicode composition is ignored",
        "A8": "every record is a plain file; entries for folders are empty; links and devices are refused",
        "A9": "no record is encrypted or patched; the only flags are those for deflate levels, descriptors and UTF-8",
        "A10": "records are stored or deflated",
        "A11": "a stored record has one size; a deflated one claims no more than deflate can make of its bytes",
        "A12": "records follow one another from offset 0 to the directory without gap or overlap, on one disk",
        "A13": "a record's local header says what the directory says: name, flags, method, CRC-32, sizes",
        "A14": "a data descriptor stands exactly where flag 3 announces one and repeats CRC-32 and sizes",
        "A15": "a deflated record inflates to exactly its stated size and uses up exactly its bytes",
        "A16": "a record's bytes have the CRC-32 that the directory states",
        "A17": "a record that is asked for exists",
        "A18": "counts and sizes stay within the limits of `Limits`",
        "A19": "the records form one known layout: all under one root folder, or the plain zip of torch 2.1 to 2.7",
        "A20": "archive_format is exactly 'pt2'",
        "A21": "archive_version is a version that this build reads ('0')",
        "A22": ".data/version, where present, is a decimal number in the range that this build reads (1 to 10)",
        "A23": "byteorder, where present, is 'little'",
        "A24": "everything under models/ is models/<name>.json, and the archive holds a program or compiled code",
        "A25": "a program's weights and constants are both described, in one way: by config records, or as .pt files",
        "A26": "an archive holds the records of one layout only",
        "A27": "an archive that is closed, or whose writing failed, is not used any more",
    }
)
"""Rule id -> what must hold."""
