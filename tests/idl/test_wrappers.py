"""Types that a language cannot spell in place get names, each its own."""

from __future__ import annotations

import pytest
from tests.idl.helpers import table

from pt2kit.errors import UnsupportedError
from pt2kit.idl.sources import versions
from pt2kit.idl.text import all_types, check_names, entry_name, members, nested, wrapper_name
from pt2kit.schema.fieldtable import AnyOf, Ref, Scalar, TupleOf, parse_type

NAMES = {
    "list[list[int]]": "IntListList",
    "dict[str, Argument]": "ArgumentDict",
    "tuple[()]": "EmptyTuple",
    "tuple[str, int]": "StringIntTuple",
    "Buffer or ExternalBuffer": "BufferOrExternalBuffer",
    "list[str] | None": "OptionalStringList",
    "bytes": "Bytes",
}


@pytest.mark.parametrize("text", NAMES)
def test_names(text):
    """Read from the inside out."""
    assert wrapper_name(parse_type(text, "x")) == NAMES[text]


def test_members_and_entries():
    """Names of the items of a tuple, of one of several types, and of a key with its value."""
    assert [name for name, _ in members(TupleOf((Ref("Graph"), Scalar("int"))))] == ["item0", "item1"]
    assert [name for name, _ in members(AnyOf((Ref("ExternalBuffer"), Scalar("str"))))] == [
        "as_external_buffer",
        "as_string",
    ]
    assert entry_name(parse_type("list[int]", "x")) == "IntListEntry"


def test_inner_types_come_first():
    """So that a definition can follow what it needs."""
    found = [wrapper_name(kind) for kind in nested(parse_type("list[tuple[str, list[int]]]", "x"))]
    assert found == ["String", "Int", "IntList", "StringIntListTuple", "StringIntListTupleList"]


@pytest.mark.parametrize("version", versions())
def test_no_two_types_of_a_version_share_a_name(version):
    """Two messages of one name would be an error of the language."""
    kinds = set(all_types(table(version)))
    assert len({wrapper_name(kind) for kind in kinds}) == len(kinds)


def test_a_taken_name_is_refused():
    """The message names the language and the name."""
    with pytest.raises(UnsupportedError, match="Go: expected no type named Node, which the file itself needs, got one"):
        check_names(iter(["Free", "Node"]), table("8.20"), "Go")
