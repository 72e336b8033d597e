"""JSON codec: bytes, plain trees and typed objects. Depends on no type of the format: callers pass it.

A tree is what JSON is made of: dict, list, str, int, float, bool, None.

Its errors carry the rules J1 to J5 of `pt2kit.rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.codec.decoder import Decoded as Decoded
    from pt2kit.codec.decoder import convert as convert
    from pt2kit.codec.decoder import decode as decode
    from pt2kit.codec.encoder import encode as encode
    from pt2kit.codec.encoder import encode_indented as encode_indented
    from pt2kit.codec.encoder import to_tree as to_tree
    from pt2kit.codec.shapes import Share as Share
    from pt2kit.codec.shapes import Unknown as Unknown
    from pt2kit.codec.text import MAX_DEPTH as MAX_DEPTH
    from pt2kit.codec.text import parse as parse

__getattr__, __dir__, __all__ = front_door(__name__)
