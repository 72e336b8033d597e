"""JSON codec: bytes, plain trees and typed objects. Depends on no type of the format: callers pass it.

A tree is what JSON is made of: dict, list, str, int, float, bool, None.

Its errors carry the rules J1 to J5 of `pt2kit.rules`.
"""

from pt2kit.codec.decoder import Decoded, convert, decode
from pt2kit.codec.encoder import encode, encode_indented, to_tree
from pt2kit.codec.shapes import Share, Unknown
from pt2kit.codec.text import MAX_DEPTH, parse

__all__ = [
    "MAX_DEPTH",
    "Decoded",
    "Share",
    "Unknown",
    "convert",
    "decode",
    "encode",
    "encode_indented",
    "parse",
    "to_tree",
]
