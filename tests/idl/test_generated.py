"""Generated files in the repository are what the code generates now."""

from __future__ import annotations

import pytest
from tests.idl.helpers import table
from tools import regen

from pt2kit import idl
from pt2kit.errors import UnsupportedError
from pt2kit.idl.sources import versions


def test_generated_files_are_current():
    """`idl/`, the tables for run time, the tables in the docs; else: make regen."""
    assert [str(path.relative_to(regen.ROOT)) for path in regen.stale()] == []


def test_nothing_else_lies_among_them():
    """A format that is dropped takes its file with it."""
    assert {path.name for path in (regen.ROOT / "idl").iterdir()} == set(idl.FORMATS.values())


@pytest.mark.parametrize("format", idl.FORMATS)
def test_every_format_has_every_version(format):
    """Any version in any language, the same on every call, with its number in it and no tab or trailing blank."""
    for version in versions():
        text = idl.emit(table(version), format)
        assert text == idl.emit(table(version), format)
        assert text.endswith("\n")
        assert f"--format {format} --version {version}" in text
        assert not any(line != line.rstrip() or "\t" in line for line in text.splitlines())


def test_another_format_is_refused():
    """The message lists the known ones."""
    with pytest.raises(
        UnsupportedError, match="format: expected one of yaml, thrift, proto, json-schema, cpp, typescript"
    ):
        idl.emit(table("8.20"), "flatbuffers")
