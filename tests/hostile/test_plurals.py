"""No message about a bad file counts one thing in the plural ("got 1 arguments", "1 argument(s)")."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import samples

import pt2kit

FILES = sorted((Path(__file__).parents[2] / "conformance" / "bad").glob("*.pt2"))
FILES += [case["path"] for case in samples.hostile()]
NOUNS = (
    *("argument", "operand", "result", "input", "output", "value", "node", "element", "dimension", "size", "stride"),
    *("byte", "entrie", "name", "leave", "tensor", "graph", "record", "program", "weight", "number", "key", "field"),
    *("bit", "character", "level", "item", "spec", "symbol", "payload", "part", "mark", "line", "global", "problem"),
)
PLURAL = re.compile(rf"(?<!or )(?<!- )\b1 (?:{'|'.join(NOUNS)})s\b|\w\(s\)")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_one_thing_is_counted_in_the_singular(file: Path) -> None:
    """The messages of `check`, hints included."""
    found = [f"{problem.message} {problem.hint}" for problem in pt2kit.check(file, payloads=True)]
    assert [text for text in found if PLURAL.search(text)] == []
