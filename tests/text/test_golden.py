"""Sample files as printed: the texts in `golden/`, which a change of wording has to touch."""

from __future__ import annotations

import pytest
from tests.text.golden import CASES, FOLDER, text


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    """A sample file is printed as it was; after a change on purpose, `python -m tests.text.golden` writes the texts."""
    assert text(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_text_has_a_case() -> None:
    """No text is left over from a case that is gone."""
    assert {path.stem for path in FOLDER.iterdir()} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_lines_are_printable(name: str) -> None:
    """No line holds a control character, a tab or trailing blanks."""
    for line in text(name).splitlines():
        assert line.isprintable()
        assert line == line.rstrip()
