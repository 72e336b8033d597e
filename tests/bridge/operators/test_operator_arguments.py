"""Names of positional arguments for the design draft: the file in the package, compared with torch."""

from __future__ import annotations

from tools import operator_arguments


def test_arguments_are_those_of_torch() -> None:
    """Each operator has the names of arguments that torch states; the tool would write the same file."""
    stored, found = operator_arguments.TARGET.read_text(encoding="utf-8"), operator_arguments.text()
    lines = set(stored.splitlines()) ^ set(found.splitlines())
    assert not lines, sorted(lines)[:5]
    assert stored == found
