"""The real metadata texts in texts.json, and Hypothesis strategies for names full of separators."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

_DATA = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))


def texts(key):
    """(release, text) of every stored text of one metadata key."""
    return [(case["release"], case["text"]) for case in _DATA[key]]


pieces = [
    "a",
    "é",
    ",",
    ";",
    "(",
    ")",
    "[",
    "]",
    "%",
    "25",
    "2C",
    "3B",
    "%2C",
    "%252C",
    ".",
    " ",
    ":",
    "'",
    '"',
    "L['s']",
    "\n",
]
names = st.lists(st.one_of(st.sampled_from(pieces), st.text(max_size=3)), max_size=6).map("".join)
