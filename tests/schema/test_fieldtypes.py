"""The text of a type reads to data and back; anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.idl.helpers import table

from pt2kit.errors import SchemaError
from pt2kit.idl.sources import versions
from pt2kit.schema.fieldtable import AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type, parse_type, type_text

CASES: dict[str, Type] = {
    "int": Scalar("int"),
    "Graph": Ref("Graph"),
    "list[list[float]]": ListOf(ListOf(Scalar("float"))),
    "dict[str, SymInt]": DictOf(Ref("SymInt")),
    "list[str] | None": Nullable(ListOf(Scalar("str"))),
    "tuple[()]": TupleOf(()),
    "tuple[list[bytes], dict[str, bytes]] | None": Nullable(
        TupleOf((ListOf(Scalar("bytes")), DictOf(Scalar("bytes"))))
    ),
    "Buffer or ExternalBuffer": AnyOf((Ref("Buffer"), Ref("ExternalBuffer"))),
}

TORCH = {
    "List[int]": "list[int]",
    "Optional[bool]": "bool | None",
    "Dict[str, List[TensorArgument]]": "dict[str, list[TensorArgument]]",
    "Optional[List[str]]": "list[str] | None",
}

BAD = (
    "",
    "list[",
    "list[int",
    "list[int]]",
    "list[int, str]",
    "dict[int, str]",
    "dict[str]",
    "None",
    "int |",
    "int; drop",
    "int int",
    "Set[int]",
    "int | str",
    "int and str",
    "None | int",
    "tuple[int][int]",
    "f(int)",
    "'int'",
    "a.b",
    "int\0",
    "(" * 150 + "int" + ")" * 40,
)


@pytest.mark.parametrize("text", CASES)
def test_a_text_is_a_type(text):
    """Both ways."""
    assert parse_type(text, "x") == CASES[text]
    assert type_text(CASES[text]) == text


@pytest.mark.parametrize("text", TORCH)
def test_the_spelling_of_torch_is_understood(text):
    """Upper case, and Optional."""
    assert type_text(parse_type(text, "x")) == TORCH[text]


@pytest.mark.parametrize("text", BAD)
def test_other_text_is_refused(text):
    """With the field's name and what was expected."""
    with pytest.raises(SchemaError, match=r"^Node\.name: expected a type such as int, .*, got ['\"]"):
        parse_type(text, "Node.name")


def test_long_text_is_refused():
    """Before it is read."""
    with pytest.raises(SchemaError, match=r"^Node\.name: expected a type of at most 200 characters, got 243"):
        parse_type("list[" * 40 + "int" + "]" * 40, "Node.name")


@pytest.mark.parametrize("version", versions())
def test_every_type_of_every_version_comes_back(version):
    """Text and type are the same thing."""
    for definition in table(version).definitions.values():
        for field in definition.fields.values():
            assert parse_type(type_text(field.type), "x") == field.type


@given(st.text(st.sampled_from("aiNont[](),|. orlistdcupe"), max_size=40) | st.text(max_size=10))
def test_no_text_brings_another_error(text):
    """Any text is a type or refused, and a type's text means the same type."""
    try:
        found = parse_type(text, "x")
    except SchemaError:
        return
    assert parse_type(type_text(found), "x") == found
