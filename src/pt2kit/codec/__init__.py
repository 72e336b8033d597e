"""JSON bytes <-> plain trees <-> typed objects. Knows no type of the format: callers pass it.

A tree is what JSON is made of: dict, list, str, int, float, bool, None.

Rules (the ids that errors carry):
    J1  the bytes are one JSON document, UTF-8, without a byte-order mark, with numbers that fit
    J2  no object has the same key twice
    J3  nesting stays under the limit
    J4  a union has exactly one key, one that the schema knows
    J5  every value has the type that the schema gives it, and every required key is there
"""

from pt2kit.codec.decoder import Decoded, convert, decode
from pt2kit.codec.encoder import encode, encode_indented, to_tree
from pt2kit.codec.text import MAX_DEPTH, parse
from pt2kit.codec.unknown import Unknown

__all__ = [
    "MAX_DEPTH",
    "Decoded",
    "Unknown",
    "convert",
    "decode",
    "encode",
    "encode_indented",
    "parse",
    "to_tree",
]
