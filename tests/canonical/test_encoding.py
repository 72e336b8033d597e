"""Bytes of values: each kind, defaults left out, no two values alike."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import structs

from pt2kit import codec, schema
from pt2kit.canonical import encode_value
from pt2kit.errors import LimitError, UnsupportedError

CASES: list[tuple[Any, bytes]] = [
    (None, b"n"),
    (False, b"f"),
    (True, b"t"),
    (0, b"i0;"),
    (-12, b"i-12;"),
    (2**70, b"i1180591620717411303424;"),
    (1.0, b"d\x3f\xf0\0\0\0\0\0\0"),
    (-0.0, b"d\x80\0\0\0\0\0\0\0"),
    (math.inf, b"d\x7f\xf0\0\0\0\0\0\0"),
    (math.nan, b"d\x7f\xf8\0\0\0\0\0\0"),
    (schema.SpelledFloat("nan"), b"d\x7f\xf8\0\0\0\0\0\0"),
    ("", b"s0:"),
    ("é", b"s2:\xc3\xa9"),
    (b"\0\xff", b"b2:\0\xff"),
    ([], b"l0:"),
    ([1, "a"], b"l2:i1;s1:a"),
    ((1,), b"l1:i1;"),
    ({}, b"o0:"),
    ({"b": 1, "a": None}, b"o2:s1:ans1:bi1;"),
    (schema.ScalarType.FLOAT, b"i7;"),
    (schema.Device("cpu"), b"o1:s4:types3:cpu"),
    (schema.Device("cuda", 1), b"o2:s5:indexi1;s4:types4:cuda"),
    (schema.SymInt(as_int=3), b"o1:s6:as_inti3;"),
    (schema.Argument(as_none=True), b"o1:s7:as_nonet"),
    (schema.Argument(as_bool=False), b"o1:s7:as_boolf"),
]


@pytest.mark.parametrize(("value", "expected"), CASES, ids=lambda case: repr(case)[:40])
def test_each_kind_of_value_has_its_bytes(value: Any, expected: bytes) -> None:
    """The bytes that the documentation defines."""
    assert encode_value(value) == expected


def test_fields_with_their_default_are_left_out() -> None:
    """A field that a later schema adds with a default leaves the bytes of older programs alone."""
    assert encode_value(schema.ModuleCallEntry("")) == b"o1:s3:fqns0:"
    assert encode_value(schema.NamedArgument("x", schema.Argument(as_int=1))).count(b"kind") == 0


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(TREES, TREES)
def test_different_values_have_different_bytes(one: Any, two: Any) -> None:
    """Equal bytes mean equal values of equal types; no value's bytes begin another's."""
    first, second = encode_value(one), encode_value(two)
    if repr(_sorted(one)) == repr(_sorted(two)):
        assert first == second
    else:
        assert not first.startswith(second)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=100)
@given(structs(schema.Node, depth=3), structs(schema.Node, depth=3))
def test_different_nodes_have_different_bytes(one: schema.Node, two: schema.Node) -> None:
    """Structs of the schema, too; what is read back from JSON has the same bytes."""
    assert (encode_value(one) == encode_value(two)) == (codec.encode(one) == codec.encode(two))
    assert encode_value(codec.decode(codec.encode(one), schema.Node, "one").value) == encode_value(one)


def test_what_is_no_value_is_refused() -> None:
    """Other types, other keys, text that is not Unicode, and nesting without end."""
    for value, text in [(object(), "got object"), ({1: 2}, "got other keys"), ("\ud800", "a lone surrogate")]:
        with pytest.raises(UnsupportedError, match=text):
            encode_value(value)
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(LimitError, match="at most 128 levels"):
        encode_value(deep)
